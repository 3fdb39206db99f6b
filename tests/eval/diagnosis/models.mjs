/**
 * Answers of a model, scored. The environment names it: `EVAL_MODEL`, `EVAL_MODEL_BASE_URL`, `EVAL_MODEL_PROVIDER`
 * (`chat-completions` unless it is `messages`), `EVAL_MODEL_KEY` where it needs one, and `EVAL_MODEL_CASES`, how many
 * cases are asked at most. Without `EVAL_MODEL` nothing is asked.
 */
import { getJson, serviceUrl } from './service.mjs';
import { names } from './text.mjs';

const { EVAL_MODEL: model, EVAL_MODEL_BASE_URL: baseUrl, EVAL_MODEL_PROVIDER: provider = 'chat-completions', EVAL_MODEL_KEY: apiKey } = process.env;
const MAX_CASES = Number(process.env.EVAL_MODEL_CASES ?? 1_000);
/** Questions at a time: the service works through them one after the other where it runs alone. */
const PARALLEL = 4;
const LOOK_EVERY_MS = 1_000;

export const isModelConfigured = Boolean(model && baseUrl);

async function send(method, path, body) {
  const response = await fetch(new URL(path, serviceUrl), { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  const answer = await response.json();
  // The key is no part of an error: what the service says never holds it.
  if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${answer.message}`);
  return answer;
}

async function configure() {
  await send('PATCH', '/api/settings/ai', {
    enabled: true, roles: { diagnosis: { provider, baseUrl, model, ...(apiKey ? { apiKey } : {}) } },
    limits: { callsPerDay: 100_000, tokensPerDay: 1_000_000_000, projectCallsPerDay: 100_000, projectTokensPerDay: 1_000_000_000, maxInputTokens: 6_000 },
  });
}

async function diagnosisOf(id) {
  let found = await send('POST', `/api/test-run-cases/${id}/diagnose`, { wait: 20 });
  while (found.status === 'running') {
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    found = (await getJson(`/api/test-run-cases/${id}/diagnosis`)).diagnosis;
  }
  return found;
}

/** Texts of the sections that a context holds, by id. */
function sectionsOf(text) {
  const found = [...text.matchAll(/^<<<evidence \w+ (\w+)>>>\n([\s\S]*?)^<<<end \w+>>>$/gm)];
  return new Map(found.map(([, id, body]) => [id, body]));
}

/** Asks about one case: the category, and whether what it rests on names the cause. */
async function answerOf({ id, category, evidence }) {
  const { text } = await getJson(`/api/test-run-cases/${id}/diagnosis-context?maxChars=21000`);
  const sections = sectionsOf(text);
  const found = await diagnosisOf(id);
  if (found.status !== 'completed') return { error: found.errorCode };
  const cited = found.evidence.map(({ section }) => sections.get(section) ?? '');
  const written = [found.rootCause, found.summary, ...found.evidence.map(({ quote }) => quote)];
  return {
    category: found.category, isRight: found.category === category, confidence: found.confidenceScore,
    cites: cited.some((body) => names(body, evidence)), quotes: written.some((line) => names(line, evidence)),
    tokens: found.inputTokens + found.outputTokens, ms: found.duration,
  };
}

/** Adds the model's answer to each result. */
export async function askModel(results) {
  await configure();
  const waiting = results.slice(0, MAX_CASES);
  await Promise.all(Array.from({ length: PARALLEL }, async () => {
    for (let result = waiting.shift(); result; result = waiting.shift()) {
      result.answer = await answerOf(result).catch((error) => ({ error: error.message }));
    }
  }));
}

const share = (part, whole) => (whole === 0 ? null : Math.round((part / whole) * 1_000) / 1_000);

/** Figures of the answers; null where no model was asked. */
export function answerFigures(results) {
  const asked = results.filter(({ answer }) => answer);
  if (asked.length === 0) return null;
  const answered = asked.filter(({ answer }) => !answer.error);
  const of = (some, key) => share(some.filter(({ answer }) => answer[key]).length, some.length);
  const figures = (some) => ({ cases: some.length, category: of(some, 'isRight'), 'cites the line': of(some, 'cites'), 'quotes the line': of(some, 'quotes') });
  const sure = answered.filter(({ answer }) => answer.confidence >= 70);
  const errors = {};
  for (const { answer } of asked) if (answer.error) errors[answer.error] = (errors[answer.error] ?? 0) + 1;
  return {
    model, asked: asked.length, answered: answered.length, errors,
    by: {
      all: figures(answered), 'held out': figures(answered.filter(({ split }) => split === 'held out')),
      'confidence 70 and more': figures(sure), 'cause not in the error': figures(answered.filter(({ inError }) => !inError)),
    },
    tokens: answered.reduce((sum, { answer }) => sum + answer.tokens, 0),
  };
}
