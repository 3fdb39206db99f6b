import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { describe, test, type TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import vm from 'node:vm';
import { gzipSync } from 'node:zlib';
import type { BrowserContext, Frame, Page, TestInfo } from '@playwright/test';
import type { TestResult } from '@playwright/test/reporter';
import { createConsoleLog, placeOfError, watchConsole, type ConsoleEntry } from '../src/capture/console';
import { createLocatorRecorder, type KnownElements } from '../src/capture/locators';
import { watchNetwork, type NetworkEntry } from '../src/capture/network';
import { readPage } from '../src/capture/page-reading';
import { listenToCalls, type FrameCall } from '../src/capture/playwright-internals';
import { startRecorder } from '../src/capture/recorder';
import { serverSideOf } from '../src/capture/server-headers';
import { parseLocator } from '../src/capture/written-locator';
import { takeCaptures } from '../src/captures';
import { rootAt } from './root-at';

test('a locator is taken apart into its last call and that call\'s arguments', () => {
  const parsed = (raw: string): unknown[] => [parseLocator(raw).method, ...parseLocator(raw).args];
  assert.deepEqual(parsed("getByRole('button', { name: 'Pay (now)', exact: true })"), ['getByRole', 'button', { name: 'Pay (now)', exact: true }]);
  assert.deepEqual(parsed("getByRole('list').getByText('it\\'s').first()"), ['getByText', "it's"]);
  assert.deepEqual(parsed("locator('#a').filter({ hasText: 'x' })"), ['locator', '#a']);
  assert.deepEqual(parsed("getByRole('heading', { name: /total/i, level: 2 })"), ['getByRole', 'heading', { name: '/total/i', level: 2 }]);
  assert.deepEqual(parsed("locator('iframe').contentFrame().getByTestId('pay')"), ['getByTestId', 'pay']);
  assert.deepEqual(parseLocator('Locator@css=#a'), { method: 'locator', args: ['Locator@css=#a'], raw: 'Locator@css=#a' });
});

const packed = (value: unknown): string => gzipSync(JSON.stringify(value)).toString('base64');

test('logs and spans are read from the headers of a response', () => {
  const logs = Array.from({ length: 60 }, (_, index) => ({ message: `m${index}` }));
  const { serverLogs, serverTraces } = serverSideOf({ 'x-service-logs': packed(logs), 'x-service-trace': packed([{ id: '1' }]) });
  assert.equal(serverLogs?.length, 50);
  assert.deepEqual(serverTraces, [{ id: '1' }]);
});

test('headers that are malformed, too long or inflate too far are ignored', () => {
  for (const header of ['no base64 of gzip', packed({ not: 'a list' }), packed(['x'.repeat(300 * 1024)]), 'A'.repeat(17 * 1024)]) {
    assert.deepEqual(serverSideOf({ 'x-service-logs': header, 'x-service-trace': header }), {});
  }
});

function attached(name: string, value: unknown): TestResult['attachments'][number] {
  return { name, contentType: 'application/json', body: Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)) };
}

test('captures become fields, and leave only hidden empty places among the attachments', () => {
  const attachments = [
    attached('note', 'text'), attached('callboard-network', [1]), attached('callboard-network', [2]), attached('callboard-page-state', { url: 'u' }),
    attached('callboard-web-vitals', 'not json'), attached('callboard-aria-snapshot', '- main'), attached('callboard-locator-suggestion', '{}'),
  ];
  const result = { attachments } as unknown as TestResult;
  assert.deepEqual(takeCaptures(result), {
    fields: { networkRequests: [1, 2], pageState: { url: 'u' } }, ariaSnapshot: '- main', suggestions: ['{}'],
  });
  assert.deepEqual(result.attachments.map(({ name, body }) => [name, body !== undefined]).slice(0, 2), [['note', true], ['_callboard-network', false]]);
  assert.equal(takeCaptures(result), undefined);
});

