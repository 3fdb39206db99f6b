/// <reference lib="dom" />
/**
 * Runs in the page: describes an element, and finds other locators for it with a score of
 * how well they survive a change of the page. It may use nothing from outside of itself.
 * Role and name follow the common cases of the ARIA rules, not every corner of them.
 */
export interface Alternative {
  locator: string;
  method: string;
  args: unknown[];
  score: number;
}

export interface ElementDescription {
  tagName: string;
  attributes: Record<string, string>;
  textContent: string;
  accessibleName: string;
  center: { x: number; y: number };
  rolePosition?: { role: string; count: number; index: number; levelCount?: number };
  ancestors: Record<string, unknown>[];
}

export interface Inspection {
  element: ElementDescription | null;
  alternatives: Alternative[];
}

export interface Suggestion extends Alternative {
  /** How much the element is like the one looked for, 0 to 1. */
  similarity: number;
}

export interface Question {
  testIdAttribute: string;
  /** A locator that found nothing: the elements it may have meant are looked for. */
  failing?: { method: string; args: unknown[] };
}

export function inspectInPage(elements: Element[], question: Question): string {
  /** Counting matches in a large page stops here; what is not counted is taken for unique. */
  const BUDGET_MS = 40;
  const startedAt = performance.now();
  const hasTime = (): boolean => performance.now() - startedAt < BUDGET_MS;

  const ROLES: Record<string, string> = {
    A: 'link', ARTICLE: 'article', ASIDE: 'complementary', BUTTON: 'button', DIALOG: 'dialog', FOOTER: 'contentinfo', FORM: 'form',
    H1: 'heading', H2: 'heading', H3: 'heading', H4: 'heading', H5: 'heading', H6: 'heading', HEADER: 'banner', IMG: 'img',
    LI: 'listitem', MAIN: 'main', METER: 'meter', NAV: 'navigation', OL: 'list', OPTION: 'option', OUTPUT: 'status', P: 'paragraph',
    PROGRESS: 'progressbar', SECTION: 'region', SUMMARY: 'button', TABLE: 'table', TD: 'cell', TEXTAREA: 'textbox', TH: 'columnheader',
    TR: 'row', UL: 'list',
  };
  const INPUT_ROLES: Record<string, string> = {
    button: 'button', submit: 'button', reset: 'button', image: 'button', checkbox: 'checkbox', radio: 'radio', range: 'slider',
    number: 'spinbutton', search: 'searchbox', email: 'textbox', tel: 'textbox', text: 'textbox', url: 'textbox', password: '',
    hidden: '', file: '', color: '', date: '', time: '', month: '', week: '', 'datetime-local': '',
  };
  const NAMED_BY_CONTENT = new Set([
    'button', 'link', 'heading', 'option', 'cell', 'columnheader', 'row', 'tab', 'menuitem', 'checkbox', 'radio', 'switch', 'treeitem', 'tooltip',
  ]);
  const KEPT = ['id', 'class', 'name', 'placeholder', 'alt', 'title', 'aria-label', 'aria-labelledby', 'aria-level', 'role', 'type', 'href', 'multiple'];

  const tidy = (text: string | null | undefined): string => (text ?? '').replace(/\s+/g, ' ').trim();
  const quote = (text: string): string => `'${text.replace(/[\\']/g, '\\$&').replace(/\n/g, '\\n')}'`;
  const textOf = (element: Element): string => tidy(element.textContent?.slice(0, 2_000));
  const testIdOf = (element: Element): string | null => element.getAttribute(question.testIdAttribute);

  function roleOf(element: Element): string {
    const explicit = tidy(element.getAttribute('role')).split(' ', 1)[0];
    if (explicit) return explicit;
    if (element.tagName === 'INPUT') return INPUT_ROLES[(element.getAttribute('type') ?? 'text').toLowerCase()] ?? 'textbox';
    if (element.tagName === 'SELECT') return element.hasAttribute('multiple') || Number(element.getAttribute('size')) > 1 ? 'listbox' : 'combobox';
    if (element.tagName === 'A' && !element.hasAttribute('href')) return '';
    if ((element.tagName === 'SECTION' || element.tagName === 'FORM') && !element.hasAttribute('aria-label')) return '';
    return ROLES[element.tagName] ?? '';
  }
  function labelOf(element: Element): string {
    const ids = tidy(element.getAttribute('aria-labelledby'));
    if (ids) return tidy(ids.split(' ').map((id) => document.getElementById(id)?.textContent ?? '').join(' '));
    const aria = tidy(element.getAttribute('aria-label'));
    if (aria) return aria;
    const labels = (element as HTMLInputElement).labels;
    return labels?.length ? tidy([...labels].map((label) => label.textContent ?? '').join(' ')) : '';
  }
  function nameOf(element: Element): string {
    const label = labelOf(element);
    if (label) return label;
    const type = (element.getAttribute('type') ?? '').toLowerCase();
    if (element.tagName === 'INPUT' && (type === 'submit' || type === 'button' || type === 'reset')) return tidy((element as HTMLInputElement).value) || type;
    const alt = tidy(element.getAttribute('alt'));
    if (alt) return alt;
    const content = NAMED_BY_CONTENT.has(roleOf(element)) ? textOf(element) || tidy(element.querySelector('img[alt]')?.getAttribute('alt')) : '';
    return content || tidy(element.getAttribute('title')) || tidy(element.getAttribute('placeholder'));
  }
  function isVisible(element: Element): boolean {
    return element.getClientRects().length > 0;
  }
  const all = (selector: string, root: ParentNode = document): Element[] => {
    try {
      return [...root.querySelectorAll(selector)];
    } catch {
      return [];
    }
  };
  const byRole = new Map<ParentNode, Map<string, Element[]>>();
  function ofRole(role: string, root: ParentNode = document): Element[] {
    const known = byRole.get(root) ?? new Map<string, Element[]>();
    byRole.set(root, known);
    const tags = Object.entries(ROLES).filter(([, each]) => each === role).map(([tag]) => tag.toLowerCase());
    const selector = [...tags, 'input', 'select', `[role~="${CSS.escape(role)}"]`].join(',');
    const found = known.get(role) ?? all(selector, root).filter((element) => roleOf(element) === role);
    known.set(role, found);
    return found;
  }
  function countWhere(candidates: Element[], matches: (element: Element) => boolean): number {
    let count = 0;
    for (const candidate of candidates) {
      if (count > 1 || !hasTime()) break;
      if (matches(candidate) && (candidate === elements[0] || isVisible(candidate))) count++;
    }
    return Math.max(1, count);
  }
  const contains = (text: string, part: string): boolean => text.toLowerCase().includes(part.toLowerCase());

  interface Draft extends Alternative {
    count: number;
  }
  function drafts(element: Element, root: ParentNode): Draft[] {
    const found: Draft[] = [];
    const add = (score: number, method: string, args: unknown[], written: string, count: number): void => {
      found.push({ score: count > 1 ? Math.max(0, score - 45) : score, method, args, locator: `${method}(${written})`, count });
    };
    const byText = (score: number, method: string, text: string, own: Element[], read: (each: Element) => string): void => {
      if (text === '' || text.length > 100) return;
      const loose = countWhere(own, (each) => contains(read(each), text));
      const exact = loose > 1 ? countWhere(own, (each) => read(each) === text) : 1;
      if (loose > 1 && exact === 1) add(score, method, [text, { exact: true }], `${quote(text)}, { exact: true }`, 1);
      else add(score, method, [text], quote(text), loose);
    };
    const attribute = (name: string): string => tidy(element.getAttribute(name));
    const testId = testIdOf(element);
    if (testId) add(100, 'getByTestId', [testId], quote(testId), all(`[${question.testIdAttribute}="${CSS.escape(testId)}"]`, root).length);
    const role = roleOf(element);
    const name = nameOf(element);
    const peers = role ? ofRole(role, root) : [];
    if (role && name && name.length <= 100) {
      const loose = countWhere(peers, (each) => contains(nameOf(each), name));
      const exact = loose > 1 ? countWhere(peers, (each) => nameOf(each) === name) : 1;
      const isExact = loose > 1 && exact === 1;
      add(90, 'getByRole', [role, { name, ...(isExact ? { exact: true } : {}) }],
        `${quote(role)}, { name: ${quote(name)}${isExact ? ', exact: true' : ''} }`, isExact ? 1 : loose);
    }
    if (/^(INPUT|TEXTAREA|SELECT|BUTTON|METER|OUTPUT|PROGRESS)$/.test(element.tagName) || element.hasAttribute('aria-label')) {
      byText(85, 'getByLabel', labelOf(element), all('input,textarea,select,button,meter,output,progress,[aria-label],[aria-labelledby]', root), labelOf);
    }
    byText(80, 'getByPlaceholder', attribute('placeholder'), all('[placeholder]', root), (each) => tidy(each.getAttribute('placeholder')));
    if (element.children.length <= 2 && !/^(INPUT|TEXTAREA|SELECT|HTML|BODY)$/.test(element.tagName)) {
      byText(75, 'getByText', textOf(element), all(element.tagName.toLowerCase(), root), textOf);
    }
    if (element.id) {
      add(/\d{3,}|[:.]|[0-9a-f]{8}/.test(element.id) ? 30 : 65, 'locator', [`#${CSS.escape(element.id)}`], quote(`#${CSS.escape(element.id)}`),
        all(`#${CSS.escape(element.id)}`, root).length);
    }
    if (attribute('name')) {
      const css = `[name="${attribute('name').replace(/["\\]/g, '\\$&')}"]`;
      add(60, 'locator', [css], quote(css), all(css, root).length);
    }
    byText(60, 'getByAltText', attribute('alt'), all('[alt]', root), (each) => tidy(each.getAttribute('alt')));
    if (role) add(58, 'getByRole', [role], quote(role), peers.length);
    byText(50, 'getByTitle', attribute('title'), all('[title]', root), (each) => tidy(each.getAttribute('title')));
    const words = [...element.classList].filter((word) => !/\d{2,}|__|^css-|^sc-|[A-Z].*[A-Z]/.test(word)).slice(0, 3);
    if (words.length > 0) {
      const css = words.map((word) => `.${CSS.escape(word)}`).join('');
      const count = all(css, root).length;
      found.push({ score: count > 1 ? 10 : 40, method: 'locator', args: [css], locator: `locator(${quote(css)})`, count });
    }
    return found;
  }
  /** From the nearest ancestor that is easy to name, for what is ambiguous in the whole page. */
  function anchored(element: Element): Draft[] {
    for (let ancestor = element.parentElement; ancestor && ancestor !== document.body; ancestor = ancestor.parentElement) {
      const anchor = drafts(ancestor, document).find(({ count, score, method }) => count === 1 && score >= 60 && method !== 'getByText');
      if (!anchor) continue;
      return drafts(element, ancestor).filter(({ count, score }) => count === 1 && score >= 50).map((own) => ({
        ...own,
        locator: `${anchor.locator}.${own.locator}`,
        // Two links of a chain can break, so it ranks below every single locator of its kind.
        score: Math.round(49 + (Math.min(anchor.score, own.score) - 50) * 0.46),
      }));
    }
    return [];
  }
  function alternativesOf(element: Element): Alternative[] {
    const own = drafts(element, document);
    const needsAnchor = !own.some(({ count, score }) => count === 1 && score >= 75);
    return [...own, ...(needsAnchor && hasTime() ? anchored(element) : [])]
      .sort((one, other) => other.score - one.score)
      .slice(0, 10)
      .map(({ locator, method, args, score }) => ({ locator, method, args, score }));
  }
  function describe(element: Element): ElementDescription {
    const attributes: Record<string, string> = {};
    for (const name of [...KEPT, question.testIdAttribute]) {
      const value = element.getAttribute(name);
      if (value !== null) attributes[name] = (name === 'href' ? value.split(/[?#]/, 1)[0]! : value).slice(0, 200);
    }
    const box = element.getBoundingClientRect();
    const role = roleOf(element);
    const peers = role ? ofRole(role) : [];
    const level = /^H[1-6]$/.test(element.tagName) ? peers.filter(({ tagName }) => tagName === element.tagName).length : undefined;
    const ancestors: Record<string, unknown>[] = [];
    for (let ancestor = element.parentElement, depth = 1; ancestor && depth <= 4; ancestor = ancestor.parentElement, depth++) {
      ancestors.push({
        tag: ancestor.tagName.toLowerCase(), depth, testId: testIdOf(ancestor), id: ancestor.id || null, role: roleOf(ancestor) || null,
        ariaLabel: ancestor.getAttribute('aria-label'), childCount: ancestor.childElementCount,
        sameTagCount: ancestor.getElementsByTagName(element.tagName).length,
      });
    }
    return {
      tagName: element.tagName.toLowerCase(),
      attributes,
      textContent: /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName) ? '' : textOf(element).slice(0, 80),
      accessibleName: nameOf(element).slice(0, 200),
      center: { x: Math.round(box.x + box.width / 2), y: Math.round(box.y + box.height / 2) },
      ...(role ? { rolePosition: { role, count: peers.length, index: peers.indexOf(element), ...(level === undefined ? {} : { levelCount: level }) } } : {}),
      ancestors,
    };
  }

  const words = (text: string): string[] => text.replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  /** Dice's coefficient over pairs of letters of all words. */
  function similarity(one: string, other: string): number {
    const pairs = (text: string): string[] => words(text).flatMap((word) => (
      word.length === 1 ? [word] : Array.from({ length: word.length - 1 }, (_, index) => word.slice(index, index + 2))));
    const [first, second] = [pairs(one), pairs(other)];
    if (first.length === 0 || second.length === 0) return 0;
    const left = [...second];
    const shared = first.filter((pair) => {
      const at = left.indexOf(pair);
      if (at >= 0) left.splice(at, 1);
      return at >= 0;
    }).length;
    return (2 * shared) / (first.length + second.length);
  }
  function suggestions({ method, args }: { method: string; args: unknown[] }): Suggestion[] {
    const first = String(args[0] ?? '');
    const options = typeof args[1] === 'object' && args[1] !== null ? args[1] as { name?: unknown } : {};
    const wanted = method === 'getByRole' ? String(options.name ?? '') : first;
    if (words(wanted).length === 0) return [];
    const interactive = 'a,button,input,select,textarea,summary,[role],[tabindex],h1,h2,h3,h4,label,output,p,li,td,th,span,img';
    const pool = method === 'getByRole' ? [...ofRole(first), ...ofRole('button'), ...ofRole('link')]
      : [...all(`[${question.testIdAttribute}],[id]`), ...all(interactive)];
    const scored = [...new Set(pool)].slice(0, 2_000).filter((element) => hasTime() && isVisible(element)).map((element) => {
      const texts = [nameOf(element), labelOf(element), testIdOf(element) ?? '', element.id, element.getAttribute('name') ?? '',
        element.getAttribute('placeholder') ?? '', element.children.length <= 2 ? textOf(element).slice(0, 200) : ''];
      const wrongRole = method === 'getByRole' && roleOf(element) !== first;
      return { element, similarity: Math.max(...texts.map((text) => similarity(wanted, text))) * (wrongRole ? 0.8 : 1) };
    }).sort((one, other) => other.similarity - one.similarity);
    const [best, next] = scored;
    const isConfident = best !== undefined && best.similarity >= 0.6
      && (next === undefined || best.similarity - next.similarity >= 0.1 || next.element.contains(best.element) || best.element.contains(next.element));
    if (!isConfident) return [];
    return alternativesOf(best.element).filter(({ score }) => score >= 50).slice(0, 3)
      .map((each) => ({ ...each, similarity: Math.round(best.similarity * 100) / 100 }));
  }

  if (question.failing) return JSON.stringify(suggestions(question.failing));
  const [element] = elements;
  const answer: Inspection = element && elements.length === 1
    ? { element: describe(element), alternatives: alternativesOf(element) }
    : { element: null, alternatives: [] };
  return JSON.stringify(answer);
}
