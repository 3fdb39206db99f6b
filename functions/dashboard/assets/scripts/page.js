// What makes pages handier. Every page works without this file: it adds
// buttons that copy, filters that apply as soon as they are changed, a switch
// for the theme, and keys.

const THEMES = ['system', 'light', 'dark'];
const THEME = 'callboard-theme';
const KEYS = 'callboard-keys';

/** What this browser remembers, if it remembers anything. */
function stored(name) {
  try {
    return localStorage.getItem(name) ?? undefined;
  } catch {
    return undefined;
  }
}

/** Remembers a choice, or forgets it; where nothing is remembered it lasts as long as the page. */
function store(name, value) {
  try {
    if (value === undefined) localStorage.removeItem(name);
    else localStorage.setItem(name, value);
  } catch {
    // Nothing more can be done.
  }
}

function chosenTheme() {
  return document.documentElement.dataset.theme ?? 'system';
}

function chooseTheme(theme) {
  const root = document.documentElement;
  if (theme === 'system') delete root.dataset.theme;
  else root.dataset.theme = theme;
  store(THEME, theme === 'system' ? undefined : theme);
  for (const button of document.querySelectorAll('[data-theme-switch]')) nameTheme(button);
}

function nextTheme() {
  chooseTheme(THEMES[(THEMES.indexOf(chosenTheme()) + 1) % THEMES.length]);
}

function nameTheme(button) {
  const name = `Theme: ${chosenTheme()}`;
  button.title = `${name} (t)`;
  button.setAttribute('aria-label', name);
}

// Without https browsers keep the clipboard to themselves; what is selected in
// a field can be copied there all the same.
async function toClipboard(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement('textarea');
  field.value = text;
  field.className = 'visually-hidden';
  // Beside what has the focus: outside of an open dialog nothing can be selected.
  const held = document.activeElement;
  (held?.parentElement ?? document.body).append(field);
  field.select();
  const isCopied = document.execCommand('copy');
  field.remove();
  held?.focus();
  if (!isCopied) throw new Error('nothing was copied');
}

async function copy(button) {
  try {
    const source = document.getElementById(button.dataset.copyFrom);
    // Blank lines and line breaks at the end of a patch count.
    await toClipboard(source.matches('.patch') ? source.textContent : source.textContent.trim());
    button.dataset.state = 'copied';
  } catch {
    // Some browsers refuse even that: select the text instead.
    button.dataset.state = 'refused';
    const text = document.getElementById(button.dataset.copyFrom);
    if (text) getSelection()?.selectAllChildren(text);
  }
  const before = button.getAttribute('aria-label');
  button.setAttribute('aria-label', button.dataset.state === 'copied' ? 'Copied' : 'Selected; copy it with the keyboard');
  setTimeout(() => {
    delete button.dataset.state;
    button.setAttribute('aria-label', before ?? 'Copy');
  }, 1500);
}

// A field that is not used says nothing in the address.
function dropEmptyFields({ formData }) {
  for (const name of new Set(formData.keys())) {
    // Several values of a filter stand beside its field.
    const values = formData.getAll(name).filter((value) => value !== '');
    formData.delete(name);
    for (const value of values) formData.append(name, value);
  }
}

const FOCUS = 'callboard-focus';
const PAGES = 'callboard-pages';
const MOST_PAGES = 100;
// There arrows open the list of choices, elsewhere they choose from it while it is closed.
const OPENS_WITH_ARROWS = navigator.platform.startsWith('Mac');

function opensChoices(event) {
  return OPENS_WITH_ARROWS || event.altKey || event.key === ' ' || event.key === 'F4';
}

// Whoever moves a period forward passes by one that ends before it begins: it waits for the other day.
function orderDays(form) {
  const { from, to } = form.elements;
  if (from?.type !== 'date' || to?.type !== 'date') return;
  const isReversed = from.value && to.value && from.value > to.value;
  to.setCustomValidity(isReversed ? 'The end must not be before the start.' : '');
}

const isChoice = (field) => field instanceof HTMLSelectElement || field.type === 'date';

