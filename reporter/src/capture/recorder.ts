/**
 * What is captured during one test, and how it reaches the reporter. Every problem in
 * here ends here: a test never fails, and is never held up for long, because of it.
 */
import type { BrowserContext, Page, TestInfo } from '@playwright/test';
import type { CaptureSettings } from '../options';
import { createConsoleLog, watchConsole } from './console';
import { createLocatorRecorder, within } from './locators';
import { watchNetwork, type NetworkEntry } from './network';
import { readPage, type PageReading } from './page-reading';
import { sourceRootOf } from '../source-root';
import { quietly, type FrameCall } from './playwright-internals';

export interface Recorder {
  watch(context: BrowserContext): void;
  /** Before the context closes. */
  read(context: BrowserContext): Promise<void>;
  onCall(call: FrameCall): ((succeeded: boolean) => void) | undefined;
  /** The test is over: what was seen becomes attachments. */
  finish(): Promise<void>;
}

/** How long one question to a page may take when a test ends; a context may take twice, all of them four times as long. */
const PASSED_PROBE_MS = 500;
/** The same of a failed test: it is what all of this is for, and fails most where the machine is busy. */
const FAILED_PROBE_MS = 2_500;
/** Of the time there is after a test: what a context and then all of them may take leaves some to the test itself. */
const SHARE_OF_TIME = 1 / 8;

export function startRecorder(testInfo: TestInfo, settings: CaptureSettings): Recorder {
  const network: NetworkEntry[] = [];
  const consoleLog = createConsoleLog();
  const locators = settings.locators ? createLocatorRecorder(testIdAttributeOf(testInfo), sourceRootOf(testInfo.config, process.cwd())) : undefined;
  /** Of every context how to stop watching it, once. */
  const watched = new Map<BrowserContext, () => void>();
  const wasRead = new WeakSet<BrowserContext>();
  let reading: PageReading | undefined;
  let ariaSnapshot: string | undefined;
  let suggestion: string | undefined;

  const probeMs = (): number => {
    const wishedMs = hasFailed(testInfo) ? FAILED_PROBE_MS : PASSED_PROBE_MS;
    // What is done after a test has a timeout of its own, the longer of these; running out of it would fail the test.
    const timeouts = [testInfo.timeout, testInfo.project.timeout];
    return timeouts.includes(0) ? wishedMs : Math.min(wishedMs, Math.max(...timeouts) * SHARE_OF_TIME);
  };
  const watch = (context: BrowserContext): void => {
    if (watched.has(context)) return;
    const stops = [
      ...(settings.network ? [watchNetwork(context, network, settings.serverTraces)] : []),
      ...(settings.console ? [watchConsole(context, consoleLog)] : []),
    ];
    watched.set(context, () => stops.splice(0).forEach((stop) => stop()));
  };
  const readOpenPage = async (page: Page): Promise<void> => {
    if (settings.pageState) reading = await quietly(page, () => readPage(page)).catch(() => reading);
    if (!hasFailed(testInfo)) return;
    ariaSnapshot = await quietly(page, () => page.locator('body').ariaSnapshot({ timeout: probeMs() })).catch(() => ariaSnapshot);
    const found = await locators?.suggest().catch(() => undefined);
    if (found) suggestion = JSON.stringify(found);
  };
  const read = async (context: BrowserContext): Promise<void> => {
    if (wasRead.has(context) || !watched.has(context)) return;
    wasRead.add(context);
    // Reading takes its time, and closing ends requests: what is waited for now, the test waited for.
    watched.get(context)?.();
    const page = context.pages().filter((each) => !each.isClosed() && each.url() !== 'about:blank').at(-1);
    await Promise.all([locators?.drain(probeMs()), page && within(2 * probeMs(), readOpenPage(page))]);
  };

  return {
    watch,
    read,
    onCall: (call) => locators?.onCall(call),
    async finish() {
      await within(4 * probeMs(), Promise.all([...watched.keys()].map((context) => read(context).catch(() => undefined))));
      for (const stop of watched.values()) stop();
      const attach = (name: string, value: string, contentType = 'application/json'): void => {
        testInfo.attachments.push({ name, contentType, body: Buffer.from(value) });
      };
      if (network.length > 0) attach('callboard-network', JSON.stringify(network));
      const consoleEntries = consoleLog.entries();
      if (consoleEntries.length > 0) attach('callboard-console', JSON.stringify(consoleEntries));
      if (reading) {
        attach('callboard-web-vitals', JSON.stringify(reading.webVitals));
        attach('callboard-page-state', JSON.stringify(reading.pageState));
      }
      const snapshots = await locators?.drain(0) ?? [];
      if (snapshots.length > 0) attach('callboard-locators', JSON.stringify(snapshots));
      // Terminal reporters print attachments that call themselves text.
      if (ariaSnapshot) attach('callboard-aria-snapshot', ariaSnapshot, 'application/yaml');
      if (suggestion) attach('callboard-locator-suggestion', suggestion);
    },
  };
}

function hasFailed({ status, expectedStatus }: TestInfo): boolean {
  return status !== 'passed' && status !== 'skipped' && status !== expectedStatus;
}

function testIdAttributeOf(testInfo: TestInfo): string {
  const use: { testIdAttribute?: unknown } = testInfo.project.use;
  return typeof use.testIdAttribute === 'string' ? use.testIdAttribute : 'data-testid';
}
