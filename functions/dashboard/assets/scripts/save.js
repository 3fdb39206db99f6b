// The list of a page as a file for spreadsheets: all of it under the filters
// in force, page after page, as people read it.

const MOST_ROWS = 10_000;
const TABLES = 'main table.table:not(.compact), main table.grid, main table.heat';
/** Of several tables the one that the pages go on with; the others are the same on each, or only on the first. */
const LIST = '[data-list]';

/** What a cell says. What stands below its first line goes into a column of its own. */
function read(cell) {
  const copy = cell.cloneNode(true);
  for (const part of copy.querySelectorAll('[aria-hidden="true"], button, select, input, details, form')) part.remove();
  for (const time of copy.querySelectorAll('time[datetime]')) time.textContent = time.dateTime;
  for (const image of copy.querySelectorAll('[role="img"][aria-label]')) image.replaceWith(image.getAttribute('aria-label'));
  // A drawing says in its title what it shows.
  for (const drawing of copy.querySelectorAll('svg')) {
    drawing.replaceWith([...drawing.querySelectorAll('title')].map((title) => title.textContent).join('; '));
  }
  for (const link of copy.querySelectorAll('a[aria-label]')) {
    if (!link.textContent.trim()) link.textContent = link.getAttribute('aria-label');
  }
  for (const suite of copy.querySelectorAll('.suite')) suite.append(' ›');
  const below = [...copy.querySelectorAll('.sub, .error-line, .tag')].filter((part) => !part.parentElement.closest('.sub'));
  for (const part of below) part.remove();
  const more = below.map(plain).filter(Boolean).join(' · ');
  const text = plain(copy);
  return text ? { text, below: more } : { text: more, below: '' };
}

/** What is written without blanks is one word, whatever it is made of. */
const IN_ONE = '.path, code, .error-line';

function textOf(node) {
  if (node.nodeType === Node.TEXT_NODE) return node.textContent;
  if (!(node instanceof Element) || node.matches(IN_ONE)) return node.textContent;
  return [...node.childNodes].map(textOf).join(' ');
}

/** Text in one line, numbers without the narrow blanks between their thousands. */
function plain(element) {
  return textOf(element).replace(/(?<=\d)\u202f(?=\d{3})/g, '').replace(/\s+/g, ' ').trim();
}

/** The rows of a table, each with the heading it stands under. */
function rowsOf(table) {
  const rows = [];
  let heading = '';
  for (const row of table.querySelectorAll('tbody > tr')) {
    if (row.classList.contains('group-row')) heading = plain(row);
    else rows.push({ heading, cells: [...row.cells].map(read) });
  }
  return rows;
}

function headsOf(table) {
  const last = table.tHead ? [...table.tHead.rows].at(-1) : undefined;
  return last ? [...last.cells].map((cell) => read(cell).text) : [];
}

/** Lines of cells: columns with something below the first line are followed by it. */
function linesOf(heads, rows) {
  const columns = Math.max(heads.length, ...rows.map(({ cells }) => cells.length));
  const indexes = [...Array(columns).keys()];
  const isUsed = indexes.map((at) => rows.some(({ cells }) => cells[at]?.text));
  const hasMore = indexes.map((at) => rows.some(({ cells }) => cells[at]?.below));
  const isGrouped = rows.some(({ heading }) => heading);
  const line = (group, textOf, moreOf) => [
    ...(isGrouped ? [group] : []),
    ...indexes.flatMap((at) => [...(isUsed[at] ? [textOf(at)] : []), ...(hasMore[at] ? [moreOf(at)] : [])]),
  ];
  return [
    line('Group', (at) => heads[at] ?? '', (at) => `${heads[at] ?? ''} (more)`.trim()),
    ...rows.map(({ heading, cells }) => line(heading, (at) => cells[at]?.text ?? '', (at) => cells[at]?.below ?? '')),
  ];
}

/** RFC 4180. A cell that a spreadsheet would take for a formula begins with an apostrophe. */
function written(value) {
  const safe = /^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]/.test(value) && !/^[+-]\d[\d.,]*( ?%)?$/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function titleOf(table) {
  const section = table.closest('section, figure');
  return (section?.querySelector('h2')?.textContent ?? section?.getAttribute('aria-label') ?? '').trim();
}

async function pageAt(href) {
  const answer = await fetch(href, { headers: { accept: 'text/html' } });
  if (!answer.ok) throw new Error(`The service answered ${answer.status}, request ${answer.headers.get('x-request-id') ?? 'without id'}.`);
  return new DOMParser().parseFromString(await answer.text(), 'text/html');
}

const linkTo = (page, selector) => page.querySelector(selector)?.getAttribute('href');

const listAmong = (tables) => Math.max(tables.findIndex((table) => table.matches(LIST)), 0);

/** Everything the list has, from its first page on. */
async function gather(told) {
  const first = linkTo(document, '.pager a:not([rel])');
  let page = first ? await pageAt(first) : document;
  const shown = [...page.querySelectorAll(TABLES)];
  const tables = shown.map((table) => ({ title: titleOf(table), heads: headsOf(table), rows: rowsOf(table) }));
  const list = tables[listAmong(shown)];
  let next = linkTo(page, '.pager a[rel="next"]');
  let count = tables.reduce((sum, { rows }) => sum + rows.length, 0);
  while (next && count < MOST_ROWS) {
    told(count);
    page = await pageAt(next);
    const found = [...page.querySelectorAll(TABLES)];
    const more = found.length > 0 ? rowsOf(found[listAmong(found)]) : [];
    list?.rows.push(...more);
    count += more.length;
    next = linkTo(page, '.pager a[rel="next"]');
  }
  return { tables, count, isCut: Boolean(next) };
}

function fileName() {
  const words = document.title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-+|-+$/g, '');
  return `${words.slice(0, 80)}-${new Date().toISOString().slice(0, 10)}.csv`;
}

function hand(text) {
  const link = document.createElement('a');
  // Spreadsheets take a file without the mark for one in the code page of their system.
  link.href = URL.createObjectURL(new Blob(['\ufeff', text], { type: 'text/csv;charset=utf-8' }));
  link.download = fileName();
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Saves the list of the page; `say` tells how far that is. */
export async function save(say) {
  try {
    const { tables, count, isCut } = await gather((soFar) => say(`${soFar} rows so far …`));
    const named = tables.length > 1;
    const lines = tables.flatMap(({ title, heads, rows }, at) => [
      ...(named ? [...(at > 0 ? [[]] : []), [title]] : []),
      ...linesOf(heads, rows),
    ]);
    hand(`${lines.map((cells) => cells.map(written).join(',')).join('\r\n')}\r\n`);
    say(isCut ? `The first ${count} rows are saved; narrow the list down for the rest.` : `${count} rows are saved.`);
  } catch (error) {
    const why = error instanceof TypeError ? 'The service cannot be reached.' : error.message;
    say(`The list could not be saved. ${why} Try again.`);
  }
}