describe('what a line found', () => {
  const ELEMENT = { tagName: 'button', attributes: {}, textContent: 'Pay', accessibleName: 'Pay', center: { x: 1, y: 2 }, ancestors: [] };

  /** A frame whose page answers every question alike, and counts them. */
  function pageAt(address: string): { frame: Frame; asked(): number } {
    let asked = 0;
    const frame = {
      url: () => address,
      locator: () => "getByRole('button', { name: 'Pay' })",
      _connection: {
        sendMessageToServer: async () => {
          asked++;
          return { value: { s: JSON.stringify({ element: ELEMENT, alternatives: [] }) } };
        },
      },
    };
    return { frame: frame as unknown as Frame, asked: () => asked };
  }
  const click = (frame: Frame): FrameCall => ({
    frame, method: 'click', selector: 'role=button', expression: undefined, isNot: false,
    stack: [{ file: '/suite/pages/pay.ts', line: 3, column: 5 }],
  });
  async function clicked(known: KnownElements, frame: Frame): Promise<unknown> {
    const recorder = createLocatorRecorder('data-testid', rootAt('/suite'), known);
    recorder.onCall(click(frame))!(true);
    return recorder.drain(1_000);
  }

  test('is asked once per page of a worker and told for every test', async () => {
    const known: KnownElements = new Map();
    const first = pageAt('https://shop.example/orders/17?step=2');
    const [snapshot] = await clicked(known, first.frame) as { location: string; element: { tagName: string } }[];
    assert.deepEqual([snapshot!.location, snapshot!.element.tagName, first.asked()], ['pages/pay.ts:3:5', 'button', 1]);
    const second = pageAt('https://shop.example/orders/18');
    assert.deepEqual(await clicked(known, second.frame), [snapshot]);
    assert.equal(second.asked(), 0, 'another order is the same page');
    const third = pageAt('https://shop.example/basket');
    await clicked(known, third.frame);
    assert.equal(third.asked(), 1);
  });
});

test('whatever a test does with a page tells of its context, what is asked besides does not', async () => {
  const context = {};
  const page = { _type: 'Page', context: () => context };
  const frame = { _type: 'Frame', page: () => page };
  const connection = { sendMessageToServer: async (..._: unknown[]): Promise<unknown> => ({}) };
  const used: unknown[] = [];
  assert.ok(listenToCalls({ _connection: connection }, { onUse: (each) => void used.push(each), onCall: () => undefined }));
  for (const object of [frame, page, { _type: 'Worker' }, null]) await connection.sendMessageToServer(object, 'goto', {}, {});
  assert.deepEqual(used, [context, context]);
  await connection.sendMessageToServer(frame, 'evaluateExpression', {}, { internal: true });
  assert.equal(used.length, 2);
  assert.ok(listenToCalls({ _connection: connection }, { onUse: (each) => void used.push(each), onCall: () => undefined }));
  await connection.sendMessageToServer(page, 'goto', {}, {});
  assert.equal(used.length, 3, 'a connection is listened to once');
});

describe('an uncaught exception was thrown', () => {
  for (const [where, stack, place] of [
    ['in a folder with parentheses', 'Error: x\n    at foo (http://h/app/(shop)/page.js:1:2)', 'http://h/app/(shop)/page.js:1:2'],
    ['in code without a name there', 'Error: x\n    at async http://h/app/(shop)/page.js:1:2', 'http://h/app/(shop)/page.js:1:2'],
    ['in a frame and not in the message', 'Error: Cannot look at http://api:3000:1 now\n    at foo (http://h/a.js:1:2)', 'http://h/a.js:1:2'],
    ['in evaluated code', 'Error: x\n    at eval (eval at foo (http://h/a.js:1:2), <anonymous>:3:4)', 'http://h/a.js:1:2'],
    ['in Firefox', 'foo@http://h/@fs/a.js:1:2\n@http://h/b.js:3:4', 'http://h/@fs/a.js:1:2'],
    ['in WebKit', 'global code@http://h/a.js:1:2', 'http://h/a.js:1:2'],
    ['on a page whose address holds a secret', 'Error: x\n    at http://h/cb?code=s3cret&state=1:5:6', 'http://h/cb:5:6'],
    ['nowhere', 'Error: x\n    at <anonymous>', null],
  ] as const) {
    test(where, () => assert.equal(placeOfError(stack), place));
  }
});

