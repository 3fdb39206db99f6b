import { expect, test } from '@playwright/test';

test('passes each time', () => {});

test('fails the second time', ({}, { repeatEachIndex }) => {
  expect(repeatEachIndex).toBe(0);
});

test('is flaky the first time', ({}, { repeatEachIndex, retry }) => {
  expect(repeatEachIndex + retry).toBe(1);
});

test('skips itself the second time', ({}, { repeatEachIndex }) => {
  test.skip(repeatEachIndex === 1, 'once is enough');
});

test.skip('is skipped', () => {});

test.describe.serial('in order', () => {
  test('passes', () => {});
  test('fails the first time', ({}, { repeatEachIndex }) => {
    expect(repeatEachIndex).toBe(1);
  });
  test('begins the second time', () => {});
});
