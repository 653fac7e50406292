// SPDX-License-Identifier: Apache-2.0
//
// Colours of the canvases. Groups keep their hue in both themes; red is for failures alone.

export interface Theme {
  isDark: boolean;
  background: string;
  surface: string;
  line: string;
  grid: string;
  text: string;
  muted: string;
  accent: string;
  failed: string;
  window: string; // over what is outside of the view
  empty: string; // addresses with nothing
  groups: string[]; // the last is the rest
  soft: string[]; // the same, as a ground for text
  density: string;
}

const kLight = ['#4a78b0', '#dd8a3a', '#57a05a', '#9a6fb0', '#3f9fa3', '#cfae3c', '#b5657f', '#8a7160', '#7483cc', '#a3abb5'];
const kDark = ['#6c9cd6', '#e3a05c', '#77bb79', '#b893cf', '#5fbdc0', '#d9c06a', '#d08aa2', '#b39a88', '#98a5e8', '#6d7681'];

function mix(colour: string, ground: string, share: number): string {
  const parse = (hex: string) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const [a, b] = [parse(colour), parse(ground)];
  return `#${a.map((value, i) => Math.round(value * share + b[i]! * (1 - share)).toString(16).padStart(2, '0')).join('')}`;
}

const light: Theme = {
  isDark: false, background: '#ffffff', surface: '#f5f6f8', line: '#dde1e6', grid: '#eceff2', text: '#1d2329', muted: '#626c78',
  accent: '#2463c9', failed: '#c4262e', window: 'rgba(120,130,145,0.22)', empty: '#f1f3f5', groups: kLight,
  soft: kLight.map((colour) => mix(colour, '#ffffff', 0.5)), density: '#c3cad3',
};
const dark: Theme = {
  isDark: true, background: '#16191d', surface: '#1e2227', line: '#343a42', grid: '#23282e', text: '#dfe3e8', muted: '#949eaa',
  accent: '#7fb0f5', failed: '#ff7b7b', window: 'rgba(0,0,0,0.35)', empty: '#1e2329', groups: kDark,
  soft: kDark.map((colour) => mix(colour, '#16191d', 0.5)), density: '#454d57',
};

export const themes = { light, dark };

// A colour that belongs to the number of an object for good, whatever else is shown. Neighbours differ.
export function hueOf(words: Uint32Array, object: number): number {
  return (Math.imul(words[2 * object]! ^ Math.imul(words[2 * object + 1]!, 0x85ebca6b), 0x9e3779b1) >>> 16) % 9;
}

export const kFont = '11px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
export const kBoldFont = `600 ${kFont}`;
export const kMonoFont = '11px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace';
