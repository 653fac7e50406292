// SPDX-License-Identifier: Apache-2.0
//
// Opens the built page in Chromium: a recording of a million calls, keys, search, links, themes and
// live use; and pages that the command made of real recordings. Prints what it measures.
//
//   node tests/browser.mjs [--calls N] [--page PAGE.html]... [FOLDER for screenshots]
//
// Ends with 77 if there is no Chromium or no playwright-core.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { deflateSync, inflateSync } from 'node:zlib';
import { embed, makeDocument } from './make_document.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const args = process.argv.slice(2);
const at = args.indexOf('--calls');
const kCalls = at < 0 ? 1000000 : Number(args.splice(at, 2)[1]);
const pages = [];
for (let page = args.indexOf('--page'); page >= 0; page = args.indexOf('--page')) pages.push(args.splice(page, 2)[1]);
const folder = args[0];
const kChromium = process.env.CHROMIUM ?? '/usr/bin/chromium';

function skip(reason) {
  console.log(`skipped: ${reason}`);
  process.exit(77);
}
if (!existsSync(kChromium)) skip(`${kChromium} is not there`);
const playwright = await import('playwright-core').catch(() => skip('playwright-core is not installed; run npm install'));
const chromium = playwright.chromium ?? playwright.default.chromium;
if (!existsSync(join(here, '..', 'dist', 'timeline.html'))) skip('dist/timeline.html is not built; run npm run build');

let failures = 0;
function check(what, holds, seen = '') {
  if (!holds) failures++;
  console.log(`${holds ? 'ok    ' : 'FAILED'} ${what}${holds || seen === '' ? '' : `: ${seen}`}`);
}
// For what a later frame draws.
async function eventually(what, look) {
  const end = Date.now() + 10000;
  let holds = await look();
  while (!holds && Date.now() < end) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    holds = await look();
  }
  check(what, holds);
}
// Machines differ: figures are printed, and nothing fails for them.
function measured(what, milliseconds, wanted) {
  console.log(`       ${what}: ${milliseconds.toFixed(1)} ms (wanted: ${wanted} ms)`);
}

const work = mkdtempSync(join(tmpdir(), 'timeline-'));
const browser = await chromium.launch({
  executablePath: kChromium,
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
if (folder) mkdirSync(folder, { recursive: true });

async function open(path, { width = 1440, height = 900, colorScheme = 'light', hash = '' } = {}) {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme });
  page.problems = [];
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && page.problems.push(message.text()));
  page.on('pageerror', (error) => page.problems.push(String(error.stack ?? error)));
  await page.goto((path.startsWith('http') ? path : pathToFileURL(path).href) + hash);
  return page;
}
const shown = (page) => page.waitForSelector('body[data-shown]', { timeout: 60000 });
const shoot = async (page, name) => {
  if (!folder) return;
  await page.waitForTimeout(700); // fragmentation is drawn in slices
  await page.screenshot({ path: join(folder, `${name}.png`) });
};
const view = async (page) => {
  await page.waitForSelector('body[data-link=current]'); // it is written behind the view
  const parameters = new URLSearchParams(new URL(page.url()).hash.slice(1));
  const [from, to] = parameters.get('range').split('-').map(Number);
  return { t: Number(parameters.get('t')), from, to, span: to - from, device: parameters.get('device'), by: parameters.get('by'), process: parameters.get('process') };
};
const figure = (page, name) => page.textContent(`[data-figure="${name}"] dd`);
const digits = (text) => text.replace(/[^\d]/g, '');

// Milliseconds from an event until the frame that answers it is drawn.
const latencies = (page, kind, count) => page.evaluate(async ([kind, count]) => {
  const element = document.getElementById('tracks');
  const box = element.getBoundingClientRect();
  const taken = [];
  for (let i = 0; i < count; i++) {
    const place = { clientX: box.left + 300 + ((i * 37) % (box.width - 320)), clientY: box.top + (i % 2 ? 330 : 120), bubbles: true, cancelable: true };
    // Idle in between, as a reader is: a frame that is due is not waited for.
    await new Promise((resolve) => setTimeout(resolve, 30));
    const start = performance.now();
    element.dispatchEvent(kind === 'zoom' ? new WheelEvent('wheel', { ...place, deltaY: i < count / 2 ? -120 : 120 }) : new PointerEvent('pointermove', place));
    await new Promise((resolve) => requestAnimationFrame(() => {
      // Behind the frame's drawing.
      const channel = new MessageChannel();
      channel.port1.onmessage = resolve;
      channel.port2.postMessage(0);
    }));
    taken.push(performance.now() - start);
  }
  taken.sort((a, b) => a - b);
  return { median: taken[taken.length >> 1], worst: taken[taken.length - 1] };
}, [kind, count]);

