// SPDX-License-Identifier: Apache-2.0
//
// The arguments of calls in words. They are 64-bit words in the document; the type that the function
// gives to each says what it means (README.md).
import { formatBytes, formatHex, formatHexWords } from './format';
import type { Recording } from './recording';

const kSizeName = /size|bytes|^count$|max|length|len$|total|free$|pitch|width/i;
const kLocations = ['host', 'device', 'unregistered', 'managed', 'NUMA node'];

export function argumentRows({ header, calls, argumentWords }: Recording, call: number): [string, string][] {
  const names = header.parameters[calls.function[call]!] ?? [];
  const types = header.parameter_types[calls.function[call]!] ?? [];
  const first = calls.argumentFirst[call]!;
  const rows: [string, string][] = [];
  for (let i = 0; i < calls.argumentCount[call]!; i++) {
    if (2 * (first + i) + 1 >= argumentWords.length) break;
    const name = names[i] ?? `[${i}]`;
    const type = types[i] ?? 'u';
    // A call that fails writes nothing: what is recorded then is the address to write to.
    const value = type.startsWith('out ') && calls.code[call] !== 0 ? 'not written' : formatWord(header.texts, name, type.replace('out ', ''), argumentWords, first + i);
    if (value !== '') rows.push([name, value]);
  }
  return rows;
}

// "" for what says nothing.
function formatWord(texts: string[], name: string, type: string, words: Uint32Array, at: number): string {
  const [low, high] = [words[2 * at]!, words[2 * at + 1]!];
  switch (type) {
    case 'i': return String((high | 0) * 2 ** 32 + low);
    case 'f': return String(new Float32Array(new Uint32Array([low]).buffer)[0]);
    case 't': return (high === 0 && texts[low]) || '–';
    case 'L': return formatLocation(high, low | 0);
    case 'P0': return `handle type ${low}, allocation type ${high}`;
    case 'P1': return `memory attribute ${low}, on ${kLocations[high] ?? `location type ${high}`}`;
    case 'P2': return `location ${low | 0}`;
    case 'P3': return '';
    case 'u': {
      const value = high * 2 ** 32 + low;
      if (kSizeName.test(name) && value >= 1024) return `${formatBytes(value)} (${value})`;
      return value < 2 ** 48 ? String(value) : formatHexWords(words, at);
    }
    default: return low === 0 && high === 0 ? 'NULL' : high === 0 ? formatHex(low) : formatHexWords(words, at);
  }
}

const formatLocation = (type: number, id: number) => (type === 0 ? 'host' : `${kLocations[type] ?? `location type ${type},`} ${id}`);
