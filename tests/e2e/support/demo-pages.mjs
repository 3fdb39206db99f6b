/** The pages of a service filled by `tests/demo`, each with something to show: `{ name: { address, act?, part? } }`. */
import { getAll, getJson } from './service.mjs';

/** `act` leaves the page in a state that no address has; `part` is what the picture is of, where that is not the page. */
export async function demoPages() {
  const projects = await getAll('/api/projects?limit=50');
  const named = (name) => projects.find((project) => project.name === name);
  const shop = named('shop');
  if (!shop) throw new Error('the service holds no demo: run tests/demo/demo.mjs first');
  const run = (await getJson(`/api/test-runs?project=${shop.id}&branch=main&hasFailures=true&fullRuns=true&limit=1`)).items[0];
  const executions = (await getJson(`/api/test-runs/${run.id}/executions?limit=200`)).items;
  const broken = executions.find((each) => each.title === 'pays by card') ?? executions[0];
  const suggests = executions.find((each) => each.title === 'suggests while typing') ?? broken;
  const history = (await getJson(`/api/test-cases/${suggests.testCaseId}/history?status=passed&limit=50`)).items;
  const flaky = history.find((each) => each.flaky) ?? suggests;
  const slower = executions.find((each) => each.title === 'sorts by rating') ?? suggests;
  const pages = {
    home: '/',
    projects: '/projects',
    project: `/projects/${shop.id}`,
    'project-filtered': `/projects/${shop.id}?branch=main&status=failed`,
    'project-grid': `/projects/${shop.id}?tab=grid`,
    'project-clusters': `/projects/${shop.id}?tab=clusters`,
    'project-quarantine': `/projects/${named('mobile web').id}?tab=quarantine`,
    'project-compare': `/projects/${shop.id}?tab=compare`,
    'project-flaky': `/projects/${shop.id}?tab=flaky`,
    'project-health': `/projects/${shop.id}?tab=health`,
    'project-settings': `/projects/${shop.id}?tab=settings`,
    'project-performance': `/projects/${shop.id}?tab=performance&branch=main`,
    'project-cases': `/projects/${shop.id}?tab=cases`,
    'project-members': `/projects/${shop.id}?tab=members`,
    run: `/test-runs/${run.id}`,
    'run-by-file': `/test-runs/${run.id}?sort=file`,
    'run-groups': `/test-runs/${run.id}?tab=groups`,
    'run-insights': `/test-runs/${run.id}?tab=insights`,
    'run-regression': `/test-runs/${run.id}?tab=regression`,
    'run-compare': `/test-runs/${run.id}?tab=compare&with=previous`,
    'run-timeline': `/test-runs/${run.id}?tab=timeline`,
    'run-timeline-setup': `/test-runs/${run.id}?tab=timeline&phase=setup`,
    'run-timeline-retries': `/test-runs/${run.id}?tab=timeline&phase=retries`,
    'run-timeline-worker': `/test-runs/${run.id}?tab=timeline&worker=1`,
    'run-endpoints': `/test-runs/${run.id}?tab=endpoints`,
    'run-details': `/test-runs/${run.id}?tab=details`,
    'run-reports': `/test-runs/${run.id}?tab=reports`,
    execution: `/test-run-cases/${broken.id}`,
    'execution-flaky': `/test-run-cases/${flaky.id}`,
    'test-case': `/test-cases/${suggests.testCaseId}`,
    'test-case-slower': `/test-cases/${slower.testCaseId}?branch=main`,
    analytics: '/analytics',
    'analytics-project': `/analytics?project=${shop.id}&days=14&branch=main`,
    settings: '/settings',
    'settings-projects': '/settings/projects',
    'settings-notifications': '/settings/notifications',
    'settings-source-control': '/settings/source-control',
    'settings-flakiness': '/settings/flakiness',
    'settings-timeouts': '/settings/timeouts',
    'settings-diagnosis': '/settings/diagnosis',
    'settings-storage': '/settings/storage',
    'settings-retention': '/settings/retention',
    tags: '/settings/tags',
    docs: '/docs',
    mcp: '/mcp',
  };
  const [cluster] = (await getJson(`/api/projects/${shop.id}/failure-clusters?status=open&sort=occurrences&limit=1`)).items;
  if (cluster) {
    pages.cluster = `/failure-clusters/${cluster.id}`;
    pages['cluster-plan'] = `/failure-clusters/${cluster.id}?tab=plan`;
    pages['cluster-diagnosis'] = `/failure-clusters/${cluster.id}?tab=diagnosis`;
  }
  const real = named('teapots');
  if (real) {
    const [traced] = (await getJson(`/api/test-runs?project=${real.id}&limit=1`)).items;
    pages['run-real'] = `/test-runs/${traced.id}`;
    pages['run-real-reports'] = `/test-runs/${traced.id}?tab=reports`;
    const [failed] = (await getJson(`/api/test-runs/${traced.id}/executions?limit=1`)).items;
    pages['execution-real'] = `/test-run-cases/${failed.id}`;
    const [trace] = (await getJson(`/api/test-run-cases/${failed.id}/traces`)).items;
    if (trace) {
      pages['execution-trace'] = `/test-run-cases/${failed.id}?trace=${trace.id}`;
      pages['execution-told'] = `/test-run-cases/${failed.id}?evidence=trace`;
    }
  }
  const docsAreThere = (page) => page.getByRole('button', { name: /GET \/api\/health/ }).waitFor();
  const parts = { docs: { act: docsAreThere }, 'execution-told': { part: '#told' }, 'execution-trace': { part: '#trace', act: traceIsOpen } };
  const described = Object.fromEntries(Object.entries(pages).map(([name, address]) => [name, { address, ...parts[name] }]));
  return { ...described, 'not-found': { address: '/test-runs/999999', status: 404 }, 'refused-filter': { address: '/projects?sort=sideways', status: 400 }, search: { address: '/', act: search }, shortcuts: { address: '/', act: (page) => page.keyboard.press('?') } };
}

const traceIsOpen = (page) => page.frameLocator('#trace iframe').getByTestId('actions-tree').getByRole('treeitem').first().waitFor();

async function search(page) {
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox').fill('pay');
  // Not one of those that were opened lately.
  await page.getByRole('group', { name: 'Tests' }).getByRole('option', { name: /pays by card/ }).first().waitFor();
}