test('what pages say is kept without what their addresses hold', () => {
  const context = new EventEmitter();
  const log = createConsoleLog();
  watchConsole(context as unknown as BrowserContext, log);
  context.emit('console', {
    type: () => 'warning', text: () => 'slow', location: () => ({ url: 'http://h/cb?code=s3cret#s3cret', lineNumber: 4, columnNumber: 5 }),
  });
  const error = { stack: 'Error: lost\n    at open (http://h/cb?code=s3cret:5:6)\n    at http://h/cb#s3cret:7:8', message: 'lost' };
  context.emit('weberror', { error: () => error });
  const unreadable = { name: 'SyntaxError', message: "Unexpected token '<'", stack: '' };
  context.emit('weberror', { error: () => unreadable, location: () => ({ url: 'http://h/a.js?s3cret', line: 0, column: 0 }) });
  context.emit('weberror', { error: () => ({ name: '', message: 'a text', stack: '' }) });
  const entries = log.entries() as ConsoleEntry[];
  assert.deepEqual(entries.map(({ text, location }) => [text, location]), [
    ['slow', 'http://h/cb:5:6'],
    ['Error: lost\n    at open (http://h/cb:5:6)\n    at http://h/cb:7:8', 'http://h/cb:5:6'],
    ["SyntaxError: Unexpected token '<'", 'http://h/a.js:1:1'],
    ['a text', null],
  ]);
});

describe('of a page that says too much', () => {
  /** What the test brings along, of messages that are written one after the other. */
  async function captured(texts: readonly string[]): Promise<ConsoleEntry[]> {
    const context = Object.assign(new EventEmitter(), { pages: () => [] });
    const info = { timeout: 30_000, status: 'passed', expectedStatus: 'passed', project: { use: {}, timeout: 30_000 }, attachments: [] };
    const settings = { locators: false, pageState: false, network: false, console: true, serverTraces: false };
    const recorder = startRecorder(info as unknown as TestInfo, settings);
    recorder.watch(context as unknown as BrowserContext);
    for (const text of texts) context.emit('console', { type: () => 'error', text: () => text, location: () => ({ url: '', lineNumber: 0, columnNumber: 0 }) });
    await recorder.finish();
    return takeCaptures(info as unknown as TestResult)!.fields.consoleLogs as ConsoleEntry[];
  }
  /** How the service makes do with fewer: its first 20 and the newest, and between them how many are missing. */
  function stored(entries: ConsoleEntry[], countMax: number): string[] {
    const texts = entries.map(({ text }) => text).filter((text) => text !== '');
    const dropped = texts.length - countMax;
    return dropped > 0 ? [...texts.slice(0, 20), `[${dropped} console entries dropped]`, ...texts.slice(20 + dropped)] : texts;
  }
  const missing = (text: string): number => Number(/^\[(\d+) console entries dropped\]$/.exec(text)?.[1] ?? 0);
  const numbers = (count: number): string[] => Array.from({ length: count }, (_, index) => `${index}`);

  test('the number of what is missing is true, also where the service keeps fewer', async () => {
    for (const count of [500, 501, 700, 12_345]) {
      const entries = await captured(numbers(count));
      for (const countMax of [200, 499, 500, 5_000]) {
        const texts = stored(entries, countMax);
        const said = texts.filter((text) => missing(text) === 0);
        assert.equal(said.length + texts.map(missing).reduce((total, each) => total + each), count, `${countMax} of ${count}`);
        assert.deepEqual([...said.slice(0, 19), said.at(-1)], [...numbers(19), `${count - 1}`]);
      }
    }
  });

  test('the first words and the newest are kept, and what stands between them says how many are missing', async () => {
    const entries = await captured([...numbers(100), ...Array<string>(900).fill(''), ...numbers(601).slice(100)]);
    assert.equal(entries.length, 500);
    assert.deepEqual(entries.slice(18, 21).map(({ type, text }) => [type, text]), [
      ['error', '18'], ['info', '[102 console entries dropped]'], ['error', '121']]);
  });

  test('a long text says that it was cut', async () => {
    const [whole, long] = await captured(['x'.repeat(4_000), 'x'.repeat(4_001)]);
    assert.deepEqual([whole!.text, long!.text], ['x'.repeat(4_000), `${'x'.repeat(4_000)} [truncated]`]);
  });
});

