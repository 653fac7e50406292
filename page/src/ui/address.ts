// SPDX-License-Identifier: Apache-2.0
//
// The address space at the cursor: a strip per region with reservations, mappings, allocations and
// the gaps between them; below it the physical blocks. Pointing at a block shows where it is mapped,
// pointing at a mapping shows its block.
import { describeObject } from '../data/describe';
import { counted, formatBytes, formatHex, formatMoment, formatShare } from '../data/format';
import { kNone } from '../data/recording';
import { addressKinds, type Region } from '../data/regions';
import { type Snapshot, snapshotAt } from '../data/snapshot';
import { Surface } from '../draw/surface';
import { fillFitted, textWidth } from '../draw/text';
import { hueOf, kBoldFont, kFont, kMonoFont } from '../draw/theme';
import { byId } from './dom';
import type { State } from './state';
import { hideTooltip, showTooltip } from './tooltip';

const kStrip = 34; // from one strip to the next
const kBar = 20;
const kLabel = 190;
const kCell = 14;

interface Cell {
  x: number;
  y: number;
  width: number;
  block: number;
}

export class AddressView {
  private readonly surface: Surface;
  private regions: Region[] = [];
  private snapshot: Snapshot | null = null;
  private cells: Cell[] = [];
  private zooms = new Map<string, Region>(); // the part of a region that is shown
  private hovered = -1; // object

  constructor(private readonly state: State) {
    const container = byId('address');
    this.surface = new Surface(container, () => state.invalidate('address'));
    state.register('address', () => this.draw());
    container.addEventListener('pointermove', (event) => this.hover(event));
    container.addEventListener('pointerleave', () => {
      this.hovered = -1;
      hideTooltip();
      this.drawOverlay();
    });
    container.addEventListener('click', () => state.select(this.hovered >= 0 ? { type: 'object', index: this.hovered } : null));
    container.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
    container.addEventListener('dblclick', () => {
      this.zooms.clear();
      state.invalidate('address');
    });
  }

  private get barWidth(): number {
    return Math.max(50, this.surface.width - kLabel - 16);
  }

  private shownPart(region: Region): Region {
    return this.zooms.get(`${region.begin}`) ?? region;
  }

  private draw(): void {
    const { state, surface } = this;
    const { model, theme } = state;
    if (surface.container.offsetParent === null) return;
    surface.fit();
    const { base: context, width, height } = surface;
    context.fillStyle = theme.background;
    context.fillRect(0, 0, width, height);
    if (!model) return;
    const process = model.addressProcess(state.process, state.device);
    this.regions = model.regions(process, state.device);
    const snapshot = snapshotAt(model.recording, model.alive, process, state.device, state.cursor);
    this.snapshot = snapshot;
    this.writeLine(process, snapshot);
    this.layoutBlocks();
    const blocksTop = this.regions.length * kStrip + 8;
    const last = this.cells[this.cells.length - 1];
    surface.setContentHeight(state.device < 0 ? blocksTop : Math.max(last ? last.y + kCell : 0, blocksTop + (last ? 60 : 22)) + 14);
    context.save();
    context.translate(0, -surface.scrollTop);
    this.regions.forEach((region, i) => {
      const y = i * kStrip + 8;
      if (y + kStrip >= surface.scrollTop && y <= surface.scrollTop + height) this.drawStrip(context, region, y);
    });
    if (this.regions.length === 0) {
      context.font = kFont;
      context.textBaseline = 'top';
      context.fillStyle = theme.muted;
      context.fillText('This process never used addresses here.', 14, 10);
    }
    if (state.device >= 0) this.drawBlocks(context, blocksTop);
    context.restore();
    this.drawOverlay();
  }

