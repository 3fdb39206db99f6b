/**
 * Writes what the providers of code hosts publish about the requests that Callboard makes, into
 * tests/data/code-hosts: `tests/http/tests/scm/published.rs` compares our requests with it. Nothing of it is written by
 * hand, so run this again when a client makes a request of another kind:
 *
 *   npm install @octokit/openapi @gitbeaker/rest bitbucket      in an empty folder
 *   node scripts/code-host-apis.mjs <that folder> <swagger.json of the crate gitea-sdk> <swagger.v1.json of forgejo-api>
 *
 * GitHub, Gitea and Forgejo publish a description, from which the operations are taken. Of GitLab and Bitbucket the
 * requests of a published client are recorded.
 */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const [folder, gitea, forgejo] = process.argv.slice(2);
if (!forgejo) throw new Error('usage: node scripts/code-host-apis.mjs <folder> <gitea swagger.json> <forgejo swagger.v1.json>');
const target = fileURLToPath(new URL('../tests/data/code-hosts/', import.meta.url));
const packages = createRequire(path.join(path.resolve(folder), 'package.json'));
const json = async (file) => JSON.parse(await readFile(file, 'utf8'));
const versionOf = async (name) => (await json(path.join(folder, 'node_modules', name, 'package.json'))).version;
const write = (name, value) => writeFile(path.join(target, `${name}.json`), `${JSON.stringify(value, null, 1)}\n`);

// What the test asks each client for.
const BASE = '1111111111111111111111111111111111111111';
const HEAD = '2222222222222222222222222222222222222222';
const BRANCH = 'feature/ü';
const FILE = 'src/ä b#1.ts';
const TEXT = 'A *comment*';

/** Types of a parameter or property, and the words it takes. */
function shape(schema, resolve) {
  const found = resolve(schema);
  const types = [found.type, ...[...(found.anyOf ?? []), ...(found.oneOf ?? [])].map((each) => resolve(each).type)];
  const kept = { types: types.flat().filter(Boolean) };
  if (found.enum) kept.words = found.enum;
  if (found.maximum !== undefined) kept.maximum = found.maximum;
  return kept;
}

/** The operations of a description, as far as they are asked for. */
function operations(document, wanted, bodyOf) {
  const resolve = (value) => {
    let found = value ?? {};
    while (found.$ref) found = found.$ref.slice(2).split('/').reduce((inner, key) => inner[key], document);
    return found;
  };
  return wanted.map(([method, route]) => {
    const place = document.paths[route];
    const operation = place?.[method.toLowerCase()];
    assert.ok(operation, `${method} ${route} is not described`);
    const parameters = [...(place.parameters ?? []), ...(operation.parameters ?? [])].map(resolve);
    const query = parameters.filter((parameter) => parameter.in === 'query');
    const body = bodyOf(operation, parameters, resolve);
    return {
      method,
      path: route,
      query: Object.fromEntries(query.map((each) => [each.name, shape(each.schema ?? each, resolve)])),
      required: query.filter((each) => each.required).map((each) => each.name),
      ...(body && {
        body: {
          required: body.required ?? [],
          properties: Object.fromEntries(Object.entries(body.properties).map(([name, each]) => [name, shape(each, resolve)])),
        },
      }),
    };
  });
}

const OF_GITHUB = [
  ['GET', ''], ['GET', '/commits'], ['GET', '/commits/{ref}'], ['GET', '/compare/{basehead}'], ['GET', '/contents/{path}'],
  ['GET', '/commits/{commit_sha}/pulls'], ['GET', '/pulls'], ['GET', '/pulls/{pull_number}'],
  ['GET', '/issues/{issue_number}/comments'], ['POST', '/issues/{issue_number}/comments'],
  ['GET', '/issues/comments/{comment_id}'], ['PATCH', '/issues/comments/{comment_id}'], ['GET', '/issues/{issue_number}'],
  ['POST', '/statuses/{sha}'],
];
await write('github', {
  source: `@octokit/openapi ${await versionOf('@octokit/openapi')}, api.github.com.json`,
  operations: operations(
    await json(path.join(folder, 'node_modules/@octokit/openapi/generated/api.github.com.json')),
    OF_GITHUB.map(([method, route]) => [method, `/repos/{owner}/{repo}${route}`]),
    (operation, _, resolve) => {
      const content = resolve(operation.requestBody).content?.['application/json'];
      return content && resolve(content.schema);
    },
  ),
});

