// SPDX-License-Identifier: Apache-2.0
//
// Reads the binary document that the command puts into the page. A document may be cut short or
// damaged: every failure is a DocumentError with one sentence for the reader.
import type { ColumnEntry, Header, Recording } from './recording';
import { kNone } from './recording';

export class DocumentError extends Error {}

const kMagic = 'USPAGE1\n';
export const kPrefixBytes = 12;

type Column = Float64Array | Uint32Array | Int32Array | Uint16Array | Uint8Array;
const kWidths: Record<string, number> = { f64: 8, u64: 8, u32: 4, i32: 4, u16: 2, u8: 1 };

const kColumns: Record<string, string> = {
  call_begin: 'f64', call_duration: 'f64', call_function: 'u32', call_code: 'i32', call_thread: 'u32', call_stack: 'u32',
  call_argument_first: 'u32', call_argument_count: 'u8', argument_words: 'u64',
  object_kind: 'u8', object_device: 'i32', object_process: 'u32', object_stack: 'u32', object_begin_call: 'u32',
  object_end_call: 'u32', object_unasked: 'u8', object_number: 'u64', object_size: 'f64', object_taken: 'f64',
  object_part_of: 'u64', object_whole: 'u32', object_begin: 'f64', object_end: 'f64',
  task_kind: 'u32', task_code: 'i32', task_stream: 'u32', task_position: 'f64', task_queued: 'f64', task_queued_by: 'u32',
  task_begin: 'f64', task_duration: 'f64', task_has_run: 'u8', task_bytes: 'f64', task_awaited: 'u32',
};

const padded = (bytes: number) => Math.ceil(bytes / 8) * 8;

// How long the header is, from the first bytes of a document.
export function headerLength(bytes: Uint8Array): number {
  if (bytes.length < kPrefixBytes) throw new DocumentError(`The recording is cut short: ${bytes.length} bytes are there, its head alone has ${kPrefixBytes}.`);
  for (let i = 0; i < kMagic.length; i++) {
    if (bytes[i] !== kMagic.charCodeAt(i)) throw new DocumentError('This is no recording for this page: it does not begin with USPAGE1. It may be of another version.');
  }
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(8, true);
}

export function parseHeader(bytes: Uint8Array): Header {
  const length = headerLength(bytes);
  if (kPrefixBytes + length > bytes.length) {
    throw new DocumentError(`The recording is cut short: its header has ${length} bytes, ${bytes.length - kPrefixBytes} are there.`);
  }
  let header: unknown;
  try {
    header = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(kPrefixBytes, kPrefixBytes + length)));
  } catch {
    throw new DocumentError('The recording is damaged: its header is not JSON.');
  }
  return checkedHeader(header);
}

// The bytes of the whole document, as its header describes it.
export function documentLength(header: Header, headerBytes: number): number {
  let offset = padded(kPrefixBytes + headerBytes);
  for (const column of header.columns) offset += padded(column.count * (kWidths[column.type] ?? 0));
  return offset;
}

// `bytes` must begin at a multiple of 8 in its buffer: columns are views of it.
export function parseDocument(bytes: Uint8Array): Recording {
  const header = parseHeader(bytes);
  const columns = new Map<string, Column>();
  let offset = padded(kPrefixBytes + headerLength(bytes));
  for (const entry of header.columns) {
    const length = entry.count * kWidths[entry.type]!;
    if (offset + length > bytes.length) {
      throw new DocumentError(`The recording is cut short: column ${entry.name} ends at byte ${offset + length}, the document at byte ${bytes.length}.`);
    }
    columns.set(entry.name, columnOf(entry, bytes, offset));
    offset += padded(length);
  }
  const recording = assemble(header, columns);
  checkReferences(recording);
  return recording;
}

function columnOf(entry: ColumnEntry, bytes: Uint8Array, offset: number): Column {
  const at = bytes.byteOffset + offset;
  switch (entry.type) {
    case 'f64': return new Float64Array(bytes.buffer, at, entry.count);
    case 'u64': return new Uint32Array(bytes.buffer, at, 2 * entry.count); // the lower half of each first
    case 'u32': return new Uint32Array(bytes.buffer, at, entry.count);
    case 'i32': return new Int32Array(bytes.buffer, at, entry.count);
    case 'u16': return new Uint16Array(bytes.buffer, at, entry.count);
    default: return new Uint8Array(bytes.buffer, at, entry.count);
  }
}

function checkedHeader(value: unknown): Header {
  const damaged = (what: string) => new DocumentError(`The recording is damaged: ${what}.`);
  if (typeof value !== 'object' || value === null) throw damaged('its header is no object');
  const given = value as Partial<Header>;
  const list = <T>(name: keyof Header): T[] => {
    const entries = given[name];
    if (entries === undefined) return [];
    if (!Array.isArray(entries)) throw damaged(`"${name}" of its header is no list`);
    return entries as T[];
  };
  const columns = list<ColumnEntry>('columns');
  for (const column of columns) {
    if (!(column.type in kWidths)) throw damaged(`column ${column.name} has the unknown type ${column.type}`);
    if (!Number.isInteger(column.count) || column.count < 0) throw damaged(`column ${column.name} has the count ${column.count}`);
  }
  return {
    title: String(given.title ?? ''),
    wall_clock_ms: Number(given.wall_clock_ms ?? 0),
    duration_ns: Math.max(1, Number(given.duration_ns ?? 0) || 0),
    lost: Number(given.lost ?? 0),
    ring: Boolean(given.ring),
    stacks_recorded: Boolean(given.stacks_recorded),
    version: String(given.version ?? ''),
    notes: list('notes'), functions: list('functions'), parameters: list('parameters'), parameter_types: list('parameter_types'), texts: list('texts'),
    stacks: list('stacks'),
    object_kinds: list('object_kinds'), task_kinds: list('task_kinds'), processes: list('processes'),
    threads: list('threads'), streams: list('streams'), summary: given.summary ?? {}, columns,
  };
}