  private drawStrip(context: CanvasRenderingContext2D, region: Region, y: number): void {
    const { theme, model } = this.state;
    const { objects } = model!.recording;
    const kinds = addressKinds(model!.recording);
    const snapshot = this.snapshot!;
    const part = this.shownPart(region);
    const scale = this.barWidth / (part.end - part.begin);
    context.font = kMonoFont;
    context.textBaseline = 'middle';
    context.fillStyle = theme.text;
    context.fillText(formatHex(part.begin), 14, y + kBar / 2);
    context.font = kFont;
    context.fillStyle = theme.muted;
    const size = formatBytes(part.end - part.begin);
    context.fillText(size, kLabel - 10 - textWidth(context, size), y + kBar / 2);
    context.fillStyle = theme.empty;
    context.fillRect(kLabel, y, this.barWidth, kBar);
    context.save();
    context.beginPath();
    context.rect(kLabel, y - 3, this.barWidth, kBar + 7);
    context.clip();
    const x = (address: number) => kLabel + (address - part.begin) * scale;
    for (const object of snapshot.reservations) {
      const begin = objects.number[object]!;
      const end = begin + objects.size[object]!;
      if (end <= part.begin || begin >= part.end) continue;
      this.hatch(context, Math.max(kLabel, x(begin)), y, Math.min(x(end), kLabel + this.barWidth));
      context.strokeStyle = theme.muted;
      context.strokeRect(Math.round(x(begin)) + 0.5, y + 0.5, Math.max(1, Math.round(x(end) - x(begin)) - 1), kBar - 1);
    }
    let drawnTo = -1; // objects narrower than a pixel share it
    for (let i = this.firstRange(part.begin); i < snapshot.ranges.length; i++) {
      const object = snapshot.ranges[i]!;
      const begin = objects.number[object]!;
      if (begin >= part.end) break;
      const end = begin + objects.size[object]!;
      if (end <= part.begin) continue;
      const x0 = x(begin);
      const x1 = x(end);
      if (x1 < drawnTo + 0.5 && x1 - x0 < 1) continue;
      const isMapping = objects.kind[object] === kinds.mapping;
      const wide = Math.max(1, x1 - x0 - (x1 - x0 > 3 ? 1 : 0));
      const whole = objects.whole[object]!;
      const hue = isMapping ? (whole === kNone ? 9 : hueOf(objects.numberWords, whole)) : objects.stack[object]! % 9;
      context.fillStyle = isMapping ? theme.groups[hue]! : theme.soft[hue || 0]!;
      context.fillRect(x0, y + 2, wide, kBar - 4);
      if (!isMapping && x1 - x0 > 5) {
        context.strokeStyle = theme.groups[hue || 0]!;
        context.strokeRect(x0 + 0.5, y + 2.5, wide - 1, kBar - 5);
      }
      if (isMapping && (snapshot.mappingsOf.get(whole)?.length ?? 0) > 1) {
        context.fillStyle = theme.text;
        context.fillRect(x0, y + kBar, wide, 2);
      }
      if (x1 - x0 > 46) {
        context.fillStyle = isMapping ? theme.background : theme.text;
        fillFitted(context, formatBytes(objects.size[object]!), Math.max(x0, kLabel) + 4, y + kBar / 2 + 1, x1 - x0 - 8);
      }
      drawnTo = x1;
    }
    context.restore();
  }

  // The first range that may reach behind an address. Ranges of one kind do not overlap.
  private firstRange(address: number): number {
    const { objects } = this.state.model!.recording;
    const { ranges } = this.snapshot!;
    let low = 0;
    let high = ranges.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (objects.number[ranges[middle]!]! < address) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }

  private hatch(context: CanvasRenderingContext2D, x0: number, y: number, x1: number): void {
    context.strokeStyle = this.state.theme.line;
    context.beginPath();
    for (let x = x0 - (x0 % 7); x < x1 + kBar; x += 7) {
      const from = Math.min(x, x1);
      const to = Math.max(x - kBar, x0);
      if (to > from) continue;
      context.moveTo(from, y + (x - from));
      context.lineTo(to, y + (x - to));
    }
    context.stroke();
  }

  private layoutBlocks(): void {
    this.cells = [];
    const { objects } = this.state.model!.recording;
    const { blocks } = this.snapshot!;
    if (this.state.device < 0 || blocks.length === 0) return;
    let unit = Infinity;
    for (const block of blocks) unit = Math.min(unit, objects.size[block]!);
    const small = blocks.length > 4000 ? 6 : kCell;
    let x = kLabel;
    let y = this.regions.length * kStrip + 12;
    for (const block of blocks) {
      const width = Math.min(120, small * Math.max(1, Math.sqrt(objects.size[block]! / unit)));
      if (x + width > kLabel + this.barWidth) {
        x = kLabel;
        y += small + 3;
      }
      this.cells.push({ x, y, width, block });
      x += width + 3;
    }
  }

