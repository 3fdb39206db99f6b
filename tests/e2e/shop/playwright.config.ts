/**
 * A suite with every kind of result in it, run in two browser projects. The reporter is
 * told where to send it by the environment; without an address it stays silent.
 */
import { defineConfig } from '@playwright/test';

const published = process.env['PUBLISHED_REPORTER'];
/** Address of a browser server, where the browser runs elsewhere. */
const browserServer = process.env['CONNECT_TO_BROWSER'];

export default defineConfig({
  testDir: 'tests',
  outputDir: 'test-results',
  timeout: 30_000,
  retries: 1,
  workers: 2,
  fullyParallel: true,
  reporter: [
    ['line'],
    ['html', { open: 'never' }],
    ['json', { outputFile: 'test-results/results.json' }],
    [published ?? 'callboard-reporter', { tags: ['end-to-end'] }],
  ],
  use: {
    ...(browserServer ? { connectOptions: { wsEndpoint: browserServer } } : {}),
    trace: 'retain-on-failure',
    screenshot: 'only-on-failure',
    launchOptions: {
      executablePath: process.env['CHROMIUM_PATH'] ?? '/usr/bin/chromium',
      args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    },
  },
  projects: [
    { name: 'desktop', use: { browserName: 'chromium', viewport: { width: 1280, height: 720 } } },
    { name: 'mobile', use: { browserName: 'chromium', viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true } },
  ],
});
