// SPDX-License-Identifier: Apache-2.0
//
// The figures of a recording, computed from its columns. The command computes the same for the
// terminal; a difference is shown, because one of the two is wrong then.
import { formatBytes, formatCount } from './format';
import type { Peak, Recording, Summary } from './recording';
import { kNone } from './recording';
import type { GroupBy } from './series';

export interface Figures {
  calls: number;
  failed_calls: number;
  tasks: number;
  leaks: { objects: number; bytes: number };
}

export function computeFigures({ calls, objects, tasks }: Recording): Figures {
  let failed = 0;
  for (let i = 0; i < calls.count; i++) if (calls.code[i] !== 0) failed++;
  let alive = 0;
  let bytes = 0;
  for (let i = 0; i < objects.count; i++) {
    if (objects.end[i] !== Infinity) continue;
    alive++;
    bytes += objects.taken[i]!;
  }
  return { calls: calls.count, failed_calls: failed, tasks: tasks.count, leaks: { objects: alive, bytes } };
}

// Sentences about figures that differ from the summary. `peakOf` is asked for each peak of it.
export function compareWithSummary(figures: Figures, summary: Partial<Summary>, peakOf: (peak: Peak) => number): string[] {
  const result: string[] = [];
  const differ = (what: string, said: number | undefined, is: number, text: (value: number) => string) => {
    if (said !== undefined && said !== is) result.push(`The summary says ${text(said)} for ${what}; the recording holds ${text(is)}.`);
  };
  differ('calls', summary.calls, figures.calls, formatCount);
  differ('failed calls', summary.failed_calls, figures.failed_calls, formatCount);
  differ('tasks', summary.tasks, figures.tasks, formatCount);
  differ('objects alive at the end', summary.leaks?.objects, figures.leaks.objects, formatCount);
  differ('memory held at the end', summary.leaks?.bytes, figures.leaks.bytes, formatBytes);
  for (const peak of summary.peaks ?? []) {
    const where = peak.device < 0 ? 'the host' : `device ${peak.device}`;
    differ(`the peak of ${where}`, peak.bytes, peakOf(peak), formatBytes);
  }
  return result;
}

export interface LeakRow {
  kind: number;
  key: number; // stack or function; kNone: not known
  process: number;
  count: number;
  taken: number;
  size: number;
  first: number; // the object that began first
}

// Objects alive at the end, by kind and by what made them; the largest first.
export function leakRows({ calls, objects, header }: Recording, process: number, by: GroupBy): LeakRow[] {
  const rows = new Map<number, LeakRow>();
  const keys = Math.max(header.stacks.length, header.functions.length) + 1;
  for (let i = 0; i < objects.count; i++) {
    if (objects.end[i] !== Infinity || (process >= 0 && objects.process[i] !== process)) continue;
    const call = objects.beginCall[i]!;
    const key = by === 'kind' ? kNone : by === 'stack' ? objects.stack[i]! : call === kNone ? kNone : calls.function[call]!;
    const id = ((key === kNone ? keys - 1 : key) * header.object_kinds.length + objects.kind[i]!) * header.processes.length + objects.process[i]!;
    const row = rows.get(id);
    if (!row) {
      rows.set(id, { kind: objects.kind[i]!, key, process: objects.process[i]!, count: 1, taken: objects.taken[i]!, size: objects.size[i]!, first: i });
    } else {
      row.count++;
      row.taken += objects.taken[i]!;
      row.size += objects.size[i]!;
    }
  }
  return [...rows.values()].sort((a, b) => b.taken - a.taken || b.size - a.size || b.count - a.count || a.first - b.first);
}
