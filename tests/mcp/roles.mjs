/**
 * Calls every tool with the official MCP client, as everybody who may call: an administrator, a
 * reporter of all projects, a reporter and a user of one, and somebody without any. Sends its own
 * results first. Needs `CALLBOARD_ACCOUNTS_URL`: a service on which callers sign in, without accounts.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { crc32, deflateSync } from 'node:zlib';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const serviceUrl = process.env.CALLBOARD_ACCOUNTS_URL?.replace(/\/+$/, '');
if (!serviceUrl) {
  throw new Error('CALLBOARD_ACCOUNTS_URL must name a running service with accounts, but without any yet');
}

const UNKNOWN = Number.MAX_SAFE_INTEGER;
const MAX_EDGE = 1568;
const TRACE = Buffer.from('504b0506000000000000000000000000000000000000', 'hex');

/** A picture of a screen, larger than an answer may hold. */
function picture(width, height) {
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc32(body));
    return Buffer.concat([length, body, sum]);
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  // Eight bits of grey.
  header.writeUInt8(8, 8);
  const rows = Buffer.alloc((width + 1) * height, 0x80);
  for (let row = 0; row < height; row += 1) rows[row * (width + 1)] = 0;
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'), chunk('IHDR', header), chunk('IDAT', deflateSync(rows)), chunk('IEND', Buffer.alloc(0)),
  ]);
}

const SCREEN = picture(3000, 2000);

/** More evidence than fits into one answer, of every kind. */
const FAT = {
  steps: Array.from({ length: 500 }, (_, at) => ({ title: `step ${at} ${'s'.repeat(100)}`, duration: 1, category: 'action' })),
  consoleLogs: Array.from({ length: 200 }, (_, at) => ({ type: 'error', text: `${at} ${'c'.repeat(1900)}` })),
  networkRequests: Array.from({ length: 300 }, (_, at) => ({
    method: 'GET', url: `https://shop.example/api/${'n'.repeat(20)}/items-${at % 40}/list`, status: at % 3 ? 200 : 503, duration: at,
  })),
  ariaSnapshot: '- button "Pay"\n'.repeat(5000),
  testSource: 'line\n'.repeat(8000),
  stdout: 'o'.repeat(15_000),
};

