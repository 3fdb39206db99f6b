//! What the page was like: its vitals, its state (names and sizes, never
//! values) and what it wrote to the console.

use serde::{Deserialize, Serialize};

use super::steps::cut_in_place;
use super::url_text::strip_url;
use crate::ingest::lenient::{self, Scalar, element_is_object, rounded};
use crate::ingest::location::split_number;

const MAX_HASH_CHARS: usize = 500;
const MAX_HISTORY_CHARS: usize = 2_100;
const MAX_STORAGE_ITEMS: usize = 50;
const MAX_COOKIES: usize = 30;
const MAX_NAME_CHARS: usize = 200;
const MAX_CONSOLE_TYPE_CHARS: usize = 20;
/// Entries kept from the beginning when the console overflows.
const CONSOLE_HEAD: usize = 20;

/// Web vitals of the page the test ended on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WebVitals {
    /// Navigation timing.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_object")]
    pub navigation: Option<NavigationTiming>,
    /// Paint timing.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_object")]
    pub paint: Option<PaintTiming>,
    /// Largest contentful paint, layout shift, interaction.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_object")]
    pub vitals: Option<CoreVitals>,
}

/// Navigation timing, in milliseconds and bytes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the fields are those of the browser's interface of this name")]
pub struct NavigationTiming {
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_text")]
    pub url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_duration")]
    pub ttfb: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_duration")]
    pub dom_interactive: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_duration")]
    pub dom_content_loaded: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_duration")]
    pub load_complete: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_size")]
    pub transfer_size: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_size")]
    pub encoded_body_size: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_size")]
    pub decoded_body_size: Option<i64>,
}

/// Paint timing in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PaintTiming {
    /// First paint.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_duration")]
    pub first_paint: Option<i64>,
    /// First contentful paint.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_duration")]
    pub first_contentful_paint: Option<i64>,
}

/// The vitals themselves.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CoreVitals {
    /// Largest contentful paint, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_duration")]
    pub lcp: Option<i64>,
    /// Cumulative layout shift, without unit.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_number")]
    pub cls: Option<f64>,
    /// Interaction to next paint, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_duration")]
    pub inp: Option<i64>,
}

impl WebVitals {
    /// Without query in the address; nothing when nothing was measured.
    pub(super) fn bounded(mut self) -> Option<Self> {
        self.navigation.take_if(|navigation| *navigation == NavigationTiming::default());
        self.paint.take_if(|paint| *paint == PaintTiming::default());
        self.vitals.take_if(|vitals| *vitals == CoreVitals::default());
        if let Some(navigation) = &mut self.navigation {
            navigation.url = navigation.url.take().map(strip_url);
        }
        (self != Self::default()).then_some(self)
    }
}

/// Where the page was and which names its stores held.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PageState {
    /// `scheme://host/path`.
    #[serde(deserialize_with = "lenient::text")]
    pub url: String,
    /// Fragment of the address, up to a `?` in it.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_text")]
    pub hash: Option<String>,
    /// The history entry's state as JSON; secrets were masked by the client.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_json_text")]
    pub history_state: Option<String>,
    /// Keys of the local storage.
    #[serde(deserialize_with = "lenient::list_or_empty")]
    pub local_storage: Vec<StorageItem>,
    /// Keys of the session storage.
    #[serde(deserialize_with = "lenient::list_or_empty")]
    pub session_storage: Vec<StorageItem>,
    /// Names and attributes of cookies.
    #[serde(deserialize_with = "lenient::list_or_empty")]
    pub cookies: Vec<Cookie>,
}

/// A key of a web storage and the length of its value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StorageItem {
    /// Key, ≤ 200 characters.
    #[serde(deserialize_with = "lenient::text")]
    pub key: String,
    /// Characters of the value.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_size")]
    pub length: Option<i64>,
}

