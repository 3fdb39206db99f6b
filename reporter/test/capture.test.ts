import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { Frame } from '@playwright/test';
import type { TestResult } from '@playwright/test/reporter';
import { createLocatorRecorder, type KnownElements } from '../src/capture/locators';
import type { FrameCall } from '../src/capture/playwright-internals';
import { serverSideOf } from '../src/capture/server-headers';
import { parseLocator } from '../src/capture/written-locator';
import { takeCaptures } from '../src/captures';

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
    const recorder = createLocatorRecorder('data-testid', '/suite', known);
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
