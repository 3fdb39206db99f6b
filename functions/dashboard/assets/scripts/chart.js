// Charts of lines: a cursor that reads every line where the pointer or the
// focus is, and a closer look at the part somebody draws across.

/** How far a press moves before it draws, px. */
const DRAW_PX = 6;
/** Points of the closest look. */
const LEAST_POINTS = 3;
const SVG = 'http://www.w3.org/2000/svg';

const charts = new WeakMap();

/** What a chart shows and which part of it is looked at. */
const chartOf = (plot) => {
  if (charts.has(plot)) return charts.get(plot);
  const figure = plot.closest('.chart');
  const drawing = plot.querySelector('.plot-lines');
  const { width, height } = drawing.viewBox.baseVal;
  const names = [...figure.querySelectorAll('.chart-data th')].map((head) => head.textContent);
  // The table begins with the newest.
  const rows = [...figure.querySelectorAll('.chart-data tbody tr')].reverse();
  const points = [...drawing.querySelectorAll('.hit')].map((hit, at) => {
    const title = hit.querySelector('title');
    // The cursor says it; the name stays for those who do not see it.
    const link = hit.closest('a');
    if (!link) hit.setAttribute('role', 'img');
    (link ?? hit).setAttribute('aria-label', title?.textContent ?? '');
    title?.remove();
    return { hit, cells: [...rows[at].cells].map((cell) => cell.textContent), x: Number(hit.getAttribute('x')), width: Number(hit.getAttribute('width')) };
  });
  const cursor = document.createElementNS(SVG, 'line');
  cursor.setAttribute('class', 'cursor-line');
  cursor.setAttribute('y2', height);
  const chosen = document.createElementNS(SVG, 'rect');
  chosen.setAttribute('class', 'chosen-part');
  chosen.setAttribute('height', height);
  drawing.append(chosen, cursor);
  const readout = document.createElement('div');
  readout.className = 'readout';
  readout.setAttribute('aria-hidden', 'true');
  plot.append(readout);
  const chart = { plot, figure, drawing, names, points, cursor, chosen, readout, whole: width, from: 0, to: width };
  charts.set(plot, chart);
  hide(chart);
  return chart;
};

const hide = (chart) => {
  chart.cursor.style.display = chart.chosen.style.display = 'none';
  chart.readout.hidden = true;
};

/** Where the pointer is in the drawing. */
const placeOf = (chart, event) => {
  const { left, width } = chart.drawing.getBoundingClientRect();
  const part = Math.min(1, Math.max(0, (event.clientX - left) / width));
  return chart.from + part * (chart.to - chart.from);
};

const nearest = (chart, place) => chart.points.findLast((point) => point.x <= place) ?? chart.points[0];

const read = (chart, point) => {
  const centre = point.x + point.width / 2;
  chart.cursor.setAttribute('x1', centre);
  chart.cursor.setAttribute('x2', centre);
  chart.cursor.style.display = '';
  const [when, ...values] = point.cells;
  const lines = values.map((value, at) => {
    const line = document.createElement('span');
    const sample = chart.figure.querySelectorAll('.legend .line-sample')[at]?.cloneNode(true);
    if (at === values.length - 1) line.textContent = value;
    else line.append(sample ?? '', `${chart.names[at + 1]} `, Object.assign(document.createElement('b'), { textContent: value }));
    return line;
  });
  chart.readout.replaceChildren(Object.assign(document.createElement('b'), { textContent: when }), ...lines.filter((line) => line.textContent));
  chart.readout.hidden = false;
  const at = (centre - chart.from) / (chart.to - chart.from);
  // Beside the cursor, on the side that has room.
  chart.readout.style.left = at > 0.5 ? '' : `calc(${100 * at}% + 12px)`;
  chart.readout.style.right = at > 0.5 ? `calc(${100 * (1 - at)}% + 12px)` : '';
};

