/** The suite whose duration is compared with and without the package, see measure.mjs. */
import { defineConfig } from '@playwright/test';

const isCaptured = process.env['CAPTURED'] === 'true';

export default defineConfig({
  testDir: process.env['COST_DIR'] ?? '.',
  outputDir: process.env['COST_OUTPUT'] ?? 'test-results',
  workers: 1,
  // A busy machine makes the figures worse, not the tests fail.
  timeout: 120_000,
  expect: { timeout: 60_000 },
  reporter: [
    ['json', { outputFile: process.env['COST_REPORT'] ?? 'test-results/report.json' }],
    ...(isCaptured ? [['callboard-reporter', {}] as const] : []),
  ],
  use: {
    launchOptions: {
      executablePath: process.env['CHROMIUM_PATH'] ?? '/usr/bin/chromium',
      args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    },
  },
});
