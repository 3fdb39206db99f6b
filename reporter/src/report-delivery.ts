/**
 * Attaches report directories to a run that is already there. Called whenever more
 * reports may be finished; each directory is sent once.
 */
import { fitsRequest, type ServiceCapabilities } from './capabilities';
import { isForbidden, isTransient, type Client, type Deadline, type JsonObject, type SendOptions } from './client';
import { reasonOf } from './failure';
import type { Log } from './log';
import { reportProgress } from './progress';
import { archiveReport, packReport, sendableEntries } from './report-archive';
import { isFresh, type Report } from './reports';
import { noReportBody, reportBody, type AttachedRun, type OutgoingReport } from './upload';
import { PlanUnsupported } from './uploads/calls';
import { stageForRun } from './uploads/stage-for-run';
import { TransferFailed } from './uploads/stage-files';
import { stagedReport, STAGED_MIN_BYTES } from './uploads/staged-file';

export interface ReportDelivery {
  client: Client;
  deadline: Deadline;
  log: Log;
  reports: readonly Report[];
  run: AttachedRun;
  /** Directories dealt with; grows with every call. */
  done: Set<string>;
  /** What the service offers; completed by what its answers tell. */
  capabilities: ServiceCapabilities;
}

type Sending = Pick<ReportDelivery, 'client' | 'deadline' | 'log' | 'run' | 'capabilities'> & {
  /** Somebody waits for the end: long work prints a line now and then. */
  isWaitedFor?: boolean;
};

export interface DeliveredReports {
  /** Of the run afterwards; undefined when nothing was sent. */
  status: string | undefined;
  /** Worth another try some other day. */
  left: LeftReport[];
}

export interface LeftReport {
  report: Report;
  error: unknown;
}

export async function deliverReports(delivery: ReportDelivery): Promise<DeliveredReports> {
  let status: string | undefined;
  const left: LeftReport[] = [];
  for (const report of delivery.reports) {
    const key = `${report.type}\0${report.dir}`;
    if (delivery.done.has(key) || !isFresh(report, delivery.run.startedAtMs)) continue;
    delivery.done.add(key);
    try {
      // What one report waited for in vain, the next one need not wait for as well.
      status = await deliverReport(delivery, report, left.length > 0 ? { tries: 1 } : {}) ?? status;
    } catch (error) {
      if (mayArriveLater(error)) left.push({ report, error });
      else delivery.log.warn(`the ${report.type} report could not be sent: ${reasonOf(error)}`);
    }
  }
  return { status, left };
}

/** Tells the service that it need not wait for a report: none will come, or it is there. */
export async function deliverNoReport(
  { client, deadline, log, run }: Pick<ReportDelivery, 'client' | 'deadline' | 'log' | 'run'>, options: SendOptions = {},
): Promise<string | undefined> {
  try {
    return statusOf(await client.send('/api/test-runs/upload', noReportBody(run), deadline, options));
  } catch (error) {
    log.detail(`ending the wait for a report failed: ${reasonOf(error)}`);
    return undefined;
  }
}

/**
 * Attaches reports that were kept with a run of an earlier process. Fails when another
 * try may succeed; a report that the service does not want is let go.
 */
export async function deliverKeptReports(
  { reports, tries, ...sending }: Sending & { reports: readonly OutgoingReport[]; tries: number },
): Promise<void> {
  const { log } = sending;
  for (const report of reports) {
    try {
      await sendReport(sending, report, { tries });
    } catch (error) {
      if (mayArriveLater(error)) throw error;
      log.warn(`the ${report.type} report could not be sent: ${reasonOf(error)}`);
    }
  }
}

async function deliverReport(delivery: ReportDelivery, report: Report, options: SendOptions): Promise<string | undefined> {
  const entries = await sendableEntries(report.dir);
  const { type, label } = report;
  const isLarge = entries.reduce((total, { size }) => total + size, 0) >= STAGED_MIN_BYTES;
  if (delivery.capabilities.plan === false || !isLarge) {
    const status = await sendReport(delivery, { type, label, open: () => packReport(entries) }, options);
    delivery.log.detail(`${type} report sent (${entries.length} files)`);
    return status;
  }
  // Its hash has to be known before it is sent.
  const archive = await archiveReport(entries);
  try {
    const status = await sendReport({ ...delivery, isWaitedFor: true }, { type, label, size: archive.sizeBytes, open: archive.open }, options);
    delivery.log.detail(`${type} report sent (${entries.length} files)`);
    return status;
  } finally {
    await archive.remove();
  }
}

/** Attaches one report; returns the status of the run afterwards. */
async function sendReport(sending: Sending, report: OutgoingReport, options: SendOptions): Promise<string | undefined> {
  const { client, deadline, run, capabilities } = sending;
  const { size } = report;
  if (capabilities.plan !== false && size !== undefined && size >= STAGED_MIN_BYTES) {
    try {
      return await stageReport(sending, report, size, options);
    } catch (error) {
      if (!(error instanceof PlanUnsupported)) throw error;
      capabilities.plan = false;
    }
  }
  return statusOf(await client.send('/api/test-runs/upload', reportBody(run, report), deadline, options));
}

async function stageReport(sending: Sending, report: OutgoingReport, sizeBytes: number, options: SendOptions): Promise<string | undefined> {
  const { run: { runId, projectName }, capabilities, log, isWaitedFor = false } = sending;
  let bytesLeft = sizeBytes;
  const stopProgress = isWaitedFor ? reportProgress(log, () => ({ filesSent: 0, files: 1, bytesLeft })) : undefined;
  try {
    const [outcome] = await stageForRun({ ...sending, ...options }, { runId, projectName }, [stagedReport(report, sizeBytes)],
      (_, sentBytes) => void (bytesLeft = sizeBytes - sentBytes));
    capabilities.plan = true;
    const failure = outcome?.failure;
    // The object store is out of reach from here; the service is not.
    if (failure instanceof TransferFailed && failure.isUnreachable && fitsRequest(sizeBytes, capabilities)) throw new PlanUnsupported();
    if (failure !== undefined) throw failure;
  } finally {
    stopProgress?.();
  }
  // The commit says nothing about the run; this call also tells it that its report is there.
  return deliverNoReport(sending, options);
}

/** The service may answer again, and whoever may not send it now may be allowed to. */
function mayArriveLater(error: unknown): boolean {
  return error instanceof TransferFailed || isTransient(error) || isForbidden(error);
}

function statusOf({ status }: JsonObject): string | undefined {
  return typeof status === 'string' ? status : undefined;
}
