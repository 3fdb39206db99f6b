/**
 * Which CI system this is, read from its environment variables.
 * The first provider that matches is used; adding one means adding one entry here.
 */
import { readFileSync } from 'node:fs';
import { isRecord, type Env } from './options';

export interface CiInfo {
  provider: string;
  detected?: true;
  buildUrl?: string;
  jobUrl?: string;
  buildNumber?: string;
  /** Equal for all jobs of a build and all attempts of them; the run label comes from it. */
  buildId?: string;
  jobName?: string;
  /** Where the system does not count attempts: a job that is retried gets a higher number in the same build. */
  jobNumber?: string;
  workflow?: string;
  branch?: string;
  /** A checkout of CI seldom knows which branch of its remote is the default one. */
  defaultBranch?: string;
  commit?: string;
  pullRequest?: string;
  repository?: string;
  actor?: string;
  /** A job that is run again has a higher one. */
  runAttempt?: string;
  event?: string;
  ref?: string;
}

interface Detection {
  info: CiInfo;
  /** Groups the processes of one pipeline, for instance its shards. */
  runLabel: string | undefined;
}

type Details = { [Key in keyof Omit<CiInfo, 'provider' | 'detected'>]: string | undefined };

interface Provider {
  name: string;
  variable: string;
  runLabel(env: Env): string | undefined;
  details(env: Env): Details;
}

