// Choosing several rows: all at once, a range with the shift key, or one after
// another with `x` on the row that has the focus. The bar below says how many.

for (const bar of document.querySelectorAll('[data-bulk]')) {
  const boxes = [...document.querySelectorAll(`input[type="checkbox"][form="${bar.id}"]`)];
  const all = bar.closest('section').querySelector('[data-tick-all]');
  let last;

  const tell = () => {
    const chosen = boxes.filter((box) => box.checked).length;
    bar.querySelector('[data-chosen]').textContent = chosen === 1 ? '1 chosen' : `${chosen} chosen`;
    bar.hidden = chosen === 0;
    if (all) Object.assign(all, { checked: chosen === boxes.length, indeterminate: chosen > 0 && chosen < boxes.length });
  };
  const set = (box, isChosen, isRange) => {
    const [from, to] = [boxes.indexOf(isRange && last ? last : box), boxes.indexOf(box)].sort((a, b) => a - b);
    for (const each of boxes.slice(from, to + 1)) each.checked = isChosen;
    last = box;
    tell();
  };

  for (const box of boxes) box.addEventListener('click', (event) => set(box, box.checked, event.shiftKey));
  if (all) {
    all.hidden = boxes.length === 0;
    all.addEventListener('change', () => {
      for (const box of boxes) box.checked = all.checked;
      tell();
    });
  }
  document.addEventListener('keydown', (event) => {
    if (event.key.toLowerCase() !== 'x' || event.ctrlKey || event.metaKey || event.altKey) return;
    const box = event.target.closest?.('[data-row]')?.querySelector(`input[form="${bar.id}"]`);
    if (!box || (event.target.matches('input, textarea, select') && event.target !== box)) return;
    event.preventDefault();
    set(box, !box.checked, event.shiftKey);
  });
  bar.querySelector('[data-unchoose]')?.addEventListener('click', () => {
    for (const box of boxes) box.checked = false;
    tell();
    boxes[0]?.focus();
  });
  tell();
}
