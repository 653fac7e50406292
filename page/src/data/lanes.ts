// SPDX-License-Identifier: Apache-2.0
//
// Lanes: items of a thread or a stream, one behind the other. A lane of a million items is drawn by
// looking at one item per pixel column: what begins in one column and is narrower than it is one
// slice, found by a search for the next column's beginning.
import type { Recording } from './recording';

export interface Lane {
  first: number; // position in the order
  last: number;
}

export class LaneSet {
  readonly lanes: Lane[] = [];
  readonly order: Uint32Array; // items, lane by lane, each by begin
  private readonly failedBefore: Uint32Array; // how many failed before a position

  constructor(
    count: number,
    laneCount: number,
    private readonly laneOf: Uint32Array,
    readonly begin: Float64Array,
    readonly duration: Float64Array,
    private readonly code: Int32Array,
  ) {
    const starts = new Uint32Array(laneCount + 1);
    for (let i = 0; i < count; i++) starts[laneOf[i]! + 1]!++;
    for (let lane = 0; lane < laneCount; lane++) starts[lane + 1] = starts[lane + 1]! + starts[lane]!;
    for (let lane = 0; lane < laneCount; lane++) this.lanes.push({ first: starts[lane]!, last: starts[lane + 1]! });
    this.order = new Uint32Array(count);
    const next = starts.slice(0, laneCount);
    for (let i = 0; i < count; i++) this.order[next[laneOf[i]!]!++] = i;
    this.failedBefore = new Uint32Array(count + 1);
    for (let i = 0; i < count; i++) this.failedBefore[i + 1] = this.failedBefore[i]! + (code[this.order[i]!] !== 0 ? 1 : 0);
  }

  failedIn(first: number, last: number): number {
    return this.failedBefore[last]! - this.failedBefore[first]!;
  }

  failed(item: number): boolean {
    return this.code[item] !== 0;
  }

  laneOfItem(item: number): number {
    return this.laneOf[item]!;
  }

  // The first position in [first, last) whose item begins at or after `time`.
  lowerBound(time: number, first: number, last: number): number {
    while (first < last) {
      const middle = (first + last) >>> 1;
      if (this.begin[this.order[middle]!]! < time) first = middle + 1;
      else last = middle;
    }
    return first;
  }

  // Slices of a lane in [from, to) on `width` pixels: edges in pixels, and the positions they stand for.
  slices(lane: number, from: number, to: number, width: number, emit: (x0: number, x1: number, first: number, last: number) => void): void {
    const { first, last } = this.lanes[lane]!;
    const scale = width / (to - from);
    let at = this.lowerBound(from, first, last);
    if (at > first) at--; // may reach into the view
    while (at < last) {
      const item = this.order[at]!;
      const begin = this.begin[item]!;
      if (begin >= to) return;
      const x0 = (begin - from) * scale;
      const x1 = x0 + this.duration[item]! * scale;
      if (x1 - x0 >= 1) {
        if (x1 > 0) emit(x0, x1, at, at + 1);
        at++;
        continue;
      }
      const column = Math.floor(x0);
      // Most columns hold few items: look near before searching far.
      const edge = from + (column + 1) / scale;
      let reach = at + 1;
      let step = 1;
      while (reach < last && this.begin[this.order[reach]!]! < edge) {
        step *= 2;
        reach = Math.min(last, at + step);
      }
      let next = this.lowerBound(edge, at + 1, reach);
      // The last item of a column may be wide: it gets a slice of its own.
      if (next - 1 > at && this.duration[this.order[next - 1]!]! * scale >= 1) next--;
      if (column >= 0) emit(column, column + 1, at, next);
      at = next;
    }
  }

  // The item under a moment, or the nearest within `tolerance`; -1: none.
  itemAt(lane: number, time: number, tolerance: number): number {
    const { first, last } = this.lanes[lane]!;
    const next = this.lowerBound(time, first, last);
    let best = -1;
    let distance = tolerance;
    for (let at = Math.max(first, next - 2); at < Math.min(last, next + 1); at++) {
      const item = this.order[at]!;
      const begin = this.begin[item]!;
      const end = begin + this.duration[item]!;
      const far = time < begin ? begin - time : time > end ? time - end : 0;
      if (far <= distance) {
        distance = far;
        best = item;
      }
    }
    return best;
  }
}

export function callLanes({ header, calls }: Recording): LaneSet {
  return new LaneSet(calls.count, header.threads.length, calls.thread, calls.begin, calls.duration, calls.code);
}

// A task that has not run is where it was queued.
export function taskLanes({ header, tasks }: Recording): LaneSet {
  const begin = new Float64Array(tasks.count);
  const duration = new Float64Array(tasks.count);
  for (let i = 0; i < tasks.count; i++) {
    const ran = tasks.hasRun[i] !== 0;
    begin[i] = ran ? tasks.begin[i]! : tasks.queued[i]!;
    duration[i] = ran ? tasks.duration[i]! : 0;
  }
  return new LaneSet(tasks.count, header.streams.length, tasks.stream, begin, duration, tasks.code);
}

// Tasks that waited for another, in the order of their beginnings.
export function waitingTasks({ tasks }: Recording): Uint32Array {
  const found = new Uint32Array(tasks.count);
  let count = 0;
  for (let i = 0; i < tasks.count; i++) if (tasks.awaited[i] !== 0xffffffff) found[count++] = i;
  return found.slice(0, count);
}
