// SPDX-License-Identifier: Apache-2.0
//
// The address space and the physical memory of a process at a moment.
import type { AliveIndex } from './alive';
import { kNone, type Recording } from './recording';
import { addressKinds, isInAddressSpace } from './regions';

export interface Snapshot {
  reservations: number[]; // objects, by address
  ranges: number[]; // mappings, allocations, host blocks and registrations, by address
  blocks: number[]; // physical blocks, by their beginning
  mappingsOf: Map<number, number[]>; // by the block
  reservedBytes: number;
  mappedBytes: number;
  allocatedBytes: number;
  allocations: number;
  blockBytes: number;
  unmappedBlocks: number;
  sharedBlocks: number; // mapped several times
}

export function snapshotAt(recording: Recording, alive: AliveIndex, process: number, device: number, time: number): Snapshot {
  const { objects } = recording;
  const kinds = addressKinds(recording);
  const result: Snapshot = {
    reservations: [], ranges: [], blocks: [], mappingsOf: new Map(), reservedBytes: 0, mappedBytes: 0, allocatedBytes: 0, allocations: 0,
    blockBytes: 0, unmappedBlocks: 0, sharedBlocks: 0,
  };
  alive.each(time, (object) => {
    const kind = objects.kind[object];
    const size = objects.size[object]!;
    if (kind === kinds.block && objects.process[object] === process && objects.device[object] === device) {
      result.blocks.push(object);
      result.blockBytes += size;
      return;
    }
    if (!isInAddressSpace(recording, kinds, process, device, object)) return;
    if (kind === kinds.reservation) {
      result.reservations.push(object);
      result.reservedBytes += size;
      return;
    }
    result.ranges.push(object);
    if (kind === kinds.mapping) {
      result.mappedBytes += size;
      const of = objects.whole[object]!;
      const list = result.mappingsOf.get(of);
      if (list) list.push(object);
      else if (of !== kNone) result.mappingsOf.set(of, [object]);
    } else {
      result.allocations++;
      result.allocatedBytes += size;
    }
  });
  const byAddress = (a: number, b: number) => objects.number[a]! - objects.number[b]! || a - b;
  result.reservations.sort(byAddress);
  result.ranges.sort(byAddress);
  result.blocks.sort((a, b) => a - b);
  for (const block of result.blocks) {
    const times = result.mappingsOf.get(block)?.length ?? 0;
    if (times === 0) result.unmappedBlocks++;
    else if (times > 1) result.sharedBlocks++;
  }
  return result;
}