// A choice that is clicked applies at once. With the keyboard one passes by others on the way to it: there it applies
// when one presses Enter or moves on, and the next page goes on where one was.
function setUpFilters(form) {
  let passing;
  const apply = (field, byKeyboard) => {
    passing = undefined;
    if (byKeyboard) sessionStorage.setItem(FOCUS, JSON.stringify({ page: location.pathname, name: field.name }));
    form.requestSubmit();
  };
  form.addEventListener('formdata', dropEmptyFields);
  form.addEventListener('input', () => orderDays(form));
  form.addEventListener('pointerdown', () => { passing = undefined; });
  form.addEventListener('keydown', (event) => {
    const field = event.target;
    if (isChoice(field)) {
      if (event.key === 'Enter' && field.dataset.passed) {
        event.preventDefault();
        delete field.dataset.passed;
        apply(field, true);
      } else if (event.key !== 'Tab' && event.key !== 'Enter') passing = opensChoices(event) ? undefined : field;
    } else if (event.key === 'Enter' && field instanceof HTMLInputElement) {
      sessionStorage.setItem(FOCUS, JSON.stringify({ page: location.pathname, name: field.name }));
    }
  });
  form.addEventListener('change', (event) => {
    const field = event.target;
    if (!isChoice(field)) return;
    if (passing === field) field.dataset.passed = 'true';
    else apply(field, false);
  });
  form.addEventListener('focusout', (event) => {
    const field = event.target;
    if (!isChoice(field) || !field.dataset.passed) return;
    delete field.dataset.passed;
    apply(event.relatedTarget instanceof HTMLElement && form.contains(event.relatedTarget) ? event.relatedTarget : field, true);
  });
  // A page one comes back to shows what its address says, not what was chosen on the way out of it.
  addEventListener('pageshow', (event) => { if (event.persisted) form.reset(); });
  const { page, name } = JSON.parse(sessionStorage.getItem(FOCUS) ?? '{}');
  // What another bar of the page chooses is carried by a hidden field of the same name.
  const field = page === location.pathname && name ? [...form.elements].find((each) => each.name === name && each.type !== 'hidden') : undefined;
  if (!field) return;
  sessionStorage.removeItem(FOCUS);
  field.focus({ preventScroll: true });
  if (field.type === 'search') field.setSelectionRange(field.value.length, field.value.length);
}

// Search: its script is fetched when it is first asked for.
const searchButton = document.querySelector('[data-palette][data-script]');

async function openPalette(kinds = '') {
  if (document.querySelector('dialog[open]')) return;
  const palette = await import(searchButton.dataset.script);
  palette.open(kinds);
}

// Lists are read forwards: the page before one is where this tab came from.
function rememberPages() {
  const next = document.querySelector('.pager [rel="next"]');
  const before = document.querySelector('[data-page-before]');
  if (!next && !before) return;
  const here = location.href.split('#')[0];
  let pages = [];
  try {
    pages = JSON.parse(sessionStorage.getItem(PAGES) ?? '[]');
    const others = pages.filter(([to]) => to !== next?.href);
    if (next) sessionStorage.setItem(PAGES, JSON.stringify([...others, [next.href, here]].slice(-MOST_PAGES)));
  } catch {
    // Storage is switched off: the first page is one click away all the same.
  }
  const [, from] = pages.find(([to]) => to === here) ?? [];
  if (!before || !from) return;
  before.href = from;
  before.hidden = false;
}

function say(text) {
  const said = document.getElementById('said');
  said.textContent = visible(text);
  said.hidden = false;
}

function copyLink(button) {
  toClipboard(location.href).then(
    () => {
      say('Link copied.');
      button.dataset.state = 'copied';
    },
    () => say('Your browser blocked copying. Copy the link from the address bar.'),
  );
}

// Saving a list: its script is fetched when it is first asked for.
async function saveList(button) {
  button.disabled = true;
  try {
    const { save } = await import(button.dataset.saveList);
    await save(say);
  } catch {
    say('The list could not be saved. The service cannot be reached. Try again.');
  }
  button.disabled = false;
}

// Keys: two after one another for places, one for everything else.
const PLACES = { h: '/', p: '/projects', a: '/analytics', d: '/docs', m: '/mcp', s: '/settings' };
let goingUntil = 0;

function rowLinks() {
  return [...document.querySelectorAll(':is([data-row], .insight-list) .row-link')];
}

function moveRow(step) {
  const links = rowLinks();
  if (links.length === 0) return;
  const at = links.indexOf(document.activeElement);
  const next = links[at < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(Math.max(at + step, 0), links.length - 1)];
  next.focus();
  next.scrollIntoView({ block: 'nearest' });
}

