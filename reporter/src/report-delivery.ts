/**
 * Attaches report directories to a run that is already there. Called whenever more
 * reports may be finished; each directory is sent once.
 */
import { isForbidden, isTransient, type Client, type Deadline, type JsonObject } from './client';
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

/** The status the run has afterwards; undefined when nothing was sent. */
export async function deliverReports(delivery: ReportDelivery): Promise<string | undefined> {
  let status: string | undefined;
  for (const report of delivery.reports) {
    const key = `${report.type}\0${report.dir}`;
    if (delivery.done.has(key) || !isFresh(report, delivery.run.startedAtMs)) continue;
    delivery.done.add(key);
    try {
      status = await deliverReport(delivery, report) ?? status;
    } catch (error) {
      delivery.log.warn(`the ${report.type} report could not be sent: ${reasonOf(error)}`);
    }
  }
  return status;
}

/** Tells the service that no report will come after all. */
export async function deliverNoReport(
  { client, deadline, log, run }: Pick<ReportDelivery, 'client' | 'deadline' | 'log' | 'run'>,
): Promise<string | undefined> {
  try {
    return statusOf(await client.send('/api/test-runs/upload', noReportBody(run), deadline));
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
      if (isTransient(error) || isForbidden(error)) throw error;
      log.warn(`the ${report.type} report could not be sent: ${reasonOf(error)}`);
    }
  }
}

async function deliverReport(
  { client, deadline, log, run }: ReportDelivery, report: Report,
): Promise<string | undefined> {
  const entries = await sendableEntries(report.dir);
  const outgoing = { type: report.type, label: report.label, open: () => packReport(entries) };
  const answer = await client.send('/api/test-runs/upload', reportBody(run, outgoing), deadline);
  log.detail(`${report.type} report sent (${entries.length} files)`);
  return statusOf(answer);
}

function statusOf({ status }: JsonObject): string | undefined {
  return typeof status === 'string' ? status : undefined;
}
