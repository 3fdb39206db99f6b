//! Which bytes a browser may open, where, and as what. The type comes from
//! the list below by what the server recognised; a type that is not listed is
//! unknown bytes to save.

use callboard_http::Door;

use crate::disposition::Disposition;

/// The type of trace archives.
pub(crate) const TRACE_TYPE: &str = "application/zip";
/// The type of everything that is only saved.
const UNKNOWN: &str = "application/octet-stream";

/// What a browser does with a type when it opens one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nature {
    /// Shows it, or saves it; never runs anything.
    Passive,
    /// Runs or applies it for the page of the same report that asks for it.
    Part,
    /// Opens it as a page that can run script.
    Page,
    /// Opens it as a drawing that can run script.
    Drawing,
}

/// Every type that is answered as itself, as it is written on the wire.
const TYPES: [(&str, Nature); 16] = [
    ("image/png", Nature::Passive),
    ("image/jpeg", Nature::Passive),
    ("image/gif", Nature::Passive),
    ("image/webp", Nature::Passive),
    ("video/webm", Nature::Passive),
    ("video/mp4", Nature::Passive),
    (TRACE_TYPE, Nature::Passive),
    ("application/json", Nature::Passive),
    ("text/plain; charset=utf-8", Nature::Passive),
    ("text/markdown; charset=utf-8", Nature::Passive),
    ("text/css; charset=utf-8", Nature::Part),
    ("text/javascript; charset=utf-8", Nature::Part),
    ("font/ttf", Nature::Part),
    ("font/woff2", Nature::Part),
    ("text/html; charset=utf-8", Nature::Page),
    ("image/svg+xml", Nature::Drawing),
];

/// How bytes are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Presentation {
    /// Opened or saved.
    pub disposition: Disposition,
    /// The type on the wire.
    pub content_type: &'static str,
    /// A page that can run script.
    pub is_page: bool,
    /// One that its policy gives an opaque origin.
    pub is_opaque_page: bool,
}

/// How bytes of a stored type are shown on the dashboard's own origin; `None`
/// when they may be opened, but not there.
pub(crate) fn on_dashboard(stored_type: &str, download: bool) -> Option<Presentation> {
    match known(stored_type) {
        Some((content_type, Nature::Passive)) => Some(show(content_type, download)),
        Some((_, Nature::Page | Nature::Drawing)) if !download => None,
        _ => Some(save(UNKNOWN)),
    }
}

/// How bytes of a stored type are shown below a grant. Through the main door a
/// page gets an opaque origin from its policy; a drawing is saved there, and
/// still shows as an image inside of its report.
pub(crate) fn below_grant(stored_type: &str, door: Door, download: bool) -> Presentation {
    match (known(stored_type), door) {
        (Some((content_type, Nature::Passive)), _) => show(content_type, download),
        (Some(_), _) if download => save(UNKNOWN),
        (Some((content_type, Nature::Drawing)), Door::Main) => save(content_type),
        (Some((content_type, nature)), _) => Presentation {
            is_page: nature == Nature::Page,
            is_opaque_page: nature == Nature::Page && door == Door::Main,
            ..show(content_type, false)
        },
        (None, _) => save(UNKNOWN),
    }
}

impl Presentation {
    /// Whether bytes shown so may come from another origin, without any policy
    /// of ours: only what never runs there.
    pub(crate) fn is_inert(self) -> bool {
        let is_passive = matches!(known(self.content_type), Some((_, Nature::Passive)));
        self.disposition == Disposition::Attachment || is_passive
    }
}

fn known(stored_type: &str) -> Option<(&'static str, Nature)> {
    let wanted = essence(stored_type);
    TYPES.into_iter().find(|(content_type, _)| essence(content_type).eq_ignore_ascii_case(wanted))
}

/// A type without its parameters.
fn essence(content_type: &str) -> &str {
    content_type.split_once(';').map_or(content_type, |(essence, _)| essence).trim()
}

const fn show(content_type: &'static str, download: bool) -> Presentation {
    let disposition = if download { Disposition::Attachment } else { Disposition::Inline };
    Presentation { disposition, content_type, is_page: false, is_opaque_page: false }
}

const fn save(content_type: &'static str) -> Presentation {
    Presentation { disposition: Disposition::Attachment, content_type, is_page: false, is_opaque_page: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACTIVE: [&str; 3] = ["text/html", "Text/HTML; charset=utf-8", "image/svg+xml"];
    const PARTS: [&str; 3] = ["text/javascript; charset=utf-8", "text/css", "font/woff2"];
    const UNLISTED: [&str; 6] =
        ["application/pdf", "text/xml", "application/xhtml+xml", "application/wasm", "", "text/html+evil"];

    #[test]
    fn the_dashboard_opens_nothing_that_could_run_script() {
        for active in ACTIVE {
            assert_eq!(on_dashboard(active, false), None, "{active}");
            assert_eq!(on_dashboard(active, true), Some(save(UNKNOWN)), "{active}");
        }
        for other in PARTS.into_iter().chain(UNLISTED) {
            assert_eq!(on_dashboard(other, false), Some(save(UNKNOWN)), "{other}");
        }
    }

    #[test]
    fn pictures_and_text_open_anywhere_and_are_saved_on_demand() {
        for (stored, sent) in [
            ("image/png", "image/png"),
            ("video/webm", "video/webm"),
            ("text/plain", "text/plain; charset=utf-8"),
            ("application/json; charset=utf-7", "application/json"),
        ] {
            assert_eq!(on_dashboard(stored, false), Some(show(sent, false)), "{stored}");
            assert_eq!(below_grant(stored, Door::Main, false), show(sent, false), "{stored}");
            assert_eq!(on_dashboard(stored, true), Some(save(sent)), "{stored}");
        }
    }

    #[test]
    fn below_a_grant_reports_work_and_only_their_own_origin_opens_drawings() {
        for door in [Door::Main, Door::Sandbox] {
            for stored in PARTS.into_iter().chain(["text/html"]) {
                assert_eq!(below_grant(stored, door, false).disposition, Disposition::Inline, "{stored}");
            }
            for stored in UNLISTED {
                assert_eq!(below_grant(stored, door, false), save(UNKNOWN), "{stored}");
            }
            for stored in PARTS.into_iter().chain(ACTIVE) {
                assert_eq!(below_grant(stored, door, true), save(UNKNOWN), "{stored}");
            }
        }
        assert_eq!(below_grant("image/svg+xml", Door::Sandbox, false), show("image/svg+xml", false));
        assert_eq!(below_grant("image/svg+xml", Door::Main, false), save("image/svg+xml"));
        assert!(below_grant("text/html", Door::Main, false).is_opaque_page);
        assert!(!below_grant("text/html", Door::Sandbox, false).is_opaque_page);
    }
}
