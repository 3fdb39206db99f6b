//! The reader of chains: one pass over the bytes, no way back.

use std::ops::Range;

use super::{Argument, Call, Chain, FINDERS, MAX_CHAIN_BYTES, MAX_DEPTH, Property, Value};

/// Reads the chain that `text` begins with; what follows it is left alone.
/// `None` when the text does not begin with one, or it has no end.
#[must_use]
pub fn parse(text: &str) -> Option<Chain> {
    chain_at(text, 0)
}

/// The first chain inside `text` that begins with a call that finds elements.
/// Its root is the expression right before that call.
#[must_use]
pub fn first_chain(text: &str) -> Option<Chain> {
    next_chain(text, 0)
}

/// All chains inside `text`, in order; a chain that is an argument of another
/// one is part of that one only.
#[must_use]
pub fn chains(text: &str) -> Vec<Chain> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(chain) = next_chain(text, at) {
        at = chain.range.end;
        found.push(chain);
    }
    found
}

fn next_chain(text: &str, from: usize) -> Option<Chain> {
    let bytes = text.as_bytes();
    let mut at = from;
    while at < bytes.len() {
        if !is_name_start(bytes[at]) {
            at += 1;
            continue;
        }
        let end = name_end(bytes, at);
        let is_start = FINDERS.contains(&&text[at..end]) && bytes.get(skip_blank(bytes, end)) == Some(&b'(');
        if is_start && let Some(mut chain) = chain_at(text, at) {
            chain.root = root_before(bytes, at, from);
            chain.range.start = if chain.root.is_empty() { at } else { chain.root.start };
            return Some(chain);
        }
        at = end;
    }
    None
}

/// The object a call at `at` is made on, at most down to `floor`.
fn root_before(bytes: &[u8], at: usize, floor: usize) -> Range<usize> {
    let floor = floor.max(at.saturating_sub(MAX_CHAIN_BYTES));
    let mut start = at;
    loop {
        let dot = blank_before(bytes, start, floor);
        if dot == floor || bytes[dot - 1] != b'.' {
            break;
        }
        let end = blank_before(bytes, dot - 1, floor);
        let mut name = end;
        while name > floor && is_name_part(bytes[name - 1]) {
            name -= 1;
        }
        if name == end || !is_name_start(bytes[name]) {
            break;
        }
        start = name;
    }
    let mut end = blank_before(bytes, at, start);
    if end > start {
        // Without the dot.
        end = blank_before(bytes, end - 1, start);
    }
    start..end
}

fn chain_at(text: &str, at: usize) -> Option<Chain> {
    let mut limit = text.len().min(at.saturating_add(MAX_CHAIN_BYTES));
    while !text.is_char_boundary(limit) {
        limit -= 1;
    }
    let mut reader = Reader { text: &text[..limit], at };
    match reader.chain(0)? {
        Value::Chain(chain) => Some(chain),
        _ => None,
    }
}

const fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte == b'$' || byte >= 0x80
}

const fn is_name_part(byte: u8) -> bool {
    is_name_start(byte) || byte.is_ascii_digit()
}

fn name_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| !is_name_part(*byte)).map_or(bytes.len(), |length| at + length)
}

fn skip_blank(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| !byte.is_ascii_whitespace()).map_or(bytes.len(), |length| at + length)
}

