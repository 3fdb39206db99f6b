import { expect, test } from '@playwright/test';

test('passes', () => {});

test.describe('orders', () => {
  test('fails until it is repaired', () => {
    expect(process.env['REPAIRED']).toBe('yes');
  });

  test('passes, too', () => {});
});