function assemble(header: Header, columns: Map<string, Column>): Recording {
  for (const [name, type] of Object.entries(kColumns)) {
    const entry = header.columns.find((column) => column.name === name);
    if (!entry) throw new DocumentError(`The recording is damaged: column ${name} is missing.`);
    if (entry.type !== type) throw new DocumentError(`The recording is damaged: column ${name} has type ${entry.type}, not ${type}.`);
    const first = name.startsWith('call_') ? 'call_begin' : name.startsWith('object_') ? 'object_kind' : name.startsWith('task_') ? 'task_kind' : name;
    const count = header.columns.find((column) => column.name === first)?.count;
    if (count !== undefined && count !== entry.count) {
      throw new DocumentError(`The recording is damaged: column ${name} has ${entry.count} entries, ${first} has ${count}.`);
    }
  }
  const f64 = (name: string) => columns.get(name) as Float64Array;
  const u32 = (name: string) => columns.get(name) as Uint32Array;
  const i32 = (name: string) => columns.get(name) as Int32Array;
  const u8 = (name: string) => columns.get(name) as Uint8Array;
  return {
    header,
    argumentWords: u32('argument_words'),
    calls: {
      count: f64('call_begin').length,
      begin: f64('call_begin'), duration: f64('call_duration'), function: u32('call_function'), code: i32('call_code'),
      thread: u32('call_thread'), stack: u32('call_stack'), argumentFirst: u32('call_argument_first'), argumentCount: u8('call_argument_count'),
    },
    objects: {
      count: u8('object_kind').length,
      kind: u8('object_kind'), device: i32('object_device'), process: u32('object_process'), stack: u32('object_stack'),
      beginCall: u32('object_begin_call'), endCall: u32('object_end_call'), unasked: u8('object_unasked'),
      number: numbersOf(u32('object_number')), numberWords: u32('object_number'), size: f64('object_size'), taken: f64('object_taken'),
      partOfWords: u32('object_part_of'), whole: u32('object_whole'),
      begin: f64('object_begin'), end: f64('object_end'),
    },
    tasks: {
      count: u32('task_kind').length,
      kind: u32('task_kind'), code: i32('task_code'), stream: u32('task_stream'), position: f64('task_position'),
      queued: f64('task_queued'), queuedBy: u32('task_queued_by'), begin: f64('task_begin'), duration: f64('task_duration'),
      hasRun: u8('task_has_run'), bytes: f64('task_bytes'), awaited: u32('task_awaited'),
    },
  };
}

// Numbers of 64 bits as the page computes with them: exact up to 53 bits, which all addresses have.
function numbersOf(words: Uint32Array): Float64Array {
  const numbers = new Float64Array(words.length / 2);
  for (let i = 0; i < numbers.length; i++) numbers[i] = words[2 * i + 1]! * 2 ** 32 + words[2 * i]!;
  return numbers;
}

// Positions that name an entry elsewhere must be inside of it: the rest of the page relies on that.
function checkReferences({ header, calls, objects, tasks }: Recording): void {
  const check = (name: string, column: Uint32Array | Uint8Array, limit: number, mayBeNone: boolean) => {
    for (let i = 0; i < column.length; i++) {
      const value = column[i]!;
      if (value >= limit && !(mayBeNone && value === kNone)) {
        throw new DocumentError(`The recording is damaged: entry ${i} of ${name} is ${value}, there are ${limit}.`);
      }
    }
  };
  check('call_function', calls.function, header.functions.length, false);
  check('call_thread', calls.thread, header.threads.length, false);
  check('call_stack', calls.stack, header.stacks.length, true);
  check('object_kind', objects.kind, header.object_kinds.length, false);
  check('object_process', objects.process, header.processes.length, false);
  check('object_stack', objects.stack, header.stacks.length, true);
  check('object_begin_call', objects.beginCall, calls.count, true);
  check('object_end_call', objects.endCall, calls.count, true);
  check('object_whole', objects.whole, objects.count, true);
  check('task_kind', tasks.kind, header.task_kinds.length, false);
  check('task_stream', tasks.stream, header.streams.length, false);
  check('task_queued_by', tasks.queuedBy, calls.count, true);
  check('task_awaited', tasks.awaited, tasks.count, true);
  for (const thread of header.threads) {
    if (!header.processes[thread.process]) throw new DocumentError(`The recording is damaged: a thread is of process ${thread.process}, there are ${header.processes.length}.`);
  }
  for (const stream of header.streams) {
    if (!header.processes[stream.process]) throw new DocumentError(`The recording is damaged: a stream is of process ${stream.process}, there are ${header.processes.length}.`);
  }
}
