// Choosing several rows: all at once, a range with the shift key, or one after
// another with `x` on the row that has the focus. The bar below says how many,
// and waits for as many as it takes where it takes so many. Rows may be
// exchanged for newer ones meanwhile (live.js).

for (const bar of document.querySelectorAll('[data-bulk]')) {
  const select = `input[type="checkbox"][form="${bar.id}"]`;
  const boxes = () => [...document.querySelectorAll(select)];
  const all = bar.closest('section').querySelector('[data-tick-all]');
  const exactly = Number(bar.dataset.exactly ?? 0);
  let last;

  const words = (chosen) => {
    const counted = chosen === 1 ? '1 selected' : `${chosen} selected`;
    if (exactly === 0 || chosen === exactly) return counted;
    return chosen < exactly ? `${counted}, select ${exactly - chosen} more` : `${counted}, maximum ${exactly}`;
  };
  const tell = () => {
    const ticks = boxes();
    const chosen = ticks.filter((box) => box.checked).length;
    bar.querySelector('[data-chosen]').textContent = words(chosen);
    bar.hidden = chosen === 0;
    if (exactly > 0) bar.querySelector('button[type="submit"]').disabled = chosen !== exactly;
    if (all) Object.assign(all, { checked: chosen === ticks.length, indeterminate: chosen > 0 && chosen < ticks.length });
  };
  const set = (box, isChosen, isRange) => {
    const ticks = boxes();
    const [from, to] = [ticks.indexOf(isRange && last ? last : box), ticks.indexOf(box)].sort((a, b) => a - b);
    for (const each of ticks.slice(Math.max(from, 0), to + 1)) each.checked = isChosen;
    last = box;
    tell();
  };

  document.addEventListener('click', (event) => {
    const box = event.target.closest?.(select);
    if (box) set(box, box.checked, event.shiftKey);
  });
  if (all) {
    all.hidden = boxes().length === 0;
    all.addEventListener('change', () => {
      for (const box of boxes()) box.checked = all.checked;
      tell();
    });
  }
  document.addEventListener('keydown', (event) => {
    if (event.key.toLowerCase() !== 'x' || event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.documentElement.dataset.keys === 'off') return;
    const box = event.target.closest?.('[data-row]')?.querySelector(select);
    if (!box || (event.target.matches('input, textarea, select') && event.target !== box)) return;
    event.preventDefault();
    set(box, !box.checked, event.shiftKey);
  });
  bar.querySelector('[data-unchoose]')?.addEventListener('click', () => {
    for (const box of boxes()) box.checked = false;
    tell();
    boxes()[0]?.focus();
  });
  document.addEventListener('exchanged', tell);
  tell();
}
