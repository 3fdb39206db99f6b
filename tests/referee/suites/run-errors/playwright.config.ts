/** Runs that fail outside of their tests, in the way that `BROKEN` names. */
import type { PlaywrightTestConfig } from '@playwright/test';
import { withReferee } from '../referee';

const broken: Record<string, PlaywrightTestConfig> = {
  'global set-up': { testMatch: 'passes.spec.ts', globalSetup: './breaks.ts' },
  'global teardown': { testMatch: 'passes.spec.ts', globalTeardown: './breaks.ts' },
  'a file does not load': { testMatch: ['does-not-load.spec.ts', 'passes.spec.ts'] },
  'test.only is forbidden': { testMatch: 'only.spec.ts', forbidOnly: true },
  'worker teardown': { testMatch: 'worker-teardown.spec.ts' },
  'no tests': { testMatch: 'none.spec.ts' },
};

export default withReferee({ testDir: '.', workers: 1, ...broken[process.env['BROKEN']!] });