async function measureAnswers(page, name) {
  for (const kind of ['zoom', 'hover']) {
    const { median, worst } = await latencies(page, kind, 40);
    measured(`${name}${kind}, median`, median, 33);
    measured(`${name}${kind}, worst of 40`, worst, 66);
  }
}

async function large() {
  const made = makeDocument({ calls: kCalls });
  const file = join(work, 'large.html');
  writeFileSync(file, embed(made.bytes));
  console.log(`       ${kCalls} calls: document ${(made.bytes.length / 2 ** 20).toFixed(0)} MiB, page ${(readFileSync(file).length / 2 ** 20).toFixed(0)} MiB`);
  const page = await open(file);
  await shown(page);
  measured(`first paint of ${kCalls} calls`, Number(await page.getAttribute('body', 'data-shown')), 2000);
  const { summary } = made.header;
  for (const name of ['calls', 'failed_calls', 'tasks']) check(`${name} are those of the summary`, digits(await figure(page, name)) === String(summary[name]), await figure(page, name));
  check('no difference from the summary is shown', await page.isHidden('#banner'), await page.textContent('#banner'));
  await shoot(page, 'large');
  await measureAnswers(page, '');
  await page.keyboard.press('0');
  const start = Date.now();
  await page.fill('#search', 'aclrtFree');
  await page.waitForFunction(() => document.getElementById('hits').textContent.includes('found'));
  measured('search', Date.now() - start, 300);
  check('no error on the console', page.problems.length === 0, page.problems.join('; '));
  await page.close();
}

