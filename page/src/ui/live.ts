// SPDX-License-Identifier: Apache-2.0
//
// A recording that grows: asks the server again half a second after an answer was shown, or later if
// that took long. The server says so if there is nothing new.
import { DocumentError } from '../data/document';
import { loadBytes } from '../data/load';
import type { Recording } from '../data/recording';

const kPauseMilliseconds = 500;
const kMostOfTheTime = 2; // pauses are this much longer than what they are between

export async function follow(url: string, show: (recording: Recording) => void, onEnd: (sentence: string) => void): Promise<void> {
  let known = '';
  for (;;) {
    const start = performance.now();
    let bytes: Uint8Array | null = null;
    try {
      const answer = await fetch(url, { cache: 'no-store', headers: known === '' ? {} : { 'If-None-Match': known } });
      if (!answer.ok && answer.status !== 304) {
        onEnd(`The server answers ${answer.status}; this is what it told last.`);
        return;
      }
      if (answer.ok) {
        bytes = new Uint8Array(await answer.arrayBuffer());
        known = answer.headers.get('etag') ?? '';
      }
    } catch {
      onEnd('The server is gone; this is what it told last.');
      return;
    }
    try {
      if (bytes) show(await loadBytes(bytes));
    } catch (error) {
      onEnd(error instanceof DocumentError ? error.message : String(error));
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, Math.max(kPauseMilliseconds, kMostOfTheTime * (performance.now() - start))));
  }
}
