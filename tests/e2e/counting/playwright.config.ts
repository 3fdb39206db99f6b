/** Tests of every outcome, without a browser: what is counted, and how, see counting.mjs and faults.mjs. */
import { defineConfig } from '@playwright/test';

export default defineConfig({
  testDir: 'tests',
  outputDir: 'test-results',
  workers: 1,
  ...(process.env['COUNTING_SETUP'] ? { globalSetup: './global-setup.ts' } : {}),
  reporter: [['list'], ['callboard-reporter', {}]],
  projects: [{ name: 'one' }, { name: 'two' }],
});
