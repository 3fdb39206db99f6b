// Search from anywhere: projects, runs, tests and clusters as one types;
// before that what was opened lately, and the places of the rail. Loaded when
// it is first asked for.

const dialog = document.getElementById('palette');
const input = dialog.querySelector('input');
const found = dialog.querySelector('.palette-found');
const note = dialog.querySelector('.palette-note');
const icons = document.querySelector('svg.icon use').getAttribute('href').split('#')[0];
const DELAY_MS = 120;
const SHORTEST = 2;
/** Rows that the page keys pass over. */
const PAGE_ROWS = 6;
const MOST_RECENT = 6;
const SEARCHING = 'Searching…';
const ICONS = { projects: 'projects', 'test-runs': 'clock', 'test-cases': 'file', 'test-run-cases': 'file', 'failure-clusters': 'failed' };

const moment = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit', timeZone: 'UTC' });

let kinds = '';
let asked;
let timer;
/** Whether what is shown does not answer yet what was typed, and whether it is to be opened then. */
let isWaiting = false;
let isEntered = false;
/** What the last answer found, as it is shown. */
let answered = [];
/** Whether it was said since the palette was opened that answers take a moment. */
let isSaid = false;

/** What the server's answer calls its groups, and how each entry reads. */
const GROUPS = [
  ['projects', 'Projects', (each) => ({ href: `/projects/${each.id}`, icon: 'projects', name: each.name, second: each.label })],
  ['runs', 'Runs', (each) => ({ href: `/test-runs/${each.id}`, icon: each.status, name: [`Run ${each.id}`, each.label ?? each.commitMessage?.split('\n')[0]].filter(Boolean).join(': '), second: [each.project.name, each.branch, `${moment.format(new Date(each.startTime))} UTC`.replaceAll(' ', '\u00a0')].filter(Boolean).join('\u00a0· ') })],
  ['cases', 'Tests', (each) => ({ href: `/test-cases/${each.id}`, icon: 'file', name: each.title, second: each.project.name, path: each.filePath })],
  ['clusters', 'Failure clusters', (each) => ({ href: `/failure-clusters/${each.id}`, icon: 'failed', name: each.title ?? each.signature, second: `${each.status} · ${each.project.name}` })],
];
const GLYPHS = new Set(['passed', 'failed', 'timedout', 'interrupted', 'cancelled']);

function icon(name) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('class', 'icon');
  svg.setAttribute('aria-hidden', 'true');
  const use = document.createElementNS('http://www.w3.org/2000/svg', 'use');
  use.setAttribute('href', `${icons}#${name}`);
  svg.append(use);
  if (!GLYPHS.has(name)) return svg;
  const mark = document.createElement('span');
  mark.className = `mark ${name}`;
  mark.append(svg);
  return mark;
}

function element(tag, className, text) {
  const made = document.createElement(tag);
  made.className = className;
  if (text) made.textContent = visible(text);
  return made;
}

/** The project, then the path, which gives way in the middle. */
function place({ second, path }) {
  const cut = path.lastIndexOf('/') + 1;
  const [made, shortened] = [element('span', 'palette-second palette-place'), element('span', 'path')];
  shortened.append(element('span', 'path-folder', path.slice(0, cut)), element('span', 'path-file', path.slice(cut)));
  made.append(element('span', '', second), shortened);
  return made;
}

function show(groups) {
  let count = 0;
  found.replaceChildren(...groups.filter(([, entries]) => entries.length > 0).map(([title, entries]) => {
    const group = element('div', 'palette-group');
    group.setAttribute('role', 'group');
    group.setAttribute('aria-label', title);
    const heading = element('div', 'palette-heading', title);
    heading.setAttribute('aria-hidden', 'true');
    group.append(heading, ...entries.map((entry) => {
      const link = element('a', 'palette-item');
      link.id = `palette-item-${count += 1}`;
      link.href = entry.href;
      link.tabIndex = -1;
      link.setAttribute('role', 'option');
      link.setAttribute('aria-selected', 'false');
      link.append(icon(entry.icon), element('span', 'palette-name', entry.name));
      if (entry.path) link.append(place(entry));
      else if (entry.second) link.append(element('span', 'palette-second', entry.second));
      return link;
    }));
    return group;
  }));
  choose(options()[0]);
}

const options = () => [...found.querySelectorAll('[role="option"]')];
const chosen = () => found.querySelector('[aria-selected="true"]');

function choose(option) {
  chosen()?.setAttribute('aria-selected', 'false');
  option?.setAttribute('aria-selected', 'true');
  option?.scrollIntoView({ block: 'nearest' });
  if (option) input.setAttribute('aria-activedescendant', option.id);
  else input.removeAttribute('aria-activedescendant');
}

/** What this browser opened lately, without the page it shows. */
function recent() {
  try {
    const known = JSON.parse(localStorage.getItem('callboard-recent') ?? '[]');
    const others = known.filter(({ href, kind }) => href !== location.pathname && (!kinds || kind === kinds));
    return others.slice(0, MOST_RECENT).map(({ href, kind, name, second }) => ({ href, name, second, icon: ICONS[kind] ?? 'chevron' }));
  } catch {
    return [];
  }
}

