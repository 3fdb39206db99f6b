/**
 * Model protocols, checked against the vendors' own clients: the endpoint of our tests answers as the official SDKs
 * expect, streamed and whole, and what the service sends fits the types that they publish. `CALLBOARD_TARGET` names
 * the folder of the build.
 */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';

const here = path.dirname(fileURLToPath(import.meta.url));
const built = path.resolve(process.env.CALLBOARD_TARGET ?? path.join(here, '../../target'), 'debug');
const MODEL = 'test-model-1';
const KEY = 'sk-a-very-secret-key-of-the-model';
const ADDRESS = /http:\/\/(?:localhost|127\.0\.0\.1):\d+/;
const processes = [];
let folder;
let endpoint;

/** Starts a program and returns the first address that it prints, and a way to kill it. */
async function launched(program, settings = {}) {
  const child = spawn(path.join(built, program), { env: { PATH: process.env.PATH, HOME: process.env.HOME, ...settings }, stdio: ['ignore', 'pipe', 'pipe'] });
  processes.push(child);
  let log = '';
  return new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (data) => {
        log += data;
        const address = ADDRESS.exec(log)?.[0];
        if (address) resolve({ address, kill: () => child.kill('SIGKILL') });
      });
    }
    child.on('exit', () => reject(new Error(`${program} ended: ${log}`)));
  });
}

const started = async (program, settings) => (await launched(program, settings)).address;

const say = (...texts) => fetch(`${endpoint}/script`, { method: 'PUT', body: JSON.stringify(texts) });
const calls = async () => (await fetch(`${endpoint}/calls`)).json();

before(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'callboard-model-'));
  endpoint = await started('callboard-test-model');
});

after(async () => {
  for (const child of processes) child.kill();
  await rm(folder, { recursive: true, force: true });
});

describe('the official client of the chat completions API understands the endpoint', () => {
  const client = (apiKey = KEY) => new OpenAI({ apiKey, baseURL: `${endpoint}/v1`, maxRetries: 0 });
  const messages = [{ role: 'user', content: 'Say ready.' }];

  test('a whole answer', async () => {
    const answer = await client().chat.completions.create({ model: MODEL, messages });
    assert.equal(answer.choices[0].message.content, 'ready');
    assert.equal(answer.usage.total_tokens, 1540);
  });

  test('a stream, with its usage', async () => {
    const text = 'It arrives in several pieces, and is one text again at the end: ä ö ü.';
    await say(text);
    const stream = client().chat.completions.stream({ model: MODEL, messages, stream_options: { include_usage: true } });
    const pieces = [];
    stream.on('content', (piece) => pieces.push(piece));
    const answer = await stream.finalChatCompletion();
    assert.equal(answer.choices[0].message.content, text);
    assert.equal(answer.choices[0].finish_reason, 'stop');
    assert.equal(answer.usage.prompt_tokens, 1200);
    assert.ok(pieces.length > 1);
  });

  test('a structured answer', async () => {
    await say('{"cause":"timeout"}');
    const schema = { type: 'object', properties: { cause: { type: 'string' } }, required: ['cause'], additionalProperties: false };
    const answer = await client().chat.completions.parse({ model: MODEL, messages, response_format: { type: 'json_schema', json_schema: { name: 'a', strict: true, schema } } });
    assert.deepEqual(answer.choices[0].message.parsed, { cause: 'timeout' });
  });

  test('errors', async () => {
    await assert.rejects(client('wrong').chat.completions.create({ model: MODEL, messages }), OpenAI.AuthenticationError);
    await assert.rejects(client().chat.completions.create({ model: 'unknown', messages }), OpenAI.NotFoundError);
  });
});

