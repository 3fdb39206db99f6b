//! Where the parts of a JSON text lie: the fields of its object and the entries
//! of one list among them, or the entries of a list. The text is looked at piece
//! by piece and never held; what is inside of the parts is judged by who reads
//! them.

use std::collections::HashMap;

use memchr::memchr2;

use super::super::body::MAX_TEST_CASES;

/// Most fields that are noted.
const MAX_FIELDS: usize = 10_000;
/// Longest name of a field, as it is written.
const MAX_NAME_BYTES: usize = 1_024;

/// Bytes of a text, from the first to the one after the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Span {
    pub(super) const fn length(self) -> u64 {
        self.to - self.from
    }
}

/// What a text consists of.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outline {
    /// The fields, by their name as it is written; the last one of each name.
    pub(super) fields: HashMap<Vec<u8>, Span>,
    /// The entries of the list; `None` when there is none.
    pub(super) entries: Option<Vec<Span>>,
    /// There are more entries than a request may carry.
    pub(super) is_too_long: bool,
}

/// The text is not JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) String);

/// What may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Start,
    NameOrEnd,
    Name,
    Colon,
    Value,
    CommaOrEnd,
    EntryOrEnd,
    Entry,
    CommaOrListEnd,
    Nothing,
}

/// A value, or a name, that has begun.
#[derive(Debug)]
struct Token {
    from: u64,
    /// Brackets that are open in it.
    depth: usize,
    is_text: bool,
    is_escaped: bool,
}

/// Reads a text from its beginning.
#[derive(Debug)]
pub(super) struct Outliner {
    /// The field that holds the list; `None` when the text is the list.
    list: Option<&'static str>,
    max_depth: usize,
    at: u64,
    expected: Expected,
    token: Option<Token>,
    name: Vec<u8>,
    outline: Outline,
}

impl Outliner {
    /// Outlines an object and reports each entry of the list in one of its
    /// fields. Brackets may be open inside of each other up to `max_depth`.
    pub(super) fn of_object(list: &'static str, max_depth: usize) -> Self {
        Self::new(Some(list), max_depth)
    }

    /// Of a list.
    pub(super) fn of_list(max_depth: usize) -> Self {
        Self::new(None, max_depth)
    }

    fn new(list: Option<&'static str>, max_depth: usize) -> Self {
        let (at, expected, token) = (0, Expected::Start, None);
        Self { list, max_depth, at, expected, token, name: Vec::new(), outline: Outline::default() }
    }

    /// Looks at the next piece.
    pub(super) fn feed(&mut self, piece: &[u8]) -> Result<(), Malformed> {
        let mut rest = piece;
        while let Some(byte) = rest.first() {
            let is_text = self.token.as_ref().map(|token| token.is_text);
            let taken = match is_text {
                Some(true) => self.text(rest),
                Some(false) => self.nested(*byte)?,
                None => {
                    self.structure(*byte)?;
                    1
                }
            };
            rest = &rest[taken..];
            self.at += taken as u64;
        }
        Ok(())
    }

    /// The whole text has been looked at.
    pub(super) fn finish(mut self) -> Result<Outline, Malformed> {
        if self.expected == Expected::Nothing && self.token.is_none() {
            return Ok(std::mem::take(&mut self.outline));
        }
        Err(Malformed("it ends too early".to_owned()))
    }

    /// Inside of quotes; answers how many bytes that were.
    fn text(&mut self, rest: &[u8]) -> usize {
        let Some(token) = self.token.as_mut() else { return 0 };
        let taken = if std::mem::take(&mut token.is_escaped) {
            1
        } else {
            match memchr2(b'"', b'\\', rest) {
                Some(found) => {
                    token.is_escaped = rest[found] == b'\\';
                    token.is_text = token.is_escaped;
                    found + 1
                }
                None => rest.len(),
            }
        };
        let (is_over, is_name) = (!token.is_text && token.depth == 0, self.expected == Expected::Colon);
        if is_name && self.name.len() <= MAX_NAME_BYTES {
            self.name.extend_from_slice(&rest[..taken]);
        }
        if is_over {
            self.end(self.at + taken as u64);
        }
        taken
    }

