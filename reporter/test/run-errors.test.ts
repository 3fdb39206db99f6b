/**
 * Runs that fail without a failed test, under a real Playwright: what went wrong reaches
 * the service and the summary of the job.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import type { RunError } from '../src/run-errors';
import { installedSuite, playwright } from './playwright-run';
import { liveReplies, startService } from './service';

interface Case {
  name: string;
  config: string;
  status: string;
  message: RegExp;
  location: RegExp;
  phase: string | undefined;
  /** In the summary of the job. */
  summary: RegExp;
  totalTests: number;
}

const CASES: Case[] = [
  {
    name: 'global set-up throws',
    config: "testMatch: 'passes.spec.ts', globalSetup: './breaks.cjs'",
    status: 'failed', message: /^Error: db is down/, location: /^breaks\.cjs:2:\d+$/, phase: 'global-setup',
    summary: /- \*\*`Global set-up failed: db is down \(breaks\.cjs:2:\d+\)`\*\*/, totalTests: 0,
  },
  {
    name: 'global teardown throws',
    config: "testMatch: 'passes.spec.ts', globalTeardown: './breaks.cjs'",
    status: 'failed', message: /^Error: db is down/, location: /^breaks\.cjs:2:\d+$/, phase: 'global-teardown',
    summary: /- \*\*`Global teardown failed: db is down/, totalTests: 1,
  },
  {
    name: 'a file does not load',
    config: "testMatch: ['does-not-load.spec.ts', 'passes.spec.ts']",
    status: 'failed', message: /^Error: the fixtures file is missing/, location: /^does-not-load\.spec\.ts:3:\d+$/, phase: 'load',
    summary: /- \*\*`Loading the tests failed: the fixtures file is missing/, totalTests: 0,
  },
  {
    name: 'a worker fixture throws at its teardown',
    config: "testMatch: 'worker-teardown.spec.ts', workers: 1",
    status: 'failed', message: /^Error: worker teardown broke/, location: /^worker-teardown\.spec\.ts:6:\d+$/, phase: 'worker',
    summary: /- \*\*`A worker failed outside of its tests: worker teardown broke/, totalTests: 2,
  },
  {
    name: 'test.only is forbidden',
    config: "testMatch: 'only.spec.ts', forbidOnly: true",
    status: 'failed', message: /^Error: item focused with '\.only' is not allowed/, location: /^only\.spec\.ts:3:\d+$/, phase: undefined,
    summary: /- \*\*`test\.only is forbidden: item focused/, totalTests: 0,
  },
  {
    name: 'the global timeout is reached',
    config: "testMatch: 'slow.spec.ts', workers: 1, globalTimeout: 2_000",
    status: 'timedout', message: /^Timed out waiting 2s for the test suite to run/, location: /^$/, phase: undefined,
    summary: /- \*\*`Global timeout reached: Timed out waiting 2s for the test suite to run`\*\*/, totalTests: 2,
  },
];

describe('a run that fails without a failed test', () => {
  for (const { name, config, status, message, location, phase, summary, totalTests } of CASES) {
    test(name, async () => {
      const service = await startService(liveReplies());
      const dir = installedSuite('commonjs', 'red');
      writeFileSync(path.join(dir, 'red.config.cjs'),
        `module.exports = { ${config}, reporter: [['dot'], ['callboard-reporter']] };`);
      const { exitCode, stdout } = await playwright(dir, ['-c', 'red.config.cjs'], {
        SERVICE_URL: service.url, CI: '1',
        GITHUB_ACTIONS: 'true', GITHUB_STEP_SUMMARY: path.join(dir, 'summary.md'),
      });
      await service.close();
      assert.equal(exitCode, 1);
      const { json } = service.received.find(({ path: where }) => /\/(finish|submit)$/.test(where))!;
      const errors = (json['metadata'] as { globalErrors: RunError[] }).globalErrors;
      assert.equal(json['status'], status);
      assert.equal(json['totalTests'], totalTests);
      // At its global timeout Playwright waits in vain for the teardown, too.
      assert.equal(errors.length, status === 'timedout' ? 2 : 1, JSON.stringify(errors));
      assert.match(errors[0]!.message, message);
      if (errors[0]!.location) assert.match(errors[0]!.message, new RegExp(`^> +${errors[0]!.location.split(':')[1]} \\|`, 'm'));
      assert.match(errors[0]!.location ?? '', location);
      assert.equal(errors[0]!.phase, phase);
      assert.match(readFileSync(path.join(dir, 'summary.md'), 'utf8'), summary);
      assert.match(stdout, /^::error title=Callboard::sample-shop: .+ http:/m);
    });
  }
});
