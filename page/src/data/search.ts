// SPDX-License-Identifier: Apache-2.0
//
// Calls that a search finds: by function, by stack text, by address, by code, or those that failed.
//   malloc          functions and stacks with this text
//   0x180000000000  calls with this address as an argument, or that made or ended an object with it
//   code:107000     calls with this code; "failed": any code but 0
//   stack:kv.cc:41  stacks alone;  function:Free  functions alone
// Several words must all apply.
import type { Recording } from './recording';
import { kNone } from './recording';

type Test = (call: number) => boolean;

// Null: the text says nothing to look for.
export function search(recording: Recording, text: string): Uint32Array | null {
  const words = text.trim().split(/\s+/).filter((word) => word !== '');
  if (words.length === 0) return null;
  const tests = words.map((word) => testOf(recording, word));
  const { count } = recording.calls;
  const hits = new Uint32Array(count);
  let found = 0;
  for (let call = 0; call < count; call++) {
    let applies = true;
    for (const test of tests) {
      if (!test(call)) {
        applies = false;
        break;
      }
    }
    if (applies) hits[found++] = call;
  }
  return hits.slice(0, found);
}

function testOf(recording: Recording, word: string): Test {
  const { header, calls } = recording;
  const lower = word.toLowerCase();
  if (lower === 'failed') return (call) => calls.code[call] !== 0;
  const code = /^code:(-?\d+)$/.exec(lower);
  if (code) {
    const wanted = Number(code[1]);
    return (call) => calls.code[call] === wanted;
  }
  if (/^0x[0-9a-f]+$/.test(lower)) return addressTest(recording, BigInt(lower));
  const byFunction = lower.startsWith('function:');
  const byStack = lower.startsWith('stack:');
  const wanted = byFunction ? lower.slice(9) : byStack ? lower.slice(6) : lower;
  const marks = (names: string[]) => Uint8Array.from(names, (name) => (name.toLowerCase().includes(wanted) ? 1 : 0));
  const functions = byStack ? new Uint8Array(header.functions.length) : marks(header.functions);
  const stacks = byFunction ? new Uint8Array(header.stacks.length) : marks(header.stacks);
  // A plain number is a code as well.
  const number = /^\d{5,}$/.test(wanted) ? Number(wanted) : NaN;
  return (call) => {
    const stack = calls.stack[call]!;
    return functions[calls.function[call]!] === 1 || (stack !== kNone && stacks[stack] === 1) || calls.code[call] === number;
  };
}

function addressTest({ calls, objects, argumentWords }: Recording, wanted: bigint): Test {
  const address = Number(wanted);
  const low = Number(wanted & 0xffffffffn);
  const high = Number(wanted >> 32n);
  const marked = new Uint8Array(calls.count);
  for (let i = 0; i < objects.count; i++) {
    const from = objects.number[i]!;
    const isIt = objects.numberWords[2 * i] === low && objects.numberWords[2 * i + 1] === high;
    if (!isIt && !(address > from && address < from + objects.size[i]!)) continue;
    if (objects.beginCall[i] !== kNone) marked[objects.beginCall[i]!] = 1;
    if (objects.endCall[i] !== kNone) marked[objects.endCall[i]!] = 1;
  }
  return (call) => {
    if (marked[call] === 1) return true;
    const first = calls.argumentFirst[call]!;
    for (let i = first; i < first + calls.argumentCount[call]!; i++) if (argumentWords[2 * i] === low && argumentWords[2 * i + 1] === high) return true;
    return false;
  };
}
