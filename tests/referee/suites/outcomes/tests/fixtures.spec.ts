import { expect, test as base } from '@playwright/test';

interface Fixtures {
  broken: string;
  leaking: string;
  skipping: string;
  slow: string;
}

const test = base.extend<Fixtures, { missing: string }>({
  broken: async ({}, use) => {
    if (base.info().title !== 'is not asked for') throw new Error('no fixture');
    await use('');
  },
  leaking: async ({}, use) => {
    await use('');
    throw new Error('not cleaned up');
  },
  skipping: async ({}, use) => {
    base.skip(true, 'no fixture today');
    await use('');
  },
  slow: [async ({}, use) => {
    await new Promise(() => {});
    await use('');
  }, { timeout: 200 }],
  missing: [async ({}, use) => {
    throw new Error('no worker fixture');
    await use('');
  }, { scope: 'worker' }],
});

test('a fixture is broken', ({ broken }) => void broken);

test('a fixture is not cleaned up', ({ leaking }) => void leaking);

test('a fixture is not cleaned up after a failure', ({ leaking }) => {
  expect(leaking).toBe('clean');
});

test('a fixture skips the test', ({ skipping }) => void skipping);

test('a fixture hangs', ({ slow }) => void slow);

test('a fixture of the worker is broken', ({ missing }) => void missing);

test('and of the next test', ({ missing }) => void missing);

test('passes', () => {});
