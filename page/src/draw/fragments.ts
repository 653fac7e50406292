// SPDX-License-Identifier: Apache-2.0
//
// Fragmentation over time. A sample costs a look at all living objects, so the samples of a view are
// made in slices of some milliseconds, and the chart fills from coarse to fine.
import { type Fragmentation, type FragmentationProbe, holeShare, unmappedShare } from '../data/fragmentation';
import type { Box } from './memory';
import type { Theme } from './theme';

const kSamples = 256;
const kSliceMilliseconds = 6;

export class FragmentationSamples {
  private key = '';
  private from = 0;
  private step = 1;
  private readonly samples: (Fragmentation | undefined)[] = new Array(kSamples);
  private next = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly onProgress: () => void) {}

  // Begins anew if the view is another one.
  request(key: string, probe: () => FragmentationProbe, from: number, to: number): void {
    const wanted = `${key} ${from} ${to}`;
    if (wanted === this.key) return;
    this.key = wanted;
    this.from = from;
    this.step = (to - from) / kSamples;
    this.samples.fill(undefined);
    this.next = 0;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.work(probe), 60);
  }

  draw(context: CanvasRenderingContext2D, theme: Theme, box: Box): void {
    this.line(context, box, theme.groups[0]!, unmappedShare, true);
    this.line(context, box, theme.groups[1]!, holeShare, false);
  }

  private work(probe: () => FragmentationProbe): void {
    const source = probe();
    const until = performance.now() + kSliceMilliseconds;
    while (this.next < kSamples && performance.now() < until) {
      // Multiples of an odd number visit all samples, far apart at first.
      const sample = (this.next++ * 101) % kSamples;
      this.samples[sample] = source.at(this.from + (sample + 0.5) * this.step);
    }
    this.onProgress();
    if (this.next < kSamples) this.timer = setTimeout(() => this.work(probe), 0);
  }

  private line(context: CanvasRenderingContext2D, box: Box, colour: string, share: (f: Fragmentation) => number, isFilled: boolean): void {
    const width = box.width / kSamples;
    context.strokeStyle = colour;
    context.lineWidth = 1.5;
    context.beginPath();
    let isOpen = false;
    const points: [number, number][] = [];
    this.samples.forEach((sample, i) => {
      const value = sample ? share(sample) : NaN;
      if (Number.isNaN(value)) {
        if (sample) isOpen = false; // nothing to measure here: a gap; a sample not made yet is none
        return;
      }
      const x = box.x + (i + 0.5) * width;
      const y = box.y + (1 - Math.min(1, Math.max(0, value))) * box.height;
      if (isOpen) context.lineTo(x, y);
      else context.moveTo(x, y);
      isOpen = true;
      points.push([x, y]);
    });
    context.stroke();
    context.lineWidth = 1;
    if (!isFilled || points.length < 2) return;
    context.globalAlpha = 0.12;
    context.fillStyle = colour;
    context.beginPath();
    context.moveTo(points[0]![0], box.y + box.height);
    for (const [x, y] of points) context.lineTo(x, y);
    context.lineTo(points[points.length - 1]![0], box.y + box.height);
    context.fill();
    context.globalAlpha = 1;
  }
}
