/**
 * What a visitor of any page would complain about: serious accessibility violations, and content
 * wider than the screen.
 */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';

/** The rule engine, run inside of the page by the driver: the page's own policy stays as it is. */
const axeSource = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export const THEMES = ['light', 'dark'];
export const WIDTHS = { desktop: 1440, phone: 390 };

export async function complaintsAbout(page, name) {
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  const violations = await page.evaluate(`${axeSource}; axe.run({ resultTypes: ['violations'] }).then((found) => found.violations.map(
    ({ id, impact, nodes }) => ({ id, impact, where: nodes.slice(0, 3).map((node) => node.target.join(' ')) })))`);
  return [
    ...(overflow > 0 ? [`${name} is ${overflow} px wider than the screen`] : []),
    ...violations.filter(({ impact }) => impact === 'serious' || impact === 'critical').map((violation) => `${name}: ${JSON.stringify(violation)}`),
  ];
}