describe('requests', () => {
  interface Faked {
    method?: string;
    type?: string;
    failure?: string;
    isClosed?: boolean;
  }
  /** A request as Playwright reports it, and its listeners. */
  function requestTo(url: string, { method = 'GET', type = 'fetch', failure, isClosed = false }: Faked = {}): object {
    return {
      resourceType: () => type, url: () => url, method: () => method, timing: () => ({ startTime: 0, responseEnd: -1 }),
      failure: () => (failure === undefined ? null : { errorText: failure }),
      frame: () => ({ isDetached: () => false, page: () => ({ isClosed: () => isClosed }) }),
    };
  }
  function watched(): { entries: NetworkEntry[]; context: EventEmitter; stop(): void; answer(request: object, status: number): void } {
    const context = new EventEmitter();
    const entries: NetworkEntry[] = [];
    const stop = watchNetwork(context as unknown as BrowserContext, entries, false);
    const answer = (request: object, status: number): void =>
      void context.emit('response', { request: () => request, status: () => status, headers: () => ({}) });
    return { entries, context, stop, answer };
  }
  const told = (entries: NetworkEntry[]): unknown[] =>
    entries.map(({ url, status, failureText, pending }) => [url, status, ...(failureText ? [failureText] : []), ...(pending ? ['pending'] : [])]);

  test('of too many those that failed are kept', () => {
    const { entries, context, answer } = watched();
    const finish = (url: string, status: number): void => {
      const request = requestTo(url);
      answer(request, status);
      context.emit('requestfinished', request);
    };
    for (let index = 0; index < 1_000; index++) finish(`http://h/${index}`, 200);
    finish('http://h/late', 200);
    finish('http://h/broken', 500);
    assert.equal(entries.length, 1_000);
    assert.deepEqual([entries[0]!.url, entries.at(-1)!.url, entries.at(-1)!.status], ['http://h/1', 'http://h/broken', 500]);
  });

  test('that wait when the test ends have room made for them too', () => {
    const { entries, context, stop, answer } = watched();
    for (let index = 0; index < 1_000; index++) {
      const request = requestTo(`http://h/${index}`);
      answer(request, 200);
      context.emit('requestfinished', request);
    }
    context.emit('request', requestTo('http://h/slow'));
    stop();
    assert.deepEqual([entries.length, ...told(entries.slice(-1))], [1_000, ['http://h/slow', 0, 'pending']]);
  });

  test('whose answer was not read to its end by the end of the test are known', () => {
    const { entries, context, stop, answer } = watched();
    answer(requestTo('http://h/orders', { method: 'POST' }), 500);
    context.emit('requestfinished', requestTo('http://h/of-an-earlier-test'));
    assert.deepEqual(entries, []);
    stop();
    assert.deepEqual(told(entries), [['http://h/orders', 500]]);
  });

  test('that failed tell why, without the secrets of an address', () => {
    const { entries, context, answer } = watched();
    const failed = (request: object): void => void context.emit('requestfailed', request);
    failed(requestTo('http://h/a?key=s3cret', { failure: 'Could not connect to http://h/a?key=s3cret: refused' }));
    failed(requestTo('http://h/b', { failure: '' }));
    failed(requestTo('http://h/c', { failure: 'x'.repeat(500) }));
    const cut = requestTo('http://h/d', { failure: 'net::ERR_INCOMPLETE_CHUNKED_ENCODING' });
    const left = requestTo('http://h/e', { failure: 'net::ERR_ABORTED' });
    for (const request of [cut, left]) {
      answer(request, 200);
      failed(request);
    }
    assert.deepEqual(told(entries), [
      ['http://h/a?key=redacted', 0, 'Could not connect to http://h/a refused'],
      ['http://h/b', 0, 'failed'],
      ['http://h/c', 0, 'x'.repeat(200)],
      ['http://h/d', 200, 'net::ERR_INCOMPLETE_CHUNKED_ENCODING'],
      ['http://h/e', 200],
    ]);
  });

  test('for scripts and style sheets are kept where these did not load', () => {
    const { entries, context, stop, answer } = watched();
    const request = (url: string, more: Faked): object => {
      const own = requestTo(url, more);
      context.emit('request', own);
      return own;
    };
    for (const [url, type, failure] of [
      ['http://h/refused.js', 'script', 'net::ERR_CONNECTION_REFUSED'], ['http://h/left.js', 'script', 'net::ERR_ABORTED'],
      ['http://h/left.css', 'stylesheet', 'Load request cancelled'], ['http://h/a.png', 'image', 'net::ERR_FAILED'],
    ] as const) context.emit('requestfailed', request(url, { type, failure }));
    for (const [url, status] of [['http://h/ok.js', 200], ['http://h/gone.js', 404]] as const) {
      const own = request(url, { type: 'script', ...(status === 404 ? { failure: 'net::ERR_ABORTED' } : {}) });
      answer(own, status);
      context.emit(status === 404 ? 'requestfailed' : 'requestfinished', own);
    }
    request('http://h/slow.css', { type: 'stylesheet' });
    request('http://h/slow.png', { type: 'image' });
    request('http://h/closed', { isClosed: true });
    stop();
    stop();
    assert.deepEqual(told(entries), [
      ['http://h/refused.js', 0, 'net::ERR_CONNECTION_REFUSED'], ['http://h/gone.js', 404], ['http://h/slow.css', 0, 'pending'],
    ]);
  });
});

