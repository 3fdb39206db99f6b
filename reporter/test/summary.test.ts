/** A run as Markdown: what a renderer makes of it, whatever its tests are called, and the command that prints it. */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import fc from 'fast-check';
import { codeSpan, link } from '../src/markdown';
import { runSummary, type FailingTest, type RunOutput, type Totals } from '../src/summary';
import { callboard, installedSuite, playwright } from './playwright-run';
import { liveReplies, startService, type Received, type Reply, type Service } from './service';

const OUTPUT: RunOutput = {
  runUrl: 'https://tests.example.org/test-runs/41', runId: 41, projectId: 3, projectName: 'shop', status: 'failed', ciBuildUrl: null,
};
const TOTALS: Totals = { totalTests: 9, passedTests: 4, failedTests: 3, flakyTests: 1, skippedTests: 1, didNotRunTests: 1 };

function summaryWith(text: string): string {
  const failing: FailingTest = { title: text, browserProject: text, headline: text, url: 'https://tests.example.org/test-run-cases/12' };
  return runSummary({ ...OUTPUT, projectName: text }, TOTALS, [text], { listed: [failing, failing], total: 3 });
}

let render: (markdown: string) => string;
before(async () => {
  const { marked } = await import('marked');
  render = (markdown) => marked.parse(markdown, { gfm: true, async: false });
});

/** The page without what stands in code, where neither a renderer nor GitHub and GitLab look for links and mentions. */
const withoutCode = (html: string): string => html.replace(/<code>[^<]*<\/code>/g, '<code></code>');
const decoded = (html: string): string => html.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&amp;', '&');

const NASTY = [
  '@octocat', '#1', 'octo/repo#12', '!3', '&amp;', '<b>', '<!--', '-->', '<img src=x onerror=alert(1)>', '</code>', '`', '``', '```', '\n', '\r\n', '\n\n',
  '\n# ', '\n- ', '\n| ', '|', '\\', '\\`', '[x](http://evil.example)', '](http://evil.example)', '![x](http://evil.example/p.png)', '[', ']', '(', ')',
  'https://evil.example', 'www.evil.example', 'a@evil.example', '*', '**', '_', '~~', ':tada:', '$x$', '[^1]', '\u2028', '\u0085', '\u202e', '\u200b', ' ', '\t', '\u001b[31m', '\ud800', '😀',
];

