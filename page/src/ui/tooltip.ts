// SPDX-License-Identifier: Apache-2.0
import type { Description } from '../data/describe';
import { byId, descriptionElement } from './dom';

let shown = '';

// `key` says what is shown: the same text is not built again while the pointer moves over it.
export function showTooltip(x: number, y: number, key: string, describe: () => Description, swatches?: string[]): void {
  const element = byId('tooltip');
  if (element.hidden || key !== shown) {
    element.replaceChildren(descriptionElement(describe(), swatches));
    element.hidden = false;
    shown = key;
  }
  const { offsetWidth: width, offsetHeight: height } = element;
  const left = x + 16 + width > innerWidth - 8 ? Math.max(8, x - width - 12) : x + 16;
  const top = y + 16 + height > innerHeight - 8 ? Math.max(8, y - height - 12) : y + 16;
  element.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
}

export function hideTooltip(): void {
  byId('tooltip').hidden = true;
  shown = '';
}
