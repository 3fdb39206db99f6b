import { expect, test } from '@playwright/test';

test('adds an item', () => {});

test.describe('checkout', () => {
  test.describe('card', () => {
    test('pays', () => expect(1).toBe(2));
  });
  test.skip('pays later', () => {});
});
