// SPDX-License-Identifier: Apache-2.0
//
// Numbers as people read them.

const kUnits = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

// "20 MiB", "1.5 GiB", "512 B": exact where the value is a whole number of its unit.
export function formatBytes(bytes: number): string {
  if (!Number.isFinite(bytes)) return '–';
  const sign = bytes < 0 ? '−' : '';
  let value = Math.abs(bytes);
  let unit = 0;
  while (value >= 1024 && unit < kUnits.length - 1) {
    value /= 1024;
    unit++;
  }
  const text = Number.isInteger(value) ? String(value) : value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0);
  return `${sign}${text} ${kUnits[unit]}`;
}

export function formatCount(count: number): string {
  return String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, '\u2009');
}

// "1 reservation", "2 reservations".
export function counted(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`;
}

// A length of time, by three or four digits: "12.3 µs".
export function formatDuration(ns: number): string {
  if (!Number.isFinite(ns)) return '–';
  const size = Math.abs(ns);
  if (size < 1000) return `${trimmed(ns, 0)} ns`;
  if (size < 1e6) return `${trimmed(ns / 1e3, size < 1e5 ? 2 : 1)} µs`;
  if (size < 1e9) return `${trimmed(ns / 1e6, size < 1e8 ? 2 : 1)} ms`;
  return `${trimmed(ns / 1e9, size < 1e11 ? 3 : 1)} s`;
}

// A moment, with as many digits as `step` needs: neighbours that are a step apart look different.
export function formatMoment(ns: number, step: number): string {
  const largest = Math.max(Math.abs(ns), step);
  const [unit, name] = largest >= 1e9 ? [1e9, 's'] : largest >= 1e6 ? [1e6, 'ms'] : largest >= 1e3 ? [1e3, 'µs'] : [1, 'ns'];
  const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / unit) - 1e-9)));
  return `${(ns / unit).toFixed(digits)} ${name}`;
}

export function formatHex(value: number): string {
  return `0x${value.toString(16)}`;
}

// Of two words, the lower one first.
export function formatHexWords(words: Uint32Array, at: number): string {
  const [low, high] = [words[2 * at]!, words[2 * at + 1]!];
  return high === 0 ? formatHex(low) : `${formatHex(high)}${low.toString(16).padStart(8, '0')}`;
}

export function formatShare(share: number): string {
  return Number.isFinite(share) ? `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %` : '–';
}

function trimmed(value: number, digits: number): string {
  return value.toFixed(digits).replace(/\.0+$|(\.\d*?)0+$/, '$1');
}

// A step of an axis: 1, 2 or 5 times a power of ten that is at least `least`.
export function niceStep(least: number): number {
  if (!(least > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(least));
  for (const factor of [1, 2, 5, 10]) if (factor * power >= least * 0.999999) return factor * power;
  return 10 * power;
}

// The same for bytes: powers of two.
export function niceByteStep(least: number): number {
  return least <= 1 ? 1 : 2 ** Math.ceil(Math.log2(least));
}
