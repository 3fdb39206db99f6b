/**
 * Ways in which the shop can be different, and lines of evidence. A line is a list of what has to stand in one line of
 * the text, in any order: packers write the same fact in different words. A case may have several such lines, any of
 * which names its cause.
 */

/** Replaces text in a served file. */
export const edit = (file, ...replacements) => ({ files: { [file]: pairs(replacements) } });

function pairs(list) {
  return Array.from({ length: list.length / 2 }, (_, at) => [list[2 * at], list[2 * at + 1]]);
}

const isOf = (call, method, path) => call.method === method && call.path.startsWith(path);
const patience = Number(process.env.EVAL_PATIENCE ?? 1);
/** Longer than any test waits. */
export const late = () => new Promise((resolve) => { setTimeout(resolve, 6_000 * patience).unref(); });

/** Answers a call of the API otherwise. */
export const answers = (method, path, answer) => ({ answer: (call) => (isOf(call, method, path) ? answer : undefined) });

/** Answers with an error that says little, as servers do; logs go to the log of the backend only. */
export const fails = (method, path, status, logs) => answers(method, path, { status, body: { error: 'error' }, logs });

export const drops = (method, path) => answers(method, path, { drop: true });

/** Answers as always, but late. */
export const slow = (method, path) => ({
  answer: async (call) => {
    if (isOf(call, method, path)) await late();
    return undefined;
  },
});

export const partner = (path, answer) => ({ partner: (call) => (call.path.startsWith(path) ? answer : undefined) });

/** A line with all of these. */
export const line = (...terms) => terms;

/** A request with its status. */
export const request = (path, status) => [path, new RegExp(`(^|\\D)${status}(\\D|$)`)];

/** A request that had no answer when the test ended, or after seconds. */
export const unanswered = (path) => [path, /no (answer|response)|pending|aborted|failed|"status": ?(0|-1)|\D[2-9]\d{3}(\.\d+)? ?ms|"duration": ?[2-9]\d{3}|ERR_(EMPTY|ABORTED|CONN)/i];

/** What the case is, in the words of the verdict, and of the categories of a diagnosis. */
const CATEGORIES = {
  'app-error': 'app-bug', 'likely-regression': 'app-bug', 'locator-drift': 'test-bug', 'test-bug': 'test-bug', 'likely-flake': 'flaky-test',
  environment: 'environment', outage: 'infrastructure', 'known-cluster': 'app-bug',
};

/** A case: the test it happens to, its verdict, what is different, and the lines that name the cause. */
export function makeCase(verdict) {
  return (test, difference, ...evidence) => ({ test, verdict, category: CATEGORIES[verdict], difference, evidence });
}
