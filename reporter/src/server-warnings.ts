/**
 * Collects the `warnings` of the service's answers: what it left out or read leniently. The
 * request was accepted all the same, so nothing is sent again: people get one line.
 */
import type { Client, JsonObject } from './client';
import type { Log } from './log';
import { isRecord } from './options';

export interface ServerWarnings {
  /** The same client; warnings in its answers are collected. */
  listenTo(client: Client): Client;
  /** The warnings since the last call, as one sentence; undefined when there were none. */
  take(): string | undefined;
}

/** The service names no more than these in one answer. */
const NAMED_MAX = 20;
const MESSAGE_MAX_CHARS = 300;

export function collectServerWarnings(log: Log): ServerWarnings {
  const counts = new Map<string, number>();
  let first: string | undefined;
  let isMore = false;

  const listen = (path: string, { warnings }: JsonObject): void => {
    if (!Array.isArray(warnings)) return;
    isMore ||= warnings.length >= NAMED_MAX;
    for (const warning of warnings as unknown[]) {
      if (!isRecord(warning) || typeof warning['message'] !== 'string') continue;
      const { code, message, index } = warning as JsonObject & { message: string };
      const kind = typeof code === 'string' ? code : 'other';
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
      first ??= message;
      log.detail(`${path} was accepted, but${typeof index === 'number' ? ` (entry ${index})` : ''}: ${message} (${kind})`);
    }
  };

  return {
    listenTo: (client) => ({
      put: (...call) => client.put(...call),
      async send(path, ...rest) {
        const answer = await client.send(path, ...rest);
        listen(path, answer);
        return answer;
      },
    }),
    take() {
      if (first === undefined) return undefined;
      const kinds = [...counts].map(([kind, count]) => `${count} ${kind}`).join(', ');
      const line = `the service left out or read leniently: ${isMore ? 'at least ' : ''}${kinds}; first: ${first.slice(0, MESSAGE_MAX_CHARS)}`;
      counts.clear();
      first = undefined;
      isMore = false;
      return line;
    },
  };
}
