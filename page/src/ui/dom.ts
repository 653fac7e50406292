// SPDX-License-Identifier: Apache-2.0
//
// Elements by id, and elements made of text. Text never becomes HTML: names come from programs.
import type { Description } from '../data/describe';

export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no element ${id}`);
  return element as T;
}

type Child = Node | string | null | undefined;

export function make<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Record<string, string> = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  for (const child of children) if (child !== null && child !== undefined) element.append(child);
  return element;
}

export function descriptionElement({ title, tone, rows, stack }: Description, swatches?: string[]): HTMLElement {
  const table = make('table');
  rows.forEach(([name, value], i) => {
    const head = make('th', { scope: 'row' });
    const swatch = swatches?.[i];
    if (swatch) head.append(make('span', { class: 'swatch', style: `background:${swatch}` }));
    head.append(name);
    table.append(make('tr', {}, head, make('td', {}, value)));
  });
  return make('div', { class: `description${tone ? ` ${tone}` : ''}` }, make('h2', {}, title), table, stack ? make('pre', { class: 'stack' }, stack) : null);
}
