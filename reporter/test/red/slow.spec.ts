import { test } from '@playwright/test';

test('never ends', () => new Promise(() => setInterval(() => {}, 1_000)));
test('comes after', () => {});
