/**
 * Opens the streamed run: continues the one registered before global setup, or starts
 * one. Repeated in the background for as long as the service does not answer.
 */
import { readCapabilities, type ServiceCapabilities } from '../capabilities';
import { RequestFailed, type Client, type JsonObject } from '../client';
import { jsonBody } from '../http';
import type { Log } from '../log';
import type { StartFields } from '../run';
import type { SetupRegistration } from '../setup-registration';
import type { Pace } from './pace';

export interface OpenRun {
  runId: number;
  projectId: number | undefined;
  runUrl: string | undefined;
  streamToken: string;
  capabilities: ServiceCapabilities;
}

export interface OpenParts {
  client: Client;
  log: Log;
  pace: Pace;
  start: Promise<StartFields>;
  /** The run as it was registered before global setup. */
  setup: Promise<SetupRegistration | undefined> | undefined;
}

const PAUSES_MS = [2_000, 5_000, 10_000, 30_000];

export async function openRun(parts: OpenParts): Promise<OpenRun> {
  const { client, pace } = parts;
  const [fields, setup] = await Promise.all([parts.start, parts.setup]);
  const send = (path: string, body: object, withToken: boolean): Promise<JsonObject> =>
    client.send(`/api/test-runs/${path}`, jsonBody(body), pace.deadline(), { tries: 1, withToken });
  return pace.persist(async () => {
    if (setup) {
      try {
        const { setupToken, runId } = setup;
        return opened(await send(`${runId}/begin`, { setupToken, ...fields, totalTests: fields.plannedTests }, true));
      } catch (error) {
        // The token was used or has expired, or the run has ended: a new start is the way on.
        const startAgain = error instanceof RequestFailed && (error.status === 409 || error.status === 404);
        if (!startAgain) throw error;
      }
    }
    return opened(await send('start', fields, false));
  }, { pauseMs: (tries) => PAUSES_MS[Math.min(tries, PAUSES_MS.length) - 1]! });
}

function opened(answer: JsonObject): OpenRun {
  const { runId, streamToken, projectId, runUrl } = answer;
  if (typeof runId !== 'number' || typeof streamToken !== 'string') {
    throw new RequestFailed('the answer names no run: is this the address of the service?', 200);
  }
  return {
    runId,
    projectId: typeof projectId === 'number' ? projectId : undefined,
    runUrl: typeof runUrl === 'string' ? runUrl : undefined,
    streamToken,
    capabilities: readCapabilities(answer),
  };
}
