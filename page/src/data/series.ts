// SPDX-License-Identifier: Apache-2.0
//
// Memory over time of a device, by groups: a running sum of what objects take. Objects that end at a
// moment are taken off before those that begin at it.
//
// What a pixel column shows is the moment of its largest sum, so that no peak is lost at any zoom.
// The largest sum of a range comes from blocks of 64 and 4096 events; the groups at that moment from
// a checkpoint each 256 events and the events behind it.
import type { Recording } from './recording';
import { kNone } from './recording';
import { lowerBound, sortByKey, upperBound } from './sorting';
import { stackLabels } from './stack_labels';

export type GroupBy = 'stack' | 'function' | 'kind';

export interface SeriesOptions {
  process: number; // -1: all
  device: number; // -1: host
  by: GroupBy;
  groups?: number; // most that are shown apart from the rest
}

export interface Group {
  label: string;
  detail: string; // the whole stack
  peak: number;
}

const kFine = 6; // 64 events
const kCoarse = 12; // 4096 events
const kCheckpoint = 256;

export class MemorySeries {
  readonly times: Float64Array;
  readonly totals: Float64Array; // behind each event
  readonly objects: Uint32Array; // of each event
  readonly groups: Group[]; // the last is the rest, if there is one
  readonly peakEvent: number; // -1: none
  private readonly deltas: Float64Array;
  private readonly groupOf: Uint8Array;
  private readonly fine: Uint32Array;
  private readonly coarse: Uint32Array;
  private readonly checkpoints: Float64Array;

  constructor(recording: Recording, options: SeriesOptions) {
    const { objects } = recording;
    const chosen = chooseObjects(recording, options.process, options.device);
    let ending = 0;
    for (const object of chosen) if (objects.end[object]! < Infinity) ending++;
    let ends: Uint32Array = new Uint32Array(ending);
    for (let i = 0, to = 0; i < chosen.length; i++) if (objects.end[chosen[i]!]! < Infinity) ends[to++] = chosen[i]!;
    ends = sortByKey(ends, objects.end);

    const count = chosen.length + ends.length;
    this.times = new Float64Array(count);
    this.totals = new Float64Array(count);
    this.deltas = new Float64Array(count);
    this.objects = new Uint32Array(count);
    let total = 0;
    let peakEvent = -1;
    let peak = 0;
    for (let event = 0, b = 0, e = 0; event < count; event++) {
      const ended = e < ends.length && (b >= chosen.length || objects.end[ends[e]!]! <= objects.begin[chosen[b]!]!);
      const object = ended ? ends[e++]! : chosen[b++]!;
      const delta = ended ? -objects.taken[object]! : objects.taken[object]!;
      total += delta;
      this.times[event] = ended ? objects.end[object]! : objects.begin[object]!;
      this.totals[event] = total;
      this.deltas[event] = delta;
      this.objects[event] = object;
      if (total > peak) {
        peak = total;
        peakEvent = event;
      }
    }
    this.peakEvent = peakEvent;
    this.fine = this.largestOfBlocks(kFine);
    this.coarse = this.largestOfBlocks(kCoarse);

    this.groupOf = new Uint8Array(count);
    this.groups = this.chooseGroups(recording, options.by, options.groups ?? 9);
    const width = this.groups.length;
    this.checkpoints = new Float64Array(Math.ceil(count / kCheckpoint) * width);
    const sums = new Float64Array(width);
    for (let event = 0; event < count; event++) {
      if (event % kCheckpoint === 0) this.checkpoints.set(sums, (event / kCheckpoint) * width);
      const group = this.groupOf[event]!;
      sums[group] = sums[group]! + this.deltas[event]!;
    }
  }

  get peakBytes(): number {
    return this.peakEvent < 0 ? 0 : this.totals[this.peakEvent]!;
  }

  get peakAt(): number {
    return this.peakEvent < 0 ? 0 : this.times[this.peakEvent]!;
  }

  // The last event at or before a moment, -1 if there is none.
  eventAt(time: number): number {
    return upperBound(this.times, time) - 1;
  }

  totalAt(time: number): number {
    const event = this.eventAt(time);
    return event < 0 ? 0 : this.totals[event]!;
  }

  // What each group has behind an event.
  groupsAt(event: number, into: Float64Array): void {
    if (event < 0) {
      into.fill(0);
      return;
    }
    const width = this.groups.length;
    const block = Math.floor(event / kCheckpoint);
    for (let group = 0; group < width; group++) into[group] = this.checkpoints[block * width + group]!;
    for (let i = block * kCheckpoint; i <= event; i++) {
      const group = this.groupOf[i]!;
      into[group] = into[group]! + this.deltas[i]!;
    }
  }

