/**
 * What the capture fixtures and the reporter cost a suite: it is run in turns with and
 * without them, and the medians of every test are compared. There are two suites of the
 * same tests: of one that runs the same lines over and over, as page objects do, and of
 * one in which every test has lines of its own. A listener in this process stands in for
 * the service. Only a machine that does nothing else gives figures worth comparing; the
 * time of the processor suffers least from a busy one.
 *   node cost/measure.mjs [rounds] [tests]
 */
import { spawn } from 'node:child_process';
import http from 'node:http';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const ROUNDS = Number(process.argv[2] ?? 5);
const TESTS = Number(process.argv[3] ?? 30);
const ANSWER_MS = 100;
const dir = fileURLToPath(new URL('.', import.meta.url));

const lines = Array.from({ length: 200 }, (_, index) => `<li class="line">Line ${index} <button data-testid="drop-${index}">Remove</button></li>`).join('');
const FORM = `<!doctype html><html lang="en"><title>Orders</title><h1>Orders</h1><form onsubmit="return false">
  <label>Customer <input name="customer"></label><input placeholder="Street and number"><label><input type="checkbox" data-testid="express"> Express</label>
  <textarea id="note"></textarea><ul id="lines">${lines}</ul><button type="button" id="add">Add line</button><button type="button" id="order">Order now</button></form>
  <p role="status"></p><a href="/orders">All orders</a><script>
    document.querySelector('#add').onclick = () => document.querySelector('#lines').append(Object.assign(document.createElement('li'), { textContent: 'more' }));
    document.querySelector('#order').onclick = async () => {
      await (await fetch('/api')).json();
      document.querySelector('[role=status]').textContent = 'Ordered by ' + document.querySelector('[name=customer]').value;
    };
  </script></html>`;
const LIST = `<!doctype html><html lang="en"><title>All</title>${Array.from({ length: 40 }, (_, index) => `<h2>Order ${index}</h2><p>Some text about it.</p>`).join('')}</html>`;

const shop = await listen((request, response) => {
  const isApi = request.url === '/api';
  response.writeHead(200, { 'content-type': isApi ? 'application/json' : 'text/html' });
  // A backend takes its time; without it the share of everything else would be overstated.
  setTimeout(() => response.end(isApi ? '{}' : request.url === '/orders' ? LIST : FORM), ANSWER_MS);
});
const service = await listen((request, response) => {
  request.resume().on('end', () => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ success: true, runId: 1, testRunId: 1, projectId: 1, streamToken: 'f'.repeat(64), status: 'passed' }));
  });
});
const scratch = await mkdtemp(path.join(tmpdir(), 'callboard-cost-'));
// Beside the packages it needs, where version control does not look.
const written = fileURLToPath(new URL('../test-results/', import.meta.url));
await mkdir(written, { recursive: true });
const ownLines = await mkdtemp(path.join(written, 'cost-'));

try {
  await writeFile(path.join(ownLines, 'orders.spec.ts'), await withOwnLines());
  for (const [name, testDir] of [['shared lines', dir], ['lines of its own', ownLines]]) await compare(name, testDir);
} finally {
  shop.close();
  service.close();
  await rm(scratch, { recursive: true, force: true });
  await rm(ownLines, { recursive: true, force: true });
}

/** The spec with its loop written out. */
async function withOwnLines() {
  const source = await readFile(new URL('orders.spec.ts', import.meta.url), 'utf8');
  const [, head, body] = /^(.*)for \(let number = 1;[^\n]*\n(.*)\n}\s*$/s.exec(source);
  return head + Array.from({ length: TESTS }, (_, index) => body.replace('${number}', String(index + 1))).join('\n');
}

async function compare(name, testDir) {
  const runs = { plain: [], captured: [] };
  for (let round = 0; round < ROUNDS; round++) {
    const order = round % 2 === 0 ? ['plain', 'captured'] : ['captured', 'plain'];
    for (const kind of order) runs[kind].push(await run(kind, testDir));
  }
  const [plain, captured] = [medians(runs.plain), medians(runs.captured)];
  const extra = sum(captured) - sum(plain);
  console.log(`${name}: ${TESTS} tests, ${ROUNDS} rounds each, medians`);
  console.log(`without   ${(sum(plain) / TESTS).toFixed(1)} ms per test`);
  console.log(`with      ${(sum(captured) / TESTS).toFixed(1)} ms per test`);
  console.log(`cost      ${(extra / TESTS).toFixed(1)} ms per test, ${((100 * extra) / sum(plain)).toFixed(1)} %`);
  for (const [what, of] of [['whole run', ({ wall }) => wall], ['processor', ({ processor }) => processor]]) {
    const [without, withIt] = [median(runs.plain.map(of)), median(runs.captured.map(of))];
    console.log(`${what.padEnd(9)} ${Math.round(without)} ms without, ${Math.round(withIt)} ms with, ${((100 * (withIt - without)) / without).toFixed(1)} %`);
  }
}

async function run(kind, testDir) {
  const report = path.join(scratch, 'report.json');
  const started = Date.now();
  let times = '';
  await new Promise((resolve, reject) => {
    // Time of the processor is told by the shell, for all processes of the run together.
    const child = spawn('bash', ['-c', 'TIMEFORMAT="%U %S"; time npx playwright test -c "$0" >/dev/null 2>&1', dir], {
      cwd: dir, stdio: ['ignore', 'ignore', 'pipe'],
      env: {
        ...process.env, CAPTURED: String(kind === 'captured'), COST_URL: addressOf(shop), COST_TESTS: String(TESTS), COST_DIR: testDir,
        COST_REPORT: report, COST_OUTPUT: path.join(scratch, 'results'), SERVICE_SPOOL_DIR: path.join(scratch, 'spool'),
        ...(kind === 'captured' ? { SERVICE_URL: addressOf(service) } : {}),
      },
    });
    child.stderr.setEncoding('utf8').on('data', (text) => {
      times += text;
    });
    child.on('error', reject);
    child.on('close', (code) => (code === 0 ? resolve() : reject(new Error(`the suite ended with ${code}`))));
  });
  const wall = Date.now() - started;
  const { suites } = JSON.parse(await readFile(report, 'utf8'));
  const processor = 1_000 * sum(times.trim().split(/\s+/).map(Number));
  // The first test starts the browser.
  return { wall, processor, durations: suites[0].specs.slice(1).map((spec) => spec.tests[0].results[0].duration) };
}

function medians(all) {
  return all[0].durations.map((_, index) => median(all.map(({ durations }) => durations[index])));
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}

function median(values) {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)];
}

function addressOf(server) {
  return `http://127.0.0.1:${server.address().port}`;
}

async function listen(handler) {
  const server = http.createServer(handler);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}
