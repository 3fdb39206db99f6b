/**
 * Capture fixtures for test files: `callboardTest` in place of Playwright's `test`, or
 * `extendCallboard` around a `test` of your own. Without the reporter they do nothing.
 */
import { createRequire } from 'node:module';
import type { BrowserContext, PlaywrightTestArgs, PlaywrightTestOptions, PlaywrightWorkerArgs, PlaywrightWorkerOptions, TestType } from '@playwright/test';
import { announcedCapture } from './options';
import { listenToCalls, listenToContexts, type CallListener } from './capture/playwright-internals';
import { startRecorder, type Recorder } from './capture/recorder';

type Test = TestType<PlaywrightTestArgs & PlaywrightTestOptions, PlaywrightWorkerArgs & PlaywrightWorkerOptions>;

/** The test that runs in this worker; nothing is captured outside of one. */
let current: Recorder | undefined;
const known = new WeakSet<object>();

/** Once per worker: Playwright's library is the same object for all of its tests. */
function listen(library: object): void {
  if (known.has(library)) return;
  known.add(library);
  listenToContexts(library, {
    onContextCreated: watch,
    onContextClosing: async (context) => current?.read(context).catch(() => undefined),
  });
  listenToCalls(library, calls);
}

const calls: CallListener = {
  // A page that was there before the test, as one that tests share.
  onUse: (context) => current?.watch(context),
  onCall: (call) => current?.onCall(call),
};

/** A browser that was connected to has a connection of its own, which its contexts lead to. */
function watch(context: BrowserContext): void {
  listenToCalls(context, calls);
  current?.watch(context);
}

export function extendCallboard<TestArgs extends object, WorkerArgs extends object>(
  test: TestType<TestArgs, WorkerArgs>,
): TestType<TestArgs, WorkerArgs> {
  const extended = (test as unknown as Test).extend<{ callboardCapture: void }>({
    callboardCapture: [async ({ playwright }, use, testInfo) => {
      const settings = announcedCapture(process.env);
      if (!settings) return use();
      try {
        const recorder = startRecorder(testInfo, settings);
        listen(playwright);
        current = recorder;
      } catch {
        // Capturing is off in this worker.
      }
      await use();
      const recorder = current;
      current = undefined;
      await recorder?.finish().catch(() => undefined);
    }, { auto: true, box: true }],
    // Whatever else this Playwright tells, the context of the test itself is always seen.
    context: [async ({ context, callboardCapture: _first }, use) => {
      if (current) watch(context);
      await use(context);
      await current?.read(context).catch(() => undefined);
    }, { scope: 'test', box: true }],
  });
  return extended as unknown as TestType<TestArgs, WorkerArgs>;
}

/**
 * The `test` of the Playwright that is running. A package linked into a project may have
 * a Playwright of its own beside it, and two of them refuse to work together.
 */
function runningPlaywright(): Test | undefined {
  const places = [require.main?.filename, process.argv[1], __filename].filter((place) => place !== undefined);
  for (const place of places) {
    for (const name of ['playwright/test', '@playwright/test']) {
      try {
        return (createRequire(place)(name) as { test: Test }).test;
      } catch {
        // Not there, or not the one that is running: try the next place.
      }
    }
  }
  return undefined;
}

const playwrightTest = runningPlaywright();

/**
 * Playwright's `test` with everything captured. The function itself and nothing around it:
 * Playwright takes the place of a test from who calls it.
 */
export const callboardTest = (playwrightTest && extendCallboard(playwrightTest)) as Test;