async function small() {
  const made = makeDocument({ calls: 3000, notes: ['The program was killed: its last records may be missing.'], lost: 12 });
  const file = join(work, 'small.html');
  writeFileSync(file, embed(made.bytes));
  const page = await open(file);
  await shown(page);
  const { summary, duration_ns: duration } = made.header;
  check('notes and lost records are shown', (await page.textContent('#banner')).includes('killed') && (await page.textContent('#banner')).includes('12 records'));
  check('nothing differs from the summary', !(await page.textContent('#banner')).includes('summary'), await page.textContent('#banner'));
  check('objects alive at the end', (await figure(page, 'leaks')).startsWith(String(summary.leaks.objects)));
  await shoot(page, 'light');

  await page.focus('#tracks');
  for (let i = 0; i < 8; i++) await page.keyboard.press('+');
  const zoomed = await view(page);
  check('+ zooms in', zoomed.span < duration / 20, zoomed.span);
  await page.keyboard.press('ArrowRight');
  const panned = await view(page);
  check('arrow pans', panned.from > zoomed.from && Math.abs(panned.span - zoomed.span) < 3);
  await shoot(page, 'zoomed');
  const box = await page.locator('#tracks').boundingBox();
  await page.mouse.move(box.x + 700, box.y + 120);
  await page.waitForSelector('#tooltip:not([hidden])');
  await eventually('hover on memory tells the sum', async () => / at /.test(await page.textContent('#tooltip h2')));
  await shoot(page, 'hover_memory');
  let seen = '';
  for (let x = 300; x < 1400 && !seen.includes('returns'); x += 7) {
    await page.mouse.move(box.x + x, box.y + 24 + 186 + 66 + 22 + 11);
    seen = (await page.isVisible('#tooltip')) ? await page.textContent('#tooltip') : '';
  }
  check('hover on a call tells arguments', seen.includes('returns') && seen.includes('thread'), seen);
  await shoot(page, 'hover_call');
  await page.mouse.down();
  await page.mouse.up();
  await eventually('a click keeps details', async () => (await page.textContent('#details')).includes('returns'));
  await page.mouse.move(box.x + 600, box.y + 150);
  await page.mouse.down();
  await page.mouse.move(box.x + 800, box.y + 150, { steps: 4 });
  await page.mouse.up();
  check('a drag pans', (await view(page)).from < panned.from);
  await page.keyboard.press('0');
  check('0 shows all', (await view(page)).span >= duration - 1);

  await page.keyboard.press('/');
  await page.keyboard.type('failed');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => / of /.test(document.getElementById('hits').textContent));
  check('search finds the failed calls', digits((await page.textContent('#hits')).split('of')[1]) === String(summary.failed_calls), await page.textContent('#hits'));
  await eventually('the hit is selected', async () => (await page.textContent('#details')).includes('107000'));
  await shoot(page, 'search');
  await page.fill('#search', '0x180000000000');
  await page.waitForFunction(() => document.getElementById('hits').textContent.includes('found'));
  check('search finds an address', Number(digits(await page.textContent('#hits'))) > 0);
  await page.keyboard.press('Escape');
  await page.click('#tab-leaks');
  await page.waitForSelector('#panel-leaks tbody tr');
  const rows = await page.$$eval('#panel-leaks tbody tr', (all) => all.map((row) => Number(row.cells[0].textContent.replace(/[^\d]/g, ''))));
  check('the table has all objects that are alive', rows.reduce((a, b) => a + b, 0) === summary.leaks.objects, rows.join(' '));
  await shoot(page, 'leaks');
  await page.click('#tab-address');
  await page.click('#zoom-all');
  await page.focus('#tracks');
  const before = (await view(page)).t;
  const moment = await page.textContent('#moment-text');
  await page.keyboard.press('Space');
  await page.waitForFunction((text) => document.getElementById('moment-text').textContent !== text, moment);
  await page.keyboard.press('Space');
  check('play moves the cursor', (await view(page)).t !== before);
  await page.selectOption('#by', 'function');
  await page.selectOption('#device', '-1');
  check('choices are in the link', (await view(page)).by === 'function' && (await view(page)).device === '-1');
  await page.keyboard.press('Escape');
  await page.focus('#tracks');
  await page.keyboard.press('?');
  await eventually('? opens help', () => page.isVisible('#help-dialog'));
  await shoot(page, 'help');
  await page.keyboard.press('Escape');
  check('no error on the console', page.problems.length === 0, page.problems.join('; '));
  await page.close();

  const [from, to] = [Math.round(duration * 0.4), Math.round(duration * 0.45)];
  const linked = await open(file, { hash: `#t=${from + 1000}&range=${from}-${to}&device=1&by=kind&process=14270` });
  await shown(linked);
  const restored = await view(linked);
  check('a link restores its view', restored.t === from + 1000 && restored.from === from && restored.to === to && restored.by === 'kind' && restored.device === '1' && restored.process === '14270', JSON.stringify(restored));
  await shoot(linked, 'linked');
  await linked.close();

  const dark = await open(file, { colorScheme: 'dark', hash: `#t=${from + 1000}&range=${from}-${Math.round(from + duration / 200)}` });
  await shown(dark);
  check('dark follows the system', (await dark.getAttribute('html', 'data-theme')) === 'dark');
  const strip = await dark.locator('#address').boundingBox();
  await dark.mouse.move(strip.x + 196, strip.y + 140);
  await shoot(dark, 'dark');
  await dark.click('#theme');
  await eventually('the switch makes it light', async () => (await dark.getAttribute('html', 'data-theme')) === 'light');
  await dark.close();

  const narrow = await open(file, { width: 800, height: 700 });
  await shown(narrow);
  check('800 pixels are enough', await narrow.evaluate(() => document.documentElement.scrollWidth <= 800), String(await narrow.evaluate(() => document.documentElement.scrollWidth)));
  await shoot(narrow, 'narrow');
  await narrow.close();
}

async function damaged() {
  const page = await open(join(here, '..', 'dist', 'timeline.html'));
  await page.waitForSelector('#banner.error');
  check('a page without a recording says so', (await page.textContent('#banner')).includes('no recording'));
  await page.close();
  const file = join(work, 'damaged.html');
  const whole = embed(makeDocument({ calls: 500 }).bytes);
  writeFileSync(file, whole.replace(/(<script id="recording"[^>]*>)([^<]{4000})[^<]*/, '$1$2'));
  const cut = await open(file);
  await cut.waitForSelector('#banner.error');
  check('a recording that is cut short says so', /cut short/.test(await cut.textContent('#banner')), await cut.textContent('#banner'));
  check('without an error on the console', cut.problems.length === 0, cut.problems.join('; '));
  await cut.close();
}

