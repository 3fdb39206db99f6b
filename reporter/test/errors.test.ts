import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestError, TestResult, TestStep } from '@playwright/test/reporter';
import { errorText } from '../src/errors';
import { summariseSteps } from '../src/steps';
import { rootAt } from './root-at';

const at = (line: number) => ({ file: '/shop/a.spec.ts', line, column: 3 });
const textOf = (errors: TestError[]): string | null =>
  errorText({ errors } as unknown as TestResult, at(1), rootAt('/shop'));

test('failures with equal messages keep their places', () => {
  const soft = (line: number): TestError => ({ message: 'Error: expected 5', location: at(line) });
  assert.equal(textOf([soft(4), soft(5), soft(4)]),
    'Error: expected 5\n    at a.spec.ts:4:3\n---\nError: expected 5\n    at a.spec.ts:5:3');
});

test('one error without a place gets that of the test, and a message with a stack is left as it is', () => {
  assert.equal(textOf([{ message: 'Test timeout' }]), 'Test timeout\n    at a.spec.ts:1:3');
  assert.equal(textOf([{ message: 'Error: no\n    at x (/b.ts:1:2)', location: at(9) }]), 'Error: no\n    at x (/b.ts:1:2)');
  assert.equal(textOf([{ message: '' }]), null);
});

test('skipped steps and hooks that skip are not failed', () => {
  const startTime = new Date(1_000);
  const step = (fields: Partial<TestStep>): TestStep =>
    ({ title: 's', category: 'test.step', startTime, duration: 1, steps: [], annotations: [], ...fields }) as unknown as TestStep;
  const { steps, stepEvents } = summariseSteps({
    startTime, duration: 5, steps: [
      step({ annotations: [{ type: 'skip', description: 'needs a beta account' }] }),
      step({ category: 'hook', error: { message: 'Error: Test is skipped: no env' } }),
      step({ error: { message: 'Error: no' } }),
      step({ title: 'adds to the cart', subtitle: 'SKU 42', params: { sku: 42, apiToken: 'x' } } as Partial<TestStep>),
    ],
  } as unknown as TestResult, rootAt('/shop'));
  assert.deepEqual(steps.map(({ skipped, skipReason, failed, error }) => ({ skipped, skipReason, failed, error })), [
    { skipped: true, skipReason: 'needs a beta account', failed: undefined, error: undefined },
    { skipped: true, skipReason: 'no env', failed: undefined, error: undefined },
    { skipped: undefined, skipReason: undefined, failed: true, error: { message: 'Error: no' } },
    { skipped: undefined, skipReason: undefined, failed: undefined, error: undefined },
  ]);
  assert.deepEqual(stepEvents.map(({ status }) => status), ['skipped', 'skipped', 'failed', 'passed']);
  assert.deepEqual([steps[3]!.title, steps[3]!.subtitle, stepEvents[3]!.title], ['adds to the cart', 'SKU 42', 'adds to the cart SKU 42']);
  assert.equal(steps[3]!.params, '{"sku":42,"apiToken":"<redacted>"}');
});
