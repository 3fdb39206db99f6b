/**
 * How well failures are explained: makes executions with known causes and asks the service about them. Needs
 * `CALLBOARD_URL`, a service without sign-in and rate limits; `--details` lists wrong verdicts, `--score` asks about the
 * executions that an earlier call made there. Figures go to the file that `EVAL_FIGURES` names.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { figuresOf, print } from './report.mjs';
import { makeRuns } from './runs.mjs';
import { scoreAll } from './score.mjs';
import { serviceUrl } from './service.mjs';

if (!serviceUrl) throw new Error('CALLBOARD_URL must name the running service, for instance CALLBOARD_URL=http://127.0.0.1:3000');

const options = new Set(process.argv.slice(2));
const began = Date.now();
if (!options.has('--score')) {
  for (const problem of await makeRuns(serviceUrl)) console.error(problem);
  console.log(`Executions made in ${Math.round((Date.now() - began) / 1_000)} s`);
}
const figures = figuresOf(await scoreAll());
print(figures, { details: options.has('--details') });
const file = path.resolve(process.env.EVAL_FIGURES ?? 'target/eval/diagnosis.json');
await mkdir(path.dirname(file), { recursive: true });
await writeFile(file, `${JSON.stringify(figures, null, 2)}\n`);
console.log(`\nFigures: ${file}`);
// A case that did not fail as it was meant to says nothing about the service.
if (figures.missing.length > 0) process.exitCode = 1;
