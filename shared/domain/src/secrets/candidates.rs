//! Where in a text a secret may begin. Almost all words are ruled out here by a
//! look at a few of their bytes; what is left is judged by the rules.

use memchr::memmem;

use super::patterns::{BEGINNINGS, FIELDS, HEADERS, MAX_NAME, MIN_HEX, is_of_scheme};

/// What the rules look for besides the lists of names and keys.
const WORDS: [&[u8]; 7] = [b"authorization", b"bearer ", b"cookie", b"data:", b"eyJ", b"pd_", b"-----BEGIN "];
/// First and second letters of everything that begins a secret, then the second
/// and third ones, without regard to case: a bit for each pair.
static PAIRS: [[u64; PAIR_WORDS]; 2] = [pairs(0), pairs(1)];
const PAIR_WORDS: usize = 1 << 10;

const fn pairs(offset: usize) -> [u64; PAIR_WORDS] {
    let mut pairs = [0; PAIR_WORDS];
    let mut at = 0;
    while at < BEGINNINGS.len() {
        pairs = with(pairs, BEGINNINGS[at].0, offset);
        at += 1;
    }
    pairs = with_all(pairs, &WORDS, offset);
    pairs = with_all(pairs, &HEADERS, offset);
    with_all(pairs, &FIELDS, offset)
}

const fn with_all(mut pairs: [u64; PAIR_WORDS], words: &[&[u8]], offset: usize) -> [u64; PAIR_WORDS] {
    let mut at = 0;
    while at < words.len() {
        pairs = with(pairs, words[at], offset);
        at += 1;
    }
    pairs
}

const fn with(mut pairs: [u64; PAIR_WORDS], word: &[u8], offset: usize) -> [u64; PAIR_WORDS] {
    let (index, bit) = place(word[offset], word[offset + 1]);
    pairs[index] |= bit;
    pairs
}

/// Where the bit of a pair is.
const fn place(first: u8, second: u8) -> (usize, u64) {
    let (first, second) = (first.to_ascii_lowercase() as usize, second.to_ascii_lowercase());
    ((first << 2) | (second as usize >> 6), 1 << (second & 63))
}

/// The places of a text, looked at from its beginning to its end.
pub(super) struct Candidates<'a> {
    bytes: &'a [u8],
    /// The next `://`, at the place that is looked at or behind it.
    scheme_end: usize,
}

impl<'a> Candidates<'a> {
    pub(super) fn from_bytes(bytes: &'a [u8]) -> Self {
        Self { bytes, scheme_end: next_scheme_end(bytes, 0) }
    }

    /// Whether a secret, or what names one, may begin with the word at `at`. Places
    /// are asked for in ascending order.
    pub(super) fn contains(&mut self, at: usize) -> bool {
        if self.scheme_end < at {
            self.scheme_end = next_scheme_end(self.bytes, at);
        }
        let rest = &self.bytes[at..];
        begins_known(rest)
            || begins_hex(rest)
            || self.begins_address(at)
            || at.checked_sub(1).is_some_and(|before| matches!(self.bytes[before], b'?' | b'&' | b'#'))
    }

    /// Whether a scheme of an address begins here.
    fn begins_address(&self, at: usize) -> bool {
        let scheme = self.bytes.get(at..self.scheme_end);
        scheme.is_some_and(|scheme| scheme.len() <= MAX_NAME && scheme.iter().all(|byte| is_of_scheme(*byte)))
    }
}

/// Where the next scheme of an address ends; beyond the text when there is none.
fn next_scheme_end(bytes: &[u8], at: usize) -> usize {
    memmem::find(&bytes[at..], b"://").map_or(usize::MAX, |offset| at + offset)
}

fn begins_known(rest: &[u8]) -> bool {
    let [first, second, third, ..] = *rest else { return false };
    let has = |pairs: &[u64; PAIR_WORDS], (index, bit): (usize, u64)| pairs[index] & bit != 0;
    has(&PAIRS[0], place(first, second)) && has(&PAIRS[1], place(second, third))
}

/// Whether as many hexadecimal digits may follow as a key has.
fn begins_hex(rest: &[u8]) -> bool {
    let is_digit = |at: usize| rest.get(at).is_some_and(u8::is_ascii_hexdigit);
    is_digit(MIN_HEX - 1) && is_digit(MIN_HEX / 2) && is_digit(0)
}
