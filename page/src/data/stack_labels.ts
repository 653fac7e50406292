// SPDX-License-Identifier: Apache-2.0
//
// Short names of stacks that stand beside each other: the innermost function, with as many of its
// callers, and with lines where callers do not suffice, as tell it from the others.

const kMostFrames = 5;

interface Frame {
  name: string;
  line: string; // "" if it is not known
}

// "fill at kv.cc:41", or "kv.py:41 fill".
function frameOf(text: string): Frame {
  const compiled = /^(.+) at .*?:(\d+)$/.exec(text);
  if (compiled) return { name: compiled[1]!, line: compiled[2]! };
  const python = /^.*?:(\d+) (.+)$/.exec(text);
  return python ? { name: python[2]!, line: python[1]! } : { name: text, line: '' };
}

export function stackLabels(stacks: string[]): string[] {
  const frames = stacks.map((stack) => stack.split('\n').slice(0, kMostFrames).map(frameOf));
  const ways: ((frames: Frame[]) => string)[] = [];
  for (let depth = 1; depth <= kMostFrames; depth++) ways.push((each) => each.slice(0, depth).map(({ name }) => name).join(' < '));
  for (let depth = 1; depth <= kMostFrames; depth++) {
    ways.push((each) => each.slice(0, depth).map(({ name, line }) => (line === '' ? name : `${name}:${line}`)).join(' < '));
  }
  const labels = frames.map(ways[0]!);
  for (const way of ways.slice(1)) {
    const counts = new Map<string, number>();
    for (const label of labels) counts.set(label, (counts.get(label) ?? 0) + 1);
    labels.forEach((label, i) => {
      if (counts.get(label)! > 1) labels[i] = way(frames[i]!);
    });
  }
  return labels;
}
