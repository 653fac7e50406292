// SPDX-License-Identifier: Apache-2.0
//
// The head of the page: what ran, its figures, and what the reader must know about the recording.
import { compareWithSummary } from '../data/figures';
import { counted, formatBytes, formatCount, formatDuration } from '../data/format';
import type { Header } from '../data/recording';
import { byId, make } from './dom';
import type { State } from './state';

export function showTitle(header: Header): void {
  const [first] = header.processes;
  byId('title').textContent = header.title || first?.program || 'Recording';
  document.title = `${header.title || 'Recording'} – Understudy timeline`;
  const parts = [first?.program, header.processes.length > 1 ? `${header.processes.length} processes` : first ? `process ${first.pid}` : undefined,
    first ? `${first.product}, ${first.devices} devices` : undefined, header.wall_clock_ms > 0 ? new Date(header.wall_clock_ms).toLocaleString() : undefined];
  byId('subtitle').textContent = parts.filter((part) => part).join('  ·  ');
}

// Figures are computed from the columns, not taken from the summary.
export function showFigures(state: State, onFailed: () => void, onLeaks: () => void, onPeak: (device: number, time: number) => void): void {
  const model = state.model!;
  const { figures } = model;
  const list = byId('figures');
  const figure = (name: string, value: string, key: string, action?: () => void, tone = '') => {
    let shown: Node | string = value;
    if (action) {
      const button = make('button', { type: 'button' }, value);
      button.addEventListener('click', action);
      shown = button;
    }
    return make('div', { 'data-figure': key, class: tone }, make('dt', {}, name), make('dd', {}, shown));
  };
  const peaks = model.devices.map((device) => ({ device, series: model.series(-1, device, state.by) })).filter(({ series }) => series.peakBytes > 0);
  peaks.sort((a, b) => b.series.peakBytes - a.series.peakBytes);
  list.replaceChildren(
    figure('duration', formatDuration(model.duration), 'duration'),
    figure('calls', formatCount(figures.calls), 'calls'),
    figure('failed', formatCount(figures.failed_calls), 'failed_calls', figures.failed_calls > 0 ? onFailed : undefined, figures.failed_calls > 0 ? 'failed' : ''),
    figure('tasks', formatCount(figures.tasks), 'tasks'),
    ...peaks.slice(0, 3).map(({ device, series }) =>
      figure(device < 0 ? 'peak of host' : `peak of device ${device}`, formatBytes(series.peakBytes), `peak${device}`, () => onPeak(device, series.peakAt))),
    figure('alive at end', figures.leaks.objects === 0 ? 'none' : `${counted(figures.leaks.objects, 'object')}, ${formatBytes(figures.leaks.bytes)}`, 'leaks', onLeaks),
  );
}

// `more`: what is known besides.
export function showNotes(state: State, more: string | null): void {
  const model = state.model!;
  const { header } = model.recording;
  const notes = header.notes.map((note) => note.charAt(0).toUpperCase() + note.slice(1) + (/[.!?]$/.test(note) ? '' : '.'));
  if (header.lost > 0) notes.push(`${formatCount(header.lost)} records are lost: the recording found no room for them. What is shown is incomplete.`);
  if (header.ring) notes.push('The recording is a ring: its beginning may be missing, and objects made before it with it.');
  if (!header.stacks_recorded && header.processes.length > 0) notes.push('Stacks were not recorded.');
  notes.push(...compareWithSummary(model.figures, header.summary, (peak) => {
    const process = peak.process;
    return model.series(process, peak.device, state.by).peakBytes;
  }));
  if (more) notes.push(more);
  showBanner(notes, false);
}

export function showBanner(notes: string[], isError: boolean): void {
  const banner = byId('banner');
  banner.replaceChildren(...notes.map((note) => make('p', {}, note)));
  banner.className = isError ? 'error' : '';
  banner.setAttribute('role', isError ? 'alert' : 'status');
  banner.hidden = notes.length === 0;
}

export function fillSelectors(state: State): void {
  const { header } = state.model!.recording;
  const fill = (id: string, options: [string, string][], value: string) => {
    const select = byId<HTMLSelectElement>(id);
    select.replaceChildren(...options.map(([key, text]) => make('option', { value: key }, text)));
    select.value = value;
  };
  fill('process', [['-1', header.processes.length > 1 ? `all ${header.processes.length}` : 'all'], ...header.processes.map(({ pid, program }, i): [string, string] => [String(i), `${pid} ${program}`])], String(state.process));
  fill('device', state.model!.devices.map((device): [string, string] => [String(device), device < 0 ? 'host' : `device ${device}`]), String(state.device));
  byId<HTMLSelectElement>('by').value = state.by;
}
