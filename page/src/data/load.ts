// SPDX-License-Identifier: Apache-2.0
//
// From the text in the page, or an answer of the server, to a recording. Bytes are inflated as they
// are decoded and written once, to a buffer of the size that the header tells, so that a recording
// of 100 MiB is never there twice.
import { DocumentError, documentLength, headerLength, kPrefixBytes, parseDocument, parseHeader } from './document';
import type { Header, Recording } from './recording';

export interface LoadHooks {
  onHeader?: (header: Header) => void; // as soon as it is there
}

const kSliceCharacters = 4 << 20; // a multiple of 4: slices of base64 decode by themselves

type FromBase64 = (text: string) => Uint8Array;

// Browsers of 2025 and later decode base64 themselves, ten times faster than atob and a loop.
const fromBase64: FromBase64 =
  (Uint8Array as unknown as { fromBase64?: FromBase64 }).fromBase64?.bind(Uint8Array) ??
  ((text) => {
    const binary = atob(text);
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
    return bytes;
  });

export async function loadBase64(text: string, hooks: LoadHooks = {}): Promise<Recording> {
  const trimmed = text.trim();
  let offset = 0;
  const next = (): Uint8Array | null => {
    if (offset >= trimmed.length) return null;
    const slice = trimmed.slice(offset, offset + kSliceCharacters);
    offset += kSliceCharacters;
    try {
      return fromBase64(slice);
    } catch {
      throw new DocumentError('The recording is damaged: the page holds text that is not base64.');
    }
  };
  return inflate(next, hooks);
}

export async function loadBytes(bytes: Uint8Array, hooks: LoadHooks = {}): Promise<Recording> {
  let given = false;
  return inflate(() => (given ? null : ((given = true), bytes)), hooks);
}

async function inflate(next: () => Uint8Array | null, hooks: LoadHooks): Promise<Recording> {
  const stream = new DecompressionStream('deflate');
  const writer = stream.writable.getWriter();
  let failure: unknown = null;
  const feed = async () => {
    try {
      for (let bytes = next(); bytes; bytes = next()) await writer.write(bytes as Uint8Array<ArrayBuffer>);
      await writer.close();
    } catch (error) {
      failure ??= error;
      writer.abort(error).catch(() => undefined);
    }
  };
  const feeding = feed();
  const sink = new DocumentSink(hooks);
  const reader = stream.readable.getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      sink.write(value);
    }
  } catch (error) {
    if (error instanceof DocumentError) throw error;
    if (failure instanceof DocumentError) throw failure;
    // Says what there was before the damage, if that is more exact.
    if (sink.length < kPrefixBytes) throw new DocumentError('The recording is damaged: it cannot be decompressed.');
    throw new DocumentError(`The recording is damaged or cut short: it cannot be decompressed behind byte ${sink.length}.`);
  }
  await feeding;
  return parseDocument(sink.bytes());
}

// Collects a document whose length is known only when its header is there.
class DocumentSink {
  length = 0;
  private buffer = new Uint8Array(1 << 20);
  private headerBytes = -1;
  private isSized = false;

  constructor(private readonly hooks: LoadHooks) {}

  write(chunk: Uint8Array): void {
    if (this.length + chunk.length > this.buffer.length) this.grow(this.length + chunk.length);
    this.buffer.set(chunk, this.length);
    this.length += chunk.length;
    if (this.isSized) return;
    if (this.headerBytes < 0 && this.length >= kPrefixBytes) this.headerBytes = headerLength(this.buffer);
    if (this.headerBytes >= 0 && this.length >= kPrefixBytes + this.headerBytes) {
      const header = parseHeader(this.buffer.subarray(0, this.length));
      this.isSized = true;
      this.grow(Math.max(this.length, Math.min(documentLength(header, this.headerBytes), 4e9)));
      this.hooks.onHeader?.(header);
    }
  }

  bytes(): Uint8Array {
    return this.buffer.subarray(0, this.length);
  }

  private grow(least: number): void {
    const size = this.isSized ? least : Math.max(least, 2 * this.buffer.length);
    if (size <= this.buffer.length) return;
    let larger: Uint8Array<ArrayBuffer>;
    try {
      larger = new Uint8Array(size);
    } catch {
      throw new DocumentError(`The recording needs ${size} bytes of memory, which the browser does not give.`);
    }
    larger.set(this.buffer.subarray(0, this.length));
    this.buffer = larger;
  }
}
