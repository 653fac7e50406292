// SPDX-License-Identifier: Apache-2.0
//
// The tables of the lower part, and the details of what is selected.
import { callName, describeCall, describeObject, describeTask, threadName } from '../data/describe';
import { leakRows } from '../data/figures';
import { formatBytes, formatCount, formatDuration, formatMoment } from '../data/format';
import { kNone } from '../data/recording';
import { byId, descriptionElement, make } from './dom';
import type { Item, State } from './state';

const kMostRows = 200;

export interface Actions {
  show: (item: Item) => void; // selects it, and brings it into view
}

export class Panels {
  constructor(private readonly state: State, private readonly actions: Actions) {
    state.register('panels', () => this.draw());
    state.register('details', () => this.drawDetails());
    const tabs = [...document.querySelectorAll<HTMLElement>('#tabs [role="tab"]')];
    for (const tab of tabs) {
      tab.addEventListener('click', () => this.open(tab.id.slice(4)));
      tab.addEventListener('keydown', (event) => {
        if (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight') return;
        event.stopPropagation();
        const next = tabs[(tabs.indexOf(tab) + (event.key === 'ArrowRight' ? 1 : tabs.length - 1)) % tabs.length]!;
        next.focus();
        next.click();
      });
    }
  }

  open(name: string): void {
    for (const tab of document.querySelectorAll<HTMLElement>('#tabs [role="tab"]')) {
      const chosen = tab.id === `tab-${name}`;
      tab.setAttribute('aria-selected', String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      byId(tab.getAttribute('aria-controls')!).hidden = !chosen;
    }
    this.state.invalidate('panels', 'address');
  }

  private draw(): void {
    if (!this.state.model) return;
    if (!byId('panel-leaks').hidden) this.drawLeaks();
    if (!byId('panel-calls').hidden) this.drawCalls();
  }

  private drawLeaks(): void {
    const { state } = this;
    const { recording } = state.model!;
    const { header, objects } = recording;
    const rows = leakRows(recording, state.process, state.by);
    const panel = byId('panel-leaks');
    const many = header.processes.length > 1;
    const head = make('tr', {}, ...['Objects', 'Kind', 'Memory', 'Size', ...(many ? ['Process'] : []), 'First made', state.by === 'function' ? 'Made by' : 'Stack']
      .map((text, i) => make('th', { scope: 'col', ...([0, 2, 3].includes(i) ? { class: 'number' } : {}) }, text)));
    const body = make('tbody');
    for (const row of rows.slice(0, kMostRows)) {
      const name = row.key === kNone ? (state.by === 'kind' ? '' : 'not recorded') : state.by === 'function' ? header.functions[row.key]! : header.stacks[row.key]!;
      const [first, ...rest] = name.split('\n');
      const place = make('td', { class: 'wide frames' }, first, ...(rest.length > 0 ? [make('span', {}, `  from ${rest.join(', ')}`)] : []));
      const line = make('tr', { tabindex: '0' },
        make('td', { class: 'number' }, formatCount(row.count)), make('td', {}, header.object_kinds[row.kind]!),
        make('td', { class: 'number' }, row.taken > 0 ? formatBytes(row.taken) : '–'), make('td', { class: 'number' }, row.size > 0 ? formatBytes(row.size) : '–'),
        many ? make('td', {}, String(header.processes[row.process]!.pid)) : null, make('td', {}, formatMoment(objects.begin[row.first]!, 1000)), place);
      const show = () => this.actions.show({ type: 'object', index: row.first });
      line.addEventListener('click', show);
      line.addEventListener('keydown', (event) => event.key === 'Enter' && show());
      body.append(line);
    }
    const total = rows.reduce((sum, row) => ({ count: sum.count + row.count, taken: sum.taken + row.taken }), { count: 0, taken: 0 });
    panel.replaceChildren(
      make('div', { class: 'panel-tools' }, rows.length === 0 ? 'No object is alive at the end of the recording.'
        : `${formatCount(total.count)} objects are alive at the end and hold ${formatBytes(total.taken)}, in ${rows.length} groups. A row shows its first object.`),
      ...(rows.length > 0 ? [make('table', { class: 'list' }, make('thead', {}, head), body)] : []),
      ...(rows.length > kMostRows ? [make('div', { class: 'more' }, `${rows.length - kMostRows} smaller groups are not shown`)] : []),
    );
  }

  private drawCalls(): void {
    const { state } = this;
    const { recording } = state.model!;
    const { calls, header } = recording;
    const panel = byId('panel-calls');
    const { hits } = state;
    if (!hits) {
      panel.replaceChildren(make('div', { class: 'panel-tools' }, 'Search above: a function, an address (0x…), a stack, code:107000, or failed.'));
      return;
    }
    // A window of hits around the current one.
    const first = Math.max(0, Math.min(hits.length - kMostRows, state.hit - kMostRows / 2));
    const body = make('tbody');
    for (let i = first; i < Math.min(hits.length, first + kMostRows); i++) {
      const call = hits[i]!;
      const stack = calls.stack[call]!;
      const row = make('tr', { tabindex: '0', 'aria-selected': String(i === state.hit), class: calls.code[call] === 0 ? '' : 'failed' },
        make('td', {}, callName(recording, call)), make('td', { class: 'number' }, String(calls.code[call])), make('td', { class: 'number' }, formatMoment(calls.begin[call]!, 1000)),
        make('td', { class: 'number' }, formatDuration(calls.duration[call]!)), make('td', {}, threadName(recording, calls.thread[call]!)),
        make('td', { class: 'wide frames' }, stack === kNone ? '' : header.stacks[stack]!.split('\n')[0]!));
      const show = () => {
        state.hit = i;
        this.actions.show({ type: 'call', index: call });
      };
      row.addEventListener('click', show);
      row.addEventListener('keydown', (event) => event.key === 'Enter' && show());
      body.append(row);
    }
    const head = make('tr', {}, ...['Function', 'Code', 'At', 'Takes', 'Thread', 'Called from'].map((text, i) => make('th', { scope: 'col', ...(i > 0 && i < 4 ? { class: 'number' } : {}) }, text)));
    panel.replaceChildren(
      make('div', { class: 'panel-tools' }, hits.length > kMostRows ? `Calls ${formatCount(first + 1)} to ${formatCount(first + body.childElementCount)} of ${formatCount(hits.length)}` : `${hits.length} calls`),
      make('table', { class: 'list' }, make('thead', {}, head), body));
    body.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' });
  }

  private drawDetails(): void {
    const panel = byId('details');
    const { model, selected } = this.state;
    if (!model || !selected) {
      panel.replaceChildren(make('div', { class: 'empty' }, 'Click a call, a task or a block to keep its details here.'));
      return;
    }
    const { recording } = model;
    const { index } = selected;
    const jumps: [string, Item][] = [];
    const jump = (text: string, type: Item['type'], to: number) => to !== kNone && jumps.push([text, { type, index: to }]);
    if (selected.type === 'task') {
      jump('Call that queued it', 'call', recording.tasks.queuedBy[index]!);
      jump('Task it waited for', 'task', recording.tasks.awaited[index]!);
    } else if (selected.type === 'object') {
      jump('Call that made it', 'call', recording.objects.beginCall[index]!);
      jump('Call that ended it', 'call', recording.objects.endCall[index]!);
    }
    const buttons = jumps.map(([text, item]) => {
      const button = make('button', { type: 'button' }, text);
      button.addEventListener('click', () => this.actions.show(item));
      return button;
    });
    const describe = { call: describeCall, task: describeTask, object: describeObject }[selected.type];
    panel.replaceChildren(descriptionElement(describe(recording, index)), make('div', { class: 'actions' }, ...buttons));
  }
}