/** The rail as a list: where one can go without typing. */
function rail() {
  const entry = (link) => ({ href: link.getAttribute('href'), icon: link.querySelector('use')?.getAttribute('href').split('#')[1] ?? 'chevron', name: link.textContent.trim() });
  return [...document.querySelectorAll('.rail-list a')].map(entry);
}

const isProject = ({ href }) => /^\/projects\/\d+$/.test(href);

function places(text) {
  const opened = recent();
  const active = rail().filter(isProject).filter(({ href }) => !opened.some((each) => each.href === href));
  const groups = [
    ['Recently opened', opened],
    ['Recently active projects', active],
    ...(kinds === 'projects' ? [] : [['Go to', rail().filter((link) => !isProject(link))]]),
  ];
  show(text ? fitting(text, groups) : groups);
}

/** Places that begin with what was typed. */
function placesNamed(text) {
  if (kinds === 'projects') return [];
  const wanted = text.toLowerCase();
  return rail().filter((link) => !isProject(link) && link.name.toLowerCase().split(' ').some((word) => word.startsWith(wanted)));
}

/** Those of some groups that fit what was typed: each word of it begins one of theirs. */
function fitting(text, groups) {
  const wanted = text.toLowerCase().split(/\s+/);
  const fits = ({ name, second = '', path = '' }) => {
    const words = `${name} ${second} ${path}`.toLowerCase().split(/[^\p{L}\p{N}]+/u);
    return wanted.every((part) => words.some((word) => word.startsWith(part)));
  };
  return groups.map(([title, entries]) => [title, entries.filter(fits)]);
}

function tell(text) {
  note.ariaLive = 'polite';
  note.textContent = visible(text);
}

/** Until the answer arrives there is what fits of the one before. */
function wait(text) {
  isWaiting = true;
  found.setAttribute('aria-busy', 'true');
  show([['Go to', placesNamed(text)], ...fitting(text, answered)]);
  if (note.textContent === SEARCHING) return;
  // Whoever listens would hear it with every letter.
  if (isSaid) note.ariaLive = 'off';
  isSaid = true;
  note.textContent = SEARCHING;
}

function stopWaiting() {
  isWaiting = false;
  found.removeAttribute('aria-busy');
}

/** What was typed is answered. */
function settle(opens) {
  stopWaiting();
  dialog.style.height = '';
  if (opens && isEntered) chosen()?.click();
  isEntered = false;
}

async function search(text) {
  asked = new AbortController();
  try {
    const query = new URLSearchParams({ q: text, limit: '6', ...(kinds ? { kinds } : {}) });
    const response = await fetch(`/api/search?${query}`, { signal: asked.signal, headers: { accept: 'application/json' } });
    const answer = await response.json();
    if (!response.ok) throw new Error(`${answer.message} Request ${response.headers.get('x-request-id') ?? 'without id'}`);
    answered = GROUPS.map(([name, title, entry]) => [title, (answer[name] ?? []).map(entry)]);
    const groups = [['Go to', placesNamed(text)], ...answered];
    show(groups);
    settle(true);
    const none = groups.every(([, entries]) => entries.length === 0);
    tell(none ? `No results for “${text}”. Words are matched from their beginning in names, titles, paths, branches and commits.` : '');
  } catch (error) {
    if (error.name === 'AbortError') return;
    show([]);
    settle(false);
    tell(`Search failed: ${error.message || 'the service cannot be reached'}. Keep typing to try again.`);
  }
}

input.addEventListener('input', () => {
  clearTimeout(timer);
  // An answer to less than what is typed now is no answer.
  asked?.abort();
  isEntered = false;
  const text = input.value.trim();
  // Nothing moves before there is an answer.
  dialog.style.height = text ? `${dialog.getBoundingClientRect().height}px` : '';
  if (text.length < SHORTEST) {
    places(text);
    stopWaiting();
    tell(text.length > 0 ? `Type at least ${SHORTEST} characters to search everything.` : '');
    return;
  }
  wait(text);
  timer = setTimeout(search, DELAY_MS, text);
});

input.addEventListener('keydown', (event) => {
  const all = options();
  const at = all.indexOf(chosen());
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const leap = { PageDown: PAGE_ROWS, PageUp: -PAGE_ROWS }[event.key];
  if (step || leap) [isWaiting, isEntered] = [false, false];
  if (step) {
    event.preventDefault();
    choose(all[(at + step + all.length) % all.length]);
  } else if (leap) {
    event.preventDefault();
    choose(all[Math.min(Math.max(at + leap, 0), all.length - 1)]);
  } else if (event.key === 'Enter' && isWaiting) {
    event.preventDefault();
    isEntered = true;
  } else if (event.key === 'Enter' && chosen()) {
    event.preventDefault();
    chosen().click();
  }
});

dialog.addEventListener('close', () => {
  clearTimeout(timer);
  asked?.abort();
  settle(false);
});

/** Opens the palette; `only` narrows it to one kind. */
export function open(only) {
  kinds = only;
  input.placeholder = only === 'projects' ? 'Search projects' : 'Search everything';
  input.value = '';
  tell('');
  answered = [];
  isSaid = false;
  places('');
  dialog.showModal();
  input.focus();
}
