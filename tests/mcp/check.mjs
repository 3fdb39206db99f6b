/**
 * Asks a running service with the official MCP client. Sends a small run first, then calls
 * every tool on it. Needs `CALLBOARD_URL`; `CALLBOARD_API_KEY` where the service asks for a key.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const serviceUrl = process.env.CALLBOARD_URL?.replace(/\/+$/, '');
if (!serviceUrl) {
  throw new Error('CALLBOARD_URL must name the running service, for instance CALLBOARD_URL=http://127.0.0.1:3000');
}
const apiKey = process.env.CALLBOARD_API_KEY;
const credentials = apiKey ? { authorization: `Bearer ${apiKey}` } : {};
const endpoint = new URL('/mcp', serviceUrl);

const RUNS = 7;
const FAILURES = 12;
const TRACE = Buffer.from('504b0506000000000000000000000000000000000000', 'hex');

/** Sends a run with a trace of its first test, as a reporter would. */
async function sendRun(projectName, startTime, testCases) {
  const form = new FormData();
  form.set('projectName', projectName);
  form.set('testRun', JSON.stringify({ status: 'failed', startTime, duration: 9000, branch: 'main' }));
  form.set('testCases', JSON.stringify(testCases));
  form.set('trace_0', new Blob([TRACE], { type: 'application/zip' }), 'trace.zip');
  const response = await fetch(new URL('/api/test-runs/upload', serviceUrl), { method: 'POST', headers: credentials, body: form });
  const body = await response.text();
  assert.ok(response.ok, `the upload was answered ${response.status}: ${body}`);
}

/** Sends the smallest thing a script would send. */
async function submitRun(run) {
  const response = await fetch(new URL('/api/test-runs/submit', serviceUrl), {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...credentials },
    body: JSON.stringify(run),
  });
  assert.ok(response.ok, `the run was answered ${response.status}: ${await response.text()}`);
}

const failing = (number) => ({
  title: `pays ${number}`,
  status: 'failed',
  duration: 100 + number,
  location: `tests/pay.spec.ts:${number + 1}:3`,
  error: `Error: expected 200\n  at pay ${number}`,
  retries: 0,
  steps: [{ title: 'open the page', duration: 40, category: 'navigation' }],
  consoleLogs: [{ type: 'error', text: 'boom' }],
});

