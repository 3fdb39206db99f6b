/**
 * A run whose results need several requests. Submitted, it would be over with the first of them, and whoever is told of it
 * would be told of a part; so it is started, fed, and finished with the last one, as a live run is.
 */
import { isForbidden, RequestFailed, type SendOptions } from './client';
import { reasonOf } from './failure';
import { compressedJsonBody, jsonBody } from './http';
import { nextOpening } from './live/opening';
import { deliveredRun, type DeliveredRun, type Delivery } from './outgoing';

export interface RunInParts {
  /** What a body of results begins with. */
  readonly head: Record<string, unknown>;
  /** Sends a compressed body of results. */
  send(payload: Buffer, options: SendOptions): Promise<void>;
  finish(): Promise<DeliveredRun>;
}

/** Undefined where the service opens no run for this: its results are then submitted one part after the other. */
export async function openInParts({ client, deadline, log, run, tries }: Delivery): Promise<RunInParts | undefined> {
  const options = tries === undefined ? {} : { tries };
  try {
    const opening = nextOpening({ state: 'starting' }, { answer: await client.send('/api/test-runs/start', jsonBody(run), deadline, options) });
    if (opening.state !== 'open') return undefined;
    const { runId, streamToken, projectId, runUrl } = opening.run;
    return {
      head: { streamToken },
      async send(payload, own) {
        await client.send(`/api/test-runs/${runId}/events`, compressedJsonBody(payload), deadline, { ...own, withToken: true });
      },
      async finish() {
        const body = jsonBody({ streamToken, ...run, hasPendingUploads: false });
        return deliveredRun({ projectId, runUrl, ...await client.send(`/api/test-runs/${runId}/finish`, body, deadline, { ...options, withToken: true }) });
      },
    };
  } catch (error) {
    if (!(error instanceof RequestFailed) || error.status === undefined || isForbidden(error)) throw error;
    log.detail(`the run could not be opened for several requests: ${reasonOf(error)}`);
    return undefined;
  }
}

/**
 * The run takes no results this way any more, and a submission may complete it. One that is gone is not completed: what was
 * sent of it is gone as well, so it is kept as a whole.
 */
export function endsParts(error: unknown): boolean {
  return error instanceof RequestFailed && ENDING.has(error.status ?? 0);
}

const ENDING = new Set([401, 403, 409, 415]);
