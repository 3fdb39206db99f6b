/** `flush`: sends the runs that were kept on this machine, now. */
import { createClient, deadlineIn, isForbidden } from '../client';
import { advice } from '../failure';
import { createLog } from '../log';
import { resolveSettings, type Env } from '../options';
import { collectServerWarnings } from '../server-warnings';
import { allEntries, flushSpool } from '../spool/spool';

export interface FlushOptions {
  env: Env;
  /** Only runs for this service; without an address each run goes where it was meant to go, but no credentials with it. */
  url: string | undefined;
  print(line: string): void;
}

const TIME_MAX_MS = 60 * 60 * 1_000;
const TRIES = 3;

/** The exit code: 1 when a run could not be sent. */
export async function flushCommand({ env, url, print }: FlushOptions): Promise<number> {
  const settings = resolveSettings(url === undefined ? {} : { serverUrl: url }, env);
  if (settings.problem) {
    print(settings.problem);
    return 2;
  }
  const log = createLog(settings.verbose, () => process.stderr);
  const entries = await allEntries(settings.spoolDir);
  // A file names the address of a run; who gets a key is for whoever starts this command to say.
  const withheld = settings.origin === undefined && settings.credentials.kind !== 'none';
  const credentials = withheld ? { kind: 'none' as const } : settings.credentials;
  const warnings = collectServerWarnings(log);
  let sent = 0;
  let failed = 0;
  await flushSpool({
    entries, log,
    deadline: deadlineIn(TIME_MAX_MS),
    tries: TRIES,
    isWaitedFor: true,
    clientFor: ({ origin }) => {
      const isMeant = settings.origin === undefined || settings.origin === origin;
      return isMeant ? warnings.listenTo(createClient(origin, credentials, log)) : undefined;
    },
    onSent({ runId, runUrl }, { projectName, origin }) {
      sent++;
      print(`${projectName}: ${runUrl ?? `${origin}/test-runs/${runId}`}`);
    },
    onFailed(error, { projectName, origin }) {
      failed++;
      print(`${projectName}: not sent to ${origin}: ${withheld && isForbidden(error) ? unnamed(origin) : advice(error)}`);
    },
  });
  const warning = warnings.take();
  if (warning !== undefined) print(warning);
  log.flush();
  if (sent + failed === 0) print(`nothing to send in ${settings.spoolDir}`);
  return failed > 0 ? 1 : 0;
}

function unnamed(origin: string): string {
  return `credentials go only to the service that is named, with --url ${origin} or SERVICE_URL`;
}
