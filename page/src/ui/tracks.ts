// SPDX-License-Identifier: Apache-2.0
//
// The upper part: axis, memory, fragmentation, threads and streams on one canvas.
import { callName, describeCall, describeTask } from '../data/describe';
import { formatBytes, formatMoment, formatShare } from '../data/format';
import { holeShare, unmappedShare } from '../data/fragmentation';
import type { LaneSet } from '../data/lanes';
import { drawAxis } from '../draw/axis';
import { FragmentationSamples } from '../draw/fragments';
import { drawArrow, drawLane, type LaneStyle } from '../draw/lanes';
import { gutterWidth, kAxisHeight, layoutTracks, type Track } from '../draw/layout';
import { drawLegend, drawMemory } from '../draw/memory';
import { Surface } from '../draw/surface';
import { fillFitted, textWidth } from '../draw/text';
import { kBoldFont, kFont } from '../draw/theme';
import { byId } from './dom';
import type { Item, State } from './state';
import { hideTooltip, showTooltip } from './tooltip';

const kMostArrows = 300;

export class TracksView {
  readonly surface: Surface;
  private tracks: Track[] = [];
  private layoutKey: unknown[] = [];
  private readonly samples: FragmentationSamples;

  constructor(private readonly state: State) {
    this.surface = new Surface(byId('tracks'), () => state.invalidate('tracks', 'overlay'));
    this.samples = new FragmentationSamples(() => state.invalidate('tracks'));
    state.register('tracks', () => this.draw());
    state.register('overlay', () => this.drawOverlay());
  }

  get gutter(): number {
    return gutterWidth(this.surface.width);
  }
  get plotWidth(): number {
    return Math.max(10, this.surface.width - this.gutter);
  }
  timeAt(x: number): number {
    return this.state.from + ((x - this.gutter) / this.plotWidth) * (this.state.to - this.state.from);
  }
  xOf(time: number): number {
    return this.gutter + ((time - this.state.from) / (this.state.to - this.state.from)) * this.plotWidth;
  }
  trackAt(y: number): Track | undefined {
    if (y < kAxisHeight) return undefined;
    const at = y + this.surface.scrollTop;
    return this.tracks.find((track) => at >= track.top && at < track.top + track.height);
  }
  trackOf(item: Item): Track | undefined {
    const recording = this.state.model!.recording;
    if (item.type === 'call') return this.tracks.find((t) => t.kind === 'thread' && t.lane === recording.calls.thread[item.index]);
    if (item.type === 'task') return this.tracks.find((t) => t.kind === 'stream' && t.lane === recording.tasks.stream[item.index]);
    return undefined;
  }
  // Scrolls so that an item's lane is visible.
  scrollTo(item: Item): void {
    const track = this.trackOf(item);
    const { container, height } = this.surface;
    if (!track) return;
    if (track.top - kAxisHeight < container.scrollTop || track.top + track.height > container.scrollTop + height) container.scrollTop = track.top - height / 2;
  }

  itemAt(x: number, y: number): Item | null {
    const track = this.trackAt(y);
    if (x < this.gutter || !track || !this.state.model || (track.kind !== 'thread' && track.kind !== 'stream')) return null;
    const set = track.kind === 'thread' ? this.state.model.threads : this.state.model.streams;
    const index = set.itemAt(track.lane, this.timeAt(x), (3 / this.plotWidth) * (this.state.to - this.state.from));
    return index < 0 ? null : { type: track.kind === 'thread' ? 'call' : 'task', index };
  }

  private series() {
    const { model, process, device, by } = this.state;
    return model!.series(process, device, by);
  }
  private capacity(): number {
    const { model, process, device } = this.state;
    if (device < 0) return 0;
    const processes = model!.recording.header.processes;
    return (processes[process] ?? processes[0])?.device_memory ?? 0;
  }

