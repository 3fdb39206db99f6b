/** Tests of every outcome, without a browser: what is counted, and how, see counting.mjs, faults.mjs and published.mjs. */
import { defineConfig } from '@playwright/test';

const published = process.env['PUBLISHED_REPORTER'];
const hasSetup = Boolean(process.env['COUNTING_SETUP']);
const config = defineConfig({
  testDir: 'tests',
  outputDir: 'test-results',
  workers: 1,
  ...(hasSetup && !published ? { globalSetup: './global-setup.ts' } : {}),
  reporter: [['list'], ...(hasSetup && published ? [] : [[published ?? 'callboard-reporter', {}] as [string, object]])],
  projects: [{ name: 'one' }, { name: 'two' }],
});

// A published reporter brings the set-up that announces the run, and itself, with what it wraps.
export default hasSetup && published ? (await import(published)).wrapConfig(config, {}) : config;
