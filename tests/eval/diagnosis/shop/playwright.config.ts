/** The suite of the shop: desktop, and two projects whose settings some tests depend on. */
import { defineConfig } from '@playwright/test';

/** On a busy machine everything takes longer, also what is meant to be late. */
const patience = Number(process.env['EVAL_PATIENCE'] ?? 1);

export default defineConfig({
  testDir: 'tests',
  outputDir: 'test-results',
  timeout: 8_000 * patience,
  expect: { timeout: 1_200 * patience },
  fullyParallel: true,
  reporter: [['line'], ['callboard-reporter']],
  use: {
    browserName: 'chromium',
    actionTimeout: 1_200 * patience,
    // Neither traces of what passes nor films of pages are scored, and both take time.
    trace: process.env['EVAL_PHASE'] === 'healthy' ? 'off' : { mode: 'retain-on-failure', screenshots: false, snapshots: true, sources: false },
    screenshot: 'only-on-failure',
    launchOptions: {
      executablePath: process.env['EVAL_BROWSER'] ?? '/usr/bin/chromium',
      args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    },
  },
  projects: [
    { name: 'desktop', testIgnore: /(phone|berlin)\.spec\.ts/, use: { viewport: { width: 1280, height: 720 } } },
    { name: 'phone', testMatch: /phone\.spec\.ts/, use: { viewport: { width: 390, height: 844 } } },
    { name: 'berlin', testMatch: /berlin\.spec\.ts/, use: { timezoneId: 'Europe/Berlin', locale: 'en-GB' } },
  ],
});
