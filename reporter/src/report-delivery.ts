/**
 * Attaches report directories to a run that is already there. Called whenever more
 * reports may be finished; each directory is sent once.
 */
import { isForbidden, isTransient, type Client, type Deadline, type JsonObject, type SendOptions } from './client';
import { reasonOf } from './failure';
import type { Log } from './log';
import { packReport, sendableEntries } from './report-archive';
import { isFresh, type Report } from './reports';
import { noReportBody, reportBody, type AttachedRun, type OutgoingReport } from './upload';

export interface ReportDelivery {
  client: Client;
  deadline: Deadline;
  log: Log;
  reports: readonly Report[];
  run: AttachedRun;
  /** Directories dealt with; grows with every call. */
  done: Set<string>;
}

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

/** Tells the service that no report will come after all. */
export async function deliverNoReport(
  { client, deadline, log, run }: Pick<ReportDelivery, 'client' | 'deadline' | 'log' | 'run'>, options: SendOptions = {},
): Promise<string | undefined> {
  try {
    return statusOf(await client.send('/api/test-runs/upload', noReportBody(run), deadline, options));
  } catch (error) {
    log.detail(`saying that there is no report failed: ${reasonOf(error)}`);
    return undefined;
  }
}

/**
 * Attaches reports that were kept with a run of an earlier process. Fails when another
 * try may succeed; a report that the service does not want is let go.
 */
export async function deliverKeptReports(
  { client, deadline, log, run, reports, tries }:
  Pick<ReportDelivery, 'client' | 'deadline' | 'log' | 'run'> & { reports: readonly OutgoingReport[]; tries: number },
): Promise<void> {
  for (const report of reports) {
    try {
      await client.send('/api/test-runs/upload', reportBody(run, report), deadline, { tries });
    } catch (error) {
      if (mayArriveLater(error)) throw error;
      log.warn(`the ${report.type} report could not be sent: ${reasonOf(error)}`);
    }
  }
}

async function deliverReport(
  { client, deadline, log, run }: ReportDelivery, report: Report, options: SendOptions,
): Promise<string | undefined> {
  const entries = await sendableEntries(report.dir);
  const outgoing = { type: report.type, label: report.label, open: () => packReport(entries) };
  const answer = await client.send('/api/test-runs/upload', reportBody(run, outgoing), deadline, options);
  log.detail(`${report.type} report sent (${entries.length} files)`);
  return statusOf(answer);
}

/** The service may answer again, and whoever may not send it now may be allowed to. */
function mayArriveLater(error: unknown): boolean {
  return isTransient(error) || isForbidden(error);
}

function statusOf({ status }: JsonObject): string | undefined {
  return typeof status === 'string' ? status : undefined;
}
