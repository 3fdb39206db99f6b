// Fills a service with a little of everything, so that requests find something:
// two projects with green, red and flaky runs, files, and what people add. With
// `accounts` the first administrator is created, and the key that the rest is
// done with is printed.
//   seed.mjs <address> [accounts]

import { Buffer } from 'node:buffer';
import process from 'node:process';

const [address, accounts] = process.argv.slice(2);
const headers = {};

async function send(method, path, body, extra) {
  const response = await fetch(address + path, { method, headers: { ...headers, ...extra }, body });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return { answer: await response.json(), cookie: response.headers.get('set-cookie')?.split(';')[0] };
}

const post = (path, body, extra = {}) => send('POST', path, JSON.stringify(body), { 'Content-Type': 'application/json', ...extra });

async function signUp() {
  const password = Buffer.from(crypto.getRandomValues(new Uint8Array(24))).toString('base64url');
  const { cookie } = await post('/api/auth/setup', { username: 'admin', password });
  const { answer } = await post('/api/users/me/api-keys', { name: 'fuzzing' }, { Cookie: cookie });
  headers.Authorization = `Bearer ${answer.key}`;
  await post('/api/users', { username: 'somebody', password, role: 'user' });
  process.stdout.write(`${answer.key}\n`);
}

const test = (title, status, retries, rest = {}) => ({
  title, status, retries, duration: 400 + 10 * retries, location: `tests/${title}.spec.ts:7:5`, suitePath: ['shop'],
  browserProject: 'chromium', tags: ['@smoke'], workerIndex: 0, startedAt: '2026-01-01T10:00:01.000Z', ...rest,
});

const lost = "TimeoutError: locator.click: Timeout 5000ms exceeded.\nCall log:\n  - waiting for getByRole('button', { name: 'Pay' })";

function run(projectName, day) {
  const isRed = day % 2 === 0;
  const attempts = isRed
    ? [test('pays', 'failed', 0, { error: lost }), test('pays', 'failed', 1, { error: lost }),
       test('retries', 'failed', 0, { error: 'Error: expected 200' }), test('retries', 'passed', 1)]
    : [test('pays', 'passed', 0), test('retries', 'passed', 0)];
  return {
    projectName, status: isRed ? 'failed' : 'passed', startTime: `2026-01-0${day}T10:00:00.000Z`, duration: 5000,
    branch: 'main', environment: 'staging', commit: `${day}`.repeat(40), author: 'Ada', label: `run of day ${day}`,
    isFullRun: true, testCases: [...attempts, test('skips', 'skipped', 0), test('adds', 'passed', 0)],
  };
}

// A run with a file of its first test.
async function upload(projectName, day) {
  const { testCases, ...testRun } = run(projectName, day);
  const form = new FormData();
  form.append('projectName', projectName);
  form.append('testRun', JSON.stringify(testRun));
  form.append('testCases', JSON.stringify(testCases));
  form.append('attach_meta_0', JSON.stringify([{ name: 'note', contentType: 'text/plain', originalName: 'note.txt' }]));
  form.append('attach_file_0', new Blob(['a note'], { type: 'text/plain' }), 'note.txt');
  await send('POST', '/api/test-runs/upload', form);
}

if (accounts) await signUp();
for (const project of ['shop', 'api']) {
  for (let day = 1; day <= 5; day += 1) await post('/api/test-runs/submit', run(project, day));
  await upload(project, 6);
}
const { answer: tag } = await post('/api/tags', { text: 'payments', color: 'teal' });
await post('/api/projects', { name: 'empty', tagIds: [tag.tag.id] });
await post('/api/links', { entityType: 'test_run', entityId: 1, url: 'https://example.org/1' });
await post('/api/projects/1/markers', { label: 'Release', occurredAt: '2026-01-02T10:00:00.000Z', category: 'release' });
await post('/api/projects/1/gate-policies', { name: 'strict', policy: { maxFailed: 0 } });
await post('/api/projects/1/quarantine', { testCaseId: 1, reason: 'known' });
