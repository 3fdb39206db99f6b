import { expect, test } from '@playwright/test';

test.describe.serial('run again after a failure', () => {
  test.describe.configure({ retries: 1 });
  test('passes, then fails', ({}, { retry }) => {
    expect(retry).toBe(0);
  });
  test('fails', () => {
    expect('here').toBe('there');
  });
  test('never begins', () => {});
  test.skip('is skipped', () => {});
});

test.describe.serial('works the second time', () => {
  test.describe.configure({ retries: 1 });
  test('passes twice', () => {});
  test('passes at its second attempt', ({}, { retry }) => {
    expect(retry).toBe(1);
  });
  test('begins at the second attempt', () => {});
});

test.describe.serial('fails elsewhere the second time', () => {
  test.describe.configure({ retries: 1 });
  test('is the first', ({}, { retry }) => {
    expect(retry).toBe(0);
  });
  test('is the second', ({}, { retry }) => {
    expect(retry).toBe(1);
  });
  test('is the third', () => {});
});

test.describe('without another attempt', () => {
  test.describe.configure({ mode: 'serial' });
  test('passes', () => {});
  test('fails', () => {
    expect(1).toBe(2);
  });
  test('never begins', () => {});
  test.fixme('is broken', () => {});
  test.describe('nested', () => {
    test('never begins', () => {});
  });
});

test.describe.serial('skips in between', () => {
  test.describe.configure({ retries: 1 });
  test('passes', () => {});
  test('skips itself the second time', ({}, { retry }) => test.skip(retry > 0, 'once is enough'));
  test('fails once', ({}, { retry }) => {
    expect(retry).toBe(1);
  });
});

test.describe.serial('fails as expected', () => {
  test('fails', () => {
    test.fail();
    expect(1).toBe(2);
  });
  test('comes after', () => {});
});

test.describe.serial('before all, broken', () => {
  test.beforeAll(() => {
    throw new Error('no order');
  });
  test('is the first', () => {});
  test('is the second', () => {});
});

test.describe.serial('after all, broken', () => {
  test.afterAll(() => {
    throw new Error('no end');
  });
  test('is the first', () => {});
  test('is the last', () => {});
});

test.describe('in parallel', () => {
  test.describe.configure({ mode: 'parallel', retries: 1 });
  for (const number of [1, 2, 3]) {
    test(`is number ${number}`, ({}, { retry }) => {
      expect(number === 2 ? retry : 1).toBe(1);
    });
  }
});
