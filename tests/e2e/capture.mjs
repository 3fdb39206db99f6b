/**
 * What the capture fixtures learn about locators and requests in a real browser, as the
 * reporter sends it. A listener of this check stands in for the service. `CHROMIUM_PATH` when Chromium
 * is not at /usr/bin/chromium.
 */
import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, describe, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from '@playwright/test';
import { runPlaywright } from './support/playwright-run.mjs';

const TOKEN = 'f'.repeat(64);

async function listener() {
  const entries = [];
  const server = http.createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const raw = Buffer.concat(chunks);
    if (request.url.endsWith('/events')) {
      const body = JSON.parse(request.headers['content-encoding'] === 'gzip' ? gunzipSync(raw) : raw);
      entries.push(...body.testCases.filter(({ type }) => type === 'complete'));
    }
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ success: true, runId: 1, testRunId: 1, projectId: 1, streamToken: TOKEN, status: 'failed' }));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    entries,
    close: () => new Promise((resolve) => {
      server.closeAllConnections();
      server.close(resolve);
    }),
  };
}

describe('locators of a real run', () => {
  let service;
  let scratch;
  let report;

  before(async () => {
    service = await listener();
    scratch = await mkdtemp(path.join(tmpdir(), 'callboard-e2e-'));
    await runPlaywright(
      ['--project=desktop', '--retries=0', `--output=${scratch}/results`, '--reporter=json,callboard-reporter',
        '-g', 'adds an item|pays with one click|keeps the receipt'],
      { SERVICE_URL: service.url, SERVICE_SPOOL_DIR: path.join(scratch, 'spool'), PLAYWRIGHT_JSON_OUTPUT_FILE: path.join(scratch, 'report.json') });
    report = await readFile(path.join(scratch, 'report.json'), 'utf8');
  });
  after(async () => {
    await service.close();
    await rm(scratch, { recursive: true, force: true });
  });

  const entryOf = (title) => service.entries.find((entry) => entry.title === title);

  test('every call site tells its locator, its element and what else would find it', () => {
    const [click, total] = entryOf('adds an item').locatorSnapshots;
    assert.match(click.location, /\/shop\/tests\/cart\.spec\.ts:\d+:\d+$/);
    assert.deepEqual(click.used, {
      method: 'getByRole', args: ['button', { name: 'Add teapot' }], raw: "getByRole('button', { name: 'Add teapot' })",
    });
    const { tagName, accessibleName, rolePosition, ancestors } = click.element;
    assert.deepEqual({ tagName, accessibleName, rolePosition }, {
      tagName: 'button', accessibleName: 'Add teapot', rolePosition: { role: 'button', count: 2, index: 0 },
    });
    assert.deepEqual(ancestors.map(({ tag }) => tag), ['li', 'ul', 'body', 'html']);
    assert.deepEqual(click.alternatives.map(({ locator, score }) => [locator, score]), [
      ["getByRole('button', { name: 'Add teapot' })", 90], ["getByText('Add teapot')", 75], ["getByRole('button')", 13],
    ]);
    assert.equal(total.used.raw, "locator('#count')");
    assert.ok(total.alternatives.some(({ locator, score }) => locator === "locator('#count')" && score === 65));
  });

  test('an element that leads away, or is only looked at, is known too', () => {
    const found = entryOf('keeps the receipt').locatorSnapshots;
    assert.deepEqual(found.map(({ used, element }) => [used.raw, element?.tagName]), [
      ["getByRole('button', { name: 'Pay', exact: true })", 'button'], ["getByRole('status')", 'p'],
    ]);
  });

  test('a locator that found nothing is told what it may have meant', () => {
    const { testAnnotations, locatorSnapshots } = entryOf('pays with one click');
    const { description } = testAnnotations.find(({ type }) => type === 'callboard-locator-suggestion');
    const { failing, suggestions } = JSON.parse(description);
    assert.equal(failing.raw, "getByTestId('pay-now')");
    assert.equal(suggestions[0].locator, "getByRole('button', { name: 'Pay', exact: true })");
    assert.equal(locatorSnapshots, undefined);
  });

  test('what was captured leaves no step and no readable attachment in other reports', () => {
    assert.ok(!/"callboard-|evalOnSelector|ariaSnapshot\(/.test(report));
    const { steps } = entryOf('keeps the receipt');
    const titles = steps.map(({ title }) => title);
    assert.ok(!titles.some((title) => /callboard|Evaluate|cookies/i.test(title)), titles.join(' | '));
    assert.ok(!steps.some(({ location }) => location?.includes('reporter/dist/')), 'no fixture of the package is a step');
  });
});

/** What a suite sends to a listener, by title of the test. */
async function sent(args, env, cwd) {
  const service = await listener();
  const scratch = await mkdtemp(path.join(tmpdir(), 'callboard-e2e-'));
  try {
    const { output } = await runPlaywright(
      ['--retries=0', `--output=${scratch}/results`, '--reporter=callboard-reporter', ...args],
      { SERVICE_URL: service.url, SERVICE_SPOOL_DIR: path.join(scratch, 'spool'), ...env }, cwd);
    return { output, entryOf: (title) => service.entries.find((entry) => entry.title === title) };
  } finally {
    await service.close();
    await rm(scratch, { recursive: true, force: true });
  }
}

test('locators of a browser that was connected to are known as well', async () => {
  const browser = await chromium.launchServer({
    executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  });
  try {
    const { output, entryOf } = await sent(
      ['--project=desktop', '-g', 'adds an item|pays with one click'], { CONNECT_TO_BROWSER: browser.wsEndpoint() });
    assert.deepEqual(entryOf('adds an item')?.locatorSnapshots?.map(({ used, element }) => [used.raw, element?.tagName]), [
      ["getByRole('button', { name: 'Add teapot' })", 'button'], ["locator('#count')", 'output'],
    ], output);
    const suggestion = entryOf('pays with one click').testAnnotations.find(({ type }) => type === 'callboard-locator-suggestion');
    assert.equal(JSON.parse(suggestion.description).failing.raw, "getByTestId('pay-now')");
  } finally {
    await browser.close();
  }
});

describe('requests that were not answered', () => {
  let run;
  before(async () => {
    run = await sent([], {}, fileURLToPath(new URL('unanswered/', import.meta.url)));
  });

  /** Path, status, and what else is said of it, without what an answered request has. */
  const requestsOf = (title) => {
    const { networkRequests } = run.entryOf(title) ?? {};
    assert.ok(networkRequests, run.output);
    return networkRequests.map(({ method, url, status, resourceType, failureText, pending }) => {
      const { pathname, search } = new URL(url);
      return [method, pathname + search, resourceType, status, ...(pending ? ['pending'] : []), ...(failureText ? [failureText] : [])].join(' ');
    }).sort();
  };
  const OF_THE_PAGE = [
    'GET / document 200',
    'GET /gone.js script 404',
    'GET /theme.css?key=redacted stylesheet 0 net::ERR_CONNECTION_REFUSED',
    'GET /vendor.js script 0 net::ERR_CONNECTION_REFUSED',
    'POST /orders?token=redacted fetch 0 net::ERR_CONNECTION_REFUSED',
  ];

  for (const title of ['waits for an answer in vain', 'passes without the answer']) {
    test(`of a test that ${title}`, () => {
      const requests = requestsOf(title).map((line) => line.replace('?refused=redacted', ''));
      assert.deepEqual(requests, [...OF_THE_PAGE, 'GET /never?token=redacted fetch 0 pending'].sort());
      assert.ok(!JSON.stringify(run.entryOf(title)).includes('QUERY-SECRET'));
    });
  }

  test('say how long the test waited', () => {
    const { networkRequests } = run.entryOf('waits for an answer in vain');
    const waited = networkRequests.find(({ pending }) => pending);
    assert.ok(waited.duration >= 1_200, `${waited.duration} ms`);
    assert.ok(waited.startTime > 1_700_000_000_000);
  });

  test('of a page that was left or closed are not waited for', () => {
    const requests = requestsOf('leaves pages that wait');
    assert.deepEqual(requests.filter((line) => line.includes('pending')), []);
    assert.ok(requests.includes('GET /never?token=redacted fetch 0 net::ERR_ABORTED'), requests.join('\n'));
  });

  test('may be of the page itself', () => {
    assert.deepEqual(requestsOf('waits for a page in vain').map((line) => line.split(' ').slice(0, 4).join(' ')), ['GET /never document 0']);
  });
});
