// SPDX-License-Identifier: Apache-2.0
//
// Makes a recording of a program that never ran, for tests and for looking at the page:
//
//   node make_document.mjs --calls N OUT.html      the page with a recording in it
//   node make_document.mjs --calls N OUT.zlib      the document alone, as a live server sends it
//
// The same arguments give the same recording. The figures of its summary are counted here, by other
// means than the page's, so that a test can compare both.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { deflateSync } from 'node:zlib';

const kNone = 0xffffffff;
const kMiB = 1 << 20;

function generator(seed) {
  let state = seed >>> 0 || 1;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

// Arguments with their types, as a recording has them.
const kFunctions = {
  aclrtMalloc: ['out devPtr:p', 'size:u', 'policy:i'],
  aclrtFree: ['devPtr:p'],
  aclrtMallocHost: ['out hostPtr:p', 'size:u'],
  aclrtReserveMemAddress: ['out virPtr:p', 'size:u', 'alignment:u', 'expectPtr:p', 'flags:u'],
  aclrtMallocPhysical: ['out handle:p', 'size:u', 'prop:P1', 'flags:u'],
  aclrtMapMem: ['virPtr:p', 'size:u', 'offset:u', 'handle:p', 'flags:u'],
  aclrtUnmapMem: ['virPtr:p'],
  aclrtFreePhysical: ['handle:p'],
  aclrtMemcpyAsync: ['dst:p', 'destMax:u', 'src:p', 'count:u', 'kind:i', 'stream:p'],
  aclrtRecordEvent: ['event:p', 'stream:p'],
  aclrtStreamWaitEvent: ['stream:p', 'event:p'],
  aclrtSynchronizeStream: ['stream:p'],
  aclrtCreateStream: ['out stream:p'],
};
const nameOf = (parameter) => parameter.replace(/^out |:.*/g, '');
const typeOf = (parameter) => parameter.replace(/\w+:/, '');
const kObjectKinds = ['allocation', 'physical block', 'reservation', 'mapping', 'host block', 'registration', 'pool', 'stream', 'event', 'notify', 'share'];
const kPlaces = {
  aclrtMalloc: ['load_weights at model.cc:88\nmain at main.cc:41', 'Workspace::grow at workspace.cc:132\nAttention::forward at attention.cc:57\nDecoder::step at decoder.cc:203\nmain at main.cc:77',
    'Activations::Activations at activations.cc:19\nMlp::forward at mlp.cc:64\nDecoder::step at decoder.cc:211\nmain at main.cc:77', 'Sampler::sample at sampler.cc:30\nmain at main.cc:80', 'LogitsBuffer::resize at logits.cc:25\nSampler::sample at sampler.cc:28\nmain at main.cc:80'],
  aclrtMallocPhysical: ['PageAllocator::refill at kv_pages.cc:71\nPageAllocator::take at kv_pages.cc:48\nKvCache::append at kv_cache.cc:115\nDecoder::step at decoder.cc:199\nmain at main.cc:77', 'PageAllocator::warm_up at kv_pages.cc:33\nmain at main.cc:52'],
};

// Columns that grow: plain arrays would hold a million boxed numbers.
class Column {
  constructor(name, type) {
    this.name = name;
    this.type = type;
    this.make = { f64: Float64Array, u32: Uint32Array, i32: Int32Array, u64: BigUint64Array, u8: Uint8Array }[type];
    this.values = new this.make(1024);
    this.count = 0;
  }
  push(value) {
    if (this.count === this.values.length) {
      const larger = new this.make(2 * this.count);
      larger.set(this.values);
      this.values = larger;
    }
    this.values[this.count++] = this.type === 'u64' ? BigInt(value) : value;
  }
}

class Table {
  constructor(columns) {
    this.columns = columns.map(([name, type]) => new Column(name, type));
    this.count = 0;
  }
  add(...values) {
    this.columns.forEach((column, i) => column.push(values[i]));
    return this.count++;
  }
  column(name) {
    return this.columns.find((column) => column.name === name);
  }
  // Puts the rows into the order of `keys`, and answers where each row went.
  sort(keys) {
    const order = Uint32Array.from({ length: this.count }, (_, i) => i).sort((a, b) => keys(a) - keys(b) || a - b);
    const to = new Uint32Array(this.count);
    order.forEach((from, i) => (to[from] = i));
    for (const column of this.columns) column.values = column.make.from(order, (from) => column.values[from]);
    return to;
  }
}

// Addresses of one device of one process: freed ranges are used again for the same size, so that
// gaps stay.
class Addresses {
  constructor(base) {
    this.next = base;
    this.free = new Map();
  }
  take(size) {
    const list = this.free.get(size);
    if (list?.length) return list.pop();
    const at = this.next;
    this.next += size;
    return at;
  }
  give(at, size) {
    if (!this.free.has(size)) this.free.set(size, []);
    this.free.get(size).push(at);
  }
}

export function makeDocument({ calls: wanted = 2000, seed = 7, notes = null, title = 'kv_cache', lost = 0 } = {}) {
  const random = generator(seed);
  const pick = (list) => list[Math.floor(random() * list.length)];
  const functions = Object.keys(kFunctions);
  const functionOf = Object.fromEntries(functions.map((name, i) => [name, i]));
  const taskKinds = ['copy', 'record event', 'wait event', 'set', 'host function'];
  const stacks = [];
  const stackIds = new Map();
  const stackOf = (name) => {
    const text = pick(kPlaces[name] ?? [`${name}_caller at engine.cc:${100 + functionOf[name]}\nDecoder::step at decoder.cc:188\nmain at main.cc:77`]);
    if (!stackIds.has(text)) stackIds.set(text, stacks.push(text) - 1);
    return stackIds.get(text);
  };

  const calls = new Table([['call_begin', 'f64'], ['call_duration', 'f64'], ['call_function', 'u32'], ['call_code', 'i32'], ['call_thread', 'u32'],
    ['call_stack', 'u32'], ['call_argument_first', 'u32'], ['call_argument_count', 'u8']]);
  const values = new Table([['argument_words', 'u64']]);
  const objects = new Table([['object_kind', 'u8'], ['object_device', 'i32'], ['object_process', 'u32'], ['object_stack', 'u32'], ['object_begin_call', 'u32'],
    ['object_end_call', 'u32'], ['object_unasked', 'u8'], ['object_number', 'u64'], ['object_size', 'f64'], ['object_taken', 'f64'], ['object_part_of', 'u64'],
    ['object_whole', 'u32'], ['object_begin', 'f64'], ['object_end', 'f64']]);
  const tasks = new Table([['task_kind', 'u32'], ['task_code', 'i32'], ['task_stream', 'u32'], ['task_position', 'f64'], ['task_queued', 'f64'],
    ['task_queued_by', 'u32'], ['task_begin', 'f64'], ['task_duration', 'f64'], ['task_has_run', 'u8'], ['task_bytes', 'f64'], ['task_awaited', 'u32']]);
  const objectEnd = objects.column('object_end');
  const objectEndCall = objects.column('object_end_call');

  const processes = [
    { pid: 14263, parent: 14200, program: './decode --layers 32 --prompt story.txt', product: 'a2', devices: 8, device_memory: 4 * 2 ** 30, begin: 0, end: 0 },
    { pid: 14270, parent: 14263, program: './decode --worker 1', product: 'a2', devices: 8, device_memory: 4 * 2 ** 30, begin: 0, end: 0 },
  ];
  const threads = [
    { process: 0, number: 14263, name: 'decode', open_function: -1, open_since: 0 },
    { process: 0, number: 14266, name: 'prefetch', open_function: -1, open_since: 0 },
    { process: 1, number: 14270, name: 'decode', open_function: -1, open_since: 0 },
    { process: 1, number: 14272, name: 'sampler', open_function: -1, open_since: 0 },
  ];
  const streams = [0, 1, 2].map((index) => ({ process: 0, device: 0, index, generation: 0 })).concat([0, 1].map((index) => ({ process: 1, device: 1, index, generation: 0 })));
  const streamEnds = streams.map(() => 0);
  const positions = streams.map(() => 0);
  const lastRecord = streams.map(() => kNone);

  const state = threads.map((thread, i) => ({
    thread: i, process: thread.process, device: thread.process, now: 20000 + i * 15000, step: 0,
    streams: streams.map((_, s) => s).filter((s) => streams[s].process === thread.process),
    allocations: [], blocks: [], mapped: [], reservation: null, slots: [],
  }));
  const spaces = processes.map((_, p) => new Addresses(0x180000000000 + p * 0x1000000000));
  let nextHandle = 0x5b00000000000000n; // more than a double holds
  let failed = 0;

  const call = (s, name, args, length, code = 0) => {
    const duration = Math.round(length); // times are whole nanoseconds
    const first = values.count;
    for (const value of args) values.add(value);
    const stack = stackOf(name);
    const index = calls.add(s.now, duration, functionOf[name], code, s.thread, stack, first, args.length);
    if (code !== 0) failed++;
    s.now += duration;
    s.stack = stack;
    return index;
  };
  const begin = (s, kind, by, number, size, taken, whole = null, device = s.device) =>
    objects.add(kObjectKinds.indexOf(kind), device, s.process, s.stack, by, kNone, 0, number, size, taken, whole?.handle ?? 0, whole?.object ?? kNone, s.now, Infinity);
  const end = (s, object, by) => {
    objectEnd.values[object] = s.now;
    objectEndCall.values[object] = by;
  };
  const queue = (s, stream, kind, by, length, bytes, awaited = kNone, code = 0) => {
    const duration = Math.round(length);
    const ready = awaited === kNone ? 0 : tasks.column('task_begin').values[awaited] + tasks.column('task_duration').values[awaited];
    const start = Math.max(s.now + 900, streamEnds[stream] + 150, ready + 200);
    streamEnds[stream] = start + duration;
    return tasks.add(taskKinds.indexOf(kind), code, stream, positions[stream]++, s.now, by, start, duration, 1, bytes, awaited);
  };

  const sizes = [1, 2, 2, 4, 6, 10, 16].map((n) => n * 2 * kMiB);
  const kSlots = 256;
  for (const s of state) {
    s.reservation = spaces[s.process].take(kSlots * 2 * kMiB);
    const by = call(s, 'aclrtReserveMemAddress', [s.reservation, kSlots * 2 * kMiB, 0, 0, 1], 1800);
    begin(s, 'reservation', by, s.reservation, kSlots * 2 * kMiB, 0, null, -1);
    s.slots = Array.from({ length: kSlots }, (_, i) => kSlots - 1 - i);
    if (s.thread % 2 === 0) {
      const host = 0x7f2a00000000 + s.thread * 0x10000000;
      const made = call(s, 'aclrtMallocHost', [host, 64 * kMiB], 5200);
      begin(s, 'host block', made, host, 64 * kMiB, 64 * kMiB, null, -1);
    }
  }
  const actions = {
    malloc(s) {
      const size = pick(sizes);
      const address = spaces[s.process].take(size);
      const by = call(s, 'aclrtMalloc', [address, size, 0], 400 + random() * 900);
      s.allocations.push({ object: begin(s, 'allocation', by, address, size, size), address, size });
    },
    free(s) {
      if (s.allocations.length === 0) return actions.malloc(s);
      const [gone] = s.allocations.splice(Math.floor(random() * s.allocations.length), 1);
      const by = call(s, 'aclrtFree', [gone.address], 300 + random() * 500);
      end(s, gone.object, by);
      spaces[s.process].give(gone.address, gone.size);
    },
    map(s) {
      if (s.slots.length === 0) return actions.unmap(s);
      let block = s.blocks.length > 0 && random() < 0.35 ? pick(s.blocks) : null;
      if (!block) {
        nextHandle += 0x100000001n;
        const by = call(s, 'aclrtMallocPhysical', [nextHandle, 2 * kMiB, 1, 0], 250 + random() * 400);
        block = { handle: nextHandle, object: begin(s, 'physical block', by, nextHandle, 2 * kMiB, 2 * kMiB), mappings: 0 };
        s.blocks.push(block);
      }
      // Mostly a block that is not mapped yet; now and then the same one again.
      const slot = s.slots.pop();
      const address = s.reservation + slot * 2 * kMiB;
      const by = call(s, 'aclrtMapMem', [address, 2 * kMiB, 0, block.handle, 0], 150 + random() * 200);
      block.mappings++;
      s.mapped.push({ slot, address, block, object: begin(s, 'mapping', by, address, 2 * kMiB, 0, block) });
    },
    unmap(s) {
      if (s.mapped.length === 0) return actions.map(s);
      const [gone] = s.mapped.splice(Math.floor(random() * s.mapped.length), 1);
      const by = call(s, 'aclrtUnmapMem', [gone.address], 120 + random() * 150);
      end(s, gone.object, by);
      s.slots.push(gone.slot);
      if (--gone.block.mappings > 0 || random() < 0.2) return;
      const free = call(s, 'aclrtFreePhysical', [gone.block.handle], 200 + random() * 200);
      end(s, gone.block.object, free);
      s.blocks.splice(s.blocks.indexOf(gone.block), 1);
    },
    copy(s) {
      const stream = pick(s.streams);
      const bytes = pick([64, 256, 1024, 4096]) * 1024;
      const bad = random() < 0.002;
      const by = call(s, 'aclrtMemcpyAsync', [s.reservation, bytes, 0x7f2a00000000, bytes, 1, 0x55d0aa000000 + stream * 256], 500 + random() * 600, bad ? 107000 : 0);
      if (!bad) queue(s, stream, 'copy', by, 2000 + (bytes / 1024) * 6 * (0.8 + random()), bytes, kNone, random() < 0.0005 ? 507011 : 0);
    },
    order(s) {
      const [from, to] = [s.streams[0], s.streams[1 + Math.floor(random() * (s.streams.length - 1))]];
      const record = call(s, 'aclrtRecordEvent', [0x55d0ee000000, 0x55d0aa000000 + from * 256], 300);
      lastRecord[from] = queue(s, from, 'record event', record, 300, 0);
      const wait = call(s, 'aclrtStreamWaitEvent', [0x55d0aa000000 + to * 256, 0x55d0ee000000], 300);
      queue(s, to, 'wait event', wait, 400, 0, lastRecord[from]);
    },
    synchronize(s) {
      const stream = pick(s.streams);
      const until = Math.max(streamEnds[stream], s.now + 700);
      call(s, 'aclrtSynchronizeStream', [0x55d0aa000000 + stream * 256], until - s.now);
    },
    mistake(s) {
      call(s, 'aclrtFree', [s.reservation + 4096], 900, 107000);
    },
  };
  while (calls.count < wanted) {
    let s = state[0];
    for (const other of state) if (other.now < s.now) s = other;
    s.now += Math.round(150 + random() * 1200);
    s.step++;
    // The program grows, holds and shrinks: waves of some 400 calls, on a slow rise.
    const wave = Math.sin(calls.count / Math.max(180, wanted / 40) + s.thread);
    const goal = 60 + 50 * wave + (90 * calls.count) / wanted;
    const r = random();
    if (r < 0.24) actions[s.allocations.length < goal / 3 ? 'malloc' : 'free'](s);
    else if (r < 0.6) actions[s.mapped.length < goal ? 'map' : 'unmap'](s);
    else if (r < 0.86) actions.copy(s);
    else if (r < 0.93) actions.order(s);
    else if (r < 0.999) actions.synchronize(s);
    else actions.mistake(s);
  }
  const duration = Math.max(...state.map((s) => s.now), ...streamEnds) + 5000;
  for (const s of state) {
    processes[s.process].end = Math.max(processes[s.process].end, s.now);
  }
  threads[1].open_function = functionOf.aclrtSynchronizeStream;
  threads[1].open_since = state[1].now;

  const callTo = calls.sort((i) => calls.column('call_begin').values[i]);
  const renumber = (column, to) => {
    for (let i = 0; i < column.count; i++) if (column.values[i] !== kNone) column.values[i] = to[column.values[i]];
  };
  for (const name of ['object_begin_call', 'object_end_call']) renumber(objects.column(name), callTo);
  renumber(tasks.column('task_queued_by'), callTo);
  const objectBegin = objects.column('object_begin').values;
  renumber(objects.column('object_whole'), objects.sort((i) => objectBegin[i]));
  const taskBegin = tasks.column('task_begin').values;
  const taskTo = tasks.sort((i) => taskBegin[i]);
  renumber(tasks.column('task_awaited'), taskTo);

  const header = {
    title, wall_clock_ms: 1731950000000, duration_ns: Math.ceil(duration), lost, ring: false, stacks_recorded: true, version: '0.9.0', notes: notes ?? [],
    functions, parameters: functions.map((name) => kFunctions[name].map(nameOf)), parameter_types: functions.map((name) => kFunctions[name].map(typeOf)), texts: [], stacks, object_kinds: kObjectKinds, task_kinds: taskKinds, processes, threads, streams,
    summary: { calls: calls.count, failed_calls: failed, tasks: tasks.count, peaks: countPeaks(objects), leaks: countLeaks(objects) },
  };
  return { header, bytes: encode(header, [...calls.columns, ...values.columns, ...objects.columns, ...tasks.columns]) };
}

function countLeaks(objects) {
  let count = 0;
  let bytes = 0;
  for (let i = 0; i < objects.count; i++) {
    if (objects.column('object_end').values[i] !== Infinity) continue;
    count++;
    bytes += objects.column('object_taken').values[i];
  }
  return { objects: count, bytes };
}

function countPeaks(objects) {
  const [taken, device, from, to] = ['object_taken', 'object_device', 'object_begin', 'object_end'].map((name) => objects.column(name).values);
  return [...new Set(device.subarray(0, objects.count))].sort((a, b) => a - b).flatMap((of) => {
    const changes = [];
    for (let i = 0; i < objects.count; i++) {
      if (device[i] !== of || taken[i] === 0) continue;
      changes.push([from[i], taken[i]]);
      if (to[i] !== Infinity) changes.push([to[i], -taken[i]]);
    }
    if (changes.length === 0) return [];
    changes.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    let sum = 0;
    let peak = { process: -1, device: of, bytes: 0, at_ns: 0 };
    for (const [at, change] of changes) {
      sum += change;
      if (sum > peak.bytes) peak = { process: -1, device: of, bytes: sum, at_ns: at };
    }
    return [peak];
  });
}

// The binary document. `columns` are {name, type, values, count}.
export function encode(header, columns) {
  const entries = columns.map(({ name, type, count }) => ({ name, type, count }));
  const json = Buffer.from(JSON.stringify({ ...header, columns: entries }), 'utf8');
  const pad = (bytes) => Buffer.alloc((8 - (bytes % 8)) % 8);
  const head = Buffer.alloc(12);
  head.write('USPAGE1\n', 'latin1');
  head.writeUInt32LE(json.length, 8);
  const parts = [head, json, pad(head.length + json.length)];
  for (const { values, count } of columns) {
    const bytes = Buffer.from(values.buffer, values.byteOffset, count * values.BYTES_PER_ELEMENT);
    parts.push(bytes, pad(bytes.length));
  }
  return Buffer.concat(parts);
}

const kLine = '<script id="recording" type="application/octet-stream"></script>';
const kPage = join(dirname(fileURLToPath(import.meta.url)), '..', 'dist', 'timeline.html');

export function embed(document, page = readFileSync(kPage, 'utf8')) {
  if (page.split(kLine).length !== 2) throw new Error('the page has not exactly one line for the recording');
  const text = deflateSync(document, { level: 6 }).toString('base64');
  return page.replace(kLine, () => kLine.replace('></', `>${text}</`));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const args = process.argv.slice(2);
  const at = args.indexOf('--calls');
  const calls = at < 0 ? 2000 : Number(args.splice(at, 2)[1]);
  if (args.length !== 1 || !(calls > 0)) {
    console.error('usage: node make_document.mjs [--calls N] OUT.html|OUT.zlib');
    process.exit(2);
  }
  const { bytes } = makeDocument({ calls });
  writeFileSync(args[0], args[0].endsWith('.zlib') ? deflateSync(bytes) : embed(bytes));
}
