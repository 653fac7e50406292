// SPDX-License-Identifier: Apache-2.0
//
// Pointer, wheel and keys on the tracks; playing; the splitter; the theme.
import { formatMoment } from '../data/format';
import { kAxisHeight } from '../draw/layout';
import { themes } from '../draw/theme';
import { byId } from './dom';
import type { State } from './state';
import { hideTooltip } from './tooltip';
import type { TracksView } from './tracks';

export function attachPointer(state: State, view: TracksView): void {
  const element = byId('tracks');
  const place = (event: PointerEvent | WheelEvent): [number, number] => {
    const box = element.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  let drag: { x: number; y: number; from: number; to: number; scroll: number; moved: boolean; scrubs: boolean } | null = null;
  element.addEventListener('wheel', (event) => {
    const [x] = place(event);
    if (x < view.gutter) return; // scrolls the lanes
    event.preventDefault();
    const span = state.to - state.from;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      state.pan(((event.deltaX || event.deltaY) / view.plotWidth) * span);
      return;
    }
    const pixels = event.deltaMode === 1 ? event.deltaY * 20 : event.deltaY;
    state.zoom(Math.exp(Math.max(-240, Math.min(240, pixels)) * 0.002), view.timeAt(x));
    state.hoverTime = view.timeAt(x);
  }, { passive: false });
  element.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    const [x, y] = place(event);
    if (x > element.clientWidth) return; // the scroll bar
    drag = { x, y, from: state.from, to: state.to, scroll: element.scrollTop, moved: false, scrubs: y < kAxisHeight && x >= view.gutter };
    element.setPointerCapture(event.pointerId);
    if (drag.scrubs) state.setCursor(view.timeAt(x));
  });
  element.addEventListener('pointermove', (event) => {
    const [x, y] = place(event);
    if (!drag) {
      view.hover(x, y, event.clientX, event.clientY);
      return;
    }
    if (drag.scrubs) {
      state.setCursor(view.timeAt(x));
      return;
    }
    if (!drag.moved && Math.abs(x - drag.x) + Math.abs(y - drag.y) < 4) return;
    drag.moved = true;
    hideTooltip();
    const shift = ((drag.x - x) / view.plotWidth) * (drag.to - drag.from);
    state.setView(drag.from + shift, drag.to + shift);
    element.scrollTop = drag.scroll + drag.y - y;
  });
  element.addEventListener('pointerup', (event) => {
    const was = drag;
    drag = null;
    if (!was || was.moved || was.scrubs) return;
    const [x, y] = place(event);
    if (x < view.gutter) return;
    state.setCursor(view.timeAt(x));
    state.select(view.itemAt(x, y));
  });
  element.addEventListener('pointercancel', () => (drag = null));
  element.addEventListener('pointerleave', () => {
    state.hoverTime = null;
    state.hovered = null;
    hideTooltip();
    state.invalidate('overlay', 'tracks');
  });
}

// The cursor moves over the view in ten seconds.
export class Player {
  private last = 0;
  isPlaying = false;

  constructor(private readonly state: State) {
    byId('play').addEventListener('click', () => this.toggle());
    const slider = byId<HTMLInputElement>('moment');
    slider.addEventListener('input', () => state.setCursor(state.start + (Number(slider.value) / 10000) * state.length));
  }

  toggle(): void {
    this.isPlaying = !this.isPlaying;
    byId('play').textContent = this.isPlaying ? 'Stop' : 'Play';
    if (!this.isPlaying) return;
    const { state } = this;
    if (state.cursor < state.from || state.cursor >= state.to) state.setCursor(state.from);
    this.last = performance.now();
    requestAnimationFrame((now) => this.step(now));
  }

  showMoment(): void {
    const { state } = this;
    byId<HTMLInputElement>('moment').value = String(Math.round(((state.cursor - state.start) / state.length) * 10000));
    byId('moment-text').textContent = formatMoment(state.cursor, Math.max(1, (state.to - state.from) / 1000));
  }

  private step(now: number): void {
    if (!this.isPlaying) return;
    const { state } = this;
    state.setCursor(state.cursor + ((now - this.last) / 10000) * (state.to - state.from));
    this.last = now;
    if (state.cursor >= state.to) this.toggle();
    else requestAnimationFrame((next) => this.step(next));
  }
}

export function attachSplitter(): void {
  const splitter = byId('splitter');
  const drawer = byId('drawer');
  const setHeight = (height: number) => {
    drawer.style.height = `${Math.max(60, Math.min(byId('main').clientHeight - 160, height))}px`;
  };
  splitter.addEventListener('pointerdown', (event) => {
    splitter.setPointerCapture(event.pointerId);
    const start = drawer.clientHeight + event.clientY;
    const move = (e: PointerEvent) => setHeight(start - e.clientY);
    splitter.addEventListener('pointermove', move);
    splitter.addEventListener('pointerup', () => splitter.removeEventListener('pointermove', move), { once: true });
  });
  splitter.addEventListener('keydown', (event) => {
    if (event.key !== 'ArrowUp' && event.key !== 'ArrowDown') return;
    event.preventDefault();
    event.stopPropagation();
    setHeight(drawer.clientHeight + (event.key === 'ArrowUp' ? 24 : -24));
  });
}

// Follows the system until the reader chooses.
export function attachTheme(state: State): void {
  const system = matchMedia('(prefers-color-scheme: dark)');
  let chosen: boolean | null = null;
  const apply = () => {
    const isDark = chosen ?? system.matches;
    document.documentElement.dataset.theme = isDark ? 'dark' : 'light';
    byId('theme').textContent = isDark ? 'Light' : 'Dark';
    state.theme = isDark ? themes.dark : themes.light;
    state.invalidate('tracks', 'overlay', 'overview', 'address');
  };
  system.addEventListener('change', apply);
  byId('theme').addEventListener('click', () => {
    chosen = !state.theme.isDark;
    apply();
  });
  apply();
}
