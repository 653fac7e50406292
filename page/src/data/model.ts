// SPDX-License-Identifier: Apache-2.0
//
// A recording with what is derived from it. Everything is made when it is asked for first: the page
// shows the header and the memory before it builds the rest.
import { AliveIndex } from './alive';
import { computeFigures, type Figures } from './figures';
import { FragmentationProbe } from './fragmentation';
import { callLanes, type LaneSet, taskLanes, waitingTasks } from './lanes';
import type { Recording } from './recording';
import { findRegions, type Region } from './regions';
import { type GroupBy, MemorySeries } from './series';

export class Model {
  private readonly cache = new Map<string, unknown>();

  constructor(readonly recording: Recording) {}

  get duration(): number {
    return this.recording.header.duration_ns;
  }
  // Where the timeline begins: shortly before the first record, which may come long after the
  // beginning of the recording.
  get start(): number {
    return this.once('start', () => {
      const first = Math.min(this.duration, ...this.recording.header.processes.map(({ begin }) => begin));
      const start = first - 0.01 * (this.duration - first);
      return start < 0.02 * this.duration ? 0 : Math.floor(start);
    });
  }
  get figures(): Figures {
    return this.once('figures', () => computeFigures(this.recording));
  }
  get alive(): AliveIndex {
    return this.once('alive', () => new AliveIndex(this.recording.objects));
  }
  get threads(): LaneSet {
    return this.once('threads', () => callLanes(this.recording));
  }
  get streams(): LaneSet {
    return this.once('streams', () => taskLanes(this.recording));
  }
  get waiting(): Uint32Array {
    return this.once('waiting', () => waitingTasks(this.recording));
  }
  // Devices with memory objects, -1 (the host) last; all devices if there are none.
  get devices(): number[] {
    return this.once('devices', () => {
      const { objects } = this.recording;
      const found = new Set<number>();
      for (let i = 0; i < objects.count; i++) if (objects.taken[i] !== 0 || objects.size[i] !== 0) found.add(objects.device[i]!);
      const devices = [...found].filter((device) => device >= 0).sort((a, b) => a - b);
      if (devices.length === 0) devices.push(0);
      if (found.has(-1)) devices.push(-1);
      return devices;
    });
  }

  has(key: string): boolean {
    return this.cache.has(key);
  }
  series(process: number, device: number, by: GroupBy): MemorySeries {
    return this.once(`series ${process} ${device} ${by}`, () => new MemorySeries(this.recording, { process, device, by }));
  }
  regions(process: number, device: number): Region[] {
    return this.once(`regions ${process} ${device}`, () => findRegions(this.recording, process, device));
  }
  fragmentation(process: number, device: number): FragmentationProbe {
    return this.once(`fragmentation ${process} ${device}`, () =>
      new FragmentationProbe(this.recording, this.alive, process, device, this.regions(process, device)));
  }
  // The process whose addresses are shown, that with most memory: addresses of several say nothing
  // beside each other.
  addressProcess(process: number, device: number): number {
    if (process >= 0) return process;
    return this.once(`address process ${device}`, () => {
      const { objects, header } = this.recording;
      const sizes = new Float64Array(header.processes.length);
      for (let i = 0; i < objects.count; i++) {
        // Memory says most; what takes none decides where there is none.
        if (objects.device[i] === device) sizes[objects.process[i]!]! += objects.taken[i]! + Math.min(1, objects.size[i]!) / objects.count;
      }
      return Math.max(0, sizes.indexOf(Math.max(...sizes)));
    });
  }

  private once<T>(key: string, make: () => T): T {
    if (!this.cache.has(key)) this.cache.set(key, make());
    return this.cache.get(key) as T;
  }
}
