// SPDX-License-Identifier: Apache-2.0
//
// How broken up the addresses of a device are at a moment:
// - of the addresses that are reserved, how many have nothing mapped behind them;
// - between living allocations of one region, how much is free (holes), and the largest hole.
import type { AliveIndex } from './alive';
import type { Recording } from './recording';
import type { AddressKinds, Region } from './regions';
import { addressKinds, isInAddressSpace } from './regions';
import { sortByKey } from './sorting';

export interface Fragmentation {
  reserved: number;
  mapped: number; // inside of reservations
  allocated: number;
  holes: number; // bytes
  holeCount: number;
  largestHole: number;
}

export const unmappedShare = (f: Fragmentation) => (f.reserved > 0 ? 1 - f.mapped / f.reserved : NaN);
export const holeShare = (f: Fragmentation) => (f.allocated > 0 ? f.holes / (f.holes + f.allocated) : NaN);

export class FragmentationProbe {
  private readonly kinds: AddressKinds;
  // Positions in the order of addresses: sorting these at each moment is faster than sorting objects.
  private readonly rank: Uint32Array;
  private readonly byRank: Uint32Array;
  private scratch: Uint32Array;

  constructor(
    private readonly recording: Recording,
    private readonly alive: AliveIndex,
    private readonly process: number,
    private readonly device: number,
    private readonly regions: Region[],
  ) {
    const { objects } = recording;
    this.kinds = addressKinds(recording);
    const found = new Uint32Array(objects.count);
    let count = 0;
    for (let i = 0; i < objects.count; i++) {
      const kind = objects.kind[i];
      if ((kind === this.kinds.allocation || kind === this.kinds.host) && isInAddressSpace(recording, this.kinds, process, device, i)) found[count++] = i;
    }
    this.byRank = sortByKey(found.subarray(0, count), objects.number);
    this.rank = new Uint32Array(objects.count);
    for (let i = 0; i < this.byRank.length; i++) this.rank[this.byRank[i]!] = i;
    this.scratch = new Uint32Array(1024);
  }

  at(time: number): Fragmentation {
    const { objects } = this.recording;
    const result: Fragmentation = { reserved: 0, mapped: 0, allocated: 0, holes: 0, holeCount: 0, largestHole: 0 };
    let count = 0;
    this.alive.each(time, (object) => {
      if (!isInAddressSpace(this.recording, this.kinds, this.process, this.device, object)) return;
      const kind = objects.kind[object];
      if (kind === this.kinds.reservation) result.reserved += objects.size[object]!;
      else if (kind === this.kinds.mapping) result.mapped += objects.size[object]!;
      else if (kind === this.kinds.allocation || kind === this.kinds.host) {
        if (count === this.scratch.length) {
          const larger = new Uint32Array(2 * count);
          larger.set(this.scratch);
          this.scratch = larger;
        }
        this.scratch[count++] = this.rank[object]!;
      }
    });
    const sorted = this.scratch.subarray(0, count).sort();
    let region = 0;
    let end = -1; // of the allocations so far, in this region
    for (const rank of sorted) {
      const object = this.byRank[rank]!;
      const begin = objects.number[object]!;
      const size = objects.size[object]!;
      while (region < this.regions.length && this.regions[region]!.end <= begin) {
        region++;
        end = -1;
      }
      if (end >= 0 && begin > end) {
        result.holes += begin - end;
        result.holeCount++;
        result.largestHole = Math.max(result.largestHole, begin - end);
      }
      end = Math.max(end, begin + size);
      result.allocated += size;
    }
    return result;
  }
}
