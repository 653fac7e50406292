// SPDX-License-Identifier: Apache-2.0
//
// Orders of columns, and where a value is in them.

// Sorts `items` by their keys, which must not be negative. Radix sort of the bits of a double: equal
// keys keep their order, and a million items take some 30 ms where a comparator takes a second.
export function sortByKey(items: Uint32Array, keys: Float64Array): Uint32Array {
  const count = items.length;
  const bits = new Uint16Array(count * 4);
  const view = new Float64Array(bits.buffer);
  for (let i = 0; i < count; i++) view[i] = keys[items[i]!]!;
  let order: Uint32Array = new Uint32Array(count);
  for (let i = 0; i < count; i++) order[i] = i;
  let other: Uint32Array = new Uint32Array(count);
  const starts = new Uint32Array(65536);
  for (let digit = 0; digit < 4; digit++) {
    starts.fill(0);
    for (let i = 0; i < count; i++) starts[bits[4 * i + digit]!]!++;
    if (count > 0 && starts[bits[digit]!] === count) continue; // all are equal here
    for (let i = 0, sum = 0; i < 65536; i++) {
      const here = starts[i]!;
      starts[i] = sum;
      sum += here;
    }
    for (let i = 0; i < count; i++) {
      const item = order[i]!;
      other[starts[bits[4 * item + digit]!]!++] = item;
    }
    [order, other] = [other, order];
  }
  for (let i = 0; i < count; i++) other[i] = items[order[i]!]!;
  return other;
}

// The first position in [first, last) whose value is at least `value`, else last.
export function lowerBound(values: Float64Array, value: number, first = 0, last = values.length): number {
  while (first < last) {
    const middle = (first + last) >>> 1;
    if (values[middle]! < value) first = middle + 1;
    else last = middle;
  }
  return first;
}

// The first position in [first, last) whose value is above `value`, else last.
export function upperBound(values: Float64Array, value: number, first = 0, last = values.length): number {
  while (first < last) {
    const middle = (first + last) >>> 1;
    if (values[middle]! <= value) first = middle + 1;
    else last = middle;
  }
  return first;
}
