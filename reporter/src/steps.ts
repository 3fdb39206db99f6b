/**
 * Playwright's step tree in the two forms the service keeps: a flat list for reading
 * and a shorter list of events for the timeline, plus the numbers derived from them.
 */
import type { TestResult, TestStep } from '@playwright/test/reporter';
import { relativeLocation } from './locations';
import type { SourceRoot } from './source-root';
import { stripAnsi } from './errors';
import { titleFor } from './title';

type FlatCategory =
  | 'hook' | 'fixture' | 'assertion' | 'wait' | 'navigation' | 'action' | 'input' | 'api' | 'other';

export interface FlatStep {
  title: string;
  /** What the step is about, such as a locator, where Playwright says that apart from the title (1.63). */
  subtitle?: string;
  duration: number;
  category: FlatCategory;
  error?: { message: string };
  failed?: boolean;
  skipped?: boolean;
  skipReason?: string;
  /** What the author of the step passed with it, as JSON. */
  params?: string;
  location?: string;
  startTime: number;
}

export interface StepEvent {
  title: string;
  category: 'hook' | 'fixture' | 'wait' | 'test.step' | 'expect';
  startedAt: number;
  duration: number;
  status: 'passed' | 'failed' | 'skipped' | 'wasted';
  location: string | null;
}

export interface StepSummary {
  steps: FlatStep[];
  stepEvents: StepEvent[];
  slowestStep: string | null;
  slowestStepDuration: number | null;
  wastedTimeMs: number;
}

const TITLE_MAX_CHARS = 500;
const ERROR_MAX_CHARS = 2_000;
const SKIP_REASON_MAX_CHARS = 500;
const PARAMS_MAX_CHARS = 500;
/** The service keeps this many by default; sending more would only be thrown away. */
const STEPS_MAX = 500;
const EVENTS_MAX = 1_000;

export function summariseSteps(result: TestResult, root: SourceRoot): StepSummary {
  const end = result.startTime.getTime() + result.duration;
  const all = [...depthFirst(result.steps)].map((step) => timed(step, end));
  const leaves = all.filter(({ step }) => step.steps.length === 0 && !isFrame(step));
  const slowest = leaves.reduce<TimedStep | undefined>(
    (best, each) => (best === undefined || each.duration > best.duration ? each : best), undefined);
  return {
    steps: all.slice(0, STEPS_MAX).map((step) => flatStep(step, root)),
    stepEvents: all.flatMap((step) => stepEvent(step, root)).slice(0, EVENTS_MAX),
    slowestStep: slowest ? titleOf(slowest.step) : null,
    slowestStepDuration: slowest ? slowest.duration : null,
    wastedTimeMs: wastedTime(result),
  };
}

/** Time spent in waits of a fixed length. */
export function wastedTime(result: TestResult): number {
  return [...depthFirst(result.steps)].filter(isFixedWait)
    .reduce((total, step) => total + Math.max(0, Math.round(step.duration)), 0);
}

/** The innermost step still going on when the attempt was cut off, usually by its timeout. */
export function unfinishedStep(result: TestResult): TestStep | undefined {
  return [...depthFirst(result.steps)].filter((step) => isUnfinished(step) && step.location).at(-1);
}

interface TimedStep {
  step: TestStep;
  duration: number;
  failed: boolean;
  skip: Skip | undefined;
}

interface Skip {
  reason?: string;
}

/** A step that never ended lasted until the attempt did, and is where it got stuck. */
function timed(step: TestStep, attemptEnd: number): TimedStep {
  const unfinished = isUnfinished(step);
  const duration = unfinished ? attemptEnd - step.startTime.getTime() : step.duration;
  const skip = skipOf(step);
  return { step, skip, duration: Math.max(0, Math.round(duration)), failed: !skip && (unfinished || step.error !== undefined) };
}

/** What a skip ends ends with an error of this kind: hooks and steps around `test.skip()` did not fail. */
const SKIP_ERROR = /^(?:Error: )?Test is skipped(?:: (.*))?/;

/** How a step ended, for those who watch. */
export function stepStatus(step: TestStep): 'passed' | 'failed' | 'skipped' {
  if (skipOf(step)) return 'skipped';
  return step.error ? 'failed' : 'passed';
}

/** Playwright before 1.51 has no annotations of steps. */
function skipOf({ annotations, error }: TestStep): Skip | undefined {
  const byError = SKIP_ERROR.exec(stripAnsi(error?.message ?? ''));
  if (byError) return byError[1] ? { reason: byError[1] } : {};
  const declared = error ? undefined : annotations?.find(({ type }) => type === 'skip');
  return declared && (declared.description ? { reason: declared.description } : {});
}

