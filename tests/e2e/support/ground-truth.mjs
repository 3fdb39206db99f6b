/**
 * What really happened, from Playwright's own JSON report: one entry per test and
 * browser project, with its attempts and the files it left.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { shopDir } from './playwright-run.mjs';
import { sha256 } from './service.mjs';

export function readGroundTruth(file = path.join(shopDir, 'test-results/results.json')) {
  const report = JSON.parse(readFileSync(file, 'utf8'));
  // `tests/` as it is called from the root of the work tree.
  const tests = `${execFileSync('git', ['rev-parse', '--show-prefix'], { cwd: shopDir, encoding: 'utf8' }).trim()}tests`;
  return report.suites.flatMap((suite) => testsOf(suite, tests));
}

function testsOf(suite, tests) {
  return [
    ...suite.specs.flatMap((spec) => spec.tests.map((test) => ({
      title: spec.title,
      project: test.projectName,
      location: `${tests}/${path.basename(spec.file)}:${spec.line}:${spec.column}`,
      flaky: test.status === 'flaky',
      attempts: test.results.map((result) => ({ retry: result.retry, status: result.status })),
      files: test.results.flatMap((result) => result.attachments
        .filter(({ name }) => !/^(_|callboard-)/.test(name))
        .map((attachment) => ({
          retry: result.retry,
          name: attachment.name,
          isOnDisk: Boolean(attachment.path),
          sha256: sha256(attachment.path ? readFileSync(attachment.path) : Buffer.from(attachment.body, 'base64')),
        }))),
    }))),
    ...(suite.suites ?? []).flatMap((child) => testsOf(child, tests)),
  ];
}