fn blank_before(bytes: &[u8], mut at: usize, floor: usize) -> usize {
    while at > floor && bytes[at - 1].is_ascii_whitespace() {
        at -= 1;
    }
    at
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    fn peek(&self) -> Option<u8> {
        self.bytes().get(self.at).copied()
    }

    fn takes(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// Steps over blanks and comments.
    fn skip_blank(&mut self) {
        loop {
            self.at = skip_blank(self.bytes(), self.at);
            let rest = &self.text[self.at..];
            let length = if rest.starts_with("//") {
                rest.find('\n')
            } else if rest.starts_with("/*") {
                rest.find("*/").map(|end| end + 2)
            } else {
                return;
            };
            self.at = length.map_or(self.text.len(), |length| self.at + length);
        }
    }

    fn name(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        if !is_name_start(self.peek()?) {
            return None;
        }
        self.at = name_end(self.bytes(), start);
        Some(start..self.at)
    }

    /// Names and calls joined by dots. A chain when there is a call among
    /// them, an expression when there is none.
    fn chain(&mut self, depth: usize) -> Option<Value> {
        let start = self.at;
        let mut calls: Vec<Call> = Vec::new();
        let mut end;
        loop {
            let name = self.name()?;
            end = name.end;
            self.skip_blank();
            if self.takes(b'(') {
                let arguments = self.arguments(b')', depth + 1)?;
                end = self.at;
                let range = name.start..end;
                calls.push(Call { name: self.text[name].to_owned(), range, arguments });
                self.skip_blank();
            }
            let is_dot = self.peek() == Some(b'.')
                && self
                    .bytes()
                    .get(skip_blank(self.bytes(), self.at + 1))
                    .copied()
                    .is_some_and(is_name_start);
            if !is_dot {
                break;
            }
            self.at += 1;
            self.skip_blank();
        }
        self.at = end;
        let Some(first) = calls.first() else { return Some(Value::Expression) };
        // Everything before the first call is its root, `page.form` of `page.form.getByText()`.
        let root = self.text[start..first.range.start].trim_end().trim_end_matches('.').trim_end();
        Some(Value::Chain(Chain { range: start..end, root: start..start + root.len(), calls }))
    }

    /// Values up to a closing bracket, which is taken.
    fn arguments(&mut self, close: u8, depth: usize) -> Option<Vec<Argument>> {
        if depth > MAX_DEPTH {
            return None;
        }
        let mut arguments = Vec::new();
        loop {
            self.skip_blank();
            if self.takes(close) {
                return Some(arguments);
            }
            arguments.push(self.argument(depth)?);
            self.skip_blank();
            if !self.takes(b',') && self.peek() != Some(close) {
                return None;
            }
        }
    }

    /// One value up to the comma or bracket that ends it.
    fn argument(&mut self, depth: usize) -> Option<Argument> {
        let start = self.at;
        let mut value = self.value(depth)?;
        let mut end = self.at;
        self.skip_blank();
        if !matches!(self.peek(), Some(b',' | b')' | b']' | b'}')) {
            end = self.expression()?;
            value = Value::Expression;
        }
        Some(Argument { range: start..end, value })
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        match self.peek()? {
            b'\'' | b'"' => self.string().map(Value::Text),
            b'`' => self.template(),
            b'/' => self.pattern(),
            b'{' => {
                self.at += 1;
                self.object(depth + 1)
            }
            b'[' => {
                self.at += 1;
                self.arguments(b']', depth + 1).map(Value::List)
            }
            b'0'..=b'9' | b'-' => Some(self.number()),
            byte if is_name_start(byte) => self.chain(depth),
            // Left for the one who reads expressions.
            _ => Some(Value::Expression),
        }
    }

    /// Properties after the opening bracket. What is no plain object becomes
    /// an expression.
    fn object(&mut self, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        let mut properties = Vec::new();
        loop {
            self.skip_blank();
            if self.takes(b'}') {
                return Some(Value::Object(properties));
            }
            let key = self.at;
            let name = match self.peek()? {
                b'\'' | b'"' => Some(self.string()?),
                _ => self.name().map(|name| self.text[name].to_owned()),
            };
            let key = key..self.at;
            self.skip_blank();
            match (name, self.peek()?) {
                (Some(name), b':') => {
                    self.at += 1;
                    self.skip_blank();
                    properties.push(Property { name, value: self.argument(depth)? });
                }
                (Some(name), b',' | b'}') => {
                    let value = Argument { range: key, value: Value::Expression };
                    properties.push(Property { name, value });
                }
                _ => {
                    self.expression()?;
                }
            }
            self.skip_blank();
            if !self.takes(b',') && self.peek() != Some(b'}') {
                return None;
            }
        }
    }

    fn number(&mut self) -> Value {
        let start = self.at;
        self.takes(b'-');
        while self.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'_') {
            self.at += 1;
        }
        let text = self.text[start..self.at].replace('_', "");
        text.parse().map_or(Value::Expression, Value::Number)
    }

    /// A string with its quotes; escapes are resolved.
    fn string(&mut self) -> Option<String> {
        let quote = self.peek()?;
        self.at += 1;
        self.quoted(quote).map(|(text, _)| text)
    }

    fn template(&mut self) -> Option<Value> {
        self.at += 1;
        let (text, has_placeholder) = self.quoted(b'`')?;
        Some(if has_placeholder { Value::Expression } else { Value::Text(text) })
    }

    /// Up to the closing quote, which is taken, and whether there was a
    /// placeholder. Placeholders of template texts are balanced by their
    /// brackets.
    fn quoted(&mut self, quote: u8) -> Option<(String, bool)> {
        let mut text = String::new();
        let mut has_placeholder = false;
        loop {
            let rest = &self.text[self.at..];
            let length = rest.find(['\\', '\n', '$', char::from(quote)])?;
            text.push_str(&rest[..length]);
            self.at += length;
            match self.peek()? {
                byte if byte == quote => {
                    self.at += 1;
                    return Some((text, has_placeholder));
                }
                b'\\' => text.push_str(&self.escape()?),
                b'$' if quote == b'`' && rest[length..].starts_with("${") => {
                    has_placeholder = true;
                    self.at += 2;
                    self.balanced(b'}')?;
                }
                b'\n' if quote != b'`' => return None,
                byte => {
                    text.push(char::from(byte));
                    self.at += 1;
                }
            }
        }
    }

    /// One escape, backslash included.
    fn escape(&mut self) -> Option<String> {
        let rest = &self.text[self.at + 1..];
        let escaped = rest.chars().next()?;
        self.at += 1 + escaped.len_utf8();
        let hex = |digits: &str| u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
        let (taken, character) = match escaped {
            'n' => (0, '\n'),
            't' => (0, '\t'),
            'r' => (0, '\r'),
            'x' => (2, rest.get(1..3).and_then(hex)?),
            'u' if rest[1..].starts_with('{') => {
                let end = rest.find('}')?;
                (end, hex(rest.get(2..end)?)?)
            }
            // Half a surrogate pair is no character; its digits stay.
            'u' => rest.get(1..5).and_then(hex).map_or((0, 'u'), |character| (4, character)),
            '\n' => return Some(String::new()),
            other => (0, other),
        };
        self.at += taken;
        Some(character.to_string())
    }

    fn pattern(&mut self) -> Option<Value> {
        let start = self.at + 1;
        self.skip_pattern()?;
        let end = self.at - 1;
        let flags = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_alphabetic()) {
            self.at += 1;
        }
        let (source, flags) = (&self.text[start..end], &self.text[flags..self.at]);
        Some(Value::Pattern { source: source.to_owned(), flags: flags.to_owned() })
    }

    /// A regular expression with both slashes.
    fn skip_pattern(&mut self) -> Option<()> {
        let mut is_class = false;
        self.at += 1;
        loop {
            match self.peek()? {
                b'\\' => self.at += 1,
                b'[' => is_class = true,
                b']' => is_class = false,
                b'\n' => return None,
                b'/' if !is_class => {
                    self.at += 1;
                    return Some(());
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    /// The rest of an expression: up to the comma or bracket that ends it,
    /// which is left. Answers where the expression ends.
    fn expression(&mut self) -> Option<usize> {
        let start = self.at;
        let end = self.scan(|byte| matches!(byte, b',' | b')' | b']' | b'}'))?;
        Some(blank_before(self.bytes(), end, start))
    }

    /// Up to and with the bracket that closes an open one.
    fn balanced(&mut self, close: u8) -> Option<()> {
        self.scan(|byte| byte == close)?;
        self.at += 1;
        Some(())
    }

    /// Steps over balanced text up to a byte that ends it on the outside.
    fn scan(&mut self, ends: impl Fn(u8) -> bool) -> Option<usize> {
        let mut open: Vec<u8> = Vec::new();
        // What stands before a slash tells a division from a regular expression.
        let mut is_value = false;
        loop {
            let byte = self.peek()?;
            if open.is_empty() && ends(byte) {
                return Some(self.at);
            }
            match byte {
                b'(' | b'[' | b'{' => {
                    if open.len() >= MAX_DEPTH {
                        return None;
                    }
                    open.push(match byte {
                        b'(' => b')',
                        b'[' => b']',
                        _ => b'}',
                    });
                }
                b')' | b']' | b'}' if open.pop()? != byte => return None,
                b'\'' | b'"' => {
                    self.string()?;
                    is_value = true;
                    continue;
                }
                b'`' => {
                    if open.len() >= MAX_DEPTH {
                        return None;
                    }
                    self.skip_template()?;
                    is_value = true;
                    continue;
                }
                b'/' if !is_value => {
                    let before = self.at;
                    self.skip_blank();
                    if self.at == before {
                        self.skip_pattern()?;
                        is_value = true;
                    }
                    continue;
                }
                _ => {}
            }
            if !byte.is_ascii_whitespace() {
                is_value = is_name_part(byte) || matches!(byte, b')' | b']' | b'}');
            }
            self.at += 1;
        }
    }

    /// A template text inside another expression: its placeholders may hold
    /// anything but further template texts.
    fn skip_template(&mut self) -> Option<()> {
        self.at += 1;
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'\\' => self.at += 1,
                b'`' if depth == 0 => {
                    self.at += 1;
                    return Some(());
                }
                b'$' if self.bytes().get(self.at + 1) == Some(&b'{') => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
        }
    }
}