test('a page tells where it is without the tokens it was handed', async () => {
  const location = { origin: 'http://h', pathname: '/cb', href: 'http://h/cb#', hash: '#access_token=s3cret&expires_in=3600' };
  const inPage = (work: () => unknown): Promise<unknown> => Promise.resolve(vm.runInNewContext(`(${work.toString()})()`, {
    location, performance: { getEntriesByType: () => [], getEntriesByName: () => [] },
    history: { state: { as: '/reset?token=s3cret&step=2', key: 's3cret', page: 2, title: 'Reset' } },
  }));
  const page = { evaluate: inPage, url: () => location.href, context: () => ({ cookies: async () => [] }) };
  const { pageState } = await readPage(page as unknown as Page);
  assert.equal(pageState['hash'], '#access_token=<masked>&expires_in=<masked>');
  assert.equal(pageState['historyState'], '{"as":"/reset?token=<masked>&step=<masked>","key":"<masked>","page":2,"title":"Reset"}');
});

describe('a page that does not answer', () => {
  /** How long reading it takes a test with this timeout, on a clock of its own. */
  async function heldUpMs({ mock }: TestContext, timeout: number, more: Partial<TestInfo>): Promise<number> {
    const page = { isClosed: () => false, url: () => 'http://h/', evaluate: () => new Promise(() => undefined) };
    const context = Object.assign(new EventEmitter(), { pages: () => [{ ...page, context: () => context }], cookies: async () => [] });
    const info = { timeout, status: 'passed', expectedStatus: 'passed', project: { use: {}, timeout }, config: { rootDir: '/suite' }, attachments: [], ...more };
    const settings = { locators: true, pageState: true, network: true, console: true, serverTraces: true };
    mock.timers.enable({ apis: ['setTimeout'] });
    const recorder = startRecorder(info as unknown as TestInfo, settings);
    recorder.watch(context as unknown as BrowserContext);
    let isRead = false;
    const reading = recorder.read(context as unknown as BrowserContext).then(() => recorder.finish()).then(() => {
      isRead = true;
    });
    let passedMs = 0;
    for (; !isRead; passedMs += 10) {
      mock.timers.tick(10);
      await setImmediate();
    }
    await reading;
    mock.timers.reset();
    return passedMs;
  }

  for (const status of ['passed', 'failed'] as const) {
    test(`leaves a test that ${status} with little time some of it`, async (context) => {
      const heldUp = await heldUpMs(context, 400, { status });
      assert.ok(heldUp < 350, `${heldUp} ms`);
    });
  }

  test('takes a test with time enough a second', async (context) => {
    const heldUp = await heldUpMs(context, 30_000, {});
    assert.ok(heldUp > 900 && heldUp < 1_200, `${heldUp} ms`);
  });
});