  draw(): void {
    const { state, surface } = this;
    surface.fit();
    const { base: context, width, height } = surface;
    const { theme, model } = state;
    context.fillStyle = theme.background;
    context.fillRect(0, 0, width, height);
    if (!model) return;
    if (this.layoutKey[0] !== model || this.layoutKey[1] !== state.process) {
      const layout = layoutTracks(model, state.process);
      this.tracks = layout.tracks;
      this.layoutKey = [model, state.process];
      surface.setContentHeight(layout.height);
    }
    const scroll = surface.scrollTop;
    const left = this.gutter;
    context.save();
    context.beginPath();
    context.rect(left, 0, width - left, height);
    context.clip();
    context.globalAlpha = 0.6;
    drawAxis(context, theme, state.from, state.to, left, this.plotWidth, kAxisHeight, height);
    context.globalAlpha = 1;
    context.restore();
    for (const track of this.tracks) {
      const y = track.top - scroll;
      if (y + track.height < kAxisHeight || y > height) continue;
      this.drawTrack(context, track, y);
    }
    this.drawArrows(context, scroll);
    context.fillStyle = theme.surface;
    context.fillRect(0, 0, width, kAxisHeight);
    drawAxis(context, theme, state.from, state.to, left, this.plotWidth, kAxisHeight, kAxisHeight);
    context.strokeStyle = theme.line;
    context.strokeRect(-1, kAxisHeight - 0.5, width + 2, 0);
    context.fillStyle = theme.surface;
    context.fillRect(0, 0, left, kAxisHeight - 1);
    context.fillStyle = theme.muted;
    context.font = kFont;
    context.textBaseline = 'middle';
    context.fillText(`in view: ${formatMoment(state.to - state.from, (state.to - state.from) / 100)}`, 14, kAxisHeight / 2);
  }

  private drawTrack(context: CanvasRenderingContext2D, track: Track, y: number): void {
    const { state } = this;
    const { theme, model } = state;
    const left = this.gutter;
    const width = this.plotWidth;
    context.strokeStyle = track.kind === 'thread' || track.kind === 'stream' ? theme.grid : theme.line;
    context.strokeRect(-1, Math.round(y + track.height) - 0.5, this.surface.width + 2, 0);
    context.textBaseline = 'middle';
    if (track.kind === 'title') {
      context.fillStyle = theme.surface;
      context.fillRect(0, y, this.surface.width, track.height - 1);
      context.font = kBoldFont;
      context.fillStyle = theme.text;
      context.fillText(track.text, 14, y + track.height / 2);
    } else if (track.kind === 'memory') {
      const series = this.series();
      drawMemory(context, theme, series, this.capacity(), state.from, state.to, { x: left, y: y + 4, width, height: track.height - 5 });
      context.font = kBoldFont;
      context.textBaseline = 'top';
      context.fillStyle = theme.text;
      const time = state.hoverTime ?? state.cursor;
      context.fillText(`${state.device < 0 ? 'Host' : `Device ${state.device}`}: ${formatBytes(series.totalAt(time))}`, 14, y + 6);
      drawLegend(context, theme, series, time, { x: 14, y: y + 24, width: left - 28 - 44, height: track.height - 28 });
    } else if (track.kind === 'fragmentation') {
      this.drawFragmentation(context, track, y);
    } else {
      const isThread = track.kind === 'thread';
      const set = isThread ? model!.threads : model!.streams;
      drawLane(context, theme, set, track.lane, this.style(isThread), state.from, state.to, { x: left, y: y + 2, width, height: track.height - 5 });
      if (isThread) this.drawOpenCall(context, track.lane, y, track.height);
      context.font = kFont;
      context.textBaseline = 'middle';
      context.fillStyle = theme.text;
      const failed = set.failedIn(set.lanes[track.lane]!.first, set.lanes[track.lane]!.last);
      const count = `${failed > 0 ? `${failed} failed` : ''}`;
      fillFitted(context, track.text, 14, y + track.height / 2, left - 28 - (failed > 0 ? textWidth(context, count) + 8 : 0));
      if (failed > 0) {
        context.fillStyle = theme.failed;
        context.fillText(count, left - 8 - textWidth(context, count), y + track.height / 2);
      }
    }
  }

  private style(isThread: boolean): LaneStyle {
    const { calls, tasks, header } = this.state.model!.recording;
    return isThread
      ? { hue: (item) => calls.function[item]! % 9, label: (item) => header.functions[calls.function[item]!]! }
      : { hue: (item) => (tasks.kind[item]! + 2) % 9, label: (item) => header.task_kinds[tasks.kind[item]!]!, isHollow: (item) => tasks.hasRun[item] === 0 };
  }

  // A call that had not ended: open to the right.
  private drawOpenCall(context: CanvasRenderingContext2D, lane: number, y: number, height: number): void {
    const { header } = this.state.model!.recording;
    const { open_function: open, open_since: since } = header.threads[lane]!;
    const name = header.functions[open];
    if (name === undefined || since > this.state.to) return;
    const x = Math.max(this.gutter, this.xOf(since));
    const end = Math.min(this.surface.width, this.xOf(this.state.duration));
    context.strokeStyle = this.state.theme.failed;
    context.setLineDash([3, 3]);
    context.strokeRect(x + 0.5, y + 2.5, Math.max(3, end - x), height - 6);
    context.setLineDash([]);
    context.font = kFont;
    context.textBaseline = 'middle';
    context.fillStyle = this.state.theme.failed;
    fillFitted(context, `${name}, not ended`, x + 5, y + height / 2, end - x - 10);
  }

