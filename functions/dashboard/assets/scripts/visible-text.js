// Text that others named, as people may read it. Every script that writes such
// text into a page begins with this file (assets.rs); pages of the server do
// the same (bidi.rs of the domain).

/** Characters that change the order in which text is shown and are not shown themselves (CVE-2021-42574). */
const REORDERING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f]/g;

/** Reordering characters as marks such as `⟦U+202E⟧`; nothing for what has no value. */
function visible(text) {
  return String(text ?? '').replace(REORDERING, (char) => `⟦U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}⟧`);
}

