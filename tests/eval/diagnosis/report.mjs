/** The figures, and what is missing. */
import { answerFigures } from './models.mjs';
import { BUDGET } from './score.mjs';

/** Share of causes that the text for a model has to name. */
const TARGET = 0.95;

const share = (part, whole) => (whole === 0 ? null : Math.round((part / whole) * 1_000) / 1_000);
const median = (numbers) => [...numbers].sort((one, other) => one - other)[Math.floor(numbers.length / 2)] ?? null;

function groupsOf(results, key) {
  const groups = new Map();
  for (const result of results) groups.set(key(result), [...(groups.get(key(result)) ?? []), result]);
  return groups;
}

/** The ways in which recall is looked at. */
const CUTS = {
  all: () => 'all', split: ({ split }) => split, 'cause in the error': ({ inError }) => (inError ? 'yes' : 'no'), verdict: ({ expected }) => expected,
};

export function figuresOf({ results, missing }) {
  const packers = [...new Set(results.flatMap(({ packed }) => Object.keys(packed)))];
  const recall = (some, name) => {
    const asked = some.filter(({ packed }) => packed[name]);
    return share(asked.filter(({ packed }) => packed[name].isNamed).length, asked.length);
  };
  return {
    budget: BUDGET, cases: results.length, missing,
    recall: Object.fromEntries(Object.entries(CUTS).flatMap(([cut, key]) => [...groupsOf(results, key)].map(([value, some]) => [
      cut === 'all' ? 'all' : `${cut}: ${value}`,
      {
        cases: some.length, stored: share(some.filter(({ held }) => held.length > 0).length, some.length),
        'stored, no trace': share(some.filter(({ held }) => held.some((section) => section !== 'trace')).length, some.length),
        'error alone': share(some.filter(({ inError }) => inError).length, some.length),
        ...Object.fromEntries(packers.map((name) => [name, recall(some, name)])),
      },
    ]))),
    tokens: {
      everything: median(results.map(({ everything }) => everything)), 'everything and the trace': median(results.map(({ everything, traceTokens }) => everything + traceTokens)),
      ...Object.fromEntries(packers.map((name) => [name, median(results.flatMap(({ packed }) => packed[name]?.tokens ?? []))])),
    },
    clusters: clustersOf(results), suggestions: suggestionsOf(results),
    verdicts: {
      exact: share(results.filter(({ verdict, expected }) => verdict === expected).length, results.length),
      category: share(results.filter(({ said, category }) => said === category).length, results.length),
      'held out, exact': heldOut(results, ({ verdict, expected }) => verdict === expected),
      confusion: Object.fromEntries([...groupsOf(results, ({ expected }) => expected)].map(([expected, some]) => [
        expected, Object.fromEntries([...groupsOf(some, ({ verdict }) => verdict)].map(([verdict, same]) => [verdict, same.length])),
      ])),
    },
    answers: answerFigures(results),
    results,
  };
}

/** A locator suggested where the locator was not what is wrong makes a test pass that should fail. */
function suggestionsOf(results) {
  const suggested = results.filter((result) => result.suggested);
  const right = suggested.filter(({ expected }) => expected === 'locator-drift');
  const drifted = results.filter(({ expected }) => expected === 'locator-drift');
  return { suggested: suggested.length, right: right.length, precision: share(right.length, suggested.length), recall: share(right.length, drifted.length), 'wrong with an edit': suggested.filter((result) => result.hasEdit && !right.includes(result)).length };
}

/** Cases have causes of their own: a cluster of several hides all but one of them. */
function clustersOf(results) {
  const sizes = [...groupsOf(results, ({ clusterId }) => clusterId).values()].map((some) => some.length);
  return { clusters: sizes.length, 'with several cases': sizes.filter((size) => size > 1).length, 'most cases in one': Math.max(...sizes) };
}

function heldOut(results, isRight) {
  const held = results.filter(({ split }) => split === 'held out');
  return share(held.filter(isRight).length, held.length);
}

export function print(figures, { details }) {
  const { recall, tokens, verdicts, results, missing } = figures;
  console.log(`\nDiagnosis: ${figures.cases} executions that failed, each with a known cause`);
  console.log(`\nShare of cases whose cause is named, within ${figures.budget} tokens of 3.5 bytes\n`);
  table(Object.entries(recall).map(([cut, row]) => ({ '': cut, ...row })));
  console.log('\nTokens, median\n');
  table(Object.entries(tokens).map(([text, count]) => ({ '': text, tokens: count })));
  console.log(`\nClusters: ${Object.entries(figures.clusters).map(([name, count]) => `${count} ${name}`).join(', ')}`);
  console.log(`\nLocators: ${Object.entries(figures.suggestions).map(([name, count]) => `${count} ${name}`).join(', ')}`);
  console.log(`\nVerdict without a model: ${verdicts.exact} exact (${verdicts['held out, exact']} of those held out), ${verdicts.category} in the right category\n`);
  const said = [...new Set(Object.values(verdicts.confusion).flatMap((row) => Object.keys(row)))];
  table(Object.entries(verdicts.confusion).map(([expected, row]) => ({ 'is \\ said': expected, ...Object.fromEntries(said.map((verdict) => [verdict, row[verdict] ?? ''])) })));
  printAnswers(figures.answers);
  for (const [name, value] of Object.entries(recall.all)) {
    if (name in tokens && value < TARGET) printMisses(name, results);
  }
  if (details) {
    console.log('\nVerdicts that are wrong\n');
    for (const { test, id, expected, verdict, also, confidence, headline } of results.filter((each) => each.verdict !== each.expected)) {
      console.log(`${id} ${test}: is ${expected}, said ${verdict} ${confidence}${also ? `, also ${also}` : ''}\n    ${headline}`);
    }
  }
  for (const { test, half, outcome } of missing) console.log(`not as it was meant to be: ${test} (${half} half): ${outcome}`);
}

function printAnswers(answers) {
  if (!answers) {
    console.log('\nAnswers of a model: none was asked; EVAL_MODEL and EVAL_MODEL_BASE_URL name one');
    return;
  }
  const failed = Object.entries(answers.errors).map(([error, count]) => `${count} ${error}`).join(', ');
  console.log(`\nAnswers of ${answers.model}: ${answers.answered} of ${answers.asked}, ${answers.tokens} tokens${failed && `; failed: ${failed}`}\n`);
  table(Object.entries(answers.by).map(([cut, row]) => ({ '': cut, ...row })));
}

function printMisses(name, results) {
  const misses = results.filter(({ packed }) => packed[name] && !packed[name].isNamed);
  console.log(`\n${name} does not name ${misses.length} causes; where they are stored\n`);
  for (const { test, id, held } of misses) console.log(`  ${id} ${test}: ${held.join(', ') || 'nowhere'}`);
}

function table(rows) {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const texts = [columns, ...rows.map((row) => columns.map((column) => String(row[column] ?? '–')))];
  const widths = columns.map((_, at) => Math.max(...texts.map((cells) => cells[at].length)));
  for (const cells of texts) console.log(cells.map((cell, at) => (at === 0 ? cell.padEnd(widths[at]) : cell.padStart(widths[at]))).join('  '));
}
