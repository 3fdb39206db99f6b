import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import type { Suite } from '@playwright/test/reporter';
import { sharedPaths } from '../src/git';
import { earlierPath, relativePath, sourceRootOf, type SourceRoot } from '../src/source-root';

const FILE = 'packages/web/tests/pay.spec.ts';

/** A repository, or only a folder, with a suite in `packages/web`. */
function sources({ isRepository = true }: { isRepository?: boolean } = {}): { root: string; web: string; config: { configFile: string; rootDir: string } } {
  const root = realpathSync(mkdtempSync(path.join(tmpdir(), 'callboard-root-')));
  const web = path.join(root, 'packages/web');
  mkdirSync(path.join(web, 'tests'), { recursive: true });
  writeFileSync(path.join(root, FILE), '');
  writeFileSync(path.join(web, 'playwright.config.ts'), '');
  if (isRepository) execFileSync('git', ['init', '-q'], { cwd: root });
  return { root, web, config: { configFile: path.join(web, 'playwright.config.ts'), rootDir: path.join(web, 'tests') } };
}

function merged(...files: string[]): Suite {
  return { allTests: () => files.map((file) => ({ location: { file, line: 1, column: 1 } })) } as unknown as Suite;
}

/** What is sent now, and what was sent before. */
function paths(file: string, root: SourceRoot): [string, string] {
  const now = relativePath(file, root);
  return [now, earlierPath(now, root)];
}

describe('paths', () => {
  test('begin at the root of the work tree wherever the run was started', () => {
    const { root, web, config } = sources();
    const file = path.join(root, FILE);
    assert.deepEqual(paths(file, sourceRootOf(config, root)), [FILE, FILE]);
    assert.deepEqual(paths(file, sourceRootOf(config, web)), [FILE, 'tests/pay.spec.ts']);
    assert.deepEqual(paths(file, sourceRootOf(config, path.dirname(root))), [FILE, `${path.basename(root)}/${FILE}`]);
    assert.deepEqual(paths(path.join(root, 'e2e/a.spec.ts'), sourceRootOf(config, web)), ['e2e/a.spec.ts', '../../e2e/a.spec.ts']);
  });

  test('begin at the configuration where there is no work tree', () => {
    const { root, web, config } = sources({ isRepository: false });
    const file = path.join(root, FILE);
    assert.deepEqual(paths(file, sourceRootOf(config, web)), ['tests/pay.spec.ts', 'tests/pay.spec.ts']);
    assert.deepEqual(paths(file, sourceRootOf(config, root)), ['tests/pay.spec.ts', FILE]);
  });

  test('do not depend on links to the work tree', () => {
    const { root, config } = sources();
    const link = path.join(mkdtempSync(path.join(tmpdir(), 'callboard-link-')), 'shop');
    symlinkSync(root, link);
    const linked = sourceRootOf({ ...config, configFile: path.join(link, 'packages/web/playwright.config.ts') }, root);
    assert.equal(relativePath(path.join(root, FILE), linked), FILE);
    assert.equal(relativePath(path.join(link, FILE), linked), FILE);
  });

  test('of reports that were recorded in this work tree and are merged without a configuration', () => {
    const { root, web, config } = sources();
    const file = path.join(root, FILE);
    assert.deepEqual(paths(file, sourceRootOf({ rootDir: config.rootDir }, tmpdir()))[0], FILE);
    const { web: alone } = sources({ isRepository: false });
    const root2 = sourceRootOf({ rootDir: path.join(alone, 'tests') }, web);
    assert.equal(relativePath(path.join(alone, 'tests/pay.spec.ts'), root2), 'tests/pay.spec.ts');
  });

  for (const [where, rootDir, file] of [
    ['on another machine', '/build/17/packages/web/tests', '/build/17/packages/web/tests/pay.spec.ts'],
    ['in a container that holds the package alone', '/w1/tests', '/w1/tests/pay.spec.ts'],
    ['on Windows', 'D:\\a\\shop\\packages\\web\\tests', 'D:\\a\\shop\\packages\\web\\tests\\pay.spec.ts'],
  ] as const) {
    test(`of reports that were recorded ${where}`, () => {
      const { web, root: top } = sources();
      assert.equal(relativePath(file, sourceRootOf({ rootDir }, top, merged(file))), FILE);
      const root = sourceRootOf({ rootDir }, web, merged(file));
      assert.equal(relativePath(file, root), FILE);
      const helper = file.replace(/tests.pay\.spec/, (found) => found.replace('tests', `tests${found[5]}..`).replace('pay.spec', 'helper'));
      assert.equal(relativePath(helper, root), 'packages/web/helper.ts');
    });
  }

  test('of files that errors of a report merged with a configuration name as another machine does', () => {
    const { root, config } = sources();
    assert.equal(relativePath('/w1/tests/pay.spec.ts', sourceRootOf(config, root)), FILE);
    assert.match(relativePath('/w1/tests/gone.ts', sourceRootOf(config, root)), /w1\/tests\/gone\.ts$/);
  });

  test('that other files of the repository may have had before are named', async () => {
    const { root, web, config } = sources();
    mkdirSync(path.join(root, 'packages/admin/tests'), { recursive: true });
    const files = [FILE, 'packages/web/tests/cart.spec.ts'];
    for (const file of [...files.slice(1), 'packages/admin/tests/pay.spec.ts']) writeFileSync(path.join(root, file), '');
    execFileSync('git', ['add', '.'], { cwd: root });
    assert.deepEqual(await sharedPaths(files, sourceRootOf(config, web)), ['tests/pay.spec.ts']);
    assert.deepEqual(await sharedPaths(files, sourceRootOf(config, root)), []);
  });
});