const look = (chart, from, to) => {
  const shown = chart.points.filter((point) => point.x + point.width / 2 >= from && point.x + point.width / 2 <= to);
  const isWhole = shown.length === chart.points.length;
  if (!isWhole && shown.length < LEAST_POINTS) return;
  [chart.from, chart.to] = isWhole ? [0, chart.whole] : [shown[0].x, shown.at(-1).x + shown.at(-1).width];
  chart.drawing.setAttribute('viewBox', `${chart.from} 0 ${chart.to - chart.from} ${chart.drawing.viewBox.baseVal.height}`);
  chart.drawing.classList.toggle('is-part', !isWhole);
  const [first, last] = chart.figure.querySelectorAll('.plot-axis span');
  chart.ends ??= [first.textContent, last.textContent];
  [first.textContent, last.textContent] = isWhole ? chart.ends : [shown[0].cells[0], shown.at(-1).cells[0]];
  chart.figure.querySelector('.chart-head .whole')?.remove();
  if (isWhole) return;
  const whole = Object.assign(document.createElement('button'), { type: 'button', className: 'button quiet whole', textContent: 'Show all' });
  whole.addEventListener('click', () => look(chart, 0, chart.whole));
  chart.figure.querySelector('.chart-head').append(whole);
};

let drawn;

document.addEventListener('pointerdown', (event) => {
  const plot = event.target.closest?.('.plot:has(> .plot-lines)');
  if (!plot || event.button !== 0 || event.pointerType === 'touch') return;
  const chart = chartOf(plot);
  drawn = { chart, begin: placeOf(chart, event), x: event.clientX, isDrawing: false };
});

document.addEventListener('pointermove', (event) => {
  const plot = event.target.closest?.('.plot:has(> .plot-lines)');
  if (drawn) {
    const { chart, begin, x } = drawn;
    drawn.isDrawing ||= Math.abs(event.clientX - x) > DRAW_PX;
    if (!drawn.isDrawing) return;
    const end = placeOf(chart, event);
    chart.chosen.setAttribute('x', Math.min(begin, end));
    chart.chosen.setAttribute('width', Math.abs(end - begin));
    chart.chosen.style.display = '';
    return;
  }
  if (!plot) return;
  const chart = chartOf(plot);
  read(chart, nearest(chart, placeOf(chart, event)));
});

document.addEventListener('pointerup', (event) => {
  if (!drawn) return;
  const { chart, begin, isDrawing } = drawn;
  drawn = undefined;
  if (!isDrawing) return;
  hide(chart);
  const end = placeOf(chart, event);
  look(chart, Math.min(begin, end), Math.max(begin, end));
  // What was drawn across is not followed.
  const stop = (click) => click.preventDefault();
  window.addEventListener('click', stop, { capture: true, once: true });
  setTimeout(() => window.removeEventListener('click', stop, { capture: true }));
});

document.addEventListener('pointercancel', () => {
  if (drawn) hide(drawn.chart);
  drawn = undefined;
});
document.addEventListener('dragstart', (event) => {
  if (event.target.closest?.('.plot-lines')) event.preventDefault();
});
document.addEventListener('pointerout', (event) => {
  const plot = event.target.closest?.('.plot:has(> .plot-lines)');
  if (plot && charts.has(plot) && !drawn && !plot.contains(event.relatedTarget)) hide(chartOf(plot));
});
document.addEventListener('dblclick', (event) => {
  const plot = event.target.closest?.('.plot:has(> .plot-lines)');
  if (plot) look(chartOf(plot), 0, Infinity);
});
document.addEventListener('focusin', (event) => {
  const plot = event.target.closest?.('.plot:has(> .plot-lines)');
  if (!plot) return;
  const chart = chartOf(plot);
  const point = chart.points.find(({ hit }) => event.target.contains(hit));
  if (point) read(chart, point);
});
document.addEventListener('focusout', (event) => {
  const plot = event.target.closest?.('.plot:has(> .plot-lines)');
  if (plot && charts.has(plot)) hide(chartOf(plot));
});
document.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape') return;
  for (const plot of document.querySelectorAll('.plot:has(> .plot-lines.is-part)')) look(chartOf(plot), 0, Infinity);
});
