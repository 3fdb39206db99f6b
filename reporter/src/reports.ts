/**
 * Which report directories this run wrote. A directory counts only when its entry page
 * is newer than the start of the run, so yesterday's report is never sent again.
 */
import { readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import type { FullConfig } from '@playwright/test/reporter';
import type { Env, ReportOption } from './options';

export interface Report {
  type: string;
  dir: string;
  label: string | undefined;
}

export function expectedReports(
  config: FullConfig, configured: readonly ReportOption[] | undefined, env: Env, workingDirectory: string,
): Report[] {
  const html = htmlReportDirs(config, env, workingDirectory);
  if (!configured) return html.map((dir) => ({ type: 'html', dir, label: undefined }));
  const base = configDir(config, workingDirectory);
  return configured.map(({ type, dir, label }) => ({
    type,
    dir: dir === undefined ? (type === 'html' ? html[0]! : path.resolve(base, `${type}-report`)) : path.resolve(base, dir),
    label,
  }));
}

/** Whether this run is likely to write a report; only then is it worth telling the service to wait. */
export function mayBeReported(config: FullConfig, configured: readonly ReportOption[] | undefined): boolean {
  return configured ? configured.length > 0 : config.reporter.some(([name]) => name === 'html');
}

export function isFresh(report: Report, startedAtMs: number): boolean {
  return entryPages(report).some((file) => modifiedAt(file) >= startedAtMs);
}

export function configDir(config: FullConfig, workingDirectory: string): string {
  return config.configFile ? path.dirname(config.configFile) : workingDirectory;
}

/** The same rules by which Playwright's html reporter chooses its folder. */
function htmlReportDirs(config: FullConfig, env: Env, workingDirectory: string): string[] {
  const fromEnv = env['PLAYWRIGHT_HTML_OUTPUT_DIR'] || env['PLAYWRIGHT_HTML_REPORT'];
  if (fromEnv) return [path.resolve(workingDirectory, fromEnv)];
  const base = configDir(config, workingDirectory);
  const chosen = config.reporter
    .filter(([name]) => name === 'html')
    .map(([, options]: readonly [string, unknown?]) => {
      const folder = typeof options === 'object' && options !== null && 'outputFolder' in options ? options.outputFolder : undefined;
      return typeof folder === 'string' ? path.resolve(base, folder) : defaultHtmlDir(base, workingDirectory);
    });
  return chosen.length > 0 ? [...new Set(chosen)] : [defaultHtmlDir(base, workingDirectory)];
}

function defaultHtmlDir(base: string, workingDirectory: string): string {
  for (let dir = base; ; dir = path.dirname(dir)) {
    if (modifiedAt(path.join(dir, 'package.json')) > 0) return path.join(dir, 'playwright-report');
    if (path.dirname(dir) === dir) return path.join(workingDirectory, 'playwright-report');
  }
}

/** `index.html`, or for other reports whatever lies at the top. */
function entryPages(report: Report): string[] {
  const index = path.join(report.dir, 'index.html');
  if (report.type === 'html') return [index];
  try {
    return readdirSync(report.dir).map((name) => path.join(report.dir, name));
  } catch {
    return [];
  }
}

function modifiedAt(file: string): number {
  try {
    return statSync(file).mtimeMs;
  } catch {
    return 0;
  }
}
