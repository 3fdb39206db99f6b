/** A seeded source of chance: the same seed gives the same history on every machine. */

/** FNV-1a, 32 bit: names become seeds. */
function seedOf(text) {
  let hash = 0x811c9dc5;
  for (const char of text) hash = Math.imul(hash ^ char.codePointAt(0), 0x01000193);
  return hash >>> 0;
}

/** Mulberry32 (Tommy Ettinger, 2017): 32 bits of state, good enough for test data. */
export function randomOf(...names) {
  let state = seedOf(names.join('/'));
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    next,
    chance: (probability) => next() < probability,
    between: (low, high) => Math.floor(low + next() * (high - low + 1)),
    pick: (list) => list[Math.floor(next() * list.length)],
    /** Around 1, skewed to the right, as durations are. */
    spread: (width) => Math.exp((next() + next() + next() - 1.5) * width),
    hex: (digits) => Array.from({ length: digits }, () => Math.floor(next() * 16).toString(16)).join(''),
  };
}
