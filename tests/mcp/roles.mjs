/**
 * Calls every tool with the official MCP client, as everybody who may call: an administrator, a
 * reporter of all projects, a reporter and a user of one, and somebody without any. Sends its own
 * results first. Needs `CALLBOARD_ACCOUNTS_URL`: a service on which callers sign in, without accounts.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const serviceUrl = process.env.CALLBOARD_ACCOUNTS_URL?.replace(/\/+$/, '');
if (!serviceUrl) {
  throw new Error('CALLBOARD_ACCOUNTS_URL must name a running service with accounts, but without any yet');
}

const UNKNOWN = Number.MAX_SAFE_INTEGER;
const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');
const TRACE = Buffer.from('504b0506000000000000000000000000000000000000', 'hex');

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
      attempt('always red', 'failed'),
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
    form.set(`attach_file_${red}`, new Blob([PNG], { type: 'image/png' }), 'red.png');
    await send('POST', '/api/test-runs/upload', form, { authorization: `Bearer ${key}` });
  }
}

describe('every tool in every role', { concurrency: false }, () => {
  const clients = {};
  const holdings = {};
  let tools;

  async function connect(key) {
    const client = new Client({ name: 'callboard-roles', version: '1.0.0' });
    await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', serviceUrl), {
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

  after(() => Promise.all(Object.values(clients).map((client) => client.close())));

  test('the list is the same for everybody', async () => {
    for (const client of Object.values(clients)) {
      assert.deepEqual((await client.listTools()).tools, tools);
    }
    assert.equal(new Set(tools.map(({ name }) => name)).size, tools.length);
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

  test('every list is read to its end, each row once', async () => {
    const client = clients.administrator;
    for (const tool of tools.filter(({ inputSchema }) => inputSchema.properties.cursor)) {
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
