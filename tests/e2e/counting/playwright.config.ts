/** Tests of every outcome, without a browser: see faults.mjs, published.mjs and published-protocol.mjs. */
import { defineConfig } from '@playwright/test';

const published = process.env['PUBLISHED_REPORTER'];
const setup = process.env['COUNTING_SETUP'];
// A published reporter can bring the set-up that announces the run, and itself, with what it wraps.
const isWrapped = setup === 'wrapped';
const config = defineConfig({
  testDir: 'tests',
  outputDir: 'test-results',
  workers: 1,
  ...(setup && !isWrapped ? { globalSetup: './global-setup.ts' } : {}),
  reporter: [['list'], ...(isWrapped ? [] : [[published ?? 'callboard-reporter', {}] as [string, object]])],
  projects: [{ name: 'one' }, { name: 'two' }],
});

export default isWrapped ? (await import(published!)).wrapConfig(config, {}) : config;
