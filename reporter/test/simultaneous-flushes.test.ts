/** Several processes that send from one spool: each run is sent by one of them. */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import { utimes } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { createClient, deadlineIn } from '../src/client';
import { addReports, releaseEntry } from '../src/spool/entry';
import { createRunSpool } from '../src/spool/run-spool';
import { entriesIn, flushSpool, runsFolder } from '../src/spool/spool';
import { PACKAGE } from './playwright-run';
import { startService, type Reply, type Service } from './service';
import { folder, keep, results, silent } from './spool-entries';

interface Flushing {
  process: ChildProcess;
  ended: Promise<{ exitCode: number | null; said: string }>;
}

/** The command as a process of its own. */
function flushProcess(spoolDir: string, service: Service): Flushing {
  const env = { PATH: process.env['PATH'], SERVICE_SPOOL_DIR: spoolDir, SERVICE_VERBOSE: 'true' };
  const child = spawn(process.execPath, [path.join(PACKAGE, 'dist/cli.js'), 'flush', '--url', service.url], { env });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => void (said += String(text)));
  return { process: child, ended: new Promise((resolve) => child.once('close', (exitCode) => resolve({ exitCode, said }))) };
}

async function withRun(
  reply: (count: number) => Reply,
  check: (parts: { service: Service; spoolDir: string; dir: string; entry: string }) => Promise<void>,
): Promise<void> {
  const service = await startService((_request, count) => reply(count));
  const spoolDir = folder();
  const dir = path.join(spoolDir, runsFolder('shop', service.url));
  const entry = await keep(dir, service.url, results(1_000));
  const report = folder();
  writeFileSync(path.join(report, 'index.html'), '<title>Report</title>');
  await addReports(entry, [{ type: 'html', dir: report, label: undefined }], 2 ** 30);
  await releaseEntry(entry);
  try {
    await check({ service, spoolDir, dir, entry });
  } finally {
    await service.close();
  }
}

async function hears(service: Service, requests: number): Promise<void> {
  for (let waited = 0; service.received.length < requests; waited += 5) {
    assert.ok(waited < 30_000, 'nothing was sent');
    await delay(5);
  }
}

/** Lets whoever waits for it go on. */
function gate(): { opened: Promise<void>; open(): void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

test('of two flushes at once one sends the run, and the other leaves it alone without a word', () => {
  const { opened, open } = gate();
  return withRun((count) => (count === 1 ? { after: opened } : {}), async ({ service, spoolDir, dir }) => {
    const first = flushProcess(spoolDir, service);
    await hears(service, 1);
    const second = await flushProcess(spoolDir, service).ended;
    assert.deepEqual(second, { exitCode: 0, said: `nothing to send in ${spoolDir}\n` });
    assert.equal(service.received.length, 1);
    open();
    const { exitCode, said } = await first.ended;
    assert.equal(exitCode, 0, said);
    assert.match(said, new RegExp(`^shop: ${service.url}/test-runs/7$`, 'm'));
    assert.deepEqual(service.paths(), ['test-runs/upload', 'test-runs/upload'], 'results with their files, and the report');
    assert.deepEqual(readdirSync(dir), []);
  });
});

test('what a killed flush was sending is sent by the next', () => withRun((count) => (count === 1 ? { hangs: true } : {}), async ({ service, spoolDir, dir }) => {
  const first = flushProcess(spoolDir, service);
  await hears(service, 1);
  first.process.kill('SIGKILL');
  await first.ended;
  const { exitCode, said } = await flushProcess(spoolDir, service).ended;
  assert.equal(exitCode, 0, said);
  const [, again, report] = service.received.map(({ form }) => form);
  assert.equal(again!.getAll('attach_file_0').length, 2);
  assert.ok(report!.has('report_html'));
  assert.deepEqual(readdirSync(dir), []);
}));

test('a reporter leaves to the command what that is sending', () => {
  const { opened, open } = gate();
  return withRun((count) => (count === 1 ? { after: opened } : {}), async ({ service, spoolDir, dir }) => {
    const first = flushProcess(spoolDir, service);
    await hears(service, 1);
    const lines: string[] = [];
    const say = (line: string): void => void lines.push(line);
    const log = { ...silent, info: say, warn: say, detail: say };
    const spool = createRunSpool({
      settings: { spoolDir, spoolMaxBytes: 2 ** 30 }, origin: service.url, projectName: 'shop', log,
      client: createClient(service.url, { kind: 'none' }, log),
    });
    spool.flush();
    await spool.settle(deadlineIn(10_000));
    open();
    assert.equal((await first.ended).exitCode, 0);
    assert.deepEqual(lines, []);
    assert.equal(service.received.length, 2);
    assert.deepEqual(readdirSync(dir), []);
  });
});

/** How often each of so many flushes in this process sent the run or said why not. */
async function flushes(count: number, dir: string, service: Service): Promise<{ sent: number; failed: number }> {
  const said = { sent: 0, failed: 0 };
  const entries = await entriesIn(dir);
  await Promise.all(Array.from({ length: count }, () => flushSpool({
    entries, deadline: deadlineIn(10_000), log: silent, tries: 1,
    clientFor: () => createClient(service.url, { kind: 'none' }, silent),
    onSent: () => void said.sent++,
    onFailed: () => void said.failed++,
  })));
  return said;
}

test('of many flushes that find what a killed one left only one sends it', () => withRun(() => ({}), async ({ service, dir, entry }) => {
  const claim = entry.replace(/\.json\.gz$/, '.claim');
  const dead = spawn(process.execPath, ['-e', '']);
  await new Promise((resolve) => dead.once('close', resolve));
  writeFileSync(claim, JSON.stringify({ pid: dead.pid, hostname: os.hostname() }));
  // Another one was killed while it took that away: whoever finds it makes way for the next.
  writeFileSync(`${claim}.turn`, JSON.stringify({ pid: dead.pid, hostname: os.hostname() }));
  assert.deepEqual(await flushes(1, dir, service), { sent: 0, failed: 0 });
  assert.deepEqual(await flushes(20, dir, service), { sent: 1, failed: 0 });
  assert.equal(service.received.length, 2);
  assert.deepEqual(readdirSync(dir), []);
}));

test('what another host is sending is left to it for as long as it gives a sign of life', () => withRun(() => ({}), async ({ service, dir, entry }) => {
  const claim = entry.replace(/\.json\.gz$/, '.claim');
  for (const written of [JSON.stringify({ pid: 1, hostname: 'another' }), '']) {
    writeFileSync(claim, written);
    assert.deepEqual(await flushes(1, dir, service), { sent: 0, failed: 0 });
  }
  const longAgo = new Date(Date.now() - 6 * 60_000);
  await utimes(claim, longAgo, longAgo);
  assert.deepEqual(await flushes(1, dir, service), { sent: 1, failed: 0 });
}));

test('a run that could not be sent is free for the next flush', () => {
  let isBroken = true;
  return withRun(() => (isBroken ? { status: 503, body: {} } : {}), async ({ service, dir }) => {
    assert.deepEqual(await flushes(1, dir, service), { sent: 0, failed: 1 });
    isBroken = false;
    assert.deepEqual(await flushes(1, dir, service), { sent: 1, failed: 0 });
  });
});
