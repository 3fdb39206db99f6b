/**
 * The labelled cases. Each names a test of the shop's suite, what is different while it runs, the verdict that is
 * right, and the lines that name the cause.
 */
import { createHash } from 'node:crypto';
import appErrors from './faults/app-errors.mjs';
import others from './faults/others.mjs';
import regressions from './faults/regressions.mjs';

/** Shares of a hash, so that a case stays where it is when others are added. */
const share = (salt, title, of) => createHash('sha256').update(`${salt} ${title}`).digest().readUInt32BE() % of;

/** Each half fails in a project of its own beside the other half, which passes: a run in which all fails is an outage. */
function halfOf({ test, change, isRepeated, isOutage }) {
  if (isRepeated) return 'first';
  if (isOutage || change?.spec.endsWith('config.ts')) return 'second';
  return share('half', test, 2) === 0 ? 'first' : 'second';
}

export const cases = [...appErrors, ...regressions, ...others].map((each) => ({
  ...each, half: halfOf(each), split: share('split', each.test, 3) === 0 ? 'held out' : 'development',
}));

const titles = new Set(cases.map(({ test }) => test));
if (titles.size !== cases.length) throw new Error('a test has two cases');

/** Cases that fail in a phase of the evaluation: healthy, first, second, repeated, stopped. */
export function casesOf(phase) {
  if (phase === 'stopped') return cases.filter(({ isOutage }) => isOutage);
  if (phase === 'repeated') return cases.filter(({ isRepeated }) => isRepeated);
  return cases.filter(({ half, isOutage }) => half === phase && !isOutage);
}