    /// Inside of brackets, or of a number or word.
    fn nested(&mut self, byte: u8) -> Result<usize, Malformed> {
        let Some(token) = self.token.as_mut() else { return Ok(0) };
        match byte {
            b'"' if token.depth > 0 => token.is_text = true,
            b'[' | b'{' if token.depth > 0 => {
                token.depth += 1;
                if token.depth > self.max_depth {
                    return Err(Malformed("it is nested too deep".to_owned()));
                }
            }
            b']' | b'}' if token.depth > 0 => {
                token.depth -= 1;
                if token.depth == 0 {
                    self.end(self.at + 1);
                }
            }
            // What ends a number or a word belongs to what is around it.
            b',' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t' if token.depth == 0 => {
                self.end(self.at);
                return Ok(0);
            }
            _ => {}
        }
        Ok(1)
    }

    fn structure(&mut self, byte: u8) -> Result<(), Malformed> {
        use Expected::{
            Colon, CommaOrEnd, CommaOrListEnd, Entry, EntryOrEnd, Name, NameOrEnd, Nothing, Start, Value,
        };
        if matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
            return Ok(());
        }
        let is_list = byte == b'[' && self.list.is_none_or(|list| self.name == quoted(list));
        self.expected = match (self.expected, byte) {
            // The mark of a byte order, which some write before a text.
            (Start, 0xef | 0xbb | 0xbf) if self.at < 3 => Start,
            (Start, b'{') if self.list.is_some() => NameOrEnd,
            (Start, b'[') if self.list.is_none() => {
                self.outline.entries = Some(Vec::new());
                EntryOrEnd
            }
            (NameOrEnd | Name, b'"') => {
                self.name.clear();
                self.name.push(b'"');
                self.begin(byte);
                Colon
            }
            (Colon, b':') => Value,
            (Value, b'[') if is_list => {
                self.outline.entries = Some(Vec::new());
                self.outline.is_too_long = false;
                self.outline.fields.remove(&self.name);
                EntryOrEnd
            }
            (Value, _) if begins_value(byte) => {
                self.begin(byte);
                CommaOrEnd
            }
            (CommaOrEnd, b',') => Name,
            (NameOrEnd | CommaOrEnd, b'}') => Nothing,
            (EntryOrEnd | Entry, _) if begins_value(byte) => {
                self.begin(byte);
                CommaOrListEnd
            }
            (CommaOrListEnd, b',') => Entry,
            (EntryOrEnd | CommaOrListEnd, b']') => match self.list {
                Some(_) => CommaOrEnd,
                None => Nothing,
            },
            _ => return Err(Malformed(format!("unexpected byte {:?} at {}", char::from(byte), self.at))),
        };
        Ok(())
    }

    fn begin(&mut self, byte: u8) {
        let depth = usize::from(matches!(byte, b'[' | b'{'));
        self.token = Some(Token { from: self.at, depth, is_text: byte == b'"', is_escaped: false });
    }

    /// The value or name that began is over.
    fn end(&mut self, to: u64) {
        let Some(token) = self.token.take() else { return };
        let span = Span { from: token.from, to };
        match self.expected {
            Expected::CommaOrEnd => {
                let is_list = self.list.is_some_and(|list| self.name == quoted(list));
                let fields = &mut self.outline.fields;
                if self.name.len() <= MAX_NAME_BYTES
                    && (fields.len() < MAX_FIELDS || is_list || fields.contains_key(&self.name))
                {
                    fields.insert(self.name.clone(), span);
                }
                if is_list {
                    self.outline.entries = None;
                }
            }
            Expected::CommaOrListEnd => match &mut self.outline.entries {
                Some(entries) if entries.len() < MAX_TEST_CASES => entries.push(span),
                _ => self.outline.is_too_long = true,
            },
            _ => {}
        }
    }
}

const fn begins_value(byte: u8) -> bool {
    !matches!(byte, b',' | b':' | b']' | b'}')
}

/// A plain name as it is written.
pub(super) fn quoted(name: &str) -> Vec<u8> {
    format!("\"{name}\"").into_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn outline(text: &str, piece: usize) -> Result<Outline, Malformed> {
        let mut outliner = Outliner::of_object("list", 8);
        for piece in text.as_bytes().chunks(piece) {
            outliner.feed(piece)?;
        }
        outliner.finish()
    }

    fn at(text: &str, span: Span) -> &str {
        &text[usize::try_from(span.from).unwrap()..usize::try_from(span.to).unwrap()]
    }

    #[test]
    fn parts_are_found_wherever_the_text_is_cut() {
        let text = "\u{feff} {\"a\" : [1, {\"b\": \"]\\\"}\"}],\"list\":[ {\"x\":[[]]} ,\"t\\\\\",3],\"n\":-1.5e3 , \
                    \"a\":null}\n";
        for piece in 1..text.len() {
            let found = outline(text, piece).unwrap();
            let entries: Vec<&str> = found.entries.iter().flatten().map(|span| at(text, *span)).collect();
            assert_eq!(entries, ["{\"x\":[[]]}", "\"t\\\\\"", "3"], "{piece}");
            assert_eq!(at(text, found.fields[&quoted("n")]), "-1.5e3");
            assert_eq!(at(text, found.fields[&quoted("a")]), "null", "the last of one name counts");
            assert_eq!(found.fields.len(), 2);
        }
        let twice = outline("{\"list\":[1],\"list\":{}}", 1).unwrap();
        assert!(twice.entries.is_none() && twice.fields.contains_key(&quoted("list")));
        let again = outline("{\"list\":7,\"list\":[1]}", 1).unwrap();
        assert_eq!((again.entries.map(|entries| entries.len()), again.fields.len()), (Some(1), 0));
    }

    #[test]
    fn what_is_not_json_around_the_parts_is_refused() {
        for text in [
            "",
            "[]",
            "{",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{a:1}",
            "{\"a\":1}}",
            "{\"list\":[1,]}",
            "{\"list\":[1}",
            "{\"a\":\"x}",
            "{\"a\":[[[[[[[[[1]]]]]]]]]}",
            "{\"list\":[,]}",
            "{\"a\" 1}",
            "1",
        ] {
            assert!(outline(text, 1).is_err(), "{text}");
        }
        let mut list = Outliner::of_list(8);
        list.feed(b" [1,{} ]").unwrap();
        assert_eq!(list.finish().unwrap().entries.unwrap().len(), 2);
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[\\\\\"\\]\\[{}a:, \n]{0,6}".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::hash_map("[a\"]{0,3}", inner, 0..4).prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_part_is_the_json_that_was_written(
            entries in proptest::collection::vec(values(), 0..5), other in values(), piece in 1_usize..20,
        ) {
            let text = json!({ "list": entries, "other": other }).to_string();
            let found = outline(&text, piece).unwrap();
            let read = |span: Span| serde_json::from_str::<Value>(at(&text, span)).unwrap();
            let read_entries: Vec<Value> = found.entries.unwrap().into_iter().map(read).collect();
            prop_assert_eq!(read_entries, entries);
            prop_assert_eq!(read(found.fields[&quoted("other")]), other);
        }
    }
}