async function live() {
  const template = readFileSync(join(here, '..', 'dist', 'timeline.html'), 'utf8');
  let answers = 0;
  const server = createServer((request, response) => {
    if (request.url === '/data?token=abc') {
      response.end(deflateSync(makeDocument({ calls: 500 + 500 * answers++ }).bytes));
    } else {
      response.setHeader('content-type', 'text/html; charset=utf-8');
      response.end(template.replace('<script id="recording" type="application/octet-stream">', '<script id="recording" type="application/octet-stream" data-live="/data?token=abc">'));
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const page = await open(`http://127.0.0.1:${server.address().port}/`);
  await page.waitForFunction(() => /\d/.test(document.querySelector('[data-figure="calls"] dd')?.textContent ?? ''));
  const first = Number(digits(await figure(page, 'calls')));
  await page.focus('#tracks');
  for (let i = 0; i < 4; i++) await page.keyboard.press('+');
  const before = await view(page);
  await page.waitForFunction((n) => Number(document.querySelector('[data-figure="calls"] dd').textContent.replace(/[^\d]/g, '')) > n, first, { timeout: 20000 });
  const after = await view(page);
  check('live: the recording grows', Number(digits(await figure(page, 'calls'))) > first);
  check('live: the view stays', before.from === after.from && before.to === after.to, JSON.stringify([before, after]));
  await shoot(page, 'live');
  server.close();
  server.closeAllConnections?.();
  await page.waitForFunction(() => document.getElementById('banner').textContent.includes('server is gone'), null, { timeout: 20000 });
  check('live: the end is told', true);
  await page.close();
}

// The header of the document in a page.
function headerOf(file) {
  const text = /<script id="recording"[^>]*>([^<]*)</.exec(readFileSync(file, 'utf8'))[1];
  const bytes = inflateSync(Buffer.from(text, 'base64'));
  return JSON.parse(bytes.subarray(12, 12 + bytes.readUInt32LE(8)).toString('utf8'));
}

// Where the document says nothing of what to expect: the figures, and that everything can be pointed
// at, chosen and played without an error.
async function real(file) {
  const name = basename(file, '.html');
  const { summary, processes, notes } = headerOf(file);
  const page = await open(file);
  await shown(page);
  measured(`${name}: first paint of ${summary.calls} calls`, Number(await page.getAttribute('body', 'data-shown')), 2000);
  for (const key of ['calls', 'failed_calls', 'tasks']) check(`${name}: ${key} are those of the summary`, digits(await figure(page, key)) === String(summary[key]), await figure(page, key));
  const leaks = await figure(page, 'leaks');
  check(`${name}: objects alive at the end`, summary.leaks.objects === 0 ? leaks === 'none' : digits(leaks.split('object')[0]) === String(summary.leaks.objects), leaks);
  const banner = await page.textContent('#banner');
  check(`${name}: nothing differs from the summary`, !banner.includes('The summary says') && notes.every((note) => banner.includes(note.slice(1))), banner);
  await shoot(page, name);
  await measureAnswers(page, `${name}: `);
  await page.keyboard.press('0');
  await page.emulateMedia({ colorScheme: 'dark' });
  await shoot(page, `${name}_dark`);
  await page.emulateMedia({ colorScheme: 'light' });
  const options = (id) => page.$$eval(`#${id} option`, (all) => all.map(({ value }) => value));
  for (const id of ['process', 'device', 'by']) for (const value of await options(id)) await page.selectOption(`#${id}`, value);
  await page.selectOption('#process', '-1');
  check(`${name}: every process can be chosen`, (await options('process')).length === processes.length + 1);
  await page.focus('#tracks');
  for (const key of ['+', '+', 'ArrowRight', '.', ',', '-', '0', 'Space', 'Space']) await page.keyboard.press(key);
  for (const id of ['tracks', 'address', 'overview']) {
    const box = await page.locator(`#${id}`).boundingBox();
    for (let y = 6; y < box.height; y += 19) for (const x of [60, 0.3 * box.width, 0.55 * box.width, 0.8 * box.width]) await page.mouse.move(box.x + x, box.y + y);
  }
  for (const tab of ['leaks', 'calls', 'address']) await page.click(`#tab-${tab}`);
  await page.fill('#search', 'aclrt');
  await page.waitForFunction(() => document.getElementById('hits').textContent.includes('found'));
  check(`${name}: search finds calls`, Number(digits(await page.textContent('#hits'))) > 0);
  check(`${name}: no error on the console`, page.problems.length === 0, page.problems.join('; '));
  await page.close();
}

try {
  await small();
  await damaged();
  await live();
  for (const file of pages) await real(file);
  await large();
} catch (error) {
  failures++;
  console.error(error);
} finally {
  await browser.close();
  rmSync(work, { recursive: true, force: true });
}
console.log(failures === 0 ? 'all passed' : `${failures} failed`);
process.exit(failures === 0 ? 0 : 1);
