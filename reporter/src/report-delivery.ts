/**
 * Attaches report directories to a run that is already there. Called whenever more
 * reports may be finished; each directory is sent once.
 */
import type { Client, Deadline } from './client';
import type { Log } from './log';
import { reportEntries, REPORT_MAX_BYTES, REPORT_MAX_ENTRIES } from './report-archive';
import { isFresh, type Report } from './reports';
import { reportBody } from './upload';

export interface ReportDelivery {
  client: Client;
  deadline: Deadline;
  log: Log;
  reports: readonly Report[];
  run: { runId: number; projectName: string; startedAtMs: number };
  /** Directories dealt with; grows with every call. */
  done: Set<string>;
}

export async function deliverReports(delivery: ReportDelivery): Promise<void> {
  for (const report of delivery.reports) {
    const key = `${report.type}\0${report.dir}`;
    if (delivery.done.has(key) || !isFresh(report, delivery.run.startedAtMs)) continue;
    delivery.done.add(key);
    try {
      await deliverReport(delivery, report);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      delivery.log.warn(`the ${report.type} report could not be sent: ${reason}`);
    }
  }
}

async function deliverReport({ client, deadline, log, run }: ReportDelivery, report: Report): Promise<void> {
  const entries = await reportEntries(report.dir);
  const sizeBytes = entries.reduce((total, { size }) => total + size, 0);
  if (sizeBytes > REPORT_MAX_BYTES || entries.length > REPORT_MAX_ENTRIES) {
    throw new Error(`it has ${entries.length} files and ${sizeBytes} bytes, which is too much`);
  }
  await client.send('/api/test-runs/upload', reportBody(run, report, entries), deadline);
  log.detail(`${report.type} report sent (${entries.length} files)`);
}