test('no text of a test breaks the page, links, pings or disappears', () => {
  const plain = withoutCode(render(summaryWith('x')));
  assert.equal((plain.match(/<a href="https:\/\/tests\.example\.org\/[^"]*">/g) ?? []).length, 4);
  const text = fc.oneof(
    fc.fullUnicodeString({ minLength: 1, maxLength: 40 }),
    fc.array(fc.oneof(fc.constantFrom(...NASTY), fc.string({ maxLength: 3 })), { minLength: 1, maxLength: 12 }).map((parts) => parts.join('') || '@'));
  fc.assert(fc.property(text, (nasty) => {
    const html = render(summaryWith(nasty));
    assert.equal(withoutCode(html), plain);
    const [, shown = ''] = /<h3>.*?<code>([^<]*)<\/code>/.exec(html) ?? [];
    const printable = (each: string): string => each.replace(/[^\x21-\x7e]|`/g, '');
    if (!/[\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/.test(nasty) && printable(nasty) !== '') {
      assert.equal(printable(decoded(shown)), printable(nasty));
    }
  }), { numRuns: 2_000, examples: NASTY.map((each): [string] => [each]) });
});

test('a code span names what nobody would see, and shortens what would hide the rest', () => {
  assert.equal(codeSpan('a\u202eb'), '`a\\u202eb`');
  assert.equal(codeSpan('`a``'), '`ˋaˋˋ`');
  assert.equal(codeSpan(' \n '), '`(empty)`');
  assert.equal([...codeSpan('😀'.repeat(400))].length, 302);
});

test('a link leads to a page of the web or nowhere', () => {
  assert.equal(link('x', 'https://a.example/b(c)|d e'), '[x](https://a.example/b%28c%29%7Cd%20e)');
  for (const address of ['javascript:alert(1)', 'data:text/html,x', '/relative', '']) assert.equal(link('x', address), 'x');
});

describe('the command summary', () => {
  const RUN = {
    id: 7, projectName: 'shop @all', projectId: 3, status: 'failed', ...TOTALS, runErrors: [{ headline: 'Global teardown failed: <b>' }],
  };
  const FAILING = { id: 12, title: 'pays #1', suitePath: ['Cart'], browserProject: 'chromium', error: 'expected 3' };
  const reads = ({ path: asked, method, headers }: Received): Reply | undefined => {
    if (method !== 'GET') return undefined;
    if (headers.authorization !== 'Bearer pd_1') return { status: 401, body: { message: 'Sign in.' } };
    if (asked === '/api/test-runs/7?limit=0') return { body: RUN };
    return asked.includes('/executions?outcome=failing') ? { body: { items: [FAILING], total: 1 } } : { status: 404, body: { message: 'This run does not exist.' } };
  };
  const withRuns = async (check: (service: Service, dir: string) => Promise<void>): Promise<void> => {
    const service = await startService(liveReplies(reads));
    try {
      await check(service, installedSuite('module'));
    } finally {
      await service.close();
    }
  };
  const expected = (url: string): string => [
    `### Callboard: [\`shop @all\`, run 7](${url}/test-runs/7)`, '', '- **`Global teardown failed: <b>`**', '',
    '| Status | Tests | Passed | Failed | Flaky | Skipped | Did not run | Interrupted |', '|---|---|---|---|---|---|---|---|',
    '| failed | 9 | 3 | 3 | 1 | 1 | 1 | 0 |', '', `- [\`Cart › pays #1\`](${url}/test-run-cases/12) (\`chromium\`): \`expected 3\``, '',
  ].join('\n');

  test('prints a run by its id, by its address, and the last one of the folder', () => withRuns(async (service, dir) => {
    const env = { SERVICE_API_KEY: 'pd_1', SERVICE_URL: service.url };
    assert.equal((await callboard(dir, ['summary', '7'], env)).stdout, expected(service.url));
    assert.equal((await callboard(dir, ['summary', `${service.url}/test-runs/7`], env)).stdout, expected(service.url));
    const nothing = await callboard(dir, ['summary'], env);
    assert.deepEqual([nothing.exitCode, nothing.stdout], [2, '']);
    assert.match(nothing.stderr, /no run was sent from this folder/);
    await playwright(dir, ['-c', 'playwright.config.mjs', '-g', 'prints'], env);
    assert.equal((await callboard(dir, ['summary', '--url', service.url], { SERVICE_API_KEY: 'pd_1' })).stdout, expected(service.url));
  }));

  test('sends a key only to the service that is named', () => withRuns(async (service, dir) => {
    const { exitCode, stdout, stderr } = await callboard(dir, ['summary', `${service.url}/test-runs/7`], { SERVICE_API_KEY: 'pd_1' });
    assert.deepEqual([exitCode, stdout], [1, '']);
    assert.match(stderr, /credentials go only to the service that is named, with --url http/);
    assert.equal(service.received[0]!.headers.authorization, undefined);
  }));

  test('says what it does not understand and what the service answered', () => withRuns(async (service, dir) => {
    const env = { SERVICE_API_KEY: 'pd_1' };
    for (const [args, code, said] of [
      [['summary', 'last'], 2, /must be an id or an address like .*, got "last"/],
      [['summary', '7'], 2, /set --url or SERVICE_URL/],
      [['summary', '8', '--url', service.url], 1, /run 8 of http.* could not be read: HTTP 404: This run does not exist\./],
    ] as const) {
      const { exitCode, stdout, stderr } = await callboard(dir, [...args], env);
      assert.deepEqual([exitCode, stdout], [code, '']);
      assert.match(stderr, said);
    }
  }));
});
