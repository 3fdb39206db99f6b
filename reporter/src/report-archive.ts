/**
 * A report directory as one stream: gzip of records (path length, path, content
 * length, content), all lengths little-endian 32-bit. Made while it is sent.
 */
import { createWriteStream } from 'node:fs';
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { read } from './files';
import { forwardSlashes } from './paths';

export interface ReportEntry {
  /** Path inside the report, with forward slashes. */
  name: string;
  file: string;
  size: number;
}

/** What the service unpacks at most; a larger report is not sent at all. */
const REPORT_MAX_BYTES = 1024 ** 3;
const REPORT_MAX_ENTRIES = 100_000;

/** The files of a report; fails when they are more than the service takes. */
export async function sendableEntries(dir: string): Promise<ReportEntry[]> {
  const entries = await reportEntries(dir);
  const sizeBytes = entries.reduce((total, { size }) => total + size, 0);
  if (sizeBytes > REPORT_MAX_BYTES || entries.length > REPORT_MAX_ENTRIES) {
    throw new Error(`it has ${entries.length} files and ${sizeBytes} bytes, which is too much`);
  }
  return entries;
}

/** Regular files below the directory, in a stable order. Links are not followed. */
async function reportEntries(dir: string): Promise<ReportEntry[]> {
  const entries: ReportEntry[] = [];
  const visit = async (folder: string): Promise<void> => {
    const children = await readdir(folder, { withFileTypes: true });
    for (const child of children.sort((one, other) => (one.name < other.name ? -1 : 1))) {
      const file = path.join(folder, child.name);
      if (child.isDirectory()) await visit(file);
      else if (child.isFile()) {
        entries.push({ name: forwardSlashes(path.relative(dir, file)), file, size: (await stat(file)).size });
      }
    }
  };
  await visit(dir);
  return entries;
}

export function packReport(entries: readonly ReportEntry[]): AsyncIterable<Uint8Array> {
  const gzip = createGzip();
  const source = Readable.from(records(entries), { objectMode: false });
  source.once('error', (error) => gzip.destroy(error));
  gzip.once('close', () => source.destroy());
  return source.pipe(gzip);
}

export interface ReportArchive {
  sizeBytes: number;
  open(): AsyncIterable<Uint8Array>;
  remove(): Promise<void>;
}

/** The archive as a temporary file that only this user can read, for what needs its size and hash in advance. */
export async function archiveReport(entries: readonly ReportEntry[]): Promise<ReportArchive> {
  const dir = await mkdtemp(path.join(os.tmpdir(), 'callboard-report-'));
  const remove = (): Promise<void> => rm(dir, { recursive: true, force: true });
  const file = path.join(dir, 'report.gz');
  try {
    await pipeline(packReport(entries), createWriteStream(file, { mode: 0o600, flags: 'wx' }));
    const { size } = await stat(file);
    return { sizeBytes: size, open: () => read({ kind: 'file', path: file, size }), remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function* records(entries: readonly ReportEntry[]): AsyncGenerator<Uint8Array> {
  for (const entry of entries) {
    const name = Buffer.from(entry.name);
    yield Buffer.concat([uint32(name.length), name, uint32(entry.size)]);
    yield* read({ kind: 'file', path: entry.file, size: entry.size });
  }
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
