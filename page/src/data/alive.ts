// SPDX-License-Identifier: Apache-2.0
//
// Which objects are alive at a moment. Checkpoints hold the living objects at some beginnings; what
// is alive later is what of them has not ended, and what began since. A checkpoint is made after as
// many objects as it has entries (and 4096 at least), so that all of them take no more memory than
// the objects.
import type { Objects } from './recording';
import { sortByKey, upperBound } from './sorting';

const kLeastStep = 4096;

export class AliveIndex {
  private readonly starts: number[] = []; // object before which a checkpoint is
  private readonly lists: Uint32Array[] = [];

  constructor(private readonly objects: Objects) {
    const { count, begin, end } = objects;
    const all = new Uint32Array(count);
    for (let i = 0; i < count; i++) all[i] = i;
    const ends = sortByKey(all, end);
    const living = new Uint32Array(count);
    const places = new Uint32Array(count);
    let alive = 0;
    let nextEnd = 0;
    let nextCheckpoint = 0;
    for (let object = 0; object < count; object++) {
      const now = begin[object]!;
      // Objects that end as they begin are not in the list yet: `object > ends[nextEnd]` sorts them out.
      while (nextEnd < count && end[ends[nextEnd]!]! <= now && ends[nextEnd]! < object) {
        const place = places[ends[nextEnd]!]!;
        const last = living[--alive]!;
        living[place] = last;
        places[last] = place;
        nextEnd++;
      }
      if (object >= nextCheckpoint) {
        this.starts.push(object);
        this.lists.push(living.slice(0, alive));
        nextCheckpoint = object + Math.max(kLeastStep, alive);
      }
      places[object] = alive;
      living[alive++] = object;
    }
  }

  // Calls back for each object that is alive at `time`, in no order.
  each(time: number, visit: (object: number) => void): void {
    const { begin, end } = this.objects;
    const last = upperBound(begin, time); // those before it have begun
    let low = 0;
    let high = this.starts.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.starts[middle]! <= last) low = middle + 1;
      else high = middle;
    }
    const checkpoint = low - 1;
    if (checkpoint < 0) return;
    for (const object of this.lists[checkpoint]!) if (end[object]! > time) visit(object);
    for (let object = this.starts[checkpoint]!; object < last; object++) if (end[object]! > time) visit(object);
  }
}
