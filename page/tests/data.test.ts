// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from 'node:fs';
import { deflateSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { parseDocument } from '../src/data/document';
import { argumentRows } from '../src/data/arguments';
import { describeObject } from '../src/data/describe';
import { compareWithSummary } from '../src/data/figures';
import { formatBytes, formatDuration, formatHexWords, formatMoment } from '../src/data/format';
import { loadBase64, loadBytes } from '../src/data/load';
import { Model } from '../src/data/model';
import { search } from '../src/data/search';
import { snapshotAt } from '../src/data/snapshot';
import { sortByKey } from '../src/data/sorting';
import { parseLink } from '../src/ui/hash';
// @ts-expect-error plain JavaScript
import { encode, makeDocument } from './make_document.mjs';

// Columns must begin at a multiple of 8, which a Buffer need not.
const aligned = (bytes: Uint8Array) => new Uint8Array(bytes);
const made = makeDocument({ calls: 4000 });
const recording = parseDocument(aligned(made.bytes));
const model = new Model(recording);

describe('document', () => {
  it('is read from base64 and from bytes', async () => {
    const zlib = deflateSync(made.bytes);
    let title = '';
    const fromText = await loadBase64(`\n${zlib.toString('base64')}\n`, { onHeader: (header) => (title = header.title) });
    expect(title).toBe('kv_cache');
    expect(fromText.calls.count).toBe(recording.calls.count);
    expect((await loadBytes(zlib)).tasks.begin).toEqual(recording.tasks.begin);
  });

  it('says what is wrong with damaged bytes', async () => {
    const zlib = deflateSync(made.bytes);
    await expect(loadBytes(zlib.subarray(0, zlib.length >> 1))).rejects.toThrow(/cut short/);
    await expect(loadBytes(Buffer.from('nothing of this kind'))).rejects.toThrow(/cannot be decompressed/);
    await expect(loadBase64('%%%%')).rejects.toThrow(/not base64/);
    await expect(loadBytes(deflateSync(Buffer.from('USPAGE2\n0000{}')))).rejects.toThrow(/does not begin with USPAGE1/);
  });

  it('says which column is cut short', () => {
    const cut = aligned(made.bytes).subarray(0, made.bytes.length - 5000);
    expect(() => parseDocument(cut)).toThrow(/column task_\w+ ends at byte \d+, the document at byte \d+/);
    expect(() => parseDocument(new Uint8Array(5))).toThrow(/cut short: 5 bytes/);
  });

  it('refuses headers that are none, missing columns and positions out of range', () => {
    const bytes = aligned(made.bytes);
    bytes[12] = 0x58;
    expect(() => parseDocument(bytes)).toThrow(/header is not JSON/);
    expect(() => parseDocument(aligned(encode(made.header, [])))).toThrow(/column call_begin is missing/);
    const wrong = aligned(made.bytes);
    const copy = parseDocument(wrong);
    copy.calls.thread[3] = 99;
    expect(() => parseDocument(wrong)).toThrow(/entry 3 of call_thread is 99, there are 4/);
  });
});

describe('figures', () => {
  it('are those of the summary', () => {
    const { summary } = made.header;
    const { peaks, ...rest } = summary;
    expect(model.figures).toEqual(rest);
    for (const peak of peaks) {
      const series = model.series(peak.process, peak.device, 'stack');
      expect([series.peakBytes, series.peakAt]).toEqual([peak.bytes, peak.at_ns]);
    }
    expect(compareWithSummary(model.figures, summary, (peak) => model.series(peak.process, peak.device, 'kind').peakBytes)).toEqual([]);
    expect(compareWithSummary(model.figures, { calls: 1 }, () => 0)[0]).toMatch(/summary says 1 for calls/);
  });
});

describe('memory series', () => {
  const series = model.series(-1, 0, 'stack');
  it('shows the largest sum of each column', () => {
    const columns = new Int32Array(97);
    const step = model.duration / columns.length;
    series.columns(0, model.duration, columns.length, columns);
    for (let c = 0; c < columns.length; c++) {
      let largest = series.totalAt(c * step - 1e-6);
      for (let e = 0; e < series.times.length; e++) if (series.times[e]! >= c * step && series.times[e]! < (c + 1) * step) largest = Math.max(largest, series.totals[e]!);
      expect(columns[c]! < 0 ? 0 : series.totals[columns[c]!]).toBe(largest);
    }
  });
  it('has groups that add up, at every event', () => {
    const values = new Float64Array(series.groups.length);
    for (let event = 0; event < series.times.length; event += 17) {
      series.groupsAt(event, values);
      expect(values.reduce((a, b) => a + b, 0)).toBe(series.totals[event]);
    }
  });
});

describe('what is alive', () => {
  it('is what has begun and not ended', () => {
    const { objects } = recording;
    for (const share of [0, 0.01, 0.3, 0.77, 1]) {
      const time = share * model.duration;
      const found: number[] = [];
      model.alive.each(time, (object) => found.push(object));
      const expected = [...objects.begin.keys()].filter((i) => objects.begin[i]! <= time && objects.end[i]! > time);
      expect(found.sort((a, b) => a - b)).toEqual(expected);
    }
  });
});

describe('lanes', () => {
  it('cover every item once, at any zoom', () => {
    const lanes = model.threads;
    for (const width of [10, 500, 100000]) {
      let next = lanes.lanes[0]!.first;
      lanes.slices(0, 0, model.duration, width, (_x0, _x1, first, last) => {
        expect(first).toBe(next);
        next = last;
      });
      expect(next).toBe(lanes.lanes[0]!.last);
    }
  });
});

describe('fragmentation', () => {
  it('counts holes and unmapped addresses', () => {
    const f64 = (...values: number[]) => Float64Array.from(values);
    const kinds = ['allocation', 'physical block', 'reservation', 'mapping', 'host block', 'registration'];
    // Allocations at 0, 4 and 6 MiB, of 2, 1 and 2 MiB; a reservation of 8 MiB, of which 2 are mapped.
    const MiB = 2 ** 20;
    const base = 2 ** 40;
    const count = 5;
    const small = {
      ...recording,
      header: { ...recording.header, object_kinds: kinds, duration_ns: 10 },
      objects: {
        ...recording.objects, count, kind: Uint8Array.from([0, 0, 0, 2, 3]), device: Int32Array.from([0, 0, 0, -1, 0]), process: new Uint32Array(count),
        number: f64(base, base + 4 * MiB, base + 6 * MiB, 2 * base, 2 * base + 2 * MiB), size: f64(2 * MiB, MiB, 2 * MiB, 8 * MiB, 2 * MiB),
        begin: f64(1, 1, 1, 1, 1), end: f64(Infinity, 5, Infinity, Infinity, Infinity),
      },
    };
    const probe = new Model(small).fragmentation(0, 0);
    expect(probe.at(2)).toEqual({ reserved: 8 * MiB, mapped: 2 * MiB, allocated: 5 * MiB, holes: 3 * MiB, holeCount: 2, largestHole: 2 * MiB });
    expect(probe.at(6)).toEqual({ reserved: 8 * MiB, mapped: 2 * MiB, allocated: 4 * MiB, holes: 4 * MiB, holeCount: 1, largestHole: 4 * MiB });
  });
});

describe('search', () => {
  it('finds functions, failures, codes and addresses', () => {
    const { calls, header, argumentWords } = recording;
    const free = header.functions.indexOf('aclrtFree');
    const found = search(recording, 'function:aclrtfree failed')!;
    expect(found.length).toBeGreaterThan(0);
    for (const call of found) expect([calls.function[call], calls.code[call]]).toEqual([free, 107000]);
    expect(search(recording, 'failed')!.length).toBe(made.header.summary.failed_calls);
    expect(search(recording, 'code:107000')!.length).toBe(made.header.summary.failed_calls);
    expect([...search(recording, formatHexWords(argumentWords, calls.argumentFirst[5]!))!]).toContain(5);
    expect(search(recording, '  ')).toBeNull();
  });
});

describe('numbers of 64 bits', () => {
  const { objects } = recording;
  const mapping = recording.header.object_kinds.indexOf('mapping');
  const block = recording.header.object_kinds.indexOf('physical block');
  const first = objects.kind.indexOf(mapping);
  it('link mappings to their blocks, and are shown in full', () => {
    const of = objects.whole[first]!;
    expect(objects.kind[of]).toBe(block);
    const hex = formatHexWords(objects.numberWords, of);
    expect(hex).toMatch(/^0x5b00000[1-9a-f]0000000[1-9a-f]$/);
    expect(describeObject(recording, first).rows).toContainEqual(['part of', `physical block ${hex}`]);
    const found = [...search(recording, hex)!];
    expect(found).toContain(objects.beginCall[of]);
    expect(found).toContain(objects.beginCall[first]);
    const snapshot = snapshotAt(recording, model.alive, 0, 0, objects.begin[first]!);
    expect(snapshot.mappingsOf.get(of)).toContain(first);
  });
  it('are arguments as their types say', () => {
    const rows = Object.fromEntries(argumentRows(recording, objects.beginCall[first]!));
    expect(rows).toMatchObject({ size: '2 MiB (2097152)', offset: '0', flags: '0', handle: formatHexWords(objects.numberWords, objects.whole[first]!) });
  });
});

describe('small things', () => {
  it('sort by doubles', () => {
    const keys = Float64Array.from({ length: 5000 }, (_, i) => (i * 7919) % 1009 === 0 ? Infinity : ((i * 7919) % 1009) * 1e7 + (i % 3) / 4);
    const sorted = sortByKey(Uint32Array.from(keys.keys()), keys);
    const expected = [...keys.keys()].sort((a, b) => (keys[a] === keys[b] ? a - b : keys[a]! - keys[b]!));
    expect([...sorted]).toEqual(expected);
  });
  it('format numbers', () => {
    expect([formatBytes(20 * 2 ** 20), formatBytes(1536), formatBytes(0)]).toEqual(['20 MiB', '1.50 KiB', '0 B']);
    expect([formatDuration(950), formatDuration(12300), formatDuration(2e9), formatDuration(100000)]).toEqual(['950 ns', '12.3 µs', '2 s', '100 µs']);
    expect(formatMoment(1234567, 1000)).toBe('1.235 ms');
  });
  it('read links', () => {
    expect(parseLink('#t=5&range=1-9&by=kind&device=-1')).toMatchObject({ t: 5, range: [1, 9], by: 'kind', device: -1 });
    expect(parseLink('#range=9-1&by=x').range).toBeUndefined();
  });
  it('keep the line of the recording in the built page', () => {
    const page = readFileSync(new URL('../dist/timeline.html', import.meta.url), 'utf8');
    expect(page.split('<script id="recording" type="application/octet-stream"></script>').length).toBe(2);
    expect(page).not.toMatch(/(src|href)="(?!data:)/);
  });
});