  private drawFragmentation(context: CanvasRenderingContext2D, track: Track, y: number): void {
    const { state } = this;
    const { theme, device } = state;
    const model = state.model!;
    const process = model.addressProcess(state.process, device);
    const box = { x: this.gutter, y: y + 6, width: this.plotWidth, height: track.height - 10 };
    this.samples.request(`${process} ${device}`, () => model.fragmentation(process, device), state.from, state.to);
    this.samples.draw(context, theme, box);
    context.font = kBoldFont;
    context.textBaseline = 'top';
    context.fillStyle = theme.text;
    context.fillText('Fragmentation', 14, y + 6);
    context.font = kFont;
    const rows: [string, number, string][] = [];
    if (model.has(`fragmentation ${process} ${device}`)) {
      const now = model.fragmentation(process, device).at(state.hoverTime ?? state.cursor);
      rows.push(['unmapped', 0, formatShare(unmappedShare(now))], ['holes', 1, formatShare(holeShare(now))]);
    }
    rows.forEach(([name, hue, value], i) => {
      const line = y + 23 + i * 14.5;
      context.fillStyle = theme.groups[hue]!;
      context.fillRect(14, line + 2, 9, 9);
      context.fillStyle = theme.muted;
      fillFitted(context, name, 28, line, this.gutter - 28 - 62 - textWidth(context, value));
      context.fillStyle = theme.text;
      context.fillText(value, this.gutter - 58 - textWidth(context, value), line);
    });
    context.fillStyle = theme.muted;
    for (const [text, at] of [['100 %', 0], ['0 %', box.height - 11]] as const) context.fillText(text, this.gutter - 6 - textWidth(context, text), box.y + at);
  }

