// SPDX-License-Identifier: Apache-2.0
//
// The whole recording in a strip: memory, failed calls, hits, and the part that is in view. Drag
// moves that part, a drag outside of it chooses another one.
import { byId } from './dom';
import type { State } from './state';

export class OverviewView {
  private readonly canvas = document.createElement('canvas');
  private readonly picture = document.createElement('canvas'); // what does not change with the view
  private pictureKey: unknown[] = [];

  constructor(private readonly state: State, private readonly gutter: () => number) {
    const container = byId('overview');
    container.append(this.canvas);
    new ResizeObserver(() => state.invalidate('overview')).observe(container);
    state.register('overview', () => this.draw());
    container.addEventListener('pointerdown', (event) => this.drag(event));
  }

  private draw(): void {
    const container = byId('overview');
    const { state } = this;
    const ratio = devicePixelRatio || 1;
    const width = container.clientWidth;
    const height = container.clientHeight;
    for (const canvas of [this.canvas, this.picture]) {
      if (canvas.width === Math.round(width * ratio) && canvas.height === Math.round(height * ratio)) continue;
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      this.pictureKey = [];
    }
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    const key = [state.model, state.process, state.device, state.hits, state.theme];
    if (key.some((value, i) => value !== this.pictureKey[i])) {
      this.drawPicture(width, height, ratio);
      this.pictureKey = key;
    }
    const context = this.canvas.getContext('2d')!;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.drawImage(this.picture, 0, 0);
    if (!state.model) return;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const left = this.gutter();
    const x = (time: number) => left + ((time - state.start) / state.length) * (width - left);
    context.fillStyle = state.theme.window;
    context.fillRect(left, 0, x(state.from) - left, height);
    context.fillRect(x(state.to), 0, width - x(state.to), height);
    context.strokeStyle = state.theme.accent;
    context.strokeRect(x(state.from) + 0.5, 0.5, Math.max(2, x(state.to) - x(state.from) - 1), height - 1);
    context.fillStyle = state.theme.accent;
    context.fillRect(Math.round(x(state.cursor)), 0, 1, height);
    container.setAttribute('aria-valuenow', String(Math.round((100 * ((state.from + state.to) / 2 - state.start)) / state.length)));
  }

  private drawPicture(width: number, height: number, ratio: number): void {
    const { model, theme, process, device, by, hits, start, length } = this.state;
    const context = this.picture.getContext('2d')!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = theme.surface;
    context.fillRect(0, 0, width, height);
    if (!model) return;
    const left = this.gutter();
    const columns = Math.max(1, Math.floor(width - left));
    const series = model.series(process, device, by);
    const events = new Int32Array(columns);
    series.columns(start, start + length, columns, events);
    context.fillStyle = theme.density;
    const peak = series.peakBytes || 1;
    for (let c = 0; c < columns; c++) {
      const tall = events[c]! < 0 ? 0 : (series.totals[events[c]!]! / peak) * (height - 8);
      context.fillRect(left + c, height - tall, 1, tall);
    }
    const { calls } = model.recording;
    const mark = (call: number) => Math.floor(((calls.begin[call]! - start) / length) * columns);
    context.fillStyle = theme.failed;
    for (let call = 0, last = -1; call < calls.count; call++) {
      if (calls.code[call] === 0) continue;
      const at = mark(call);
      if (at !== last) context.fillRect(left + at, 0, 1, 5);
      last = at;
    }
    if (hits) {
      context.fillStyle = theme.accent;
      let last = -1;
      for (const call of hits) {
        const at = mark(call);
        if (at !== last) context.fillRect(left + at, height - 7, 1, 7);
        last = at;
      }
    }
    context.font = '11px system-ui, sans-serif';
    context.fillStyle = theme.muted;
    context.textBaseline = 'middle';
    context.fillText('Whole recording', 14, height / 2);
  }

  private drag(event: PointerEvent): void {
    const { state } = this;
    const container = byId('overview');
    const box = container.getBoundingClientRect();
    const left = this.gutter();
    const time = (e: PointerEvent) => state.start + Math.max(0, Math.min(1, (e.clientX - box.left - left) / (box.width - left))) * state.length;
    const pressed = time(event);
    const moves = pressed >= state.from && pressed <= state.to && !state.showsAll;
    const { from, to } = state;
    container.setPointerCapture(event.pointerId);
    let wide = false;
    const move = (e: PointerEvent) => {
      const now = time(e);
      if (moves) state.setView(from + now - pressed, to + now - pressed);
      else if (wide || Math.abs(e.clientX - event.clientX) > 3) {
        wide = true;
        state.setView(Math.min(pressed, now), Math.max(pressed, now));
      }
    };
    const up = () => {
      container.removeEventListener('pointermove', move);
      if (!moves && !wide) state.setView(pressed - (to - from) / 2, pressed + (to - from) / 2);
    };
    container.addEventListener('pointermove', move);
    container.addEventListener('pointerup', up, { once: true });
    event.preventDefault();
    container.focus();
  }
}
