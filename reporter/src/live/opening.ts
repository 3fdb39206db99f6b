/**
 * How a streamed run comes to be open, as states and the answers that lead from one to the next:
 *
 * ```text
 * beginning ──answer──────────────▶ open
 *     │ 404, 409
 *     ▼
 * starting ───answer──────────────▶ open
 * either ─────any other failure───▶ refused
 * ```
 *
 * A run that was registered before global set-up is begun. Whether a start joins a run of other shards is for the service
 * to decide. Failures that may pass do not arrive here, they are repeated.
 */
import { readCapabilities, type ServiceCapabilities } from '../capabilities';
import { RequestFailed, type JsonObject } from '../client';
import type { StartFields } from '../run';
import type { SetupRegistration } from '../setup-registration';

export interface OpenRun {
  runId: number;
  projectId: number | undefined;
  runUrl: string | undefined;
  streamToken: string;
  capabilities: ServiceCapabilities;
}

export type Opening =
  | { state: 'beginning'; setup: SetupRegistration }
  | { state: 'starting' }
  | { state: 'open'; run: OpenRun }
  | { state: 'refused'; error: unknown };

export type OpeningAnswer = { answer: JsonObject } | { failure: unknown };

/** A request that may lead to the next state. */
export interface OpeningRequest {
  /** Below `/api/test-runs/`. */
  path: string;
  body: object;
  /** The body carries the permission; otherwise the credentials of the user go along. */
  withToken: boolean;
}

export function firstOpening(setup: SetupRegistration | undefined): Opening {
  return setup ? { state: 'beginning', setup } : { state: 'starting' };
}

/** Undefined where the states end. */
export function openingRequest(opening: Opening, fields: StartFields): OpeningRequest | undefined {
  switch (opening.state) {
    case 'beginning': {
      const { runId, setupToken } = opening.setup;
      return { path: `${runId}/begin`, body: { setupToken, ...fields, totalTests: fields.plannedTests }, withToken: true };
    }
    case 'starting':
      return { path: 'start', body: fields, withToken: false };
    default:
      return undefined;
  }
}

export function nextOpening(opening: Opening, answered: OpeningAnswer): Opening {
  if ('failure' in answered) {
    const { failure } = answered;
    // The token was used or has expired, or the run has ended: a new start is the way on.
    const mayStart = opening.state === 'beginning' && failure instanceof RequestFailed && (failure.status === 409 || failure.status === 404);
    return mayStart ? { state: 'starting' } : { state: 'refused', error: failure };
  }
  const { runId, streamToken, projectId, runUrl } = answered.answer;
  if (typeof runId !== 'number' || typeof streamToken !== 'string') {
    return { state: 'refused', error: new RequestFailed('the answer names no run: is this the address of the service?', 200) };
  }
  return {
    state: 'open',
    run: {
      runId, streamToken,
      projectId: typeof projectId === 'number' ? projectId : undefined,
      runUrl: typeof runUrl === 'string' ? runUrl : undefined,
      capabilities: readCapabilities(answered.answer),
    },
  };
}
