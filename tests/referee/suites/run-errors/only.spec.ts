import { test } from '@playwright/test';

test.only('is focused', () => {});
test('is not', () => {});
