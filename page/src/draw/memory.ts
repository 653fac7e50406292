// SPDX-License-Identifier: Apache-2.0
//
// The chart of memory over time: groups stacked, the peak marked, the capacity as a line.
import { formatBytes, niceByteStep } from '../data/format';
import type { MemorySeries } from '../data/series';
import { fillFitted, textWidth } from './text';
import { kBoldFont, kFont, type Theme } from './theme';

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export function drawMemory(context: CanvasRenderingContext2D, theme: Theme, series: MemorySeries, capacity: number, from: number, to: number, box: Box): void {
  const columns = Math.max(1, Math.floor(box.width));
  const events = new Int32Array(columns);
  series.columns(from, to, columns, events);
  let most = 0;
  for (const event of events) if (event >= 0) most = Math.max(most, series.totals[event]!);
  let top = most * 1.12 || 1;
  const showsCapacity = capacity > 0 && capacity <= most * 2;
  if (showsCapacity) top = Math.max(top, capacity * 1.05);
  const base = box.y + box.height;
  const scale = (box.height - 14) / top;

  const width = series.groups.length;
  const tops = new Float32Array(columns * (width + 1)); // heights of the sums, group by group
  const values = new Float64Array(width);
  for (let column = 0; column < columns; column++) {
    const event = events[column]!;
    if (column > 0 && event === events[column - 1]) {
      for (let g = 1; g <= width; g++) tops[g * columns + column] = tops[g * columns + column - 1]!;
      continue;
    }
    series.groupsAt(event, values);
    let sum = 0;
    for (let g = 0; g < width; g++) {
      sum += Math.max(0, values[g]!);
      tops[(g + 1) * columns + column] = sum * scale;
    }
  }
  drawGrid(context, theme, top, scale, box, most);
  const colours = theme.groups;
  for (let g = 0; g < width; g++) {
    context.fillStyle = colours[series.groups[g]!.peak === 0 ? colours.length - 1 : g % (colours.length - 1)]!;
    context.beginPath();
    fillBetween(context, tops, g * columns, (g + 1) * columns, columns, box.x, base);
    context.fill();
  }
  drawCapacity(context, theme, capacity, showsCapacity, scale, box);
  drawPeak(context, theme, series, from, to, scale, box);
}

// Steps, not slopes: memory is what it is until the next event.
function fillBetween(context: CanvasRenderingContext2D, tops: Float32Array, low: number, high: number, columns: number, x: number, base: number): void {
  context.moveTo(x, base - tops[high]!);
  for (let c = 0; c < columns; c++) {
    const y = base - tops[high + c]!;
    if (c > 0 && tops[high + c] !== tops[high + c - 1]) context.lineTo(x + c, y);
    if (c === columns - 1 || tops[high + c + 1] !== tops[high + c]) context.lineTo(x + c + 1, y);
  }
  for (let c = columns - 1; c >= 0; c--) {
    const y = base - tops[low + c]!;
    if (c === columns - 1 || tops[low + c] !== tops[low + c + 1]) context.lineTo(x + c + 1, y);
    if (c === 0 || tops[low + c - 1] !== tops[low + c]) context.lineTo(x + c, y);
  }
  context.closePath();
}

function drawGrid(context: CanvasRenderingContext2D, theme: Theme, top: number, scale: number, box: Box, most: number): void {
  context.font = kFont;
  context.textBaseline = 'bottom';
  if (most === 0) return;
  const step = niceByteStep(top / 4);
  for (let value = step; value < top; value += step) {
    const y = Math.round(box.y + box.height - value * scale) + 0.5;
    context.strokeStyle = theme.grid;
    context.beginPath();
    context.moveTo(box.x, y);
    context.lineTo(box.x + box.width, y);
    context.stroke();
    const text = formatBytes(value);
    context.fillStyle = theme.muted;
    context.fillText(text, box.x - textWidth(context, text) - 6, y + 6);
  }
}

function drawCapacity(context: CanvasRenderingContext2D, theme: Theme, capacity: number, shown: boolean, scale: number, box: Box): void {
  if (!(capacity > 0)) return;
  context.font = kFont;
  context.fillStyle = theme.muted;
  context.textBaseline = 'top';
  const text = `capacity ${formatBytes(capacity)}${shown ? '' : ', above this chart'}`;
  const x = box.x + box.width - textWidth(context, text) - 6;
  if (!shown) {
    context.fillText(text, x, box.y + 1);
    return;
  }
  const y = Math.round(box.y + box.height - capacity * scale) + 0.5;
  context.strokeStyle = theme.failed;
  context.setLineDash([5, 4]);
  context.beginPath();
  context.moveTo(box.x, y);
  context.lineTo(box.x + box.width, y);
  context.stroke();
  context.setLineDash([]);
  context.fillText(text, x, y - 13);
}

function drawPeak(context: CanvasRenderingContext2D, theme: Theme, series: MemorySeries, from: number, to: number, scale: number, box: Box): void {
  if (series.peakEvent < 0 || series.peakAt < from || series.peakAt > to) return;
  const x = box.x + ((series.peakAt - from) / (to - from)) * box.width;
  const y = box.y + box.height - series.peakBytes * scale;
  context.fillStyle = theme.text;
  context.beginPath();
  context.moveTo(x, y - 1);
  context.lineTo(x - 4, y - 7);
  context.lineTo(x + 4, y - 7);
  context.fill();
  context.font = kBoldFont;
  context.textBaseline = 'bottom';
  const text = `peak ${formatBytes(series.peakBytes)}`;
  const room = textWidth(context, text);
  context.fillText(text, x + 7 + room > box.x + box.width ? x - room - 7 : x + 7, Math.max(box.y + 12, y - 1));
}

// Names and values in the gutter. `time` is the moment of the values.
export function drawLegend(context: CanvasRenderingContext2D, theme: Theme, series: MemorySeries, time: number, box: Box): void {
  const values = new Float64Array(series.groups.length);
  series.groupsAt(series.eventAt(time), values);
  const step = 14.5;
  series.groups.forEach((group, g) => {
    const y = box.y + g * step;
    if (y + step > box.y + box.height + 4) return;
    const colours = theme.groups;
    context.fillStyle = colours[group.peak === 0 ? colours.length - 1 : g % (colours.length - 1)]!;
    context.fillRect(box.x, y + 2, 9, 9);
    context.font = kFont;
    context.textBaseline = 'top';
    const text = formatBytes(values[g]!);
    const room = textWidth(context, text);
    context.fillStyle = values[g]! > 0 ? theme.text : theme.muted;
    context.fillText(text, box.x + box.width - room, y);
    context.fillStyle = theme.muted;
    fillFitted(context, group.label, box.x + 14, y, box.width - room - 22);
  });
}
