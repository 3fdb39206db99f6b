/**
 * What the reporter can be told, and where it looks: the option in the Playwright
 * configuration wins over the environment, which wins over the default.
 * Nothing else in the package reads `SERVICE_*` variables.
 */
import { readFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

export type Env = Readonly<Record<string, string | undefined>>;

/** A report directory to send beside the results. */
export interface ReportOption {
  /** `html`, `blob`, or the name of any other report. */
  type: string;
  /** Directory of the report, relative to the configuration file. */
  dir?: string;
  /** Name shown for the report. */
  label?: string;
}

/** Options accepted in `reporter: [['callboard-reporter', { … }]]`. */
export interface CallboardReporterOptions {
  enabled?: boolean;
  serverUrl?: string;
  apiKey?: string;
  username?: string;
  password?: string;
  projectName?: string;
  projectDescription?: string;
  relatedIssue?: string;
  tags?: string[];
  customData?: Record<string, unknown>;
  environment?: string;
  label?: string;
  runLabel?: string;
  /** The run that this one repeats, where CI cannot tell. */
  rerunOf?: number;
  streaming?: boolean;
  streamingBatchSize?: number;
  streamingBatchDelay?: number;
  uploadTraces?: boolean;
  uploadAttachments?: boolean;
  uploadReport?: boolean;
  liveFileUploads?: boolean;
  reports?: ReportOption[];
  captureLocators?: boolean;
  capturePageState?: boolean;
  captureNetwork?: boolean;
  captureConsole?: boolean;
  captureServerTraces?: boolean;
  collectScmInfo?: boolean;
  collectCiInfo?: boolean;
  spoolDir?: string;
  spoolMaxBytes?: number;
  finalizeTimeout?: number;
  outputFile?: string;
  verbose?: boolean;
}

export type Credentials =
  | { kind: 'key'; apiKey: string }
  | { kind: 'password'; username: string; password: string }
  | { kind: 'none' };

/** Options after the environment and the defaults were applied. */
export interface Settings {
  /** False when the reporter was switched off; without an address it is off all the same. */
  isWanted: boolean;
  /** Origin of the server; undefined means the reporter stays off. */
  origin: string | undefined;
  /** Why the reporter is off although an address was given. */
  problem: string | undefined;
  credentials: Credentials;
  projectName: string | undefined;
  projectDescription: string | undefined;
  relatedIssue: string | undefined;
  tags: string[];
  customData: Record<string, unknown> | undefined;
  environment: string | undefined;
  label: string | undefined;
  runLabel: string | undefined;
  rerunOf: number | undefined;
  streaming: boolean;
  streamingBatchSize: number;
  streamingBatchDelayMs: number;
  uploadTraces: boolean;
  uploadAttachments: boolean;
  uploadReport: boolean;
  liveFileUploads: boolean;
  reports: ReportOption[] | undefined;
  capture: CaptureSettings;
  collectScmInfo: boolean;
  collectCiInfo: boolean;
  spoolDir: string;
  spoolMaxBytes: number;
  finalizeTimeoutMs: number;
  outputFile: string | undefined;
  verbose: boolean;
}

/** What the capture fixtures look at. */
export interface CaptureSettings {
  locators: boolean;
  pageState: boolean;
  network: boolean;
  console: boolean;
  serverTraces: boolean;
}

const DEFAULT_BATCH_SIZE = 20;
const DEFAULT_BATCH_DELAY_MS = 2_000;
const DEFAULT_SPOOL_MAX_BYTES = 500 * 1024 * 1024;
const DEFAULT_FINALIZE_TIMEOUT_MS = 120_000;
const DEFAULT_PROJECT_NAME = 'default-project';

export function resolveSettings(options: CallboardReporterOptions, env: Env): Settings {
  const address = text(options.serverUrl, env['SERVICE_URL']);
  const isWanted = flag(options.enabled, env['SERVICE_REPORTER_ENABLED'], true);
  const origin = isWanted && address !== undefined ? originOf(address) : undefined;
  return {
    isWanted,
    origin,
    problem: isWanted && address !== undefined && origin === undefined
      ? `${text(options.serverUrl) === undefined ? 'SERVICE_URL' : 'serverUrl'} must be an http or https address, got "${withoutUserInfo(address)}"`
      : undefined,
    credentials: credentials(options, env),
    projectName: text(options.projectName, env['SERVICE_PROJECT_NAME']),
    projectDescription: text(options.projectDescription),
    relatedIssue: text(options.relatedIssue),
    tags: Array.isArray(options.tags) ? options.tags.filter((tag) => typeof tag === 'string') : [],
    customData: isJsonObject(options.customData) ? options.customData : undefined,
    environment: text(options.environment, env['SERVICE_ENVIRONMENT']),
    label: text(options.label, env['SERVICE_LABEL']),
    runLabel: text(options.runLabel, env['SERVICE_RUN_LABEL']),
    rerunOf: amount(options.rerunOf, env['SERVICE_RERUN_OF'], 0) || undefined,
    streaming: flag(options.streaming, env['SERVICE_STREAMING'], true),
    streamingBatchSize: Math.max(1, amount(options.streamingBatchSize, env['SERVICE_STREAMING_BATCH_SIZE'], DEFAULT_BATCH_SIZE)),
    streamingBatchDelayMs: amount(options.streamingBatchDelay, env['SERVICE_STREAMING_BATCH_DELAY'], DEFAULT_BATCH_DELAY_MS),
    uploadTraces: flag(options.uploadTraces, env['SERVICE_UPLOAD_TRACES'], true),
    uploadAttachments: flag(options.uploadAttachments, env['SERVICE_UPLOAD_ATTACHMENTS'], true),
    uploadReport: flag(options.uploadReport, env['SERVICE_UPLOAD_REPORT'], true),
    liveFileUploads: flag(options.liveFileUploads, env['SERVICE_LIVE_FILE_UPLOADS'], true),
    reports: Array.isArray(options.reports) ? options.reports.filter(isReportOption) : undefined,
    capture: captureSettings(options, env),
    collectScmInfo: flag(options.collectScmInfo, undefined, true),
    collectCiInfo: flag(options.collectCiInfo, undefined, true),
    spoolDir: text(options.spoolDir, env['SERVICE_SPOOL_DIR']) ?? defaultSpoolDir(),
    spoolMaxBytes: amount(options.spoolMaxBytes, env['SERVICE_SPOOL_MAX_BYTES'], DEFAULT_SPOOL_MAX_BYTES),
    finalizeTimeoutMs: amount(options.finalizeTimeout, env['SERVICE_FINALIZE_TIMEOUT'], DEFAULT_FINALIZE_TIMEOUT_MS),
    outputFile: text(options.outputFile, env['SERVICE_OUTPUT_FILE']),
    verbose: flag(options.verbose, env['SERVICE_VERBOSE'], false),
  };
}

export function defaultSpoolDir(): string {
  return path.join(os.tmpdir(), 'callboard-spool');
}

const CAPTURE_VARIABLES: Record<keyof CaptureSettings, string> = {
  locators: 'SERVICE_CAPTURE_LOCATORS',
  pageState: 'SERVICE_CAPTURE_PAGE_STATE',
  network: 'SERVICE_CAPTURE_NETWORK',
  console: 'SERVICE_CAPTURE_CONSOLE',
  serverTraces: 'SERVICE_CAPTURE_SERVER_TRACES',
};

function captureSettings(options: CallboardReporterOptions, env: Env): CaptureSettings {
  return {
    locators: flag(options.captureLocators, env[CAPTURE_VARIABLES.locators], true),
    pageState: flag(options.capturePageState, env[CAPTURE_VARIABLES.pageState], true),
    network: flag(options.captureNetwork, env[CAPTURE_VARIABLES.network], true),
    console: flag(options.captureConsole, env[CAPTURE_VARIABLES.console], true),
    serverTraces: flag(options.captureServerTraces, env[CAPTURE_VARIABLES.serverTraces], true),
  };
}

/** Workers inherit the environment: this is how options of the reporter reach the fixtures. */
export function announceCapture(capture: CaptureSettings | undefined, env: NodeJS.ProcessEnv): void {
  env['SERVICE_CAPTURE'] = String(capture !== undefined);
  if (!capture) return;
  for (const [key, variable] of Object.entries(CAPTURE_VARIABLES)) env[variable] = String(capture[key as keyof CaptureSettings]);
}

/** In a worker. Undefined when no reporter would take what is captured. */
export function announcedCapture(env: Env): CaptureSettings | undefined {
  return env['SERVICE_CAPTURE'] === 'true' ? captureSettings({}, env) : undefined;
}

/** The project's name: as configured, else the name in the nearest package.json. */
export function projectNameFor(settings: Settings, configDir: string): string {
  return settings.projectName ?? nearestPackageName(configDir) ?? DEFAULT_PROJECT_NAME;
}

function nearestPackageName(from: string): string | undefined {
  for (let dir = from; ; dir = path.dirname(dir)) {
    try {
      const manifest: unknown = JSON.parse(readFileSync(path.join(dir, 'package.json'), 'utf8'));
      if (isRecord(manifest)) return text(manifest['name']);
    } catch {
      // No readable package.json here: look one level up.
    }
    if (path.dirname(dir) === dir) return undefined;
  }
}

function credentials(options: CallboardReporterOptions, env: Env): Credentials {
  const apiKey = text(options.apiKey, env['SERVICE_API_KEY']);
  if (apiKey !== undefined) return { kind: 'key', apiKey };
  const username = text(options.username, env['SERVICE_USERNAME']);
  const password = options.password ?? env['SERVICE_PASSWORD'];
  if (username !== undefined && password) return { kind: 'password', username, password };
  return { kind: 'none' };
}

/** The API lives at the origin's root, so a path or query in the address is dropped. */
function originOf(address: string): string | undefined {
  try {
    const url = new URL(address);
    return url.protocol === 'http:' || url.protocol === 'https:' ? url.origin : undefined;
  } catch {
    return undefined;
  }
}

function withoutUserInfo(address: string): string {
  return address.replace(/[^/\s]*@/, '');
}

function text(...candidates: unknown[]): string | undefined {
  for (const candidate of candidates) {
    if (typeof candidate === 'string' && candidate.trim() !== '') return candidate.trim();
  }
  return undefined;
}

/** In the environment exactly `true` and `1` are true. */
function flag(option: unknown, variable: string | undefined, fallback: boolean): boolean {
  if (typeof option === 'boolean') return option;
  if (variable === undefined || variable === '') return fallback;
  return variable === 'true' || variable === '1';
}

function amount(option: unknown, variable: string | undefined, fallback: number): number {
  for (const candidate of [option, variable === '' ? undefined : variable]) {
    if (isAmount(candidate)) return Number(candidate);
  }
  return fallback;
}

/** A number, also one written as a text. */
export function isAmount(value: unknown): value is number | string {
  const isWritten = typeof value === 'string' && value.trim() !== '';
  return (isWritten || typeof value === 'number') && Number.isFinite(Number(value)) && Number(value) >= 0;
}

const REPORT_TYPE = /^[A-Za-z0-9_-]{1,40}$/;

export function isReportOption(value: unknown): value is ReportOption {
  return isRecord(value) && typeof value['type'] === 'string' && REPORT_TYPE.test(value['type'])
    && [value['dir'], value['label']].every((each) => each === undefined || typeof each === 'string');
}

/** What JSON has no form for, such as an object that holds itself, can be neither sent nor kept. */
export function isJsonObject(value: unknown): value is Record<string, unknown> {
  try {
    return isRecord(value) && isRecord(JSON.parse(JSON.stringify(value)));
  } catch {
    return false;
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