function isTyping(target) {
  return target instanceof HTMLElement && (target.isContentEditable || target.matches('input:not([type="checkbox"], [type="radio"]), select, textarea'));
}

function onKey(event) {
  if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key === 'k' && searchButton) {
    event.preventDefault();
    openPalette();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (isTyping(event.target)) {
    if (event.key === 'Escape') event.target.blur();
    return;
  }
  if (document.documentElement.dataset.keys === 'off') return;
  const going = Date.now() < goingUntil;
  goingUntil = 0;
  if (going && PLACES[event.key]) {
    location.href = PLACES[event.key];
    return;
  }
  const help = document.getElementById('shortcuts');
  const actions = {
    g: () => { goingUntil = Date.now() + 1200; },
    t: nextTheme,
    j: () => moveRow(1),
    k: () => moveRow(-1),
    '/': () => (document.querySelector('[data-search]') ? document.querySelector('[data-search]').focus() : openPalette()),
    '?': () => (help?.open ? help.close() : help?.showModal()),
  };
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
}

// Drawings of many results side by side are one stop of the tab key: arrows,
// Home and End go from one to the next.
function rove(event) {
  const links = [...(event.target.closest?.('[data-roving]')?.querySelectorAll('a') ?? [])];
  const at = links.indexOf(event.target.closest?.('a'));
  const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: links.length - 1 }[event.key];
  if (at < 0 || !links[to]) return;
  event.preventDefault();
  for (const link of links) link.setAttribute('tabindex', link === links[to] ? '0' : '-1');
  links[to].focus();
}

document.addEventListener('keydown', rove);
// On a narrow screen the tabs scroll: the one that is shown is in view.
const tabs = document.querySelector('.tabs:has([aria-current])');
if (tabs && tabs.scrollWidth > tabs.clientWidth) {
  const current = tabs.querySelector('[aria-current]');
  tabs.addEventListener('focusin', ({ target }) => target.scrollIntoView({ block: 'nearest', inline: 'nearest' }));
  tabs.scrollLeft = current.offsetLeft - (tabs.clientWidth - current.offsetWidth) / 2;
}
for (const button of document.querySelectorAll('[data-theme-switch]')) {
  button.hidden = false;
  nameTheme(button);
  button.addEventListener('click', nextTheme);
}
for (const button of document.querySelectorAll('[data-copy-from]')) button.hidden = false;
// A live page brings new buttons with its parts.
document.addEventListener('click', ({ target }) => {
  const button = target.closest('[data-copy-from]');
  if (button) copy(button);
});
// Who speaks to the computer, or rests a hand on the keys, can do without keys of one letter.
const keys = document.querySelector('[data-keys]');
if (keys) {
  keys.checked = stored(KEYS) !== 'off';
  document.documentElement.dataset.keys = keys.checked ? 'on' : 'off';
  keys.addEventListener('change', () => {
    document.documentElement.dataset.keys = keys.checked ? 'on' : 'off';
    store(KEYS, keys.checked ? undefined : 'off');
  });
}
for (const button of document.querySelectorAll('[data-shortcuts]')) {
  button.hidden = false;
  button.addEventListener('click', () => document.getElementById('shortcuts')?.showModal());
}
for (const button of document.querySelectorAll('[data-palette]')) {
  button.hidden = false;
  button.addEventListener('click', () => openPalette(button.dataset.palette));
}
for (const button of document.querySelectorAll('[data-copy-link]')) {
  button.hidden = false;
  button.addEventListener('click', () => copyLink(button));
}
for (const button of document.querySelectorAll('[data-save-list]')) {
  button.hidden = !document.querySelector('main table:not(.compact)');
  button.addEventListener('click', () => saveList(button));
}
for (const form of document.querySelectorAll('[data-filters]')) setUpFilters(form);
rememberPages();
document.addEventListener('keydown', onKey);
// Menus close when one looks elsewhere.
function closeMenus(event) {
  for (const menu of document.querySelectorAll('details.menu[open]')) {
    const isElsewhere = event.type === 'click' ? !menu.contains(event.target) : event.key === 'Escape';
    if (!isElsewhere) continue;
    menu.open = false;
    if (event.type === 'keydown') menu.querySelector('summary').focus();
  }
}
document.addEventListener('click', closeMenus);
document.addEventListener('keydown', closeMenus);
