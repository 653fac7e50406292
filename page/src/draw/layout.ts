// SPDX-License-Identifier: Apache-2.0
//
// Where the tracks are: one below the other, in pixels from the top of the content.
import { streamName, threadName } from '../data/describe';
import type { LaneSet } from '../data/lanes';
import type { Model } from '../data/model';

export type Track =
  | { kind: 'memory'; top: number; height: number }
  | { kind: 'fragmentation'; top: number; height: number }
  | { kind: 'title'; top: number; height: number; text: string }
  | { kind: 'thread' | 'stream'; top: number; height: number; lane: number; text: string };

export const kAxisHeight = 24;
export const gutterWidth = (width: number) => (width < 1000 ? 200 : width < 1300 ? 230 : 290);

const isEmpty = ({ lanes }: LaneSet, lane: number) => lanes[lane]!.first === lanes[lane]!.last;

export function layoutTracks({ recording, threads, streams }: Model, process: number): { tracks: Track[]; height: number } {
  const { header } = recording;
  const tracks: Track[] = [];
  let top = kAxisHeight;
  const add = (track: Track) => {
    tracks.push(track);
    top += track.height;
  };
  add({ kind: 'memory', top, height: 186 });
  add({ kind: 'fragmentation', top, height: 66 });
  const lanes = (kind: 'thread' | 'stream', title: string, all: { process: number }[], name: (lane: number) => string, isUsed: (lane: number) => boolean, order: (a: number, b: number) => number) => {
    const shown = all.map((_, lane) => lane).filter((lane) => isUsed(lane) && (process < 0 || all[lane]!.process === process));
    shown.sort(order);
    if (shown.length === 0) return;
    add({ kind: 'title', top, height: 22, text: title });
    for (const lane of shown) add({ kind, top, height: 22, lane, text: name(lane) });
  };
  // Threads that run streams make no calls.
  lanes('thread', 'Threads: calls', header.threads, (lane) => threadName(recording, lane), (lane) => !isEmpty(threads, lane) || header.threads[lane]!.open_function >= 0, (a, b) => a - b);
  lanes('stream', 'Streams: tasks', header.streams, (lane) => streamName(recording, lane), (lane) => !isEmpty(streams, lane), (a, b) => {
    const [left, right] = [header.streams[a]!, header.streams[b]!];
    return left.process - right.process || left.device - right.device || left.index - right.index || left.generation - right.generation;
  });
  return { tracks, height: top + 8 };
}
