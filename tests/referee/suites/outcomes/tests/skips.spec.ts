import { expect, test } from '@playwright/test';

test.skip('is skipped where it is declared', () => {});
test.fixme('is broken where it is declared', () => {});

test('skips itself', () => {
  test.skip();
});

test('skips itself with a reason', () => {
  test.skip(true, 'the printer is out of paper');
});

test('says later in the old way', () => {
  (test as unknown as { skip(reason: string): void }).skip('later');
});

test('waits for a repair', () => {
  test.fixme(true, 'waiting for SHOP-12');
});

test('does not skip itself', () => {
  test.skip(false, 'never');
});

test.describe('tried twice', () => {
  test.describe.configure({ retries: 1 });

  test('skips itself after a failure', ({}, { retry }) => {
    test.skip(retry > 0, 'the other side is down');
    expect(1).toBe(2);
  });
});

test('skips itself in a step', async () => {
  await test.step('looks around', () => test.skip(true, 'nothing to see'));
});

test.describe('skipped by condition', () => {
  test.skip(({ browserName }) => browserName !== 'none', 'only without a browser');

  test('one', () => {});
  test('two', () => {
    expect(1).toBe(2);
  });
});

test.describe.skip('a skipped group', () => {
  test('one', () => {});
});

test.describe.fixme('a broken group', () => {
  test('one', () => {});
});