const OF_GITEA = [
  ['GET', ''], ['GET', '/commits'], ['GET', '/git/commits/{sha}'], ['GET', '/git/commits/{sha}.{diffType}'],
  ['GET', '/raw/{filepath}'], ['GET', '/commits/{sha}/pull'], ['GET', '/pulls'], ['GET', '/pulls/{index}'],
  ['GET', '/issues/{index}/comments'], ['POST', '/issues/{index}/comments'], ['GET', '/issues/comments/{id}'],
  ['PATCH', '/issues/comments/{id}'], ['GET', '/issues/{index}'], ['POST', '/statuses/{sha}'],
];
for (const [name, file] of [['gitea', gitea], ['forgejo', forgejo]]) {
  const document = await json(file);
  await write(name, {
    source: `${document.info.title} ${path.basename(path.dirname(path.resolve(file)))}, ${path.basename(file)}`,
    operations: operations(
      document,
      OF_GITEA.map(([method, route]) => [method, `/repos/{owner}/{repo}${route}`]),
      (_, parameters, resolve) => {
        const body = parameters.find((parameter) => parameter.in === 'body');
        return body && resolve(body.schema);
      },
    ),
  });
}

/** The requests that a client makes while it answers some questions, each with the name of its question. */
const recorded = [];
let question = '';
async function record(address, init = {}) {
  const request = address instanceof Request ? address : new Request(address, init);
  const url = new URL(request.url);
  const text = await request.text();
  recorded.push({
    question,
    method: request.method,
    path: url.pathname,
    query: [...url.searchParams].sort(([one], [other]) => (one < other ? -1 : 1)),
    ...(text && { body: JSON.parse(text) }),
  });
  const list = { values: [], id: 1, iid: 1, diffs: [], commits: [] };
  return new Response(JSON.stringify(list), { headers: { 'content-type': 'application/json' } });
}
async function ask(questions) {
  recorded.length = 0;
  for (const [name, asked] of Object.entries(questions)) {
    question = name;
    const before = recorded.length;
    // What it makes of the answer is its own affair.
    await asked().catch((error) => { if (recorded.length === before) throw error; });
  }
  return recorded.splice(0);
}

globalThis.fetch = record;
const { Gitlab } = await import(pathToFileURL(packages.resolve('@gitbeaker/rest')).href);
const gitlab = new Gitlab({ host: 'https://gitlab.example.org', token: 'x' });
const project = 'acme/web/shop';
const pages = { perPage: 20, page: 1, maxPages: 1 };
await write('gitlab', {
  source: `requests of @gitbeaker/rest ${await versionOf('@gitbeaker/rest')}`,
  requests: await ask({
    commits: () => gitlab.Commits.all(project, { refName: BRANCH, ...pages }),
    range: () => gitlab.Commits.all(project, { refName: `${BASE}..${HEAD}`, ...pages }),
    commit: () => gitlab.Commits.show(project, HEAD),
    'commit diff': () => gitlab.Commits.showDiff(project, HEAD, { perPage: 100, page: 1 }),
    'range diff': () => gitlab.Repositories.compare(project, BASE, HEAD),
    file: () => gitlab.RepositoryFiles.showRaw(project, FILE, HEAD),
    'requests of a commit': () => gitlab.Commits.allMergeRequests(project, HEAD, { perPage: 10 }),
    'requests of a branch': () => gitlab.MergeRequests.all({
      projectId: project, sourceBranch: BRANCH, state: 'all', orderBy: 'updated_at', sort: 'desc', perPage: 10,
    }),
    'open requests': () => gitlab.MergeRequests.all({ projectId: project, state: 'opened', orderBy: 'updated_at', sort: 'desc', perPage: 50 }),
    request: () => gitlab.MergeRequests.show(project, 7),
    comments: () => gitlab.MergeRequestNotes.all(project, 7, { perPage: 100, page: 1, orderBy: 'created_at', sort: 'desc', maxPages: 1 }),
    comment: () => gitlab.MergeRequestNotes.show(project, 7, 901),
    'create comment': () => gitlab.MergeRequestNotes.create(project, 7, TEXT),
    'update comment': () => gitlab.MergeRequestNotes.edit(project, 7, 901, { body: TEXT }),
    status: () => gitlab.Commits.editStatus(project, HEAD, 'success', { name: 'e2e', description: 'All passed', targetUrl: 'https://callboard.example/1' }),
    issue: () => gitlab.Issues.show(3, { projectId: project }),
    repository: () => gitlab.Projects.show(project),
  }),
});