  // The event of the largest sum in each of `columns` equal parts of [from, to); -1: before the first.
  columns(from: number, to: number, columns: number, into: Int32Array): void {
    const step = (to - from) / columns;
    let first = lowerBound(this.times, from);
    for (let column = 0; column < columns; column++) {
      const last = column === columns - 1 ? lowerBound(this.times, to, first) : lowerBound(this.times, from + (column + 1) * step, first);
      let best = first - 1; // what the column begins with
      if (last > first) {
        const inside = this.largest(first, last);
        if (best < 0 || this.totals[inside]! >= this.totals[best]!) best = inside;
      }
      into[column] = best;
      first = last;
    }
  }

  // The event of the largest sum in [first, last), which is not empty.
  largest(first: number, last: number): number {
    let best = first;
    let event = first;
    while (event < last) {
      let candidate = event;
      if (event % (1 << kCoarse) === 0 && event + (1 << kCoarse) <= last) {
        candidate = this.coarse[event >> kCoarse]!;
        event += 1 << kCoarse;
      } else if (event % (1 << kFine) === 0 && event + (1 << kFine) <= last) {
        candidate = this.fine[event >> kFine]!;
        event += 1 << kFine;
      } else {
        event++;
      }
      if (this.totals[candidate]! > this.totals[best]!) best = candidate;
    }
    return best;
  }

  private largestOfBlocks(shift: number): Uint32Array {
    const count = this.totals.length;
    const result = new Uint32Array(Math.ceil(count / (1 << shift)));
    for (let block = 0; block < result.length; block++) {
      const last = Math.min(count, (block + 1) << shift);
      let best = block << shift;
      for (let event = best + 1; event < last; event++) if (this.totals[event]! > this.totals[best]!) best = event;
      result[block] = best;
    }
    return result;
  }

  // The groups with the largest peaks of their own get a colour; the rest share one.
  private chooseGroups(recording: Recording, by: GroupBy, most: number): Group[] {
    const { header, calls, objects } = recording;
    const names = by === 'stack' ? header.stacks.length : by === 'function' ? header.functions.length : header.object_kinds.length;
    const unknown = names; // the key of what has no stack or no call
    const keyOf = (object: number): number => {
      if (by === 'kind') return objects.kind[object]!;
      if (by === 'stack') return objects.stack[object] === kNone ? unknown : objects.stack[object]!;
      const call = objects.beginCall[object]!;
      return call === kNone ? unknown : calls.function[call]!;
    };
    const sums = new Float64Array(names + 1);
    const peaks = new Float64Array(names + 1);
    for (let event = 0; event < this.objects.length; event++) {
      const key = keyOf(this.objects[event]!);
      const sum = sums[key]! + this.deltas[event]!;
      sums[key] = sum;
      if (sum > peaks[key]!) peaks[key] = sum;
    }
    const present: number[] = [];
    for (let key = 0; key <= names; key++) if (peaks[key]! > 0) present.push(key);
    present.sort((a, b) => peaks[b]! - peaks[a]! || a - b);
    const shown = present.length > most + 1 ? present.slice(0, most) : present;
    const slots = new Uint8Array(names + 1).fill(shown.length);
    shown.forEach((key, slot) => (slots[key] = slot));
    for (let event = 0; event < this.objects.length; event++) this.groupOf[event] = slots[keyOf(this.objects[event]!)]!;
    const texts = shown.map((key) => key === unknown ? (by === 'stack' ? 'no stack recorded' : 'call not recorded')
      : by === 'stack' ? header.stacks[key]! : by === 'function' ? header.functions[key]! : header.object_kinds[key]!);
    const labels = stackLabels(texts);
    const groups = shown.map((key, i): Group => ({ label: labels[i]!, detail: texts[i]!, peak: peaks[key]! }));
    if (shown.length < present.length) {
      groups.push({ label: `${present.length - shown.length} others`, detail: 'all smaller groups together', peak: 0 });
    }
    return groups;
  }
}

// Objects of a process on a device that take memory, in the order of their beginnings.
function chooseObjects({ objects }: Recording, process: number, device: number): Uint32Array {
  const chosen = new Uint32Array(objects.count);
  let count = 0;
  for (let i = 0; i < objects.count; i++) {
    if (objects.taken[i] !== 0 && objects.device[i] === device && (process < 0 || objects.process[i] === process)) chosen[count++] = i;
  }
  return chosen.subarray(0, count);
}
