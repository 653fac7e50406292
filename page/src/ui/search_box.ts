// SPDX-License-Identifier: Apache-2.0
import { formatCount } from '../data/format';
import { search } from '../data/search';
import { byId } from './dom';
import type { Item, State } from './state';

export class SearchBox {
  private readonly input = byId<HTMLInputElement>('search');
  private timer: ReturnType<typeof setTimeout> | undefined;
  private searched = '';

  constructor(private readonly state: State, private readonly show: (item: Item) => void, private readonly openCalls: () => void) {
    this.input.addEventListener('input', () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.run(), 120);
    });
    byId('search-form').addEventListener('submit', (event) => {
      event.preventDefault();
      if (this.input.value !== this.searched) this.run();
      this.go(1);
    });
    byId('previous').addEventListener('click', () => this.go(-1));
  }

  find(text: string): void {
    this.input.value = text;
    this.run();
    this.go(1);
  }

  // Also for another recording: hits are positions in it.
  run(): void {
    const { state } = this;
    if (!state.model) return;
    clearTimeout(this.timer);
    this.searched = this.input.value;
    state.hits = search(state.model.recording, this.searched);
    state.hit = -1;
    this.showCount();
    if (state.hits) this.openCalls();
    state.invalidate('overview', 'panels');
  }

  clear(): void {
    this.input.value = '';
    this.input.blur();
    this.run();
  }

  // To the next hit, from the current one or from the cursor.
  go(by: number): void {
    const { state } = this;
    const { hits } = state;
    if (!hits || hits.length === 0) return;
    if (state.hit < 0) {
      const { begin } = state.model!.recording.calls;
      let first = 0;
      while (first < hits.length && begin[hits[first]!]! < state.cursor) first++;
      state.hit = (by > 0 ? first : first - 1 + hits.length) % hits.length;
    } else {
      state.hit = (state.hit + by + hits.length) % hits.length;
    }
    this.showCount();
    this.show({ type: 'call', index: hits[state.hit]! });
  }

  private showCount(): void {
    const { hits, hit } = this.state;
    byId('hits').textContent = !hits ? '' : hit >= 0 ? `${formatCount(hit + 1)} of ${formatCount(hits.length)}` : `${formatCount(hits.length)} found`;
    // Not the next one: a form whose submit button is disabled ignores Enter.
    byId<HTMLButtonElement>('previous').disabled = !hits || hits.length === 0;
  }
}
