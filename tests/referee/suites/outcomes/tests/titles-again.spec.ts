import { test } from '@playwright/test';

test('opens', () => {});
test('passes', () => {});
test('fails', () => {});
