//! The title of an HTML page, for links that lead there.

use std::sync::LazyLock;

use regex::Regex;

/// Most characters of a title.
const MAX_CHARS: usize = 200;

static SHARED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?is)<meta[^>]*property\s*=\s*["']og:title["'][^>]*content\s*=\s*(?:"([^"]*)"|'([^']*)')"#)
        .ok()
});
static TITLE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?is)<title[^>]*>(.*?)</title").ok());

/// What a page calls itself: the title it gives for sharing, else its own, on
/// one line of at most 200 characters. `None` when it has none.
#[must_use]
pub fn page_title(html: &str) -> Option<String> {
    let find = |regex: &LazyLock<Option<Regex>>| {
        let found = regex.as_ref()?.captures(html)?;
        let text = found.iter().skip(1).flatten().next()?.as_str();
        let line = decoded(text).split_whitespace().collect::<Vec<_>>().join(" ");
        (!line.is_empty()).then_some(line)
    };
    let title = find(&SHARED).or_else(|| find(&TITLE))?;
    let clean: String = title.chars().filter(|char| !char.is_control()).take(MAX_CHARS).collect();
    Some(clean)
}

/// Replaces the character references that titles hold: the five of XML, the
/// no-break space, and numbers.
fn decoded(text: &str) -> String {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        decoded.push_str(&rest[..at]);
        rest = &rest[at..];
        let reference = rest[1..].find(';').filter(|end| *end <= 8).map(|end| &rest[1..=end]);
        match reference.and_then(character) {
            Some(char) => {
                decoded.push(char);
                rest = &rest[reference.map_or(1, |reference| reference.len() + 2)..];
            }
            None => {
                decoded.push('&');
                rest = &rest[1..];
            }
        }
    }
    decoded.push_str(rest);
    decoded
}

fn character(reference: &str) -> Option<char> {
    match reference {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some(' '),
        number => {
            let digits = number.strip_prefix('#')?;
            let code = match digits.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => digits.parse().ok()?,
            };
            char::from_u32(code)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_called_what_it_calls_itself() {
        for (html, title) in [
            (
                "<html><head><TITLE lang=en>\n Pay &amp; go&#33;\n &#x201c;now&#x201d;</TITLE>",
                Some("Pay & go! “now”"),
            ),
            ("<meta property='og:title' content=\"Issue 8\"><title>other</title>", Some("Issue 8")),
            ("<title> </title>", None),
            ("<title>a &unknown; &amp</title>", Some("a &unknown; &amp")),
            ("{\"title\": 1}", None),
        ] {
            assert_eq!(page_title(html).as_deref(), title, "{html}");
        }
    }
}