function isUnfinished(step: TestStep): boolean {
  return step.duration < 0;
}

function* depthFirst(steps: readonly TestStep[]): Generator<TestStep> {
  for (const step of steps) {
    yield step;
    yield* depthFirst(step.steps);
  }
}

function flatStep({ step, duration, failed, skip }: TimedStep, root: SourceRoot): FlatStep {
  const { error, location } = step;
  const params = paramsOf(step);
  return {
    title: titleFor(step).slice(0, TITLE_MAX_CHARS),
    ...(step.subtitle ? { subtitle: step.subtitle.slice(0, TITLE_MAX_CHARS) } : {}),
    duration,
    category: flatCategory(step),
    ...(failed ? { failed } : {}),
    ...(skip ? { skipped: true } : {}),
    ...(skip?.reason ? { skipReason: skip.reason.slice(0, SKIP_REASON_MAX_CHARS) } : {}),
    ...(params ? { params } : {}),
    ...(error && !skip ? { error: { message: stripAnsi(error.message ?? error.value ?? '').slice(0, ERROR_MAX_CHARS) } } : {}),
    ...(location ? { location: relativeLocation(location, root) } : {}),
    startTime: step.startTime.getTime(),
  };
}

function stepEvent({ step, duration, failed, skip }: TimedStep, root: SourceRoot): StepEvent[] {
  const category = eventCategory(step);
  if (!category) return [];
  return [{
    title: titleOf(step),
    category,
    startedAt: step.startTime.getTime(),
    duration,
    status: failed ? 'failed' : skip ? 'skipped' : isFixedWait(step) ? 'wasted' : 'passed',
    location: step.location ? relativeLocation(step.location, root) : null,
  }];
}

function eventCategory(step: TestStep): StepEvent['category'] | undefined {
  switch (step.category) {
    case 'hook':
    case 'fixture':
    case 'test.step':
    case 'expect':
      return step.category;
    default:
      return flatCategory(step) === 'wait' ? 'wait' : undefined;
  }
}

/** Titles differ between Playwright releases (`page.goto(…)`, `Navigate to …`), so both are known. */
const API_CATEGORIES: readonly (readonly [RegExp, FlatCategory])[] = [
  [/^wait\b|\.waitFor/i, 'wait'],
  [/^(navigate|reload|go back|go forward)\b|\.(goto|reload|goBack|goForward|setContent)\b/i, 'navigation'],
  [/^(fill|type|press|select|clear|set input files|insert)\b|\.(fill|type|press|pressSequentially|selectOption|clear|setInputFiles|insertText)\b/i, 'input'],
  [/^(double )?(click|tap|hover|check|uncheck|drag|focus|blur|scroll|dispatch)\b|\.(click|dblclick|tap|hover|check|uncheck|setChecked|dragTo|dragAndDrop|focus|blur|scrollIntoViewIfNeeded|dispatchEvent)\b/i, 'action'],
];

function flatCategory(step: TestStep): FlatCategory {
  switch (step.category) {
    case 'hook':
    case 'fixture':
      return step.category;
    case 'expect':
      return 'assertion';
    case 'pw:api':
      return API_CATEGORIES.find(([pattern]) => pattern.test(step.title))?.[1] ?? 'api';
    default:
      return 'other';
  }
}

const SECRET_NAME = /token|secret|passw|pwd|auth|key|session|credential/i;

/** Those of `test.step` since Playwright 1.63; what actions are called with may be typed secrets and stays here. */
function paramsOf({ category, params }: TestStep): string | undefined {
  if (category !== 'test.step' || !params || Object.keys(params).length === 0) return undefined;
  try {
    const text = JSON.stringify(params, (name, value: unknown) => (name !== '' && SECRET_NAME.test(name) ? '<redacted>' : value));
    return text.length > PARAMS_MAX_CHARS ? `${text.slice(0, PARAMS_MAX_CHARS - 1)}…` : text;
  } catch {
    return undefined;
  }
}

function isFrame(step: TestStep): boolean {
  return step.category === 'hook' || step.category === 'fixture';
}

function isFixedWait(step: TestStep): boolean {
  return step.category === 'pw:api' && /waitForTimeout|^wait for timeout/i.test(step.title);
}

/** As one text: newer Playwright splits "Click" and "getByRole('button')" into title and subtitle. */
function titleOf(step: TestStep): string {
  const { title: own, subtitle } = step;
  const title = subtitle && !own.includes(subtitle) ? `${own} ${subtitle}` : own;
  return titleFor({ title }).slice(0, TITLE_MAX_CHARS);
}
