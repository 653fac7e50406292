// SPDX-License-Identifier: Apache-2.0
import { formatMoment, niceStep } from '../data/format';
import { textWidth } from './text';
import { kFont, type Theme } from './theme';

export function drawAxis(context: CanvasRenderingContext2D, theme: Theme, from: number, to: number, x: number, width: number, height: number, bottom: number): void {
  const step = niceStep(((to - from) / width) * 110);
  context.font = kFont;
  context.textBaseline = 'middle';
  for (let i = Math.ceil(from / step); i * step <= to; i++) {
    const at = Math.round(x + ((i * step - from) / (to - from)) * width) + 0.5;
    context.strokeStyle = theme.line;
    context.beginPath();
    context.moveTo(at, height - 5);
    context.lineTo(at, bottom);
    context.stroke();
    const text = formatMoment(i * step, step);
    if (at + 4 + textWidth(context, text) > x + width) continue;
    context.fillStyle = theme.muted;
    context.fillText(text, at + 4, height / 2);
  }
}
