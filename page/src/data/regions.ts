// SPDX-License-Identifier: Apache-2.0
//
// The parts of a process's address space that the program ever used: objects that touch, or are
// near each other, share a region. Regions are of the whole recording, so that the picture stays
// where it is while the cursor moves.
import type { Recording } from './recording';
import { kindOf } from './recording';
import { sortByKey } from './sorting';

export interface Region {
  begin: number;
  end: number;
}

export interface AddressKinds {
  allocation: number;
  reservation: number;
  mapping: number;
  host: number;
  registration: number;
  block: number;
}

export function addressKinds(recording: Recording): AddressKinds {
  return {
    allocation: kindOf(recording, 'allocation'),
    reservation: kindOf(recording, 'reservation'),
    mapping: kindOf(recording, 'mapping'),
    host: kindOf(recording, 'host block'),
    registration: kindOf(recording, 'registration'),
    block: kindOf(recording, 'physical block'),
  };
}

// Whether an object is in the picture of the addresses of a device. Reservations may be of no device.
export function isInAddressSpace(recording: Recording, kinds: AddressKinds, process: number, device: number, object: number): boolean {
  const { objects } = recording;
  if (objects.process[object] !== process || !(objects.size[object]! > 0)) return false;
  const kind = objects.kind[object];
  const of = objects.device[object];
  if (kind === kinds.reservation) return of === device || (of === -1 && device >= 0);
  if (kind === kinds.allocation || kind === kinds.mapping) return of === device;
  return (kind === kinds.host || kind === kinds.registration) && device === -1;
}

const kMostRegions = 48;
const kNearest = 2 ** 21;

export function findRegions(recording: Recording, process: number, device: number): Region[] {
  const { objects } = recording;
  const kinds = addressKinds(recording);
  const found = new Uint32Array(objects.count);
  let count = 0;
  for (let i = 0; i < objects.count; i++) if (isInAddressSpace(recording, kinds, process, device, i)) found[count++] = i;
  const sorted = sortByKey(found.subarray(0, count), objects.number);
  const merged: Region[] = [];
  for (const object of sorted) {
    const begin = objects.number[object]!;
    const end = begin + objects.size[object]!;
    const last = merged[merged.length - 1];
    if (last && begin <= last.end) last.end = Math.max(last.end, end);
    else merged.push({ begin, end });
  }
  // Gaps that separate regions: as small as the number of regions allows.
  let regions = merged;
  for (let gap = kNearest; ; gap *= 4) {
    regions = joinNear(merged, gap);
    if (regions.length <= kMostRegions) return regions;
  }
}

function joinNear(parts: Region[], gap: number): Region[] {
  const result: Region[] = [];
  for (const part of parts) {
    const last = result[result.length - 1];
    if (last && part.begin - last.end <= gap) last.end = part.end;
    else result.push({ ...part });
  }
  return result;
}
