// SPDX-License-Identifier: Apache-2.0
//
// A recording as the page holds it: columns that are views of one buffer, no object per item.

export const kNone = 0xffffffff;

export interface Process {
  pid: number;
  parent: number;
  program: string;
  product: string;
  devices: number;
  device_memory: number;
  begin: number;
  end: number;
}

export interface Thread {
  process: number;
  number: number;
  name: string;
  open_function: number; // -1: none
  open_since: number;
}

export interface Stream {
  process: number;
  device: number;
  index: number;
  generation: number;
}

export interface Peak {
  process: number; // -1: all
  device: number; // -1: host
  bytes: number;
  at_ns: number;
}

export interface Summary {
  calls: number;
  failed_calls: number;
  tasks: number;
  peaks: Peak[];
  leaks: { objects: number; bytes: number };
}

export interface ColumnEntry {
  name: string;
  type: string;
  count: number;
}

export interface Header {
  title: string;
  wall_clock_ms: number;
  duration_ns: number;
  lost: number;
  ring: boolean;
  stacks_recorded: boolean;
  version: string;
  notes: string[];
  functions: string[];
  parameters: string[][]; // a name for each word of its arguments
  parameter_types: string[][]; // "out p", "u", "P0" to "P3" (README.md)
  texts: string[];
  stacks: string[];
  object_kinds: string[];
  task_kinds: string[];
  processes: Process[];
  threads: Thread[];
  streams: Stream[];
  summary: Partial<Summary>;
  columns: ColumnEntry[];
}

export interface Calls {
  count: number;
  begin: Float64Array;
  duration: Float64Array;
  function: Uint32Array;
  code: Int32Array;
  thread: Uint32Array;
  stack: Uint32Array;
  argumentFirst: Uint32Array;
  argumentCount: Uint8Array;
}

export interface Objects {
  count: number;
  kind: Uint8Array;
  device: Int32Array;
  process: Uint32Array;
  stack: Uint32Array;
  beginCall: Uint32Array;
  endCall: Uint32Array;
  unasked: Uint8Array;
  number: Float64Array;
  numberWords: Uint32Array; // the same, exact: two words for each object, the lower one first
  size: Float64Array;
  taken: Float64Array;
  partOfWords: Uint32Array;
  whole: Uint32Array; // the object that it is part of
  begin: Float64Array;
  end: Float64Array; // Infinity: alive at the end
}

export interface Tasks {
  count: number;
  kind: Uint32Array;
  code: Int32Array;
  stream: Uint32Array;
  position: Float64Array;
  queued: Float64Array;
  queuedBy: Uint32Array;
  begin: Float64Array;
  duration: Float64Array;
  hasRun: Uint8Array;
  bytes: Float64Array;
  awaited: Uint32Array;
}

export interface Recording {
  header: Header;
  calls: Calls;
  objects: Objects;
  tasks: Tasks;
  argumentWords: Uint32Array; // two words for each, the lower one first
}

// The position of a kind by its name, or -1.
export function kindOf(recording: Recording, name: string): number {
  return recording.header.object_kinds.indexOf(name);
}
