/**
 * Text of tests, errors and people in Markdown. A test may be called anything, so what is not ours stands in a code span:
 * no renderer reads Markdown, HTML, mentions (`@name`), references (`#1`), addresses or emoji there.
 */

/** Longer texts, of generated tests for instance, would hide everything below them. */
const TEXT_MAX_CHARS = 300;

/** Ends of lines that some renderer knows; inside a code span they would still end a list item or a row. */
const LINE_ENDS = /\r\n|[\n\r\v\f\u0085\u2028\u2029]/g;
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/g;
/** Characters that make text look as if it were in another order, or that nobody sees. */
const DECEPTIVE = /[\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;
const LONE_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** The text as a code span on one line. The result can stand in a sentence, a link or a list item; in a table `|` would end the cell. */
export function codeSpan(text: string): string {
  // Renderers disagree on longer fences inside of links, so a backtick becomes the letter that looks like one.
  return `\`${shown(text).replaceAll('`', '\u02cb') || '(empty)'}\``;
}

/** A link to an http(s) address; only the text where the address is something else. `markdown` must be safe already. */
export function link(markdown: string, address: string): string {
  const target = linkTarget(address);
  return target === undefined ? markdown : `[${markdown}](${target})`;
}

function linkTarget(address: string): string | undefined {
  try {
    const { protocol, href } = new URL(address);
    if (protocol !== 'http:' && protocol !== 'https:') return undefined;
    return href.replace(/[()[\]<>\\'"`*_|]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
  } catch {
    return undefined;
  }
}

/** The text as a person sees it, on one line. */
function shown(text: string): string {
  const line = text
    .replace(LINE_ENDS, ' ').replace(/\t/g, ' ').replace(CONTROL, '').replace(LONE_SURROGATE, '\ufffd')
    .replace(DECEPTIVE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .trim();
  const characters = [...line];
  return characters.length <= TEXT_MAX_CHARS ? line : `${characters.slice(0, TEXT_MAX_CHARS - 1).join('').trimEnd()}…`;
}
