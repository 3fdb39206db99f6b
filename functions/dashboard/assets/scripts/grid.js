// The test grid by keyboard: one stop for the tab key, arrows from cell to
// cell. It opens at its newest runs.

/** Width of a column, and of the room after the last one (grid.css). */
const COLUMN_PX = 24;
/** Width of what fades at its end (grid.css). */
const FADE_PX = 16;

for (const frame of document.querySelectorAll('[data-grid]')) {
  // What is scrolled lies below the names.
  const scrolled = () => frame.toggleAttribute('data-scrolled', frame.scrollLeft > 0);
  frame.addEventListener('scroll', scrolled, { passive: true });
  // No column is half below the names, and none fades at the other end: what can be hit is whole.
  const cut = (frame.scrollWidth - frame.clientWidth) % COLUMN_PX;
  if (cut > 0) frame.querySelector('table').style.marginRight = `${(cut > COLUMN_PX - FADE_PX ? 2 : 1) * COLUMN_PX - cut}px`;
  frame.scrollLeft = frame.scrollWidth;
  scrolled();
  const rows = [...frame.querySelectorAll('tbody tr')].map((row) => [...row.cells].slice(1).map((cell) => cell.querySelector('a')));
  let current = rows.flat().find(Boolean);
  for (const cell of rows.flat()) if (cell && cell !== current) cell.tabIndex = -1;

  const moveTo = (cell) => {
    if (!cell) return;
    current.tabIndex = -1;
    cell.tabIndex = 0;
    current = cell;
    cell.focus();
  };
  // Cells of tests that were no part of a run are stepped over.
  const from = (y, x, stepY, stepX) => {
    for (let row = y + stepY, column = x + stepX; rows[row]?.[column] !== undefined; row += stepY, column += stepX) {
      if (rows[row][column]) return rows[row][column];
    }
    return undefined;
  };
  frame.addEventListener('keydown', (event) => {
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    const y = rows.findIndex((row) => row.includes(event.target));
    if (!steps || y < 0) return;
    event.preventDefault();
    moveTo(from(y, rows[y].indexOf(event.target), ...steps));
  });
}
