/** Runs kept on disk: when they are sent, when they stay, and whose they are. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { utimes } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { createClient, deadlineIn } from '../src/client';
import type { OutgoingAttempt } from '../src/delivery';
import { createLog } from '../src/log';
import type { RunFields } from '../src/run';
import { releaseEntry, writeEntry, type SpoolNote } from '../src/spool/entry';
import { entriesIn, flushSpool } from '../src/spool/spool';
import { field, startService, type Received, type Reply, type Service } from './service';

const silent = createLog(false, () => process.stdout);
const RUN = { projectName: 'shop', status: 'passed', clientRunId: 'run-0001', startTime: '2026-01-05T10:00:00.000Z' } as unknown as RunFields;

/** One result with two files that do not fit one request. */
function results(): OutgoingAttempt[] {
  const bytes = Buffer.alloc(20 * 1024 * 1024, 1);
  const identity = { title: 'one', location: 'a.spec.ts:1:1', retries: 0 } as unknown as OutgoingAttempt['identity'];
  const files = ['a', 'b'].map((name) => ({
    kind: 'attachment' as const, name, contentType: 'text/plain', originalName: name,
    content: { kind: 'bytes' as const, bytes, size: bytes.length },
  }));
  return [{ identity, entry: { ...identity }, files }];
}

async function withSpool(
  reply: (request: Received, count: number) => Reply,
  check: (spool: { service: Service; entry: string; flush(): Promise<string[]> }) => Promise<void>,
): Promise<void> {
  const service = await startService(reply);
  const dir = mkdtempSync(path.join(os.tmpdir(), 'callboard-spool-'));
  const entry = await writeEntry({ dir, origin: service.url, filesMaxBytes: 2 ** 30 }, RUN, results(), true);
  const flush = async (): Promise<string[]> => {
    const sent: string[] = [];
    await flushSpool({
      entries: await entriesIn(dir), deadline: deadlineIn(10_000), log: silent, tries: 1,
      clientFor: () => createClient(service.url, { kind: 'none' }, silent),
      onSent: () => sent.push('sent'),
      onFailed: () => sent.push('stays'),
    });
    return sent;
  };
  try {
    await check({ service, entry, flush });
  } finally {
    await service.close();
  }
}

const attached = ({ received }: Service): string[] => received.filter(({ path: where }) => where.endsWith('upload'))
  .flatMap(({ form }) => field<{ name: string }[]>(form, 'attach_meta_0').map(({ name }) => name));

test('a run stays in the spool until its last file has arrived', () => {
  let isBroken = true;
  return withSpool(
    ({ path: where, form }) => {
      const isLast = where.endsWith('upload') && field<{ name: string }[]>(form, 'attach_meta_0').some(({ name }) => name === 'b');
      return isLast && isBroken ? { status: 503, body: {} } : {};
    },
    async ({ service, entry, flush }) => {
      await releaseEntry(entry, [], 2 ** 30);
      assert.deepEqual(await flush(), ['stays']);
      isBroken = false;
      assert.deepEqual(await flush(), ['sent']);
      assert.deepEqual(await flush(), [], 'it is gone');
      assert.deepEqual(attached(service), ['a', 'b', 'b'], 'what has arrived is not sent again');
    });
});

test('what a process is still at work on is left to it, on whatever host it is', () => withSpool(() => ({}), async ({ service, entry, flush }) => {
  assert.deepEqual(await flush(), [], 'this process wrote it');
  const noteFile = entry.replace(/\.json\.gz$/, '.files.json');
  const note = JSON.parse(readFileSync(noteFile, 'utf8')) as SpoolNote;
  writeFileSync(noteFile, JSON.stringify({ ...note, owner: { pid: 1, hostname: 'another' } } satisfies SpoolNote));
  assert.deepEqual(await flush(), [], 'it was written a moment ago');
  const longAgo = new Date(Date.now() - 6 * 60_000);
  await utimes(entry, longAgo, longAgo);
  assert.deepEqual(await flush(), ['sent']);
  assert.equal(service.paths()[0], 'test-runs/submit');
}));
