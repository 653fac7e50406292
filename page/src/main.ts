// SPDX-License-Identifier: Apache-2.0
//
// The page: reads its recording and connects the views.
import { DocumentError } from './data/document';
import { loadBase64 } from './data/load';
import { Model } from './data/model';
import type { Recording } from './data/recording';
import { AddressView } from './ui/address';
import { attachPointer, attachSplitter, attachTheme, Player } from './ui/controls';
import { byId } from './ui/dom';
import { applyLink, formatLink, parseLink } from './ui/hash';
import { fillSelectors, showBanner, showFigures, showNotes, showTitle } from './ui/header';
import { attachKeyboard, buildHelp } from './ui/keyboard';
import { follow } from './ui/live';
import { OverviewView } from './ui/overview';
import { Panels } from './ui/panels';
import { SearchBox } from './ui/search_box';
import { type Item, State } from './ui/state';
import { TracksView } from './ui/tracks';

const state = new State();
attachTheme(state);
const tracks = new TracksView(state);
new OverviewView(state, () => tracks.gutter);
new AddressView(state);
const panels = new Panels(state, { show });
const player = new Player(state);
const searchBox = new SearchBox(state, show, () => panels.open('calls'));
attachPointer(state, tracks);
attachSplitter();
attachKeyboard(state, player, searchBox);
buildHelp();

// Selects an item and brings it into view.
function show(item: Item): void {
  const { calls, objects } = state.model!.recording;
  const streams = state.model!.streams;
  const [begin, length] = item.type === 'call' ? [calls.begin[item.index]!, calls.duration[item.index]!]
    : item.type === 'task' ? [streams.begin[item.index]!, streams.duration[item.index]!] : [objects.begin[item.index]!, 0];
  if (item.type !== 'object') {
    const { threads, streams: all } = state.model!.recording.header;
    const process = item.type === 'call' ? threads[calls.thread[item.index]!]!.process : all[state.model!.recording.tasks.stream[item.index]!]!.process;
    if (state.process >= 0 && state.process !== process) choose({ process });
  } else if (state.model!.devices.includes(objects.device[item.index]!)) {
    choose({ process: objects.process[item.index]!, device: objects.device[item.index]! });
  }
  // A slice that is not one pixel wide says nothing: closer, until it is some pixels wide.
  const span = state.to - state.from;
  const wanted = length > 0 ? Math.min(span, Math.max(length * 60, 2000)) : span;
  if (length > 0 && (length / span) * tracks.plotWidth < 4) state.setView(begin + length / 2 - wanted / 2, begin + length / 2 + wanted / 2);
  else state.reveal(begin, length);
  state.setCursor(begin);
  state.select(item);
  tracks.scrollTo(item);
}

function choose(change: Partial<Pick<State, 'process' | 'device' | 'by'>>): void {
  Object.assign(state, change);
  fillSelectors(state);
  state.invalidate('tracks', 'overlay', 'overview', 'address', 'panels');
  state.onViewChange();
}

let linkTimer: ReturnType<typeof setTimeout> | undefined;
let written = '';
state.onViewChange = () => {
  player.showMoment();
  clearTimeout(linkTimer);
  document.body.dataset.link = 'late';
  linkTimer = setTimeout(() => {
    written = formatLink(state);
    history.replaceState(null, '', written);
    document.body.dataset.link = 'current';
    byId('tracks').setAttribute('aria-description', tracks.describe());
  }, 200);
};
addEventListener('hashchange', () => {
  if (location.hash === written || !state.model) return;
  applyLink(state, parseLink(location.hash));
  choose({});
});

for (const id of ['process', 'device', 'by'] as const) {
  const select = byId<HTMLSelectElement>(id);
  select.addEventListener('change', () => choose(id === 'by' ? { by: select.value as State['by'] } : { [id]: Number(select.value) }));
}
const middle = () => (state.cursor >= state.from && state.cursor <= state.to ? state.cursor : (state.from + state.to) / 2);
byId('zoom-in').addEventListener('click', () => state.zoom(1 / 1.5, middle()));
byId('zoom-out').addEventListener('click', () => state.zoom(1.5, middle()));
byId('zoom-all').addEventListener('click', () => state.showAll());

// Shows a recording; what was shown before, if there is one, keeps its view and choice. A live one is
// followed at its end until the reader moves the cursor.
function present(recording: Recording, isLive: boolean): void {
  const earlier = state.model && state.model.recording.header.processes.length > 0 ? state.model : null;
  const followsEnd = !earlier || state.showsAll;
  const cursorAtEnd = earlier !== null && state.cursor >= earlier.duration;
  state.model = new Model(recording);
  showTitle(recording.header);
  if (!earlier) {
    const { devices } = state.model;
    // The device whose memory says most.
    let best = -1;
    for (const device of devices.slice(0, 16)) {
      const peak = state.model.series(-1, device, state.by).peakBytes;
      if (peak > best && (device >= 0 || best <= 0)) [best, state.device] = [peak, device];
    }
    state.showAll();
    state.setCursor(isLive ? state.duration : state.model.series(-1, state.device, state.by).peakAt);
    applyLink(state, parseLink(location.hash));
  } else {
    if (!state.model.devices.includes(state.device)) state.device = state.model.devices[0]!;
    if (state.process >= recording.header.processes.length) state.process = -1;
    if (followsEnd) state.showAll();
    if (cursorAtEnd) state.setCursor(state.duration);
    keepSelection(earlier.recording, recording);
  }
  fillSelectors(state);
  showFigures(state, () => searchBox.find('failed'), () => panels.open('leaks'), (device, time) => {
    choose({ device, process: -1 });
    state.setCursor(time);
    state.reveal(time);
  });
  showNotes(state, null);
  if (state.hits) searchBox.run();
  state.invalidate('tracks', 'overlay', 'overview', 'address', 'panels', 'details');
}

// Positions may differ in a longer recording: a call that began earlier may be told later.
function keepSelection(before: Recording, now: Recording): void {
  const { selected } = state;
  state.hovered = null;
  if (!selected) return;
  const columns = (recording: Recording) => (selected.type === 'call' ? recording.calls : selected.type === 'task' ? recording.tasks : recording.objects).begin;
  const begin = columns(before)[selected.index];
  const index = columns(now).indexOf(begin!);
  state.selected = index < 0 ? null : { type: selected.type, index };
}

function fail(error: unknown): void {
  showBanner([error instanceof DocumentError ? error.message : `The recording cannot be shown: ${String(error)}`], true);
  byId('subtitle').textContent = '';
}

async function start(): Promise<void> {
  const element = byId('recording');
  const live = element.dataset.live;
  if (live !== undefined) {
    await follow(live, (recording) => present(recording, true), (sentence) => {
      if (state.model) showNotes(state, sentence);
      else fail(new DocumentError(sentence));
      document.body.dataset.live = 'ended';
    });
    return;
  }
  const text = element.textContent ?? '';
  if (text.trim() === '') {
    fail(new DocumentError('There is no recording in this page. The command puts one into a copy of it.'));
    return;
  }
  element.textContent = ''; // the page needs it once
  present(await loadBase64(text, { onHeader: showTitle }), false);
  requestAnimationFrame(() => requestAnimationFrame(() => {
    performance.mark('shown');
    document.body.dataset.shown = String(performance.now());
  }));
}

start().catch(fail);
