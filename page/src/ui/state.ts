// SPDX-License-Identifier: Apache-2.0
//
// What the page shows: the recording, the part of time in view, the cursor, what is chosen and what
// is selected. Views read it and are told which of them must draw again.
import type { Model } from '../data/model';
import type { GroupBy } from '../data/series';
import { type Theme, themes } from '../draw/theme';

export type Item = { type: 'call' | 'task' | 'object'; index: number };
export type Part = 'tracks' | 'overlay' | 'overview' | 'address' | 'panels' | 'details';

const kShortestView = 20; // nanoseconds

export class State {
  model: Model | null = null;
  from = 0;
  to = 1;
  cursor = 0;
  hoverTime: number | null = null;
  process = -1;
  device = 0;
  by: GroupBy = 'stack';
  hovered: Item | null = null;
  selected: Item | null = null;
  hits: Uint32Array | null = null;
  hit = -1; // position in hits
  theme: Theme = themes.light;
  private readonly dirty = new Set<Part>();
  private scheduled = false;
  private readonly drawers = new Map<Part, () => void>();
  onViewChange: () => void = () => undefined;

  register(part: Part, draw: () => void): void {
    this.drawers.set(part, draw);
  }

  invalidate(...parts: Part[]): void {
    for (const part of parts) this.dirty.add(part);
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => this.flush());
  }

  flush(): void {
    this.scheduled = false;
    const parts = [...this.dirty];
    this.dirty.clear();
    for (const part of parts) this.drawers.get(part)?.();
  }

  get duration(): number {
    return this.model?.duration ?? 1;
  }

  get start(): number {
    return this.model?.start ?? 0;
  }
  // From where the timeline begins.
  get length(): number {
    return Math.max(1, this.duration - this.start);
  }

  get showsAll(): boolean {
    return this.from <= this.start && this.to >= this.duration;
  }

  showAll(): void {
    this.setView(this.start, this.duration);
  }

  setView(from: number, to: number): void {
    const span = Math.min(this.length, Math.max(kShortestView, to - from));
    if (to - from < kShortestView) from = (from + to) / 2 - span / 2;
    this.from = Math.max(this.start, Math.min(from, this.duration - span));
    this.to = this.from + span;
    this.invalidate('tracks', 'overlay', 'overview');
    this.onViewChange();
  }

  zoom(factor: number, around: number): void {
    const span = Math.min(this.length, Math.max(kShortestView, (this.to - this.from) * factor));
    const share = (around - this.from) / (this.to - this.from);
    this.setView(around - share * span, around - share * span + span);
  }

  pan(time: number): void {
    this.setView(this.from + time, this.to + time);
  }

  // Brings a moment into view, with as little change as possible.
  reveal(time: number, length = 0): void {
    const span = this.to - this.from;
    if (time >= this.from && time + Math.min(length, span) <= this.to) return;
    this.setView(time + length / 2 - span / 2, time + length / 2 + span / 2);
  }

  setCursor(time: number): void {
    this.cursor = Math.max(this.start, Math.min(this.duration, time));
    this.invalidate('tracks', 'overlay', 'overview', 'address');
    this.onViewChange();
  }

  select(item: Item | null): void {
    this.selected = item;
    this.invalidate('overlay', 'details', 'address', 'panels');
  }
}
