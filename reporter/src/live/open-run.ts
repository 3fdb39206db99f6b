/**
 * Opens the streamed run by the states of `opening.ts`. Each request is repeated in the background for as long as the
 * service does not answer.
 */
import type { Client } from '../client';
import { jsonBody } from '../http';
import type { StartFields } from '../run';
import type { SetupRegistration } from '../setup-registration';
import { firstOpening, nextOpening, openingRequest, type OpeningAnswer, type OpeningRequest, type OpenRun } from './opening';
import type { RetryPolicy } from './retry-policy';

export interface OpenParts {
  client: Client;
  retryPolicy: RetryPolicy;
  start: Promise<StartFields>;
  /** The run as it was registered before global setup. */
  setup: Promise<SetupRegistration | undefined> | undefined;
}

const PAUSES_MS = [2_000, 5_000, 10_000, 30_000];

/** Fails when the service refuses to open the run, or there is no time left to ask again. */
export async function openRun({ client, retryPolicy, start, setup }: OpenParts): Promise<OpenRun> {
  const [fields, registration] = await Promise.all([start, setup]);
  const send = ({ path, body, withToken }: OpeningRequest): Promise<OpeningAnswer> => retryPolicy.persist(
    () => client.send(`/api/test-runs/${path}`, jsonBody(body), retryPolicy.deadline(), { tries: 1, withToken }),
    { pauseMs: (tries) => PAUSES_MS[Math.min(tries, PAUSES_MS.length) - 1]! },
  ).then((answer) => ({ answer }), (failure: unknown) => ({ failure }));
  for (let opening = firstOpening(registration); ;) {
    if (opening.state === 'open') return opening.run;
    if (opening.state === 'refused') throw opening.error;
    opening = nextOpening(opening, await send(openingRequest(opening, fields)!));
  }
}
