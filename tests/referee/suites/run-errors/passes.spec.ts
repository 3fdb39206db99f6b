import { test } from '@playwright/test';

test('passes', () => {});
