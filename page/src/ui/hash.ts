// SPDX-License-Identifier: Apache-2.0
//
// The link to a moment: #t=1200&range=0-5000&process=14263&device=0&by=stack. Times are nanoseconds.
import type { State } from './state';

export interface Link {
  t?: number;
  range?: [number, number];
  process?: number; // its pid; -1: all
  device?: number;
  by?: string;
}

export function parseLink(hash: string): Link {
  const link: Link = {};
  const parameters = new URLSearchParams(hash.replace(/^#/, ''));
  const number = (name: string): number | undefined => {
    const text = parameters.get(name);
    const value = text === null || text === '' ? NaN : Number(text);
    return Number.isFinite(value) ? value : undefined;
  };
  link.t = number('t');
  link.process = number('process');
  link.device = number('device');
  const range = /^(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(parameters.get('range') ?? '');
  if (range && Number(range[2]) > Number(range[1])) link.range = [Number(range[1]), Number(range[2])];
  const by = parameters.get('by');
  if (by === 'stack' || by === 'function' || by === 'kind') link.by = by;
  return link;
}

export function formatLink(state: State): string {
  const round = (time: number) => (state.to - state.from < 1000 ? Number(time.toFixed(2)) : Math.round(time));
  const parts = [`t=${round(state.cursor)}`, `range=${round(state.from)}-${round(state.to)}`];
  const process = state.model?.recording.header.processes[state.process];
  if (process) parts.push(`process=${process.pid}`);
  parts.push(`device=${state.device}`, `by=${state.by}`);
  return `#${parts.join('&')}`;
}

export function applyLink(state: State, link: Link): void {
  const { model } = state;
  if (!model) return;
  if (link.process !== undefined) state.process = model.recording.header.processes.findIndex(({ pid }) => pid === link.process);
  if (link.device !== undefined && model.devices.includes(link.device)) state.device = link.device;
  if (link.by) state.by = link.by as State['by'];
  if (link.range) state.setView(...link.range);
  if (link.t !== undefined) {
    state.setCursor(link.t);
    if (!link.range) state.reveal(state.cursor);
  }
}
