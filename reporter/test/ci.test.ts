import assert from 'node:assert/strict';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { detectCi, type CiInfo } from '../src/ci';
import type { Env } from '../src/options';

const PIPELINES: { env: Env; runLabel: string | undefined; info: Partial<CiInfo> }[] = [
  {
    env: {
      GITHUB_ACTIONS: 'true', GITHUB_RUN_ID: '11', GITHUB_RUN_ATTEMPT: '2', GITHUB_HEAD_REF: '', GITHUB_REF_NAME: 'main',
      GITHUB_SHA: 'abc', GITHUB_REF: 'refs/heads/main', GITHUB_SERVER_URL: 'https://git.example', GITHUB_REPOSITORY: 'o/r',
      GITHUB_JOB: 'e2e',
    },
    runLabel: '11',
    info: {
      provider: 'GitHub Actions', branch: 'main', commit: 'abc', jobName: 'e2e', runAttempt: '2', repository: 'o/r',
      ref: 'refs/heads/main', buildUrl: 'https://git.example/o/r/actions/runs/11',
    },
  },
  {
    env: {
      GITLAB_CI: 'true', CI: 'true', CI_PIPELINE_ID: '12', CI_MERGE_REQUEST_SOURCE_BRANCH_NAME: 'topic',
      CI_COMMIT_REF_NAME: 'refs', CI_COMMIT_SHA: 'abc', CI_MERGE_REQUEST_IID: '4', CI_PIPELINE_URL: 'https://l.example/p/12',
      CI_JOB_URL: 'https://l.example/j/1', CI_JOB_NAME: 'e2e', CI_JOB_ID: '77', CI_DEFAULT_BRANCH: 'trunk',
    },
    runLabel: '12',
    info: {
      provider: 'GitLab CI', branch: 'topic', defaultBranch: 'trunk', commit: 'abc', pullRequest: '4', buildUrl: 'https://l.example/p/12',
      jobUrl: 'https://l.example/j/1', jobName: 'e2e', jobNumber: '77',
    },
  },
  {
    env: {
      CIRCLECI: 'true', CIRCLE_WORKFLOW_ID: 'w', CIRCLE_BRANCH: 'b', CIRCLE_SHA1: 's', CIRCLE_JOB: 'j',
      CIRCLE_PULL_REQUEST: 'https://git.example/o/r/pull/9', CIRCLE_BUILD_URL: 'https://c.example/1',
    },
    runLabel: 'w',
    info: { provider: 'CircleCI', branch: 'b', commit: 's', pullRequest: '9', buildUrl: 'https://c.example/1', jobName: 'j' },
  },
  {
    env: {
      TRAVIS: 'true', TRAVIS_BUILD_ID: '5', TRAVIS_PULL_REQUEST_BRANCH: '', TRAVIS_BRANCH: 'b', TRAVIS_COMMIT: 's',
      TRAVIS_PULL_REQUEST: 'false', TRAVIS_BUILD_WEB_URL: 'https://t.example/5', TRAVIS_JOB_NUMBER: '5.1',
    },
    runLabel: '5',
    info: { provider: 'Travis CI', branch: 'b', commit: 's', buildUrl: 'https://t.example/5', jobName: '5.1' },
  },
  {
    env: {
      TF_BUILD: 'True', BUILD_BUILDID: '6', BUILD_SOURCEBRANCH: 'refs/heads/x/y', BUILD_SOURCEVERSION: 's',
      SYSTEM_PULLREQUEST_PULLREQUESTID: '3', SYSTEM_TEAMFOUNDATIONSERVERURI: 'https://a.example/org/',
      SYSTEM_TEAMPROJECT: 'my team', AGENT_JOBNAME: 'j', SYSTEM_STAGENAME: 'nightly', SYSTEM_JOBATTEMPT: '2',
    },
    runLabel: '6',
    info: {
      provider: 'Azure Pipelines', branch: 'x/y', commit: 's', pullRequest: '3', jobName: 'nightly / j', runAttempt: '2',
      buildUrl: 'https://a.example/org/my%20team/_build/results?buildId=6',
    },
  },
  {
    env: {
      JENKINS_URL: 'https://j.example', BUILD_TAG: 'jenkins-e2e-7', BUILD_ID: '7', GIT_BRANCH: 'origin/main', GIT_COMMIT: 's',
      CHANGE_ID: '2', BUILD_URL: 'https://j.example/7', JOB_NAME: 'e2e',
    },
    runLabel: 'jenkins-e2e-7',
    info: {
      provider: 'Jenkins', branch: 'main', commit: 's', pullRequest: '2', buildUrl: 'https://j.example/7', jobName: 'e2e',
    },
  },
  {
    env: {
      BUILDKITE: 'true', BUILDKITE_BUILD_ID: 'u', BUILDKITE_BRANCH: 'b', BUILDKITE_COMMIT: 's',
      BUILDKITE_PULL_REQUEST: 'false', BUILDKITE_BUILD_URL: 'https://b.example/1', BUILDKITE_LABEL: 'e2e', BUILDKITE_PARALLEL_JOB: '1', BUILDKITE_RETRY_COUNT: '0',
    },
    runLabel: 'u',
    info: { provider: 'Buildkite', branch: 'b', commit: 's', buildUrl: 'https://b.example/1', jobName: 'e2e #1', runAttempt: '0' },
  },
  {
    env: {
      TEAMCITY_VERSION: '2025', BUILD_NUMBER: '8', TEAMCITY_BUILD_BRANCH: 'b', BUILD_VCS_NUMBER: 's',
      BUILD_URL: 'https://tc.example/8', TEAMCITY_BUILDCONF_NAME: 'e2e',
    },
    runLabel: '8',
    info: { provider: 'TeamCity', branch: 'b', commit: 's', buildUrl: 'https://tc.example/8', jobName: 'e2e', buildNumber: '8' },
  },
  {
    env: {
      BITBUCKET_BUILD_NUMBER: '9', BITBUCKET_BRANCH: 'b', BITBUCKET_COMMIT: 's', BITBUCKET_PR_ID: '1',
      BITBUCKET_GIT_HTTP_ORIGIN: 'https://bb.example/o/r',
    },
    runLabel: '9',
    info: {
      provider: 'Bitbucket', branch: 'b', commit: 's', pullRequest: '1', buildNumber: '9',
      buildUrl: 'https://bb.example/o/r/pipelines/results/9',
    },
  },
  {
    env: {
      SEMAPHORE: 'true', SEMAPHORE_WORKFLOW_ID: 'w', SEMAPHORE_GIT_BRANCH: 'b', SEMAPHORE_GIT_SHA: 's',
      SEMAPHORE_ORGANIZATION_URL: 'https://o.example', SEMAPHORE_JOB_NAME: 'e2e',
    },
    runLabel: 'w',
    info: { provider: 'Semaphore', branch: 'b', commit: 's', buildUrl: 'https://o.example/workflows/w', jobName: 'e2e' },
  },
  {
    env: {
      APPVEYOR: 'True', APPVEYOR_BUILD_ID: '10', APPVEYOR_REPO_BRANCH: 'b', APPVEYOR_REPO_COMMIT: 's',
      APPVEYOR_URL: 'https://av.example', APPVEYOR_ACCOUNT_NAME: 'a', APPVEYOR_PROJECT_SLUG: 'p',
    },
    runLabel: '10',
    info: { provider: 'AppVeyor', branch: 'b', commit: 's', buildUrl: 'https://av.example/project/a/p/builds/10' },
  },
  {
    env: {
      DRONE: 'true', DRONE_BUILD_NUMBER: '13', DRONE_SOURCE_BRANCH: 'b', DRONE_COMMIT_SHA: 's', DRONE_PULL_REQUEST: '6',
      DRONE_BUILD_LINK: 'https://d.example/13', DRONE_STEP_NAME: 'e2e',
    },
    runLabel: '13',
    info: {
      provider: 'Drone', branch: 'b', commit: 's', pullRequest: '6', buildUrl: 'https://d.example/13', jobName: 'e2e',
      buildNumber: '13',
    },
  },
  { env: { CI: '1' }, runLabel: undefined, info: { provider: 'Unknown CI', detected: true } },
];

