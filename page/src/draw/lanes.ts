// SPDX-License-Identifier: Apache-2.0
//
// Slices of a lane, and arrows from what a task waited for.
import type { LaneSet } from '../data/lanes';
import type { Box } from './memory';
import { fillFitted } from './text';
import { kFont, type Theme } from './theme';

export interface LaneStyle {
  hue: (item: number) => number; // of the theme's groups
  label: (item: number) => string;
  isHollow?: (item: number) => boolean;
}

export function drawLane(context: CanvasRenderingContext2D, theme: Theme, set: LaneSet, lane: number, style: LaneStyle, from: number, to: number, box: Box): void {
  const { x, y, width, height } = box;
  // Filled hue by hue: changing the colour for each slice is what costs.
  const paths: (number[] | undefined)[] = [];
  const failed: number[] = [];
  const texts: [number, number, number][] = [];
  const hollow: number[] = [];
  set.slices(lane, from, to, width, (x0, x1, first, last) => {
    const item = set.order[first]!;
    const left = Math.max(0, x0);
    const room = Math.min(width, x1) - left;
    if (set.failedIn(first, last) > 0) failed.push(left, Math.max(2, room));
    if (style.isHollow?.(item)) hollow.push(left);
    else (paths[style.hue(item)] ??= []).push(left, Math.max(1, room > 3 ? room - 0.5 : room));
    if (room > 30) texts.push([left, room, item]);
  });
  paths.forEach((slices, hue) => {
    if (!slices) return;
    context.fillStyle = theme.soft[hue]!;
    for (let i = 0; i < slices.length; i += 2) context.fillRect(x + slices[i]!, y, slices[i + 1]!, height);
  });
  context.strokeStyle = theme.muted;
  for (const left of hollow) context.strokeRect(x + left + 0.5, y + 0.5, 4, height - 1);
  context.fillStyle = theme.failed;
  for (let i = 0; i < failed.length; i += 2) context.fillRect(x + failed[i]!, y, failed[i + 1]!, 4);
  context.font = kFont;
  context.textBaseline = 'middle';
  context.fillStyle = theme.text;
  for (const [left, room, item] of texts) fillFitted(context, style.label(item), x + left + 4, y + height / 2 + 1, room - 8);
}

export function drawArrow(context: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number): void {
  const bend = Math.max(12, Math.min(60, Math.abs(x1 - x0) / 2));
  context.beginPath();
  context.moveTo(x0, y0);
  context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 1, y1);
  context.stroke();
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x1 - 6, y1 - 3);
  context.lineTo(x1 - 6, y1 + 3);
  context.fill();
}
