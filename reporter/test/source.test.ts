import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import type { TestResult } from '@playwright/test/reporter';
import { createSourceReader, stackLocations, testSourceFrames } from '../src/source';
import { rootAt } from './root-at';

test('parentheses in the path of a frame belong to it', () => {
  const place = '/repo/e2e/(shop)/pay.spec.ts';
  const stack = [
    'Error: lost',
    `    at ${place}:10:5`,
    `    at async ${place}:11:5`,
    `    at PayPage.open (${place}:12:5)`,
    `    at async Object.<anonymous> (file://${place}:13:5)`,
    '    at Array.map (<anonymous>)',
  ].join('\r\n');
  assert.deepEqual(stackLocations(stack).map(({ file, line, column }) => [file, line, column]),
    [10, 11, 12, 13].map((line) => [place, line, 5]));
});

test('an address of another system is taken as it is written', () => {
  const places = ['file://server/share/app.js', 'file:///a%2Fb.js'];
  assert.deepEqual(stackLocations(places.map((place) => `    at open (${place}:1:2)`).join('\n')).map(({ file }) => file), places);
});

test('lines keep the carriage returns of their file', (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'callboard-source-'));
  t.after(() => { rmSync(folder, { recursive: true }); });
  const file = path.join(folder, 'pay.spec.ts');
  writeFileSync(file, 'one\r\ntwo\r\n');
  const result = { status: 'failed', errors: [{ message: 'lost', stack: `Error: lost\n    at ${file}:1:1` }] };
  const frames = testSourceFrames(result as unknown as TestResult, rootAt(folder), createSourceReader());
  assert.deepEqual(frames, [{ file: 'pay.spec.ts', line: 1, snippet: '>    1 | one\r\n     2 | two\r\n     3 | ' }]);
});
