/**
 * Reporters of a service that asks who is calling: with a key, with a password, as shards
 * of one pipeline, and with neither. Needs `CALLBOARD_ACCOUNTS_URL`: a service with
 * accounts that has none yet. No browser.
 */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { firstAdministrator } from './support/first-administrator.mjs';
import { callboardReporter, countingDir, linesOfReporter, runPlaywright } from './support/playwright-run.mjs';

const address = process.env.CALLBOARD_ACCOUNTS_URL?.replace(/\/+$/, '');
if (!address) {
  throw new Error('CALLBOARD_ACCOUNTS_URL must name a running service with accounts, for instance CALLBOARD_ACCOUNTS_URL=http://127.0.0.1:3000');
}

const SOME = ['--project=one', '--retries=1', '--workers=1', 'outcomes', 'files'];
const SOME_TOTALS = { totalTests: 16, passedTests: 7, failedTests: 5, timedOutTests: 1, flakyTests: 2, skippedTests: 3, didNotRunTests: 1 };
const reporterAccount = { username: 'pipeline', password: randomBytes(18).toString('base64url') };
const scratch = mkdtempSync(path.join(tmpdir(), 'callboard-e2e-'));
let administrator;

before(async () => {
  administrator = await firstAdministrator(address);
  await ask('/api/users', { ...reporterAccount, role: 'reporter', isGlobal: true });
});
after(() => rm(scratch, { recursive: true, force: true }));

async function ask(where, body, method = body ? 'POST' : 'GET') {
  const response = await fetch(new URL(where, address), {
    method, headers: { authorization: `Bearer ${administrator.apiKey}`, ...(body ? { 'content-type': 'application/json' } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${where} was answered ${response.status}: ${text}`);
  return JSON.parse(text);
}

const withPassword = { SERVICE_USERNAME: reporterAccount.username, SERVICE_PASSWORD: reporterAccount.password };
const CREDENTIALS = { 'an API key': () => ({ SERVICE_API_KEY: administrator.apiKey }), 'a password': () => withPassword };

function settings(more) {
  return { SERVICE_URL: address, SERVICE_PROJECT_NAME: `credentials ${randomUUID().slice(0, 8)}`, SERVICE_SPOOL_DIR: path.join(scratch, randomUUID()), ...more };
}

const run = (env, more = []) => runPlaywright([...SOME, ...more, `--output=${path.join(scratch, randomUUID())}`], env, countingDir);
const totalsOf = (shown) => Object.fromEntries(Object.keys(SOME_TOTALS).map((key) => [key, shown[key]]));

async function runsOf({ SERVICE_PROJECT_NAME }) {
  const { items } = await ask('/api/test-runs?limit=200');
  return items.filter(({ projectName }) => projectName === SERVICE_PROJECT_NAME);
}

for (const [name, credentials] of Object.entries(CREDENTIALS)) {
  for (const streaming of [true, false]) {
    test(`a run ${streaming ? 'streamed' : 'sent as a batch'} with ${name} arrives whole`, async () => {
      const env = settings({ ...credentials(), SERVICE_STREAMING: String(streaming) });
      const { output } = await run(env);
      assert.match(linesOfReporter(output).at(-1), /^\[callboard\] run: /, output);
      const [stored, ...others] = await runsOf(env);
      assert.deepEqual([others.length, stored.status, totalsOf(stored)], [0, 'failed', SOME_TOTALS]);
    });
  }

  test(`shards that sign in with ${name} are one run`, async () => {
    const env = settings({ ...credentials(), SERVICE_RUN_LABEL: randomUUID() });
    const outputs = await Promise.all([1, 2, 3].map((index) => run(env, ['--fully-parallel', `--shard=${index}/3`])));
    const [stored, ...others] = await runsOf(env);
    assert.deepEqual([others.length, stored.status, totalsOf(stored)], [0, 'failed', SOME_TOTALS], outputs.map(({ output }) => output).join('\n'));
    assert.equal(stored.shardsFinished, 3);
  });
}

test('who names no credential, or a wrong one, is told what to set, and the run is kept', async () => {
  const wrong = { SERVICE_USERNAME: reporterAccount.username, SERVICE_PASSWORD: 'not the password' };
  for (const [credentials, hint] of [[{}, /set apiKey or SERVICE_API_KEY/], [wrong, /username and password/]]) {
    const env = settings(credentials);
    const { exitCode, output } = await run(env);
    assert.equal(exitCode, 1, 'as without the reporter');
    const said = linesOfReporter(output);
    assert.match(said.at(-1), /, spooled to .*\.json\.gz$/, output);
    assert.match(said.at(-1), hint);
    assert.equal((await runsOf(env)).length, 0);
    const flushed = await callboardReporter(['flush'], { ...env, ...wrong, ...withPassword }, countingDir);
    assert.equal(flushed.exitCode, 0, flushed.output);
    const [stored, ...others] = await runsOf(env);
    assert.deepEqual([others.length, totalsOf(stored)], [0, SOME_TOTALS]);
  }
});