describe('the official client', () => {
  const projectName = `mcp ${randomUUID().slice(0, 8)}`;
  const requests = [];
  let client;
  let projectId;
  let runId;
  let executionId;
  let testCaseId;

  /** The answer of a tool; an error of the tool fails the test. */
  async function call(name, args = {}) {
    const result = await client.callTool({ name, arguments: args });
    assert.notEqual(result.isError, true, result.content[0]?.text);
    assert.deepEqual(result.content.map((block) => block.type), ['text']);
    return JSON.parse(result.content[0].text);
  }

  /** Every row of a list, read page by page. */
  async function readAll(name, args, rowsOf = (page) => page) {
    const rows = [];
    let cursor;
    do {
      const answer = await call(name, { ...args, cursor });
      const page = rowsOf(answer);
      rows.push(...(page.items ?? page.runs ?? page.cases));
      cursor = page.nextCursor ?? undefined;
      assert.ok(rows.length <= 10_000, `${name} does not end`);
    } while (cursor);
    return rows;
  }

  before(async () => {
    const start = Date.now() - 60_000;
    for (let run = 0; run < RUNS - 1; run += 1) {
      await submitRun({
        projectName,
        status: 'passed',
        startTime: new Date(start + run).toISOString(),
        duration: 1000,
        branch: 'main',
        testCases: [{ title: 'pays 0', status: 'passed', duration: 90, location: 'tests/pay.spec.ts:1:3', retries: 0 }],
      });
    }
    await sendRun(projectName, new Date(start + RUNS).toISOString(), Array.from({ length: FAILURES }, (_, at) => failing(at)));
    client = new Client({ name: 'callboard-check', version: '1.0.0' });
    const transport = new StreamableHTTPClientTransport(endpoint, {
      requestInit: { headers: credentials },
      fetch: async (url, options) => {
        requests.push(options?.method ?? 'GET');
        return await fetch(url, options);
      },
    });
    await client.connect(transport);
  });

  after(() => client?.close());

  test('connects, learns what is here, and is told once that there is no stream', async () => {
    assert.equal(client.getServerVersion().name, 'callboard');
    assert.match(client.getInstructions(), /nextCursor/);
    assert.deepEqual(await client.ping(), {});
    assert.equal(client.transport.sessionId, undefined);
    await new Promise((resolve) => setTimeout(resolve, 10_000));
    assert.ok(requests.filter((method) => method === 'GET').length <= 1, requests.join(' '));
  });

  test('lists tools with titles, schemas and hints', async () => {
    const { tools, nextCursor } = await client.listTools();
    assert.equal(nextCursor, undefined);
    for (const name of ['list_projects', 'list_runs', 'get_run', 'list_failed_cases', 'get_test_run_case']) {
      assert.ok(tools.some((tool) => tool.name === name), name);
    }
    for (const tool of tools) {
      assert.ok(tool.title && tool.description.length <= 300, tool.name);
      assert.equal(tool.inputSchema.type, 'object', tool.name);
      const { readOnlyHint, destructiveHint, idempotentHint, openWorldHint } = tool.annotations;
      assert.ok([readOnlyHint, destructiveHint, idempotentHint, openWorldHint].every((hint) => typeof hint === 'boolean'), tool.name);
    }
  });

  test('finds the project, its runs and their executions, each row once', async () => {
    const projects = await readAll('list_projects', { pageSize: 2 });
    projectId = projects.find((project) => project.name === projectName)?.projectId;
    assert.ok(projectId, 'the project is not listed');
    assert.equal(new Set(projects.map((project) => project.projectId)).size, projects.length);

    const runs = await readAll('list_runs', { projectId, pageSize: 2, branch: 'main' });
    assert.equal(new Set(runs.map((run) => run.runId)).size, RUNS);
    assert.deepEqual(await readAll('get_project', { projectId, pageSize: 3 }), runs);
    ({ runId } = runs[0]);
    assert.deepEqual([runs[0].status, runs[0].failed, runs[0].total], ['failed', FAILURES, FAILURES]);
    const recent = await call('list_recent_activity', { pageSize: 50 });
    assert.equal(recent.items.find((run) => run.runId === runId)?.projectName, projectName);

    const cases = await readAll('get_run', { runId, pageSize: 5 });
    assert.equal(new Set(cases.map((row) => row.executionId)).size, FAILURES);
    const failed = await readAll('list_failed_cases', { projectId, pageSize: 5 });
    assert.deepEqual(failed.map((row) => row.executionId), cases.map((row) => row.executionId));
    const first = cases.find((row) => row.title === 'pays 0');
    ({ executionId, testCaseId } = first);
    assert.match(first.error, /expected 200/);
  });

  test('reads one execution, with evidence only when asked', async () => {
    const bare = await call('get_test_run_case', { executionId });
    assert.match(bare.error, /at pay 0/);
    assert.equal(bare.steps, undefined);
    const whole = await call('get_test_run_case', { executionId, include: ['steps', 'console'] });
    assert.equal(whole.steps[0].title, 'open the page');
    assert.equal(whole.console[0].text, 'boom');
  });

  test('fetches a trace from its address, without headers', async () => {
    const { items } = await call('list_case_traces', { executionId });
    assert.equal(items.length, 1);
    assert.match(items[0].command, /^npx playwright show-trace "http/);
    assert.equal(items[0].authRequired, false);
    const response = await fetch(items[0].downloadUrl);
    assert.equal(response.status, 200);
    assert.deepEqual(Buffer.from(await response.arrayBuffer()), TRACE);
  });

  test('follows a test across runs', async () => {
    const found = await readAll('search_test_cases', { projectId, query: 'PAYS', pageSize: 5 });
    assert.equal(found.length, FAILURES);
    assert.ok(found.some((row) => row.testCaseId === testCaseId));
    const executions = await readAll('get_test_case', { testCaseId, pageSize: 2 }, (answer) => answer.recentExecutions);
    assert.equal(new Set(executions.map((row) => row.executionId)).size, RUNS);
    const trend = await call('get_test_stability_trend', { testCaseId });
    assert.equal(trend.items.reduce((sum, bucket) => sum + bucket.totalRuns, 0), RUNS);
    const catalog = await readAll('get_project_test_catalog', { projectId, pageSize: 5 });
    assert.equal(new Set(catalog.map((row) => row.testCaseId)).size, FAILURES);
  });

  test('counts the whole installation', async () => {
    const stats = await call('get_instance_stats');
    assert.ok(stats.totalProjects >= 1 && stats.totalRuns >= RUNS && stats.totalExecutions >= FAILURES);
  });

  test('reads a wrong call as text and an unknown tool as an error', async () => {
    const wrong = async (name, args) => {
      const result = await client.callTool({ name, arguments: args });
      assert.equal(result.isError, true, name);
      return result.content[0].text;
    };
    assert.match(await wrong('get_run', {}), /^Error: `runId` is required \(integer\)\. Get it from list_runs/);
    assert.match(await wrong('get_run', { runId: 'x' }), /must be a positive integer/);
    assert.match(await wrong('get_run', { runId: 9007199254740991 }), /Run 9007199254740991 not found/);
    assert.match(await wrong('list_runs', { projectId, cursor: 'nonsense' }), /Invalid cursor/);
    await assert.rejects(client.callTool({ name: 'get_runs', arguments: {} }), /Unknown tool: get_runs/);
  });

  test('gets the prompt and completes its argument', async () => {
    const { prompts } = await client.listPrompts();
    assert.deepEqual(prompts.map((prompt) => prompt.name), ['setup_service']);
    const prompt = await client.getPrompt({ name: 'setup_service', arguments: { projectName } });
    assert.match(prompt.messages[0].content.text, /callboard-reporter/);
    const { completion } = await client.complete({
      ref: { type: 'ref/prompt', name: 'setup_service' },
      argument: { name: 'projectName', value: projectName.slice(0, 6) },
    });
    assert.ok(completion.values.includes(projectName));
    assert.deepEqual(await client.listResources(), { resources: [] });
  });
});
