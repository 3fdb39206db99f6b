/**
 * Attaches report directories to a run that is already there. Called whenever more
 * reports may be finished; each directory is sent once.
 */
import type { Client, Deadline, JsonObject } from './client';
import { reasonOf } from './failure';
import type { Log } from './log';
import { reportEntries, REPORT_MAX_BYTES, REPORT_MAX_ENTRIES } from './report-archive';
import { isFresh, type Report } from './reports';
import { noReportBody, reportBody, type AttachedRun } from './upload';

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

async function deliverReport(
  { client, deadline, log, run }: ReportDelivery, report: Report,
): Promise<string | undefined> {
  const entries = await reportEntries(report.dir);
  const sizeBytes = entries.reduce((total, { size }) => total + size, 0);
  if (sizeBytes > REPORT_MAX_BYTES || entries.length > REPORT_MAX_ENTRIES) {
    throw new Error(`it has ${entries.length} files and ${sizeBytes} bytes, which is too much`);
  }
  const answer = await client.send('/api/test-runs/upload', reportBody(run, report, entries), deadline);
  log.detail(`${report.type} report sent (${entries.length} files)`);
  return statusOf(answer);
}

function statusOf({ status }: JsonObject): string | undefined {
  return typeof status === 'string' ? status : undefined;
}
