import { test } from '@playwright/test';

test('opens the shop', () => {});
