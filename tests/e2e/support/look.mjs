/**
 * What a visitor of any page would complain about: violations of WCAG 2.2 AA and of good
 * practice, content wider than the screen, parts that jump while the page loads, motion where
 * none is wanted, and keys that lead nowhere one can see.
 */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';

/** The rule engine, run inside of the page by the driver: the page's own policy stays as it is. */
const axeSource = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export const THEMES = ['light', 'dark'];
export const WIDTHS = { desktop: 1440, phone: 390 };
/** 1280 pixels at 200 % and at 400 %. */
export const ZOOMED = [640, 320];
/** Between a phone and a wide screen, where tables have the least room for a name. */
export const BETWEEN = [768, 820, 1024, 1180];
const LEAST_NAME = 150;

/** WCAG to level AA, and the size of targets, which the engine leaves out when it is not asked for. */
const RULES = {
  resultTypes: ['violations'],
  runOnly: { type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] },
  rules: { 'target-size': { enabled: true } },
};

/** What another theme of a page can break that passed in the first one. */
export const COLOUR_RULES = { resultTypes: ['violations'], runOnly: { type: 'rule', values: ['color-contrast', 'link-in-text-block'] } };

/**
 * Jumps by less of the screen than this are not seen: half a pixel of a word that is measured again, or the foot of
 * the side list when a busy machine brings a page in two pieces.
 */
const UNSEEN = 0.005;

/** Notes every jump of the page from its first moment on; goes into a context before its pages. */
export async function watchJumps(context) {
  await context.addInitScript((unseen) => {
    window.jumps = [];
    new PerformanceObserver((list) => {
      for (const { value, hadRecentInput, sources } of list.getEntries()) {
        if (!hadRecentInput && value >= unseen) window.jumps.push(`${value.toFixed(4)} ${sources.map(({ node }) => node?.outerHTML?.slice(0, 120)).join(', ')}`);
      }
    }).observe({ type: 'layout-shift', buffered: true });
  }, UNSEEN);
}

export async function tooWide(page, name) {
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  return overflow > 0 ? [`${name} is ${overflow} px wider than the screen of ${page.viewportSize().width}`] : [];
}

/** Tables that leave no room for what their rows are about. */
export async function cramped(page, name) {
  const narrow = await page.evaluate((least) => [...document.querySelectorAll('table')].flatMap((table) => {
    const cell = table.querySelector('tbody td.cell-main');
    const width = cell && getComputedStyle(cell).display === 'table-cell' ? cell.getBoundingClientRect().width : least;
    return width < least ? [`${table.className}: ${Math.round(width)} px`] : [];
  }), LEAST_NAME);
  return narrow.map((what) => `${name} at ${page.viewportSize().width} px leaves too little for names, ${what}`);
}

export async function complaintsAbout(page, name, rules = RULES) {
  const violations = await page.evaluate(`${axeSource}; axe.run(${JSON.stringify(rules)}).then((found) => found.violations.map(
    ({ id, impact, nodes }) => ({ id, impact, where: nodes.slice(0, 3).map((node) => node.target.join(' ')) })))`);
  const jumps = await page.evaluate(() => window.jumps ?? []);
  return [
    ...(await tooWide(page, name)),
    ...violations.map((violation) => `${name}: ${JSON.stringify(violation)}`),
    ...jumps.map((jump) => `${name} jumps: ${jump}`),
  ];
}

/** What still moves although the visitor asked for less motion. */
export async function movingParts(page, name) {
  const moving = await page.evaluate(() => [...document.querySelectorAll('*')].filter((element) => {
    const { transitionDuration, animationName, animationTimeline } = getComputedStyle(element);
    // What goes with the hand that scrolls it is no motion of its own.
    return (animationName !== 'none' && animationTimeline === 'auto') || transitionDuration.split(', ').some((duration) => duration !== '0s');
  }).slice(0, 3).map((element) => element.outerHTML.slice(0, 80)));
  return moving.map((element) => `${name} moves: ${element}`);
}

/** Goes through a page with the tab key: whatever has the focus is seen, and is seen to have it. */
export async function walkByKeys(page, name, steps) {
  const complaints = [];
  for (let step = 0; step < steps; step += 1) {
    await page.keyboard.press('Tab');
    const found = await page.evaluate(async () => {
      // The scrolling to what has the focus is done with the next picture.
      await new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); });
      const element = document.activeElement;
      if (!element || element === document.body) return undefined;
      const label = element.outerHTML.slice(0, 100);
      const drawn = [element, element.closest('label, .field'), element.querySelector('rect')].filter(Boolean).map((each) => getComputedStyle(each));
      const isMarked = drawn.some(({ outlineStyle, outlineWidth, boxShadow, stroke }) => (outlineStyle !== 'none' && outlineWidth !== '0px') || boxShadow !== 'none' || (stroke && stroke !== 'none'));
      const box = element.getBoundingClientRect();
      const [x, y] = [box.x + box.width / 2, box.y + Math.min(box.height, 24) / 2];
      const isInView = box.width > 0 && x >= 0 && y >= 0 && x <= innerWidth && y <= innerHeight;
      const top = isInView ? document.elementFromPoint(x, y) : null;
      // Of a part that is taller than the screen something is always covered.
      const isCovered = top !== null && box.height < innerHeight / 2 && !element.contains(top) && !top.contains(element) && !element.closest('label')?.contains(top);
      return { label, isMarked, isInView, isCovered };
    });
    if (!found) break;
    if (!found.isMarked) complaints.push(`${name}: nothing shows the focus of ${found.label}`);
    if (!found.isInView) complaints.push(`${name}: the focus is out of view at ${found.label}`);
    if (found.isCovered) complaints.push(`${name}: something covers ${found.label}`);
  }
  return complaints;
}
