// SPDX-License-Identifier: Apache-2.0
import type { Player } from './controls';
import { byId, make } from './dom';
import type { SearchBox } from './search_box';
import type { State } from './state';

const kKeys: [string, string][] = [
  ['← →', 'pan; with Shift by a whole view'], ['+ −', 'zoom around the cursor'], ['0', 'whole recording'], [', .', 'cursor to the previous or next change of memory'],
  ['Space', 'play: the cursor moves over the view'], ['/', 'search'], ['N, Shift+N', 'next and previous hit'], ['Esc', 'end the search, drop the selection'], ['?', 'this help'],
];
const kPointer: [string, string][] = [
  ['wheel', 'zoom; over names: scroll; with Shift: pan'], ['drag', 'pan; on the time axis: move the cursor; in the strip on top: choose the view'],
  ['click', 'set the cursor, keep details'], ['wheel on addresses', 'zoom a strip; double click: whole strips'],
];
const kSearch: [string, string][] = [
  ['malloc', 'functions and stacks with this text'], ['0x180000000000', 'calls with this address, or an object that has it'], ['failed', 'calls that failed'],
  ['code:107000', 'calls that returned this code'], ['stack:kv.cc function:Free', 'both must apply'],
];

export function buildHelp(): void {
  const table = (rows: [string, string][], tag: 'kbd' | 'code') => make('table', {}, ...rows.map(([key, text]) => make('tr', {}, make('td', {}, make(tag, {}, key)), make('td', {}, text))));
  const close = make('button', { type: 'button' }, 'Close');
  const dialog = byId<HTMLDialogElement>('help-dialog');
  close.addEventListener('click', () => dialog.close());
  dialog.replaceChildren(make('h2', { id: 'help-title' }, 'How to use this page'), make('h3', {}, 'Keys'), table(kKeys, 'kbd'), make('h3', {}, 'Pointer'), table(kPointer, 'kbd'),
    make('h3', {}, 'Search'), table(kSearch, 'code'), make('h3', {}, 'Link'), make('p', {}, 'The address of the page holds the moment and the view: copy it to show somebody the same picture.'), close);
  byId('help').addEventListener('click', () => dialog.showModal());
}

export function attachKeyboard(state: State, player: Player, searchBox: SearchBox): void {
  document.addEventListener('keydown', (event) => {
    const target = event.target as HTMLElement;
    const dialog = byId<HTMLDialogElement>('help-dialog');
    if (event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
    if (target === byId('search')) {
      if (event.key === 'Escape') searchBox.clear();
      return;
    }
    if (target instanceof HTMLSelectElement || (target instanceof HTMLInputElement && event.key.startsWith('Arrow'))) return;
    const span = state.to - state.from;
    const around = state.cursor >= state.from && state.cursor <= state.to ? state.cursor : (state.from + state.to) / 2;
    const step = (event.shiftKey ? 1 : 0.1) * span;
    switch (event.key) {
      case 'ArrowLeft': state.pan(-step); break;
      case 'ArrowRight': state.pan(step); break;
      case '+': case '=': state.zoom(1 / 1.5, around); break;
      case '-': case '_': state.zoom(1.5, around); break;
      case '0': state.showAll(); break;
      case ',': stepCursor(state, -1); break;
      case '.': stepCursor(state, 1); break;
      case ' ':
        if (target instanceof HTMLButtonElement) return;
        player.toggle();
        break;
      case '/': byId('search').focus(); break;
      case 'n': searchBox.go(1); break;
      case 'N': searchBox.go(-1); break;
      case '?': dialog.showModal(); break;
      case 'Escape': searchBox.clear(); state.select(null); break;
      default: return;
    }
    event.preventDefault();
  });
}

function stepCursor(state: State, by: number): void {
  const series = state.model?.series(state.process, state.device, state.by);
  if (!series || series.times.length === 0) return;
  const event = series.eventAt(state.cursor);
  let next = event + by;
  // Events of one moment are one change.
  while (by < 0 && next > 0 && series.times[next] === state.cursor) next--;
  state.setCursor(series.times[Math.max(0, Math.min(series.times.length - 1, next))]!);
  state.reveal(state.cursor);
}