describe('the official client of the messages API understands the endpoint', () => {
  const client = (apiKey = KEY) => new Anthropic({ apiKey, baseURL: endpoint, maxRetries: 0 });
  const asked = { model: MODEL, max_tokens: 100, messages: [{ role: 'user', content: 'Say ready.' }] };
  const schema = { type: 'object', properties: { cause: { type: 'string' } }, required: ['cause'] };
  const withTool = { ...asked, tools: [{ name: 'diagnosis', input_schema: schema }], tool_choice: { type: 'tool', name: 'diagnosis' } };

  test('a whole answer', async () => {
    const answer = await client().messages.create(asked);
    assert.deepEqual([answer.content[0].type, answer.content[0].text, answer.stop_reason], ['text', 'ready', 'end_turn']);
    assert.equal(answer.usage.input_tokens, 1200);
  });

  test('a stream', async () => {
    const text = 'It arrives in several pieces, and is one text again at the end: ä ö ü.';
    await say(text);
    const stream = client().messages.stream(asked);
    const pieces = [];
    stream.on('text', (piece) => pieces.push(piece));
    const answer = await stream.finalMessage();
    assert.deepEqual([answer.content[0].text, answer.usage.output_tokens], [text, 340]);
    assert.ok(pieces.length > 1);
  });

  test('a structured answer, streamed and whole', async () => {
    const input = { cause: 'The button was renamed, and the test waits for the old name.' };
    await say(JSON.stringify(input), JSON.stringify(input));
    const streamed = await client().messages.stream(withTool).finalMessage();
    assert.deepEqual([streamed.content[0].input, streamed.stop_reason], [input, 'tool_use']);
    const whole = await client().messages.create(withTool);
    assert.deepEqual(whole.content[0].input, input);
  });

  test('errors', async () => {
    await assert.rejects(client('wrong').messages.create(asked), Anthropic.AuthenticationError);
    await assert.rejects(client().messages.create({ ...asked, model: 'unknown' }), Anthropic.NotFoundError);
  });
});

const ANSWER = {
  category: 'test-bug', confidenceScore: 90, severity: 'high', affectedArea: null, summary: 'It was renamed.', rootCause: 'The button has another name.',
  evidence: [{ section: 'sampleError', quote: 'waiting for' }], hypotheses: [], suggestedFix: null, investigationSteps: [], preventionTips: [],
};

/** Asks the compiler whether bodies fit the published types of requests. */
async function compile(name, source) {
  const file = path.join(folder, `${name}.ts`);
  // The compiler looks for the packages above the file.
  await writeFile(file, source);
  const options = ['--noEmit', '--strict', '--skipLibCheck', '--target', 'es2022', '--module', 'nodenext', '--moduleResolution', 'nodenext'];
  const tsc = path.join(here, 'node_modules/typescript/bin/tsc');
  return promisify(execFile)(process.execPath, [tsc, ...options, file]).then(() => '', ({ stdout }) => stdout || 'it failed');
}

const typed = (bodies, of, from) => `import type { ${of} } from '${from}';\nexport const bodies: ${of}[] = ${JSON.stringify(bodies)};\n`;

