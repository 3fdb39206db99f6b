/** Runs kept on disk, for the tests of the spool. */
import { mkdtempSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { OutgoingAttempt } from '../src/outgoing';
import { createLog } from '../src/log';
import type { RunFields } from '../src/run';
import { writeEntry } from '../src/spool/entry';
import { createHashes } from '../src/spool/hashes';
import { createKeeper } from '../src/spool/keeper';

export const silent = createLog(false, () => process.stdout);
export const RUN = { projectName: 'shop', status: 'passed', clientRunId: 'run-0001', startTime: '2026-01-05T10:00:00.000Z' } as unknown as RunFields;

export const folder = (): string => mkdtempSync(path.join(os.tmpdir(), 'callboard-spool-'));

/** In use by this process until it is released. */
export const keep = (dir: string, origin: string, attempts = results()): Promise<string> =>
  writeEntry({ dir, origin, filesMaxBytes: 2 ** 30 }, RUN, attempts, { isFinal: true, keeper: createKeeper(), hashes: createHashes() });

export const noteOf = (entry: string): string => entry.replace(/\.json\.gz$/, '.files.json');

/** One result with two files that do not fit one request. */
export function results(sizeBytes = 20 * 1024 * 1024): OutgoingAttempt[] {
  const bytes = Buffer.alloc(sizeBytes, 1);
  const identity = { title: 'one', location: 'a.spec.ts:1:1', retries: 0 } as unknown as OutgoingAttempt['identity'];
  const files = ['a', 'b'].map((name) => ({
    kind: 'attachment' as const, name, contentType: 'text/plain', originalName: name,
    content: { kind: 'bytes' as const, bytes, size: bytes.length },
  }));
  return [{ identity, entry: { ...identity }, files }];
}