  private drawBlocks(context: CanvasRenderingContext2D, top: number): void {
    const { theme, model } = this.state;
    const { objects } = model!.recording;
    const snapshot = this.snapshot!;
    context.strokeStyle = theme.line;
    context.strokeRect(-1, top - 4.5, this.surface.width + 2, 0);
    context.textBaseline = 'middle';
    context.font = kBoldFont;
    context.fillStyle = theme.text;
    context.fillText('Physical blocks', 14, top + 11);
    context.font = kFont;
    context.fillStyle = theme.muted;
    const lines = snapshot.blocks.length === 0 ? [] : [`${snapshot.blocks.length}, of ${formatBytes(snapshot.blockBytes)} in all`, `${snapshot.unmappedBlocks} not mapped`, `${snapshot.sharedBlocks} mapped several times`];
    lines.forEach((line, i) => context.fillText(line, 14, top + 27 + i * 14));
    const height = this.cells.length > 4000 ? 6 : kCell;
    for (const { x, y, width, block } of this.cells) {
      const times = snapshot.mappingsOf.get(block)?.length ?? 0;
      const colour = theme.groups[hueOf(objects.numberWords, block)]!;
      if (times === 0) {
        context.strokeStyle = colour;
        context.setLineDash([2, 2]);
        context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
        context.setLineDash([]);
        continue;
      }
      context.fillStyle = colour;
      context.fillRect(x, y, width, height);
      if (times > 1 && height === kCell) {
        context.fillStyle = theme.background;
        context.fillText(String(times), x + width / 2 - textWidth(context, String(times)) / 2, y + kCell / 2 + 1);
      }
    }
    if (this.cells.length === 0) context.fillText('none at this moment', kLabel, top + 11);
  }

  // Lines between a block and its mappings.
  private drawOverlay(): void {
    const { surface, state } = this;
    const { overlay: context } = surface;
    context.clearRect(0, 0, surface.width, surface.height);
    const { model, theme } = state;
    if (!model || !this.snapshot) return;
    const { objects } = model.recording;
    const kinds = addressKinds(model.recording);
    context.save();
    context.translate(0, -surface.scrollTop);
    for (const object of [state.selected?.type === 'object' ? state.selected.index : -1, this.hovered]) {
      if (object < 0) continue;
      const block = objects.kind[object] === kinds.mapping ? objects.whole[object]! : objects.kind[object] === kinds.block ? object : kNone;
      context.strokeStyle = object === this.hovered ? theme.text : theme.accent;
      context.lineWidth = 1.5;
      const cell = this.cells.find((each) => each.block === block);
      const targets = block === kNone ? [object] : (this.snapshot.mappingsOf.get(block) ?? []);
      if (cell) context.strokeRect(cell.x - 1, cell.y - 1, cell.width + 2, kCell + 2);
      for (const target of targets) {
        const place = this.placeOf(target);
        if (!place) continue;
        context.strokeRect(place.x - 1, place.y, place.width + 2, kBar);
        if (!cell) continue;
        context.beginPath();
        context.moveTo(place.x + place.width / 2, place.y + kBar);
        context.bezierCurveTo(place.x + place.width / 2, place.y + kBar + 24, cell.x + cell.width / 2, cell.y - 24, cell.x + cell.width / 2, cell.y);
        context.stroke();
      }
    }
    context.restore();
  }

  private placeOf(object: number): { x: number; y: number; width: number } | null {
    const { objects } = this.state.model!.recording;
    const address = objects.number[object]!;
    if (!(objects.begin[object]! <= this.state.cursor && objects.end[object]! > this.state.cursor)) return null;
    const index = this.regions.findIndex((region) => address >= region.begin && address < region.end);
    if (index < 0) return null;
    const part = this.shownPart(this.regions[index]!);
    const scale = this.barWidth / (part.end - part.begin);
    const x0 = Math.max(kLabel, kLabel + (address - part.begin) * scale);
    const x1 = Math.min(kLabel + this.barWidth, kLabel + (address + objects.size[object]! - part.begin) * scale);
    return x1 < kLabel || x0 > kLabel + this.barWidth ? null : { x: x0, y: index * kStrip + 8, width: Math.max(1, x1 - x0) };
  }

  private writeLine(process: number, s: Snapshot): void {
    const { header } = this.state.model!.recording;
    const where = this.state.device < 0 ? 'host' : `device ${this.state.device}`;
    const several = header.processes.length > 1 && this.state.process < 0 ? ' (choose another process above)' : '';
    const parts = [`Process ${header.processes[process]?.pid}${several}, ${where}`];
    if (s.reservations.length > 0) parts.push(`${counted(s.reservations.length, 'reservation')} of ${formatBytes(s.reservedBytes)}, ${formatShare(s.mappedBytes / s.reservedBytes)} mapped`);
    if (s.allocations > 0) parts.push(`${counted(s.allocations, this.state.device < 0 ? 'host range' : 'allocation')} of ${formatBytes(s.allocatedBytes)}`);
    if (parts.length === 1) parts.push('no addresses in use at this moment');
    byId('address-line').textContent = parts.join('  ·  ');
  }