/// A cookie without its value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the fields are the attributes of a cookie")]
pub struct Cookie {
    #[serde(deserialize_with = "lenient::text")]
    pub name: String,
    #[serde(deserialize_with = "lenient::text")]
    pub domain: String,
    #[serde(deserialize_with = "lenient::text")]
    pub path: String,
    #[serde(deserialize_with = "lenient::flag")]
    pub http_only: bool,
    #[serde(deserialize_with = "lenient::flag")]
    pub secure: bool,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_text")]
    pub same_site: Option<String>,
    /// Epoch seconds, -1 for a session cookie.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "expiry")]
    pub expires: Option<i64>,
}

fn expiry<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    let scalar = Scalar::deserialize(deserializer)?;
    Ok(scalar.number().map(|number| rounded(number, -1.0, 1e15)))
}

/// A fragment without the values it names: logins hand tokens over in them.
fn without_values(fragment: &str) -> String {
    let pairs = fragment.split('&').map(|pair| match pair.split_once('=') {
        Some((name, value)) if !value.is_empty() => format!("{name}=<masked>"),
        _ => pair.to_owned(),
    });
    pairs.collect::<Vec<_>>().join("&")
}

impl PageState {
    /// Within bounds and without secrets; nothing without an address.
    pub(super) fn bounded(mut self) -> Option<Self> {
        if self.url.is_empty() {
            return None;
        }
        self.url = strip_url(self.url);
        if let Some(hash) = &mut self.hash {
            // Routers that live in the fragment have queries of their own.
            hash.truncate(hash.find('?').unwrap_or(hash.len()));
            *hash = without_values(hash);
            cut_in_place(hash, MAX_HASH_CHARS);
        }
        if let Some(state) = &mut self.history_state {
            cut_in_place(state, MAX_HISTORY_CHARS);
        }
        for items in [&mut self.local_storage, &mut self.session_storage] {
            items.retain(|item| !item.key.is_empty());
            items.truncate(MAX_STORAGE_ITEMS);
            items.iter_mut().for_each(|item| cut_in_place(&mut item.key, MAX_NAME_CHARS));
        }
        self.cookies.retain(|cookie| !cookie.name.is_empty());
        self.cookies.truncate(MAX_COOKIES);
        for cookie in &mut self.cookies {
            for text in [&mut cookie.name, &mut cookie.domain, &mut cookie.path] {
                cut_in_place(text, MAX_NAME_CHARS);
            }
            if let Some(same_site) = &mut cookie.same_site {
                cut_in_place(same_site, MAX_CONSOLE_TYPE_CHARS);
            }
        }
        Some(self)
    }
}

/// One entry of the browser's console.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConsoleEntry {
    /// `warning`, `error`, `assert`, `pageerror` or another word.
    #[serde(rename = "type", deserialize_with = "lenient::text")]
    pub kind: String,
    /// What was written.
    #[serde(deserialize_with = "lenient::text")]
    pub text: String,
    /// Epoch milliseconds.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_moment")]
    pub timestamp: Option<i64>,
    /// `url:line:column` without query.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_text")]
    pub location: Option<String>,
}

element_is_object!(StorageItem, Cookie, ConsoleEntry);

impl ConsoleEntry {
    /// An error nobody caught.
    #[must_use]
    pub fn is_page_error(&self) -> bool {
        self.kind == "pageerror"
    }

    /// An error nobody caught, or one that was written as such.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.is_page_error() || self.kind == "error"
    }

    /// The text without its digits: what two entries about different data have
    /// in common.
    #[must_use]
    pub fn without_numbers(&self) -> String {
        self.text.chars().filter(|char| !char.is_ascii_digit()).collect()
    }
}

