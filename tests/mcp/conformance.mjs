/**
 * Runs the official conformance suite of the protocol against a running service, in both eras.
 * Most of its scenarios call tools, prompts and resources that an example server has and a real
 * one has not; which checks can therefore not pass is in `conformance-differences.json`. Every
 * other difference, in either direction, is a failure. Needs `CALLBOARD_URL`.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const serviceUrl = process.env.CALLBOARD_URL?.replace(/\/+$/, '');
if (!serviceUrl) {
  throw new Error('CALLBOARD_URL must name the running service, for instance CALLBOARD_URL=http://127.0.0.1:3000');
}
const { reasons, checks } = JSON.parse(await readFile(new URL('conformance-differences.json', import.meta.url), 'utf8'));
const LONGEST_RUN_MS = 300_000;

/** The suite needs Node 22; where this one is older, the one that came with the packages. */
function node() {
  if (Number(process.versions.node.split('.')[0]) >= 22) {
    return process.execPath;
  }
  const bundled = path.join(path.dirname(fileURLToPath(import.meta.url)), 'node_modules', `node-${process.platform}-${process.arch}`, 'bin', 'node');
  assert.ok(existsSync(bundled), 'the conformance suite needs Node.js 22 or newer');
  return bundled;
}

/** Everything a revision requires, and what came of it: `scenario check` of those that failed. */
async function failuresOf(revision) {
  const manifest = createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json');
  const suite = path.join(path.dirname(manifest), 'dist', 'index.js');
  const folder = await mkdtemp(path.join(tmpdir(), 'conformance-'));
  try {
    const args = [suite, 'server', '--url', `${serviceUrl}/mcp`, '--requirements', revision, '-o', folder];
    const said = await new Promise((resolve) => {
      execFile(node(), args, { timeout: LONGEST_RUN_MS, maxBuffer: 64 * 1024 * 1024 }, (_, stdout, stderr) => resolve(stdout + stderr));
    });
    const failed = [];
    let passed = 0;
    for (const name of await readdir(folder)) {
      const scenario = /^server-(.*)-\d{4}-\d{2}-\d{2}T[\d-]+Z$/.exec(name)?.[1] ?? name;
      for (const check of JSON.parse(await readFile(path.join(folder, name, 'checks.json'), 'utf8'))) {
        if (check.status === 'FAILURE') {
          failed.push(`${scenario} ${check.id}`);
        } else if (check.status === 'SUCCESS') {
          passed += 1;
        }
      }
    }
    assert.ok(passed > 0, `the suite says nothing: ${said.slice(-2000)}`);
    return { passed, failed: [...new Set(failed)].sort() };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

for (const [revision, expected] of Object.entries(checks)) {
  test(`what ${revision} requires is answered, but for what is known to differ`, async (t) => {
    const { passed, failed } = await failuresOf(revision);
    for (const reason of Object.values(expected)) {
      assert.ok(reasons[reason], `${reason} is not explained`);
    }
    assert.deepEqual(failed, Object.keys(expected).sort());
    t.diagnostic(`${passed} checks passed, ${failed.length} differ as expected`);
  });
}