const { Bitbucket } = packages('bitbucket');
const bitbucket = new Bitbucket({ auth: { token: 'x' }, notice: false, request: { fetch: record } });
const repository = { workspace: 'acme', repo_slug: 'shop' };
const pull = { ...repository, pull_request_id: 7 };
const newest = { sort: '-updated_on' };
const status = {
  key: 'e2e', name: 'e2e', state: 'SUCCESSFUL', description: 'All passed', url: 'https://callboard.example/1',
};
await write('bitbucket', {
  source: `requests of bitbucket ${await versionOf('bitbucket')}`,
  requests: await ask({
    commits: () => bitbucket.repositories.listCommits({ ...repository, include: BRANCH, pagelen: 20, page: '1' }),
    range: () => bitbucket.repositories.listCommits({ ...repository, include: HEAD, exclude: BASE, pagelen: 20, page: '1' }),
    commit: () => bitbucket.repositories.getCommit({ ...repository, commit: HEAD }),
    'commit diff': () => bitbucket.repositories.getDiff({ ...repository, spec: HEAD }),
    'commit changes': () => bitbucket.repositories.listDiffStats({ ...repository, spec: HEAD, pagelen: 500, page: '1' }),
    'range diff': () => bitbucket.repositories.listDiffStats({ ...repository, spec: `${HEAD}..${BASE}`, topic: true, pagelen: 500, page: '1' }),
    file: () => bitbucket.repositories.readSrc({ ...repository, commit: HEAD, path: FILE }),
    'requests of a commit': () => bitbucket.repositories.listPullrequestsForCommit({ ...repository, commit: HEAD, pagelen: 10 }),
    // The client takes one state; the API takes the parameter several times.
    'requests of a branch': () => bitbucket.repositories.listPullRequests({
      ...repository, q: `source.branch.name = "${BRANCH}"`, state: 'OPEN', ...newest, pagelen: 10,
    }),
    'open requests': () => bitbucket.repositories.listPullRequests({ ...repository, state: 'OPEN', ...newest, pagelen: 50 }),
    request: () => bitbucket.repositories.getPullRequest(pull),
    comments: () => bitbucket.repositories.listPullRequestComments({ ...pull, pagelen: 100, page: '1', sort: '-created_on' }),
    comment: () => bitbucket.repositories.getPullRequestComment({ ...pull, comment_id: 901 }),
    'create comment': () => bitbucket.repositories.createPullRequestComment({ ...pull, _body: { content: { raw: TEXT } } }),
    'update comment': () => bitbucket.repositories.updatePullRequestComment({ ...pull, comment_id: 901, _body: { content: { raw: TEXT } } }),
    status: () => bitbucket.repositories.createCommitBuildStatus({ ...repository, node: HEAD, commit: HEAD, _body: status }),
    issue: () => bitbucket.repositories.getIssue({ ...repository, issue_id: '3' }),
    repository: () => bitbucket.repositories.get(repository),
  }),
});