/// Keeps the first 20 and the newest entries, `max` together, and says in
/// between how many are missing; cuts each to `max_chars` characters.
pub(super) fn bounded_console(
    mut entries: Vec<ConsoleEntry>,
    max: usize,
    max_chars: usize,
) -> Vec<ConsoleEntry> {
    entries.retain(|entry| !entry.text.is_empty());
    let dropped = entries.len().saturating_sub(max);
    let head = if max > CONSOLE_HEAD { CONSOLE_HEAD } else { max / 2 };
    if dropped > 0 {
        entries.drain(head..head + dropped);
    }
    for entry in &mut entries {
        cut_in_place(&mut entry.kind, MAX_CONSOLE_TYPE_CHARS);
        let length = entry.text.len();
        cut_in_place(&mut entry.text, max_chars);
        if entry.text.len() < length {
            entry.text.push_str(" [truncated]");
        }
        entry.location = entry.location.take().map(strip_location);
    }
    if dropped > 0 {
        let text = format!("[{dropped} console entries dropped]");
        entries.insert(head, ConsoleEntry { kind: "info".to_owned(), text, ..ConsoleEntry::default() });
    }
    entries
}

/// Strips the address in `url:line:column`.
fn strip_location(location: String) -> String {
    let numbered = split_number(&location).map(|(front, last)| match split_number(front) {
        Some((url, line)) => (url.to_owned(), format!(":{line}:{last}")),
        None => (front.to_owned(), format!(":{last}")),
    });
    match numbered {
        Some((url, numbers)) => strip_url(url) + &numbers,
        None => strip_url(location),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(count: usize) -> Vec<ConsoleEntry> {
        (0..count)
            .map(|n| ConsoleEntry { kind: "error".into(), text: n.to_string(), ..ConsoleEntry::default() })
            .collect()
    }

    #[test]
    fn an_overflowing_console_keeps_its_beginning_and_its_end() {
        assert_eq!(bounded_console(entries(200), 200, 100), entries(200));
        let kept = bounded_console(entries(203), 200, 100);
        assert_eq!(kept.len(), 201);
        assert_eq!((kept[19].text.as_str(), kept[21].text.as_str()), ("19", "23"));
        assert_eq!((kept[20].kind.as_str(), kept[20].text.as_str()), ("info", "[3 console entries dropped]"));
        assert_eq!(kept[200].text, "202");
    }

    #[test]
    fn console_entries_are_cut_and_lose_queries() {
        let mut entry = entries(1);
        entry[0].text = "äöüß".into();
        entry[0].location = Some("https://a.test/app.js?v=s3cret:10:5".into());
        let kept = bounded_console(entry, 200, 3);
        assert_eq!(kept[0].text, "äöü [truncated]");
        assert_eq!(kept[0].location.as_deref(), Some("https://a.test/app.js:10:5"));
    }

    #[test]
    fn values_of_stores_and_cookies_do_not_survive() {
        let state: PageState = serde_json::from_value(serde_json::json!({
            "url": "https://a.test/x?token=s3cret", "hash": "#/route?token=s3cret", "title": "s3cret",
            "historyState": {"key": 1},
            "localStorage": [{"key": "jwt", "value": "s3cret", "length": 6}, "s3cret"],
            "sessionStorage": {"s3cret": 1},
            "cookies": [{"name": "sid", "value": "s3cret", "domain": "a.test", "path": "/", "httpOnly": true, "secure": "s3cret", "expires": -1}],
        }))
        .expect("is accepted");
        let state = state.bounded().expect("is accepted");
        let json = serde_json::to_value(&state).expect("is accepted");
        assert_eq!(
            json,
            serde_json::json!({
                "url": "https://a.test/x", "hash": "#/route", "historyState": "{\"key\":1}",
                "localStorage": [{"key": "jwt", "length": 6}], "sessionStorage": [],
                "cookies": [{"name": "sid", "domain": "a.test", "path": "/", "httpOnly": true, "secure": false, "expires": -1}],
            })
        );
        let implicit = PageState {
            url: "https://a.test/".into(),
            hash: Some("#access_token=s3cret&scope=&done".into()),
            ..PageState::default()
        };
        let hash = implicit.bounded().expect("is accepted").hash;
        assert_eq!(hash.as_deref(), Some("#access_token=<masked>&scope=&done"));
        assert_eq!(PageState::default().bounded(), None);
    }
}
