// What this browser remembers of earlier visits: what turned red since then,
// and what was opened lately. It stays in the browser.

// What turned red since this browser looked at the same page before. A visit
// lasts half an hour: going back and forth does not hide anything.
function markNews() {
  const rows = document.querySelectorAll('[data-red-since]');
  if (rows.length === 0) return;
  const HALF_HOUR_MS = 1_800_000;
  try {
    const seen = JSON.parse(localStorage.getItem('callboard-visit') ?? 'null') ?? { before: Date.now(), last: Date.now() };
    const before = Date.now() - seen.last > HALF_HOUR_MS ? seen.last : seen.before;
    localStorage.setItem('callboard-visit', JSON.stringify({ before, last: Date.now() }));
    for (const row of rows) row.querySelector('[data-new]').hidden = Number(row.dataset.redSince) <= before;
  } catch {
    // Without storage nothing is known about earlier visits.
  }
}

// What was opened lately, for the search. The pages in front of the door
// forget it (entrance.js): the next person may be another one.
const RECENT = 'callboard-recent';
const MOST_RECENT = 12;

function noteVisit() {
  try {
    const [, kind] = /^\/(projects|test-runs|test-cases|test-run-cases|failure-clusters)\/\d+$/.exec(location.pathname) ?? [];
    if (!kind || !document.querySelector('main h1') || document.querySelector('.refusal')) return;
    // "pays by card · shop · Callboard"
    const parts = document.title.split(' · ').slice(0, -1);
    const second = kind === 'projects' ? '' : parts.pop();
    const name = parts.join(' · ');
    const known = JSON.parse(localStorage.getItem(RECENT) ?? '[]').filter(({ href }) => href !== location.pathname);
    localStorage.setItem(RECENT, JSON.stringify([{ href: location.pathname, kind, name, second }, ...known].slice(0, MOST_RECENT)));
  } catch {
    // Without storage the search knows the rail only.
  }
}

markNews();
// Parts of the page were replaced by newer ones.
document.addEventListener('exchanged', markNews);
noteVisit();