for (const { env, runLabel, info } of PIPELINES) {
  test(`${info.provider} is recognised by its variables`, () => {
    const build = runLabel === undefined ? {} : { buildId: runLabel };
    assert.deepEqual(detectCi(env), { info: { ...info, ...build }, runLabel });
  });
}

test('a developer machine is no CI', () => {
  assert.equal(detectCi({ CI: 'false', HOME: '/home/me' }), undefined);
});

test('a pull request on GitHub is its head commit, not the merge commit', () => {
  const event = path.join(mkdtempSync(path.join(tmpdir(), 'callboard-ci-')), 'event.json');
  writeFileSync(event, JSON.stringify({
    pull_request: { head: { sha: 'head' } }, repository: { default_branch: 'trunk' },
  }));
  const found = detectCi({
    GITHUB_ACTIONS: 'true', GITHUB_EVENT_PATH: event, GITHUB_SHA: 'merge', GITHUB_REF: 'refs/pull/7/merge',
    GITHUB_HEAD_REF: 'topic', GITHUB_REF_NAME: '7/merge',
  });
  assert.equal(found?.info.commit, 'head');
  assert.equal(found?.info.branch, 'topic');
  assert.equal(found?.info.pullRequest, '7');
  assert.equal(found?.info.defaultBranch, 'trunk');
});