  private hover(event: PointerEvent): void {
    const { state, surface } = this;
    const { model } = state;
    if (!model || !this.snapshot) return;
    const box = surface.container.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top + surface.scrollTop;
    const { objects } = model.recording;
    this.hovered = -1;
    const region = this.regions[Math.floor((y - 8) / kStrip)];
    const inBar = region && (y - 8) % kStrip < kBar + 2 && x >= kLabel && x <= kLabel + this.barWidth;
    if (inBar) {
      const part = this.shownPart(region);
      const address = part.begin + ((x - kLabel) / this.barWidth) * (part.end - part.begin);
      const slack = ((part.end - part.begin) / this.barWidth) * 1.5;
      const inside = (object: number, by: number) => address >= objects.number[object]! - by && address < objects.number[object]! + objects.size[object]! + by;
      const { ranges, reservations } = this.snapshot;
      const near = this.firstRange(address);
      this.hovered = [near, near + 1].map((i) => ranges[i] ?? -1).find((object) => object >= 0 && inside(object, 0)) ??
        [near, near + 1].map((i) => ranges[i] ?? -1).find((object) => object >= 0 && inside(object, slack)) ?? -1;
      const reservation = reservations.find((object) => inside(object, 0)) ?? -1;
      if (this.hovered < 0) {
        this.gapTooltip(event, address, region, reservation);
        this.hovered = reservation;
        this.drawOverlay();
        return;
      }
    } else {
      this.hovered = this.cells.find((cell) => x >= cell.x && x <= cell.x + cell.width + 2 && y >= cell.y && y <= cell.y + kCell)?.block ?? -1;
    }
    this.drawOverlay();
    if (this.hovered < 0) return hideTooltip();
    const object = this.hovered;
    const mappings = this.snapshot.mappingsOf.get(object);
    showTooltip(event.clientX, event.clientY, `object ${object} ${state.cursor}`, () => {
      const description = describeObject(model.recording, object);
      if (objects.kind[object] === addressKinds(model.recording).block) {
        description.rows.push(['mapped', mappings ? mappings.map((m) => formatHex(objects.number[m]!)).join(', ') : 'nowhere at this moment']);
      }
      return description;
    });
  }

  private gapTooltip(event: PointerEvent, address: number, region: Region, reservation: number): void {
    const { objects } = this.state.model!.recording;
    const { ranges } = this.snapshot!;
    let from = region.begin;
    let to = region.end;
    if (reservation >= 0) {
      from = objects.number[reservation]!;
      to = from + objects.size[reservation]!;
    }
    for (const object of ranges) {
      const begin = objects.number[object]!;
      const end = begin + objects.size[object]!;
      if (end <= address && end > from) from = end;
      if (begin > address && begin < to) to = begin;
    }
    showTooltip(event.clientX, event.clientY, `gap ${from} ${to}`, () => ({
      title: `Gap of ${formatBytes(to - from)}`,
      rows: [['from', formatHex(from)], ['to', formatHex(to)], ['state', reservation >= 0 ? 'reserved, not mapped' : 'free'], ['at', formatMoment(this.state.cursor, 1)]],
    }));
  }

  // The wheel zooms the addresses of a strip; over labels and blocks it scrolls.
  private wheel(event: WheelEvent): void {
    const box = this.surface.container.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top + this.surface.scrollTop;
    const region = this.regions[Math.floor((y - 8) / kStrip)];
    if (!region || x < kLabel || event.deltaY === 0) return;
    event.preventDefault();
    const part = this.shownPart(region);
    const share = (x - kLabel) / this.barWidth;
    const address = part.begin + share * (part.end - part.begin);
    const size = Math.max(4096, Math.min(region.end - region.begin, (part.end - part.begin) * Math.exp(Math.sign(event.deltaY) * 0.25)));
    const begin = Math.round(Math.max(region.begin, Math.min(region.end - size, address - share * size)));
    this.zooms.set(`${region.begin}`, { begin, end: Math.round(begin + size) });
    this.state.invalidate('address');
  }
}