const PROVIDERS: readonly Provider[] = [
  {
    name: 'GitHub Actions',
    variable: 'GITHUB_ACTIONS',
    runLabel: (env) => first(env, 'GITHUB_RUN_ID'),
    details: (env) => ({
      branch: first(env, 'GITHUB_HEAD_REF', 'GITHUB_REF_NAME'),
      defaultBranch: ofEvent(env['GITHUB_EVENT_PATH'], 'repository', 'default_branch'),
      // On pull requests `GITHUB_SHA` is a merge commit nobody wrote; the event names the real head.
      commit: ofEvent(env['GITHUB_EVENT_PATH'], 'pull_request', 'head', 'sha') ?? env['GITHUB_SHA'],
      pullRequest: /^refs\/pull\/(\d+)\//.exec(env['GITHUB_REF'] ?? '')?.[1],
      buildUrl: joined(env, ['GITHUB_SERVER_URL', 'GITHUB_REPOSITORY', 'GITHUB_RUN_ID'],
        (server, repository, run) => `${server}/${repository}/actions/runs/${run}`),
      buildNumber: env['GITHUB_RUN_NUMBER'],
      jobName: env['GITHUB_JOB'],
      workflow: env['GITHUB_WORKFLOW'],
      repository: env['GITHUB_REPOSITORY'],
      actor: env['GITHUB_ACTOR'],
      runAttempt: env['GITHUB_RUN_ATTEMPT'],
      event: env['GITHUB_EVENT_NAME'],
      ref: env['GITHUB_REF'],
    }),
  },
  {
    name: 'GitLab CI',
    variable: 'GITLAB_CI',
    runLabel: (env) => first(env, 'CI_PIPELINE_ID'),
    details: (env) => ({
      branch: first(env, 'CI_MERGE_REQUEST_SOURCE_BRANCH_NAME', 'CI_COMMIT_REF_NAME'),
      defaultBranch: env['CI_DEFAULT_BRANCH'],
      commit: env['CI_COMMIT_SHA'],
      pullRequest: env['CI_MERGE_REQUEST_IID'],
      buildUrl: env['CI_PIPELINE_URL'],
      jobUrl: env['CI_JOB_URL'],
      buildNumber: env['CI_PIPELINE_IID'],
      jobName: env['CI_JOB_NAME'],
      jobNumber: env['CI_JOB_ID'],
      repository: env['CI_PROJECT_PATH'],
      actor: env['GITLAB_USER_LOGIN'],
      event: env['CI_PIPELINE_SOURCE'],
    }),
  },
  {
    name: 'CircleCI',
    variable: 'CIRCLECI',
    runLabel: (env) => first(env, 'CIRCLE_WORKFLOW_ID'),
    details: (env) => ({
      branch: env['CIRCLE_BRANCH'],
      commit: env['CIRCLE_SHA1'],
      pullRequest: pullRequestNumber(env['CIRCLE_PULL_REQUEST']),
      buildUrl: env['CIRCLE_BUILD_URL'],
      buildNumber: env['CIRCLE_BUILD_NUM'],
      jobName: env['CIRCLE_JOB'],
      repository: joined(env, ['CIRCLE_PROJECT_USERNAME', 'CIRCLE_PROJECT_REPONAME'],
        (owner, name) => `${owner}/${name}`),
      actor: env['CIRCLE_USERNAME'],
    }),
  },
  {
    name: 'Travis CI',
    variable: 'TRAVIS',
    runLabel: (env) => first(env, 'TRAVIS_BUILD_ID'),
    details: (env) => ({
      branch: first(env, 'TRAVIS_PULL_REQUEST_BRANCH', 'TRAVIS_BRANCH'),
      commit: first(env, 'TRAVIS_PULL_REQUEST_SHA', 'TRAVIS_COMMIT'),
      pullRequest: pullRequestNumber(env['TRAVIS_PULL_REQUEST']),
      buildUrl: env['TRAVIS_BUILD_WEB_URL'],
      buildNumber: env['TRAVIS_BUILD_NUMBER'],
      jobName: env['TRAVIS_JOB_NUMBER'],
      repository: env['TRAVIS_REPO_SLUG'],
      event: env['TRAVIS_EVENT_TYPE'],
    }),
  },
  {
    name: 'Azure Pipelines',
    variable: 'TF_BUILD',
    runLabel: (env) => first(env, 'BUILD_BUILDID'),
    details: (env) => ({
      branch: first(env, 'SYSTEM_PULLREQUEST_SOURCEBRANCH', 'BUILD_SOURCEBRANCH')?.replace(/^refs\/heads\//, ''),
      commit: env['BUILD_SOURCEVERSION'],
      pullRequest: first(env, 'SYSTEM_PULLREQUEST_PULLREQUESTNUMBER', 'SYSTEM_PULLREQUEST_PULLREQUESTID'),
      buildUrl: joined(env, ['SYSTEM_TEAMFOUNDATIONSERVERURI', 'SYSTEM_TEAMPROJECT', 'BUILD_BUILDID'],
        (server, project, build) =>
          `${server.replace(/\/$/, '')}/${encodeURIComponent(project)}/_build/results?buildId=${build}`),
      buildNumber: env['BUILD_BUILDNUMBER'],
      // Stages may have jobs of one name.
      jobName: [env['SYSTEM_STAGENAME'], env['AGENT_JOBNAME']].filter((name) => name && name !== '__default').join(' / '),
      workflow: env['BUILD_DEFINITIONNAME'],
      repository: env['BUILD_REPOSITORY_NAME'],
      actor: env['BUILD_REQUESTEDFOR'],
      runAttempt: env['SYSTEM_JOBATTEMPT'],
    }),
  },
  {
    name: 'Jenkins',
    variable: 'JENKINS_URL',
    runLabel: (env) => first(env, 'BUILD_TAG', 'BUILD_ID'),
    details: (env) => ({
      branch: first(env, 'CHANGE_BRANCH', 'BRANCH_NAME', 'GIT_BRANCH')?.replace(/^origin\//, ''),
      commit: env['GIT_COMMIT'],
      pullRequest: env['CHANGE_ID'],
      buildUrl: env['BUILD_URL'],
      buildNumber: env['BUILD_NUMBER'],
      jobName: env['JOB_NAME'],
      actor: env['CHANGE_AUTHOR'],
    }),
  },
  {
    name: 'Buildkite',
    variable: 'BUILDKITE',
    runLabel: (env) => first(env, 'BUILDKITE_BUILD_ID'),
    details: (env) => ({
      branch: env['BUILDKITE_BRANCH'],
      defaultBranch: env['BUILDKITE_PIPELINE_DEFAULT_BRANCH'],
      commit: env['BUILDKITE_COMMIT'],
      pullRequest: pullRequestNumber(env['BUILDKITE_PULL_REQUEST']),
      buildUrl: env['BUILDKITE_BUILD_URL'],
      buildNumber: env['BUILDKITE_BUILD_NUMBER'],
      // Jobs of one step that run side by side differ by their number alone.
      jobName: [first(env, 'BUILDKITE_LABEL', 'BUILDKITE_STEP_KEY', 'BUILDKITE_STEP_ID'), env['BUILDKITE_PARALLEL_JOB']]
        .filter((part) => part).join(' #'),
      workflow: env['BUILDKITE_PIPELINE_SLUG'],
      actor: env['BUILDKITE_BUILD_CREATOR'],
      runAttempt: env['BUILDKITE_RETRY_COUNT'],
    }),
  },
  {
    name: 'TeamCity',
    variable: 'TEAMCITY_VERSION',
    runLabel: (env) => first(env, 'TEAMCITY_BUILD_ID', 'BUILD_NUMBER'),
    details: (env) => ({
      branch: env['TEAMCITY_BUILD_BRANCH'],
      commit: env['BUILD_VCS_NUMBER'],
      buildUrl: env['BUILD_URL'],
      buildNumber: env['BUILD_NUMBER'],
      jobName: env['TEAMCITY_BUILDCONF_NAME'],
      workflow: env['TEAMCITY_PROJECT_NAME'],
    }),
  },
  {
    name: 'Bitbucket',
    variable: 'BITBUCKET_BUILD_NUMBER',
    runLabel: (env) => first(env, 'BITBUCKET_BUILD_NUMBER'),
    details: (env) => ({
      branch: env['BITBUCKET_BRANCH'],
      commit: env['BITBUCKET_COMMIT'],
      pullRequest: env['BITBUCKET_PR_ID'],
      buildUrl: joined(env, ['BITBUCKET_GIT_HTTP_ORIGIN', 'BITBUCKET_BUILD_NUMBER'],
        (repository, build) => `${repository}/pipelines/results/${build}`),
      buildNumber: env['BITBUCKET_BUILD_NUMBER'],
      repository: env['BITBUCKET_REPO_FULL_NAME'],
    }),
  },
  {
    name: 'Semaphore',
    variable: 'SEMAPHORE',
    runLabel: (env) => first(env, 'SEMAPHORE_WORKFLOW_ID'),
    details: (env) => ({
      branch: first(env, 'SEMAPHORE_GIT_PR_BRANCH', 'SEMAPHORE_GIT_BRANCH'),
      commit: env['SEMAPHORE_GIT_SHA'],
      pullRequest: env['SEMAPHORE_GIT_PR_NUMBER'],
      buildUrl: joined(env, ['SEMAPHORE_ORGANIZATION_URL', 'SEMAPHORE_WORKFLOW_ID'],
        (organization, workflow) => `${organization}/workflows/${workflow}`),
      buildNumber: env['SEMAPHORE_WORKFLOW_NUMBER'],
      jobName: env['SEMAPHORE_JOB_NAME'],
      workflow: env['SEMAPHORE_PROJECT_NAME'],
      repository: env['SEMAPHORE_GIT_REPO_SLUG'],
    }),
  },
  {
    name: 'AppVeyor',
    variable: 'APPVEYOR',
    runLabel: (env) => first(env, 'APPVEYOR_BUILD_ID'),
    details: (env) => ({
      branch: first(env, 'APPVEYOR_PULL_REQUEST_HEAD_REPO_BRANCH', 'APPVEYOR_REPO_BRANCH'),
      commit: first(env, 'APPVEYOR_PULL_REQUEST_HEAD_COMMIT', 'APPVEYOR_REPO_COMMIT'),
      pullRequest: env['APPVEYOR_PULL_REQUEST_NUMBER'],
      buildUrl: joined(env, ['APPVEYOR_URL', 'APPVEYOR_ACCOUNT_NAME', 'APPVEYOR_PROJECT_SLUG', 'APPVEYOR_BUILD_ID'],
        (server, account, project, build) => `${server}/project/${account}/${project}/builds/${build}`),
      buildNumber: env['APPVEYOR_BUILD_NUMBER'],
      jobName: env['APPVEYOR_JOB_NAME'],
      repository: env['APPVEYOR_REPO_NAME'],
    }),
  },
  {
    name: 'Drone',
    variable: 'DRONE',
    runLabel: (env) => first(env, 'DRONE_BUILD_NUMBER'),
    details: (env) => ({
      branch: first(env, 'DRONE_SOURCE_BRANCH', 'DRONE_BRANCH'),
      defaultBranch: env['DRONE_REPO_BRANCH'],
      commit: env['DRONE_COMMIT_SHA'],
      pullRequest: env['DRONE_PULL_REQUEST'],
      buildUrl: env['DRONE_BUILD_LINK'],
      buildNumber: env['DRONE_BUILD_NUMBER'],
      jobName: env['DRONE_STEP_NAME'],
      workflow: env['DRONE_STAGE_NAME'],
      repository: env['DRONE_REPO'],
      event: env['DRONE_BUILD_EVENT'],
    }),
  },
];

/** The CI system of this environment, or undefined on a developer's machine. */
export function detectCi(env: Env): Detection | undefined {
  const provider = PROVIDERS.find((candidate) => isSet(env[candidate.variable]));
  if (provider) {
    const runLabel = provider.runLabel(env);
    return {
      info: { provider: provider.name, ...withoutBlanks({ buildId: runLabel, ...provider.details(env) }) },
      runLabel,
    };
  }
  if (isSet(env['CI'])) return { info: { provider: 'Unknown CI', detected: true }, runLabel: undefined };
  return undefined;
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && value !== '' && value !== 'false' && value !== '0';
}

function first(env: Env, ...names: string[]): string | undefined {
  return names.map((name) => env[name]).find((value) => value !== undefined && value !== '');
}

function joined(env: Env, names: string[], join: (...values: string[]) => string): string | undefined {
  const values = names.map((name) => env[name]);
  return values.every((value): value is string => !!value) ? join(...values) : undefined;
}

/** Some systems say `false` when there is none, some give the address instead of the number. */
function pullRequestNumber(value: string | undefined): string | undefined {
  return /(\d+)\/?$/.exec(value ?? '')?.[1];
}

/** A text in the event that started the workflow. */
function ofEvent(file: string | undefined, ...keys: string[]): string | undefined {
  if (!file) return undefined;
  try {
    let found: unknown = JSON.parse(readFileSync(file, 'utf8'));
    for (const key of keys) found = isRecord(found) ? found[key] : undefined;
    return typeof found === 'string' && found !== '' ? found : undefined;
  } catch {
    return undefined;
  }
}

function withoutBlanks(details: Details): Partial<CiInfo> {
  return Object.fromEntries(Object.entries(details).filter(([, value]) => value !== undefined && value !== ''));
}
