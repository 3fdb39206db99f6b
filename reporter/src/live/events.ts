/**
 * What the live page is told while tests run, beside results: a test began, a hook or a
 * `test.step` began or ended. The service forwards these and keeps none of them.
 */
import type { TestCase, TestResult, TestStep } from '@playwright/test/reporter';
import { browserOf } from '../browser';
import { relativeLocation } from '../locations';
import type { SourceRoot } from '../source-root';
import { describeBlocks } from '../suites';
import { stepStatus } from '../steps';
import { titleFor } from '../title';
import type { QueuedEvent } from './event-queue';

export function beginEvent(test: TestCase, result: TestResult, root: SourceRoot, shardIndex: number | null): QueuedEvent {
  return eventOf({
    type: 'begin',
    title: titleFor(test),
    location: relativeLocation(test.location, root),
    suitePath: describeBlocks(test).map((suite) => suite.title),
    browser: browserOf(test.parent.project()),
    retries: result.retry,
    workerIndex: result.workerIndex,
    parallelIndex: result.parallelIndex,
    shardIndex,
  });
}

/** Undefined for steps nobody follows live: single actions, steps inside of steps, the frames around hooks. */
export function stepEvent(
  type: 'step-begin' | 'step-end', test: TestCase, result: TestResult, step: TestStep, root: SourceRoot,
): QueuedEvent | undefined {
  const isFollowed = step.category === 'test.step'
    ? step.parent?.category !== 'test.step'
    : step.category === 'hook' && step.parent !== undefined;
  if (!isFollowed) return undefined;
  return eventOf({
    type,
    title: titleFor(step).slice(0, 500),
    parentTitle: titleFor(test),
    stepCategory: step.category,
    location: step.location ? relativeLocation(step.location, root) : null,
    workerIndex: result.workerIndex,
    startedAt: step.startTime.getTime(),
    ...(type === 'step-end' ? { status: stepStatus(step), duration: Math.max(0, Math.round(step.duration)) } : {}),
  });
}

function eventOf(event: Record<string, unknown>): QueuedEvent {
  return { json: JSON.stringify(event) };
}
