// SPDX-License-Identifier: Apache-2.0
//
// Calls, tasks and objects in words: a title and rows, for tooltips and details.
import { argumentRows } from './arguments';
import { formatBytes, formatCount, formatDuration, formatHexWords, formatMoment } from './format';
import type { Header, Recording } from './recording';
import { kNone } from './recording';

export interface Description {
  title: string;
  tone?: 'failed' | 'open';
  rows: [string, string][];
  stack?: string;
}

export function threadName({ header }: Recording, thread: number): string {
  const { name, number, process } = header.threads[thread]!;
  const { pid } = header.processes[process]!;
  const suffix = header.processes.length > 1 ? `, process ${pid}` : '';
  if (number === pid) return `${name === '' ? 'main thread' : name}${suffix === '' ? ` ${number}` : suffix}`;
  return `${name === '' ? 'thread' : name} ${number}${suffix}`;
}

// Which use of its number each stream is, as far as they are recorded.
const uses = new WeakMap<Header, number[]>();
function usesOf(header: Header): number[] {
  let found = uses.get(header);
  if (!found) {
    const counts = new Map<string, number>();
    found = new Array<number>(header.streams.length);
    const order = [...header.streams.keys()].sort((a, b) => header.streams[a]!.generation - header.streams[b]!.generation);
    for (const stream of order) {
      const { process, device, index } = header.streams[stream]!;
      const key = `${process} ${device} ${index}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
      found[stream] = counts.get(key)!;
    }
    uses.set(header, found);
  }
  return found;
}

export function streamName({ header }: Recording, stream: number): string {
  const { index, device, process } = header.streams[stream]!;
  const use = usesOf(header)[stream]!;
  const again = use > 1 ? `, use ${use}` : '';
  const pid = header.processes.length > 1 ? `, process ${header.processes[process]!.pid}` : '';
  return `stream ${index}${again}, device ${device}${pid}`;
}

export function callName({ header, calls }: Recording, call: number): string {
  return header.functions[calls.function[call]!]!;
}

const stackOf = ({ header }: Recording, stack: number) => (stack === kNone ? undefined : header.stacks[stack]);

export function describeCall(recording: Recording, call: number): Description {
  const { calls } = recording;
  const code = calls.code[call]!;
  return {
    title: callName(recording, call),
    tone: code !== 0 ? 'failed' : undefined,
    rows: [
      ...argumentRows(recording, call),
      ['returns', code === 0 ? '0' : `${code}, failed`],
      ['at', formatMoment(calls.begin[call]!, 1)],
      ['takes', formatDuration(calls.duration[call]!)],
      ['thread', threadName(recording, calls.thread[call]!)],
    ],
    stack: stackOf(recording, calls.stack[call]!),
  };
}

export function describeTask(recording: Recording, task: number): Description {
  const { header, tasks } = recording;
  const ran = tasks.hasRun[task] !== 0;
  const code = tasks.code[task]!;
  const rows: [string, string][] = [['stream', streamName(recording, tasks.stream[task]!)], ['position', formatCount(tasks.position[task]!)]];
  if (tasks.bytes[task]! > 0) rows.push(['bytes', formatBytes(tasks.bytes[task]!)]);
  rows.push(['queued at', formatMoment(tasks.queued[task]!, 1)]);
  if (ran) {
    rows.push(['waits in queue', formatDuration(tasks.begin[task]! - tasks.queued[task]!)]);
    rows.push(['begins at', formatMoment(tasks.begin[task]!, 1)], ['takes', formatDuration(tasks.duration[task]!)]);
    if (tasks.bytes[task]! > 0 && tasks.duration[task]! > 0) rows.push(['speed', `${formatBytes((tasks.bytes[task]! / tasks.duration[task]!) * 1e9)}/s`]);
  } else {
    rows.push(['state', 'has not run when the recording ends']);
  }
  if (code !== 0) rows.push(['code', `${code}, failed`]);
  const awaited = tasks.awaited[task]!;
  if (awaited !== kNone) {
    rows.push(['waited for', `${header.task_kinds[tasks.kind[awaited]!]} ${formatCount(tasks.position[awaited]!)} of ${streamName(recording, tasks.stream[awaited]!)}`]);
  }
  const by = tasks.queuedBy[task]!;
  if (by !== kNone) rows.push(['queued by', callName(recording, by)]);
  return {
    title: header.task_kinds[tasks.kind[task]!]!,
    tone: code !== 0 ? 'failed' : ran ? undefined : 'open',
    rows,
    stack: by === kNone ? undefined : stackOf(recording, recording.calls.stack[by]!),
  };
}

export function describeObject(recording: Recording, object: number): Description {
  const { header, objects } = recording;
  const rows: [string, string][] = [[objects.size[object]! > 0 && header.object_kinds[objects.kind[object]!] !== 'physical block' ? 'address' : 'number', formatHexWords(objects.numberWords, object)]];
  if (objects.size[object]! > 0) rows.push(['size', `${formatBytes(objects.size[object]!)} (${objects.size[object]})`]);
  if (objects.taken[object]! > 0) rows.push(['takes', formatBytes(objects.taken[object]!)]);
  if (objects.device[object]! >= 0) rows.push(['device', String(objects.device[object])]);
  const whole = objects.whole[object]!;
  if (objects.partOfWords[2 * object] !== 0 || objects.partOfWords[2 * object + 1] !== 0) {
    rows.push(['part of', `${whole === kNone ? '' : `${header.object_kinds[objects.kind[whole]!]} `}${formatHexWords(objects.partOfWords, object)}`]);
  }
  const begun = objects.beginCall[object]!;
  rows.push(['made at', formatMoment(objects.begin[object]!, 1) + (begun === kNone ? '' : ` by ${callName(recording, begun)}`)]);
  const end = objects.end[object]!;
  const ended = objects.endCall[object]!;
  if (end === Infinity) rows.push(['ends', 'alive when the recording ends']);
  else rows.push(['ends at', formatMoment(end, 1) + (ended === kNone ? '' : ` by ${callName(recording, ended)}`) + (objects.unasked[object] ? ', not asked for' : '')]);
  if (end !== Infinity) rows.push(['lives', formatDuration(end - objects.begin[object]!)]);
  if (header.processes.length > 1) rows.push(['process', String(header.processes[objects.process[object]!]!.pid)]);
  return { title: header.object_kinds[objects.kind[object]!]!, rows, stack: stackOf(recording, objects.stack[object]!) };
}
