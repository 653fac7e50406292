// SPDX-License-Identifier: Apache-2.0
//
// Text that fits. Measuring is slow, so widths are kept per font.

const widths = new Map<string, number>();

export function textWidth(context: CanvasRenderingContext2D, text: string): number {
  const key = context.font + text;
  let width = widths.get(key);
  if (width === undefined) {
    width = context.measureText(text).width;
    if (widths.size > 5000) widths.clear();
    widths.set(key, width);
  }
  return width;
}

// Draws `text`, shortened to `room` pixels; nothing if not even three letters fit.
export function fillFitted(context: CanvasRenderingContext2D, text: string, x: number, y: number, room: number): void {
  if (room < 14) return;
  if (textWidth(context, text) <= room) {
    context.fillText(text, x, y);
    return;
  }
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (textWidth(context, `${text.slice(0, middle)}…`) <= room) low = middle;
    else high = middle - 1;
  }
  if (low >= 3) context.fillText(`${text.slice(0, low)}…`, x, y);
}