  private drawArrows(context: CanvasRenderingContext2D, scroll: number): void {
    const { state } = this;
    const model = state.model!;
    const { tasks } = model.recording;
    const set = model.streams;
    const waiting = model.waiting;
    const bound = (time: number) => {
      let low = 0;
      let high = waiting.length;
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (set.begin[waiting[middle]!]! < time) low = middle + 1;
        else high = middle;
      }
      return low;
    };
    const first = bound(state.from);
    const last = bound(state.to);
    const title = this.tracks.find((track) => track.kind === 'title' && track.text.startsWith('Streams'));
    if (last === first || !title) return;
    context.font = kFont;
    context.textBaseline = 'middle';
    context.fillStyle = state.theme.muted;
    if (last - first > kMostArrows) {
      context.fillText(`${last - first} waits for events in view; zoom in for arrows`, this.gutter + 6, title.top - scroll + title.height / 2);
      return;
    }
    context.save();
    context.beginPath();
    context.rect(this.gutter, kAxisHeight, this.plotWidth, this.surface.height);
    context.clip();
    context.strokeStyle = context.fillStyle = state.theme.accent;
    const rows = new Map<number, number>();
    for (const track of this.tracks) if (track.kind === 'stream') rows.set(track.lane, track.top + track.height / 2 - scroll);
    for (let i = first; i < last; i++) {
      const task = waiting[i]!;
      const awaited = tasks.awaited[task]!;
      const y0 = rows.get(tasks.stream[awaited]!);
      const y1 = rows.get(tasks.stream[task]!);
      if (y0 === undefined || y1 === undefined) continue;
      drawArrow(context, this.xOf(set.begin[awaited]! + set.duration[awaited]!), y0, this.xOf(set.begin[task]!), y1);
    }
    context.restore();
  }

  drawOverlay(): void {
    const { state, surface } = this;
    const { overlay: context, width, height } = surface;
    context.clearRect(0, 0, width, height);
    if (!state.model) return;
    context.save();
    context.beginPath();
    context.rect(this.gutter - 5, 0, width, height);
    context.clip();
    const line = (time: number, colour: string, dash: number[]) => {
      const x = Math.round(this.xOf(time)) + 0.5;
      context.strokeStyle = colour;
      context.setLineDash(dash);
      context.beginPath();
      context.moveTo(x, 0);
      context.lineTo(x, height);
      context.stroke();
      context.setLineDash([]);
      return x;
    };
    if (state.hoverTime !== null) line(state.hoverTime, state.theme.muted, [2, 3]);
    if (state.cursor >= state.from && state.cursor <= state.to) {
      const x = line(state.cursor, state.theme.accent, []);
      context.fillStyle = state.theme.accent;
      context.beginPath();
      context.moveTo(x - 6, 2);
      context.lineTo(x + 6, 2);
      context.lineTo(x + 6, 10);
      context.lineTo(x, 17);
      context.lineTo(x - 6, 10);
      context.fill();
    }
    this.outline(context, state.selected, state.theme.accent, 2);
    this.outline(context, state.hovered, state.theme.text, 1);
    context.restore();
  }

  private outline(context: CanvasRenderingContext2D, item: Item | null, colour: string, lineWidth: number): void {
    const track = item && this.trackOf(item);
    if (!item || !track) return;
    const model = this.state.model!;
    const set: LaneSet = item.type === 'call' ? model.threads : model.streams;
    const y = track.top - this.surface.scrollTop;
    if (y < kAxisHeight - 6) return;
    const begin = set.begin[item.index]!;
    const x = this.xOf(begin);
    context.strokeStyle = colour;
    context.lineWidth = lineWidth;
    context.strokeRect(x, y + 1.5, Math.max(2, this.xOf(begin + set.duration[item.index]!) - x), track.height - 4);
    if (item.type === 'task') {
      // How long it waited in its queue.
      const { queued, hasRun } = model.recording.tasks;
      if (hasRun[item.index]) {
        const from = this.xOf(queued[item.index]!);
        const middle = y + track.height / 2;
        context.beginPath();
        context.moveTo(from, middle - 5);
        context.lineTo(from, middle + 5);
        context.moveTo(from, middle);
        context.lineTo(x, middle);
        context.stroke();
      }
    }
    context.lineWidth = 1;
  }

  // What is under the pointer, in a tooltip.
  hover(x: number, y: number, clientX: number, clientY: number): void {
    const { state } = this;
    const { model } = state;
    if (!model) return;
    const track = this.trackAt(y);
    const time = x >= this.gutter ? this.timeAt(x) : null;
    state.hoverTime = time;
    state.hovered = this.itemAt(x, y);
    state.invalidate('overlay');
    if (track?.kind === 'memory' || track?.kind === 'fragmentation') state.invalidate('tracks');
    if (state.hovered) {
      const { type, index } = state.hovered;
      showTooltip(clientX, clientY, `${type} ${index}`, () => (type === 'call' ? describeCall(model.recording, index) : describeTask(model.recording, index)));
    } else if (track?.kind === 'memory') {
      this.memoryTooltip(time, y - track.top + this.surface.scrollTop, clientX, clientY);
    } else if (track?.kind === 'fragmentation' && time !== null) {
      const process = model.addressProcess(state.process, state.device);
      const f = model.fragmentation(process, state.device).at(time);
      showTooltip(clientX, clientY, `fragmentation ${time}`, () => ({
        title: `Fragmentation at ${formatMoment(time, (state.to - state.from) / 1000)}`,
        rows: [
          ['reserved', formatBytes(f.reserved)], ['mapped', `${formatBytes(f.mapped)}, ${formatShare(unmappedShare(f))} of the reserved is not`],
          ['allocated', formatBytes(f.allocated)], ['holes', `${f.holeCount}, ${formatBytes(f.holes)} (${formatShare(holeShare(f))})`], ['largest hole', formatBytes(f.largestHole)],
          ['process', String(model.recording.header.processes[process]?.pid ?? '')],
        ],
      }));
    } else {
      hideTooltip();
    }
  }

  private memoryTooltip(time: number | null, y: number, clientX: number, clientY: number): void {
    const { state } = this;
    const series = this.series();
    if (time === null) {
      const group = series.groups[Math.floor((y - 24) / 14.5)];
      if (!group) return hideTooltip();
      const rows: [string, string][] = group.peak > 0 ? [['its own peak', formatBytes(group.peak)]] : [];
      showTooltip(clientX, clientY, `group ${group.label}`, () => ({ title: group.label, rows, stack: group.detail.includes('\n') ? group.detail : undefined }));
      return;
    }
    const values = new Float64Array(series.groups.length);
    series.groupsAt(series.eventAt(time), values);
    const shown = [...values.keys()].filter((g) => values[g]! > 0);
    const colours = state.theme.groups;
    showTooltip(clientX, clientY, `memory ${time}`, () => ({
      title: `${formatBytes(series.totalAt(time))} at ${formatMoment(time, (state.to - state.from) / 1000)}`,
      rows: shown.map((g): [string, string] => [series.groups[g]!.label, formatBytes(values[g]!)]),
    }), shown.map((g) => colours[series.groups[g]!.peak === 0 ? colours.length - 1 : g % (colours.length - 1)]!));
  }

  // For readers that do not see the canvas.
  describe(): string {
    const { state } = this;
    const name = state.selected?.type === 'call' ? callName(state.model!.recording, state.selected.index) : '';
    return `Timeline from ${formatMoment(state.from, 1)} to ${formatMoment(state.to, 1)}${name ? `, ${name} selected` : ''}`;
  }
}
