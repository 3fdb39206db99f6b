/** What is still on its way while everybody waits: one line every five seconds. */
import type { Log } from './log';

const INTERVAL_MS = 5_000;

export interface Progress {
  /** Absent where results were sent before. */
  eventsSent?: number;
  events?: number;
  filesSent: number;
  files: number;
  /** Of the files. */
  bytesLeft: number;
}

export function reportProgress(log: Log, progress: () => Progress): () => void {
  const timer = setInterval(() => log.now(sentence(progress())), INTERVAL_MS);
  timer.unref();
  return () => clearInterval(timer);
}

export function sentence({ eventsSent, events, filesSent, files, bytesLeft }: Progress): string {
  const megabytes = Math.ceil(bytesLeft / 1024 / 1024);
  const results = eventsSent === undefined || events === undefined ? '' : `${eventsSent}/${events} events, `;
  return `sending ${results}${filesSent}/${files} files${bytesLeft > 0 ? ` (${megabytes} MB)` : ''}`;
}
