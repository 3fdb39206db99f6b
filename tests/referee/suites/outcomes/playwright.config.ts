/** Every way in which a test can end, in one run. */
import { withReferee } from '../referee';

export default withReferee({
  testDir: 'tests',
  projects: [
    { name: 'set-up', testMatch: 'set-up.spec.ts', teardown: 'tear-down' },
    { name: 'tear-down', testMatch: 'tear-down.spec.ts' },
    { name: 'main', testIgnore: /(set-up|tear-down|broken|waits|repeated)\.spec\.ts/, dependencies: ['set-up'] },
    { name: 'twice', testMatch: 'repeated.spec.ts', repeatEach: 2, retries: 1 },
    { name: 'broken set-up', testMatch: 'broken.spec.ts' },
    { name: 'after a broken set-up', testMatch: 'waits.spec.ts', dependencies: ['broken set-up'] },
  ],
});
