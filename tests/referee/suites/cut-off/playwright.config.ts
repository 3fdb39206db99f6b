/** Runs that end before all of their tests did; `CUT_OFF` says where this one waits to be interrupted. */
import { withReferee } from '../referee';

const place = process.env['CUT_OFF'];

export default withReferee({
  testDir: '.',
  workers: 1,
  timeout: 60_000,
  ...(process.env['TRACE'] ? { use: { trace: 'on' } } : {}),
  retries: place === 'retry' ? 1 : 0,
  ...(place === 'global set-up' ? { globalSetup: './waits.ts' } : {}),
  ...(place === 'global teardown' ? { globalTeardown: './waits.ts' } : {}),
});