describe('requests of the service fit the types that the vendors publish', () => {
  const VENDORS = {
    'chat-completions': { base: '/v1', path: '/v1/chat/completions', of: 'ChatCompletionCreateParams', from: 'openai/resources/chat/completions.js' },
    messages: { base: '', path: '/v1/messages', of: 'MessageCreateParams', from: '@anthropic-ai/sdk/resources/messages.js' },
  };
  const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  let service;
  let settings;
  let kill;

  before(async () => {
    settings = {
      SERVICE_PORT: '0', SERVICE_DATA_DIR: path.join(folder, 'data'), SERVICE_RATE_LIMITS: 'off',
      SERVICE_SECRET_KEY: randomBytes(32).toString('hex'), SERVICE_EGRESS_ALLOW: new URL(endpoint).host,
    };
    ({ address: service, kill } = await launched('callboard', settings));
    const { symlink } = await import('node:fs/promises');
    await symlink(path.join(here, 'node_modules'), path.join(folder, 'node_modules'));
    await writeFile(path.join(folder, 'package.json'), '{"type":"module"}');
  });

  const ask = async (method, to, body) => {
    const isForm = body instanceof FormData;
    const headers = isForm ? {} : { 'content-type': 'application/json' };
    const response = await fetch(service + to, { method, headers, body: body && (isForm ? body : JSON.stringify(body)) });
    const answer = await response.json();
    assert.ok(response.ok, `${method} ${to} answered ${response.status}: ${JSON.stringify(answer)}`);
    return answer;
  };

  /** A failure with a screenshot; returns the id of its execution. */
  async function failure(projectName) {
    const run = { projectName, status: 'failed', startTime: new Date().toISOString(), duration: 5, totalTests: 1, passedTests: 0, failedTests: 1, skippedTests: 0, testCases: [] };
    const failed = { title: 'pays', status: 'failed', duration: 5, retries: 0, location: 'tests/shop.spec.ts:7:5', error: 'Error: waiting for getByTestId(\'pay\')' };
    const form = new FormData();
    form.set('projectName', projectName);
    form.set('testRun', JSON.stringify(run));
    form.set('testCases', JSON.stringify([failed]));
    form.set('attach_meta_0', JSON.stringify([{ name: 'screenshot', contentType: 'image/png', originalName: 'page.png' }]));
    form.set('attach_file_0', new Blob([Buffer.from(PIXEL, 'base64')], { type: 'image/png' }), 'page.png');
    const { runId } = await ask('POST', '/api/test-runs/upload', form);
    return (await ask('GET', `/api/test-runs/${runId}/executions`)).items[0].id;
  }

  /** The diagnosis of an execution when it has ended. */
  async function ended(execution) {
    for (let look = 0; look < 900; look += 1) {
      const { diagnosis } = await ask('GET', `/api/test-run-cases/${execution}/diagnosis`);
      if (diagnosis.status !== 'running') return diagnosis;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    throw new Error('the diagnosis has not ended after three minutes');
  }

  for (const [provider, vendor] of Object.entries(VENDORS)) {
    test(provider, async () => {
      const role = { provider, baseUrl: endpoint + vendor.base, model: MODEL, apiKey: KEY };
      await ask('PATCH', '/api/settings/ai', { roles: { diagnosis: { baseUrl: null } } });
      await ask('PATCH', '/api/settings/ai', { enabled: true, sendScreenshots: true, roles: { diagnosis: role } });
      const known = (await calls()).length;
      await ask('POST', '/api/settings/ai/test', {});
      const execution = await failure(provider);
      // The first answer cannot be used, so the service asks once more.
      await say('I do not know.', JSON.stringify(ANSWER));
      await ask('POST', `/api/test-run-cases/${execution}/diagnose`, {});
      const found = await ended(execution);
      assert.deepEqual([found.status, found.category, found.outputTokens], ['completed', 'test-bug', 680], JSON.stringify(found));
      const bodies = (await calls()).slice(known).filter((call) => call.path === vendor.path).map(({ body }) => body);
      assert.equal(bodies.length, 3);
      assert.ok(bodies.every(({ stream }) => stream === true));
      assert.ok(JSON.stringify(bodies[1]).includes(PIXEL), 'the screenshot goes along');
      assert.equal(await compile(provider, typed(bodies, vendor.of, vendor.from)), '');
      // The types say no to what does not fit.
      const wrong = [{ ...bodies[1], messages: [{ role: 'user', content: [{ type: 'picture' }] }] }];
      assert.match(await compile(`${provider}-wrong`, typed(wrong, vendor.of, vendor.from)), /not assignable/);
    });
  }

  // Another process takes the job over when the lease of the killed one has run out, which is after a minute.
  test('a process that is killed while the model answers leaves the diagnosis to the next one', async () => {
    const execution = await failure('killed');
    await say(null, JSON.stringify(ANSWER));
    const known = (await calls()).length;
    await ask('POST', `/api/test-run-cases/${execution}/diagnose`, {});
    while ((await calls()).length === known) await new Promise((resolve) => setTimeout(resolve, 100));
    kill();
    service = await started('callboard', settings);
    const found = await ended(execution);
    assert.deepEqual([found.status, found.version, found.category], ['completed', 1, 'test-bug'], JSON.stringify(found));
    assert.equal((await calls()).length, known + 2);
  });
});
