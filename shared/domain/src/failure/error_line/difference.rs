//! The first difference in a comparison that an error shows line by line.

use std::sync::LazyLock;

use regex::Regex;

use super::{MAX_PART_CHARS, Segments, pattern, short};

static DIFF_LINE: LazyLock<Regex> = LazyLock::new(|| pattern(r#"^(\s*)(?:"?([^":]+?)"?: )?(.*?),?$"#));

/// The first difference in a comparison that is shown line by line, by the
/// path of its key.
pub(super) fn first_difference(part: &Segments<'_>) -> Option<String> {
    let begins = part.head.iter().position(|line| line.trim_start().starts_with("- Expected"))?;
    let all = &part.head[begins + 1..];
    let lines = all.iter().filter(|line| !line.trim_start().starts_with("+ Received"));
    let mut path: Vec<(usize, String)> = Vec::new();
    let mut missing: Option<Entry<'_>> = None;
    let mut added: Option<Entry<'_>> = None;
    let mut differences = 0_usize;
    for line in lines {
        let line = line.strip_prefix("    ").filter(|rest| rest.starts_with(['-', '+'])).unwrap_or(line);
        let Some(marker) = line.chars().next().filter(char::is_ascii) else { continue };
        let Some(entry) = Entry::from_line(&line[1..]) else { continue };
        match marker {
            '-' => {
                differences += 1;
                if missing.is_none() && added.is_none() {
                    missing = Some(entry.below(&path));
                }
            }
            '+' => {
                let is_other_side = missing.as_ref().is_some_and(|missing| missing.key == entry.key);
                if added.is_none() && (missing.is_none() || is_other_side) {
                    added = Some(entry.below(&path));
                }
                if missing.is_none() {
                    differences += 1;
                }
            }
            ' ' => {
                while path.last().is_some_and(|(depth, _)| *depth >= entry.depth) {
                    path.pop();
                }
                if entry.value.ends_with(['{', '[']) {
                    path.push((entry.depth, entry.key.unwrap_or_default().to_owned()));
                }
            }
            _ => {}
        }
    }
    let said = match (&missing, &added) {
        (Some(missing), Some(added)) if missing.opens() && added.opens() => differing_key(all)
            .unwrap_or_else(|| {
                format!("{}expected {}, received {}", missing.path, missing.kind(), added.kind())
            }),
        (Some(missing), Some(added)) => {
            format!("{}expected {}, received {}", missing.path, short(missing.value), short(added.value))
        }
        (Some(missing), None) => {
            format!("{}expected {}, which is missing", missing.path, short(missing.value))
        }
        (None, Some(added)) => {
            format!("{}received {}, which was not expected", added.path, short(added.value))
        }
        (None, None) => return None,
    };
    Some(if differences > 1 { format!("{said} (+{} more)", differences - 1) } else { said })
}

/// Of two objects that differ as a whole, such as one and an
/// `ObjectContaining`, the first key whose values do.
fn differing_key(lines: &[&str]) -> Option<String> {
    let of = |marker: char| -> Vec<Entry<'_>> {
        lines.iter().filter_map(|line| Entry::from_line(line.strip_prefix(marker)?)).collect()
    };
    let (expected, received) = (of('-'), of('+'));
    expected.iter().filter(|entry| entry.key.is_some() && !entry.opens()).find_map(|expected| {
        let received =
            received.iter().find(|entry| (entry.key, entry.depth) == (expected.key, expected.depth))?;
        let key = expected.key.filter(|_| received.value != expected.value)?;
        Some(format!("{key}: expected {}, received {}", short(expected.value), short(received.kind())))
    })
}

/// One line of a comparison.
struct Entry<'a> {
    depth: usize,
    key: Option<&'a str>,
    value: &'a str,
    /// Keys that lead to it, as `customer.address.city: `.
    path: String,
}

impl<'a> Entry<'a> {
    fn from_line(line: &'a str) -> Option<Self> {
        let found = DIFF_LINE.captures(line)?;
        let value = found.get(3)?.as_str();
        if value.is_empty() {
            return None;
        }
        let key = found.get(2).map(|key| key.as_str()).filter(|key| key.len() <= MAX_PART_CHARS);
        let value = if key.is_some() { value } else { line.trim().trim_end_matches(',') };
        Some(Self { depth: found[1].len(), key, value, path: String::new() })
    }

    /// Whether it begins an object or a list.
    fn opens(&self) -> bool {
        self.value.ends_with(['{', '['])
    }

    /// The value; of an object or list its name.
    fn kind(&self) -> &'a str {
        self.value.trim_end_matches(['{', '[']).trim_end()
    }

    fn below(mut self, path: &[(usize, String)]) -> Self {
        let above = path.iter().filter(|(depth, _)| *depth < self.depth).map(|(_, key)| key.as_str());
        let keys: Vec<&str> = above.chain(self.key).filter(|key| !key.is_empty()).collect();
        if !keys.is_empty() {
            self.path = format!("{}: ", short(&keys.join(".")));
        }
        self
    }
}

/// The first line that differs in what `node:assert` shows.
pub(super) fn difference_of_node(part: &Segments<'_>) -> Option<String> {
    let begins = part.head.iter().position(|line| line.trim() == "+ actual - expected")?;
    let marked = |marker: &str| {
        let line = part.head[begins + 1..].iter().find_map(|line| line.strip_prefix(marker))?;
        Some(line.trim().trim_end_matches(','))
    };
    match (marked("-"), marked("+")) {
        (Some(expected), Some(actual)) => {
            Some(format!("expected {}, received {}", short(expected), short(actual)))
        }
        (Some(expected), None) => Some(format!("expected {}, which is missing", short(expected))),
        (None, Some(actual)) => Some(format!("received {}, which was not expected", short(actual))),
        (None, None) => None,
    }
}