async function send(method, path, body, headers) {
  const response = await fetch(new URL(path, serviceUrl), {
    method,
    headers: { ...(body instanceof FormData ? {} : { 'content-type': 'application/json' }), ...headers },
    body: body instanceof FormData ? body : JSON.stringify(body),
  });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${path} was answered ${response.status}: ${text}`);
  return { body: JSON.parse(text), headers: response.headers };
}

/** Runs of one project over some days: a test that always fails, one that is flaky, one that broke. */
async function sendHistory(projectName, key) {
  const steps = [{ title: 'open the page', duration: 40, category: 'navigation' }, { title: 'click "Pay"', duration: 4000, error: 'Timeout' }];
  const attempt = (title, status, retries = 0, more = {}) => ({
    title, status, retries, duration: 100 + title.length * 20, location: `tests/${title.split(' ')[0]}/a.spec.ts:${title.length}:3`,
    tags: ['@smoke'], workerIndex: retries % 2, ...more,
    ...(status === 'failed' ? { error: `Error: expect(received).toBe(expected)\n\nExpected: 200\nReceived: 500\n    at ${title} (tests/a.spec.ts:9:3)` } : {}),
  });
  for (let run = 0; run < 12; run += 1) {
    const isBroken = run > 8;
    const testCases = [
      attempt('pays with a card', run % 2 ? 'failed' : 'passed', 0, {
        consoleLogs: [{ type: 'error', text: 'boom' }], steps,
        networkRequests: [{ method: 'GET', url: 'https://shop.example/api/orders/7', status: 503, duration: 80 }],
      }),
      ...(run % 2 ? [attempt('pays with a card', 'passed', 1)] : []),
      attempt('ships an order', isBroken ? 'failed' : 'passed'),
      attempt('always red', 'failed', 0, run === 11 ? FAT : {}),
      attempt('returns an order', 'skipped'),
    ];
    const testRun = {
      status: 'failed', startTime: new Date(Date.now() - (14 - run) * 3_600_000).toISOString(), duration: 9000,
      branch: 'main', commit: String(run).repeat(40).slice(0, 40), environment: 'ci', isFullRun: true,
    };
    const form = new FormData();
    form.set('projectName', projectName);
    form.set('testRun', JSON.stringify(testRun));
    form.set('testCases', JSON.stringify(testCases));
    const red = testCases.findIndex((each) => each.title === 'always red');
    form.set(`trace_${red}`, new Blob([TRACE], { type: 'application/zip' }), 'trace.zip');
    form.set(`attach_meta_${red}`, JSON.stringify([{ name: 'screenshot', contentType: 'image/png', originalName: 'red.png' }]));
    form.set(`attach_file_${red}`, new Blob([SCREEN], { type: 'image/png' }), 'red.png');
    await send('POST', '/api/test-runs/upload', form, { authorization: `Bearer ${key}` });
  }
}

describe('every tool in every role', { concurrency: false }, () => {
  const clients = {};
  const holdings = {};
  let structured;
  let tools;

  async function connect(key, narrowing = '') {
    const client = new Client({ name: 'callboard-roles', version: '1.0.0' });
    await client.connect(new StreamableHTTPClientTransport(new URL(`/mcp${narrowing}`, serviceUrl), {
      requestInit: { headers: { authorization: `Bearer ${key}` } },
    }));
    return client;
  }

  /** What a tool says: its answer, or the sentence of its error. */
  async function call(client, name, args) {
    const { content, isError } = await client.callTool({ name, arguments: args });
    assert.equal(content[0].type, 'text', name);
    assert.ok(content[0].text.length <= 40_000 || args.maxChars, `${name}: ${content[0].text.length} characters`);
    if (!isError) {
      return { answer: JSON.parse(content[0].text), content };
    }
    assert.match(content[0].text, /^Error: \S/, name);
    assert.doesNotMatch(content[0].text, /Internal error|SELECT|\.rs\b|panicked/, `${name} ${JSON.stringify(args)}`);
    return { error: content[0].text.slice('Error: '.length) };
  }

  async function holdingOf(client, projectName) {
    const { answer: projects } = await call(client, 'list_projects', {});
    const { projectId } = projects.items.find(({ name }) => name === projectName);
    const { answer: runs } = await call(client, 'list_runs', { projectId });
    const { runId } = runs.items[0];
    const { answer: run } = await call(client, 'get_run', { runId });
    const red = run.cases.find(({ title }) => title === 'always red');
    return { projectId, runId, testCaseId: red.testCaseId, executionId: red.executionId, entityId: runId, clusterId: red.clusterId };
  }

  /** Arguments for everything a tool requires: ids of a project, else something plausible. */
  function argumentsFor({ inputSchema }, holding) {
    const plausible = {
      query: 'pays', sha: 'abcdef1', commit: 'abcdef1', feedback: 'up', name: `pay${randomBytes(4).toString('hex')}`, kind: 'helper',
      module: './pages/checkout', steps: [{ action: 'goto', value: '/' }], status: 'ignored', entityType: 'test_run', diagnosisId: UNKNOWN,
    };
    const required = inputSchema.required ?? [];
    return Object.fromEntries(required.map((name) => [name, holding[name] ?? plausible[name] ?? UNKNOWN]));
  }

  before(async () => {
    const setup = await send('POST', '/api/auth/setup', { username: 'first', password: randomBytes(18).toString('base64url') });
    const cookie = setup.headers.getSetCookie().find((set) => set.includes('svc_session')).split(';')[0];
    const admin = (await send('POST', '/api/users/me/api-keys', { name: 'tests' }, { cookie })).body.key;
    const asAdmin = { authorization: `Bearer ${admin}` };
    for (const project of ['shop', 'unannounced product']) {
      await sendHistory(project, admin);
    }
    clients.administrator = await connect(admin);
    structured = await connect(admin, '?structured=1');
    holdings.mine = await holdingOf(clients.administrator, 'shop');
    holdings.other = await holdingOf(clients.administrator, 'unannounced product');
    const people = [
      ['reporter of all', 'reporter', { isGlobal: true, projectIds: [] }],
      ['reporter of one', 'reporter', { isGlobal: false, projectIds: [holdings.mine.projectId] }],
      ['user of one', 'user', { isGlobal: false, projectIds: [holdings.mine.projectId] }],
      ['newcomer', 'user', { isGlobal: false, projectIds: [] }],
    ];
    for (const [username, role, projects] of people) {
      const { user: { id } } = (await send('POST', '/api/users', { username, role, password: randomBytes(18).toString('base64url') }, asAdmin)).body;
      await send('PUT', `/api/users/${id}/projects`, projects, asAdmin);
      const { key } = (await send('POST', `/api/users/${id}/api-keys`, { name: 'agent' }, asAdmin)).body;
      clients[username] = await connect(key);
    }
    ({ tools } = await clients.administrator.listTools());
  });

  after(() => Promise.all([structured, ...Object.values(clients)].map((client) => client?.close())));

  test('the list is the same for everybody', async () => {
    for (const client of Object.values(clients)) {
      assert.deepEqual((await client.listTools()).tools, tools);
    }
    assert.equal(new Set(tools.map(({ name }) => name)).size, 40);
    assert.ok(JSON.stringify(tools).length / 4 <= 8000, 'the list is within its budget');
  });

  /** Tools that need what this installation has not been given, and say so with an address. */
  const NEEDS_CONFIGURATION = ['get_repo_commits', 'get_repo_diff', 'run_cluster_diagnosis'];

  for (const [who, reach] of [
    ['administrator', { writes: true, mine: true, other: true }],
    ['reporter of all', { writes: true, mine: true, other: true }],
    ['reporter of one', { writes: true, mine: true, other: false }],
    ['user of one', { writes: false, mine: true, other: false }],
    ['newcomer', { writes: false, mine: false, other: false }],
  ]) {
    test(`${who} gets what is theirs from every tool`, async () => {
      for (const tool of tools) {
        const { name, annotations } = tool;
        for (const which of ['mine', 'other']) {
          const args = argumentsFor(tool, holdings[which]);
          const said = await call(clients[who], name, args);
          const about = `${name} for ${who} about ${which}: ${said.error ?? 'answered'}`;
          const isAboutAProject = Object.keys(args).some((key) => key.endsWith('Id'));
          if (!annotations.readOnlyHint && !reach.writes) {
            assert.match(said.error ?? '', /^This action requires the reporter or administrator role \(yours: user\)\./, about);
          } else if (name === 'get_instance_stats' && who !== 'administrator') {
            assert.match(said.error ?? '', /^This action requires the administrator role/, about);
          } else if (name === 'submit_diagnosis_feedback') {
            assert.match(said.error ?? '', /^`diagnosisId`|not found\.|No access|no diagnosis/, about);
          } else if (isAboutAProject && !reach[which]) {
            assert.match(said.error ?? '', /^No access to /, about);
            assert.doesNotMatch(said.error, /unannounced/, about);
          } else if (NEEDS_CONFIGURATION.includes(name)) {
            assert.match(said.error ?? '', /is not configured.* Configure it at http/, about);
          } else {
            assert.equal(said.error, undefined, about);
            assert.ok(reach.other || !JSON.stringify(said.answer).includes('unannounced'), `${about} names another's project`);
          }
        }
      }
    });
  }

  /** What each tool has to have found in a history like this, beside having answered. */
  const FOUND = {
    list_projects: ({ items }) => items.length === 2 && items.every(({ totalRuns }) => totalRuns === 12),
    get_project: ({ runs, name }) => name === 'shop' && runs.length === 10,
    list_runs: ({ items }) => items.length === 10,
    get_run: ({ cases, total }) => cases.length === 2 && total === 4,
    list_failed_cases: ({ items }) => items.length === 10,
    list_flaky_tests: ({ items }) => items[0].title === 'pays with a card',
    get_test_case: ({ stats, recentExecutions }) => stats.failed === 12 && recentExecutions.items.length === 10,
    list_clusters: ({ items }) => items.length === 1 && items[0].affectedTests === 3,
    get_cluster: ({ occurrences, affectedTestCases }) => occurrences === 21 && affectedTestCases[0].runCount === 12,
    get_fix_plan: ({ failingTests, verify }) => failingTests.length === 3 && verify.command.startsWith('npx playwright test '),
    get_cluster_diagnosis: ({ diagnosis }) => diagnosis === null,
    get_test_case_context: ({ text, sections }) => text.startsWith('Untrusted test output below.') && sections.some(({ truncated }) => truncated),
    get_case_screenshots: ({ items }) => items.length === 1 && items[0].mediaType === 'image/png' && items[0].width === 3000,
    get_cluster_context: ({ text }) => text.startsWith('Untrusted test output below.'),
    search_test_cases: ({ items }) => items.length === 1,
    get_test_run_case: ({ error, available }) => error.includes('Received: 500') && available.console > 40_000,
    list_recent_activity: ({ items }) => items.length === 10,
    get_run_insights: ({ hasBaseline }) => hasBaseline,
    get_spec_health: ({ items }) => items.length >= 3,
    get_slow_tests: ({ items }) => items.length === 2 && items[0].avgDuration === 420,
    get_performance_trend: ({ items }) => items.length === 12,
    get_test_stability_trend: ({ items }) => items.reduce((sum, { totalRuns }) => sum + totalRuns, 0) === 12,
    get_network_requests: ({ items }) => items[0].errorRate > 0 && items.every(({ statusCodes }) => /^(\d+×\d+ ?)+$/.test(statusCodes)),
    get_failure_groups: ({ items, failedTests }) => items.length === 1 && items[0].cases.length === 3 && failedTests === 2,
    get_locator_healing: ({ source }) => source === 'none',
    search: ({ cases }) => cases.length === 2,
    list_case_traces: ({ items }) => items.length === 1 && items[0].expiresInSeconds <= 900,
    list_links: ({ items }) => items.length === 0,
    list_tags: ({ items }) => items.length === 0,
    get_project_test_catalog: ({ total }) => total === 4,
    list_open_clusters: ({ items }) => items.length === 2 && items[0].occurrences === 21,
    get_instance_stats: ({ totalRuns }) => totalRuns === 24,
    explain_failure: ({ failingStep, next, verdict }) => verdict !== undefined && next.length > 0 && failingStep === undefined,
    set_cluster_status: ({ ok }) => ok,
    set_cluster_base_commit: ({ baseCommit }) => baseCommit === 'abcdef1',
    create_test_function: ({ ok, source }) => ok && source === 'ai-extracted',
  };

  test('every tool finds what is there, in the shape its schema says', async () => {
    // The client itself checks structured content against the schema of the list.
    const { tools: described } = await structured.listTools();
    assert.ok(described.every(({ outputSchema }) => outputSchema.type === 'object'));
    const wrong = [];
    for (const tool of described) {
      const { isError, content, structuredContent } = await structured.callTool({
        // People have looked at the clusters meanwhile.
        name: tool.name, arguments: { ...argumentsFor(tool, holdings.mine), ...(tool.name === 'list_open_clusters' ? { status: 'ignored' } : {}) },
      });
      if (NEEDS_CONFIGURATION.includes(tool.name) || tool.name === 'submit_diagnosis_feedback') {
        assert.equal(isError, true, tool.name);
        continue;
      }
      assert.deepEqual(JSON.parse(content[0].text), structuredContent, tool.name);
      if (!FOUND[tool.name](structuredContent)) wrong.push(`${tool.name}: ${content[0].text.slice(0, 1500)}`);
    }
    assert.deepEqual(wrong, []);
  });

  test('pictures come small enough to be looked at', async () => {
    const { content, answer } = await call(clients.administrator, 'get_case_screenshots', { executionId: holdings.mine.executionId, content: true });
    assert.deepEqual([answer.items[0].width, answer.items[0].height], [3000, 2000]);
    const [, image] = content;
    assert.deepEqual([content.length, image.type], [2, 'image']);
    const bytes = Buffer.from(image.data, 'base64');
    assert.ok(bytes.length <= 1_000_000, `${bytes.length} bytes`);
    if (image.mimeType === 'image/png') {
      assert.ok(Math.max(bytes.readUInt32BE(16), bytes.readUInt32BE(20)) <= MAX_EDGE);
    }
  });

  test('every list is read to its end, each row once', async () => {
    const client = clients.administrator;
    for (const tool of tools.filter(({ name, inputSchema }) => inputSchema.properties.cursor && !NEEDS_CONFIGURATION.includes(name))) {
      const seen = [];
      let cursor;
      do {
        const { answer, error } = await call(client, tool.name, { ...argumentsFor(tool, holdings.mine), pageSize: 2, cursor });
        assert.equal(error, undefined, tool.name);
        const page = answer.recentExecutions ?? answer;
        seen.push(...(page.items ?? page.runs ?? page.cases).map((row) => JSON.stringify(row)));
        cursor = page.nextCursor ?? undefined;
        assert.ok(seen.length < 1000, `${tool.name} does not end`);
      } while (cursor);
      assert.equal(new Set(seen).size, seen.length, tool.name);
    }
  });

  test('what nobody has is not found, and wrong arguments are told', async () => {
    const unknown = Object.fromEntries(Object.keys(holdings.mine).map((name) => [name, UNKNOWN]));
    for (const tool of tools) {
      const args = argumentsFor(tool, unknown);
      if (Object.keys(args).some((name) => name.endsWith('Id'))) {
        const { error } = await call(clients.administrator, tool.name, args);
        assert.match(error ?? '', /not found\.|is required/, tool.name);
      }
      for (const missing of Object.keys(args)) {
        const { [missing]: _, ...rest } = args;
        const { error } = await call(clients.administrator, tool.name, rest);
        assert.ok(error?.includes(`\`${missing}\` is required`), `${tool.name} without ${missing}: ${error}`);
      }
    }
  });
});
