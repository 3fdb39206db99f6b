import { expect, test } from '@playwright/test';

test.describe('before all, broken', () => {
  test.beforeAll(() => {
    throw new Error('no shop');
  });
  test('is the first', () => {});
  test('is the second', () => {});
});

test.describe('before all, broken once', () => {
  test.describe.configure({ retries: 1 });
  test.beforeAll(({}, { retry }) => {
    expect(retry).toBe(1);
  });
  test('is the first', () => {});
  test('is the second', () => {});
});

test.describe('before all, hanging', () => {
  test.beforeAll(async () => {
    test.setTimeout(200);
    await new Promise(() => {});
  });
  test('is the first', () => {});
  test('is the second', () => {});
});

test.describe('before all, skipping', () => {
  test.beforeAll(() => test.skip(true, 'no shop today'));
  test('is the first', () => {});
  test('is the second', () => {});
});

test.describe('after all, broken', () => {
  test.afterAll(() => {
    throw new Error('the shop does not close');
  });
  test('is the first', () => {});
  test('is the last', () => {});
});

test.describe('after all, broken once', () => {
  test.describe.configure({ retries: 1 });
  test.afterAll(({}, { retry }) => {
    expect(retry).toBe(1);
  });
  test('is the first', () => {});
  test('is the last', () => {});
});

test.describe('before each, broken', () => {
  test.beforeEach(() => {
    throw new Error('no customer');
  });
  test('is the first', () => {});
});

test.describe('before each, skipping', () => {
  test.beforeEach(async () => {
    await test.step('looks for a customer', async () => {});
    test.skip(true, 'no customer today');
  });
  test('is the first', () => {});
  test('fails if it runs', () => {
    expect(1).toBe(2);
  });
});

test.describe('before each, skipping after a failure', () => {
  test.describe.configure({ retries: 1 });
  test.beforeEach(({}, { retry }) => test.skip(retry > 0, 'no second customer'));
  test('fails', () => {
    expect(1).toBe(2);
  });
});

test.describe('after each, broken', () => {
  test.afterEach(() => {
    throw new Error('the customer stays');
  });
  test('passes', () => {});
  test('skips itself', () => test.skip());
});

test.describe('after each, skipping', () => {
  test.afterEach(() => test.skip(true, 'nothing to clear away'));
  test('passes', () => {});
  test('fails', () => {
    expect(1).toBe(2);
  });
});
