/**
 * Plays an agent that has nothing but the tools and a checkout: it finds what is broken, asks what
 * to do, changes the real test file with the diff it is given, runs the command it is given in a
 * real browser, and sees that the failure has stopped. Needs `CALLBOARD_URL`; `CHROMIUM_PATH` when
 * Chromium is not at /usr/bin/chromium.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { runCommand, runPlaywright, shopDir } from '../e2e/support/playwright-run.mjs';

const serviceUrl = process.env.CALLBOARD_URL?.replace(/\/+$/, '');
if (!serviceUrl) {
  throw new Error('CALLBOARD_URL must name the running service, for instance CALLBOARD_URL=http://127.0.0.1:3000');
}

const MAX_CALLS = 6;
const MAX_TOKENS = 15_000;
const CHARS_PER_TOKEN = 4;
const SPEC = 'tests/payment.spec.ts';
const PROMISE = '<button id="pay" data-testid="pay-now">Pay</button>';
const RENAMED = '<button id="pay">Pay</button>';

describe('an agent with the tools and a checkout', { concurrency: false }, () => {
  const projectName = `repair ${randomUUID().slice(0, 8)}`;
  const spent = { calls: 0, chars: 0 };
  let checkout;
  let environment;
  let client;

  const git = (...args) => execFileSync('git', ['-c', 'user.name=dev', '-c', 'user.email=dev@example.org', ...args], { cwd: checkout });

  async function commit(message) {
    git('add', '--all');
    git('commit', '--quiet', '--message', message);
  }

  /** The shop's page, with or without what the tests hold on to. */
  async function serve(button) {
    const server = path.join(checkout, 'server.ts');
    const source = await readFile(server, 'utf8');
    const changed = source.replace(PROMISE, button).replace(RENAMED, button);
    assert.ok(changed.includes(button));
    await writeFile(server, changed);
  }

  /** A tool's answer. What goes over the line is counted, both ways. */
  async function call(name, args) {
    const result = await client.callTool({ name, arguments: args });
    const text = result.content[0].text;
    spent.calls += 1;
    spent.chars += JSON.stringify({ name, arguments: args }).length + text.length;
    assert.notEqual(result.isError, true, text);
    return JSON.parse(text);
  }

  /** Waits for what the service computes after a run; no part of what the agent does. */
  async function judged(clusterId) {
    for (let attempt = 0; attempt < 300; attempt += 1) {
      const cluster = await (await fetch(new URL(`/api/failure-clusters/${clusterId}`, serviceUrl))).json();
      if (cluster.fixVerification) return;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error('the service did not come to an end with the run');
  }

  before(async () => {
    // Beside the packages it needs, where version control does not look.
    const scratch = fileURLToPath(new URL('../e2e/test-results/', import.meta.url));
    await mkdir(scratch, { recursive: true });
    checkout = await mkdtemp(path.join(scratch, 'checkout-'));
    for (const file of ['playwright.config.ts', 'server.ts', 'shop-test.ts']) {
      await cp(path.join(shopDir, file), path.join(checkout, file));
    }
    await cp(fileURLToPath(new URL('../e2e/repair/', import.meta.url)), path.join(checkout, 'tests'), { recursive: true });
    await writeFile(path.join(checkout, '.gitignore'), 'test-results/\nplaywright-report/\n');
    environment = { SERVICE_URL: serviceUrl, SERVICE_PROJECT_NAME: projectName, SERVICE_SPOOL_DIR: path.join(checkout, 'test-results/spool') };
    git('init', '--quiet', '--initial-branch=main');
    const run = () => runPlaywright(['--project=desktop', '--retries=0'], environment, checkout);

    await serve(PROMISE);
    await commit('A shop that can be paid');
    const green = await run();
    assert.equal(green.exitCode, 0, green.output);
    await serve(RENAMED);
    await commit('Rename what the tests hold on to');
    for (let night = 0; night < 2; night += 1) {
      const red = await run();
      assert.equal(red.exitCode, 1, red.output);
    }

    client = new Client({ name: 'callboard-repair', version: '1.0.0' });
    await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', serviceUrl)));
    const { tools } = await client.listTools();
    spent.chars += JSON.stringify(tools).length + client.getInstructions().length;
  });

  after(async () => {
    await client?.close();
    if (checkout) await rm(checkout, { recursive: true, force: true });
  });

  test('repairs the tests and sees that it did', async () => {
    const open = await call('list_open_clusters', {});
    const cluster = open.items.find((item) => item.projectName === projectName);
    assert.ok(cluster, 'the failure has a cluster');

    const plan = await call('get_fix_plan', { clusterId: cluster.clusterId });
    assert.equal(plan.edits.length, 1, 'one line is broken, and one edit heals it');
    const [edit] = plan.edits;
    const why = await call('explain_failure', { executionId: edit.executionId, detail: 'summary' });
    assert.equal(why.verdict, 'locator-drift');
    assert.ok(why.next.some((next) => next.startsWith('get_fix_plan')));

    const before = await readFile(path.join(checkout, SPEC), 'utf8');
    assert.ok(edit.target.startsWith(`${SPEC}:`), edit.target);
    assert.ok(before.split('\n')[Number(edit.target.split(':')[1]) - 1].includes(edit.failingLocator));
    await writeFile(path.join(checkout, 'repair.diff'), edit.unifiedDiff);
    git('apply', 'repair.diff');
    const after = await readFile(path.join(checkout, SPEC), 'utf8');
    assert.ok(!after.includes("getByTestId('pay-now')") && after.includes(edit.suggestedLocator), after);

    assert.match(plan.verify.command, /^npx playwright test /);
    const verified = await runCommand(plan.verify.command, environment, checkout);
    assert.equal(verified.exitCode, 0, verified.output);
    await judged(cluster.clusterId);
    const now = await call('get_fix_plan', { clusterId: cluster.clusterId });
    assert.equal(now.cluster.fixVerification, 'stopped-failing');
    assert.equal(now.cluster.occurrences, plan.cluster.occurrences, 'nothing failed since');

    const closed = await call('set_cluster_status', { clusterId: cluster.clusterId, status: 'resolved', note: 'The button lost its test id.' });
    assert.equal(closed.previousStatus, 'open');

    const tokens = Math.ceil(spent.chars / CHARS_PER_TOKEN);
    console.log(`${spent.calls} calls, ${tokens} tokens with the list of tools`);
    assert.ok(spent.calls <= MAX_CALLS, `${spent.calls} calls`);
    assert.ok(tokens <= MAX_TOKENS, `${tokens} tokens`);
  });
});
