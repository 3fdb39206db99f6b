//! Pages that a function shows by itself, away from the dashboard: the look
//! they share, and the bar that leads back. A function must not need another
//! one to show its page, so each serves these files under its own addresses.

/// The style all of them begin with.
pub const STYLE: &str = include_str!("../assets/lone.css");

/// Applies the theme that was chosen and lets another one be chosen. To be
/// loaded before anything is painted.
pub const SCRIPT: &str = include_str!("../assets/lone.js");

use crate::error;

const BRAND: &str = r##"<svg viewBox="0 0 32 32" width="24" height="24" aria-hidden="true"><rect width="32" height="32" rx="7" fill="#3f51d6"/><g fill="#fff"><rect x="7" y="8" width="12" height="3.5" rx="1.75"/><rect x="7" y="14.25" width="18" height="3.5" rx="1.75" opacity=".75"/><rect x="7" y="20.5" width="15" height="3.5" rx="1.75" opacity=".75"/></g><circle cx="24.5" cy="9.75" r="2.75" fill="#7ee2a8"/></svg>"##;
const THEME: &str = r#"<svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><circle cx="8" cy="8" r="6" fill="none" stroke="currentColor" stroke-width="1.4"/><path fill="currentColor" d="M8 2a6 6 0 0 1 0 12Z"/></svg>"#;

/// What the bar leads to, as the rail of the dashboard names it.
const PLACES: [(&str, &str); 6] = [
    ("/", "Home"),
    ("/projects", "Projects"),
    ("/analytics", "Analytics"),
    ("/docs", "API docs"),
    ("/mcp", "MCP"),
    ("/settings", "Settings"),
];

/// The bar of the page at this address; a demo says below it what it is.
#[must_use]
pub fn bar(current: &str, is_demo: bool) -> String {
    let links: String = PLACES
        .iter()
        .map(|(address, name)| {
            let mark = if *address == current { r#" aria-current="page""# } else { "" };
            format!(r#"<a href="{address}"{mark}>{name}</a>"#)
        })
        .collect();
    let line =
        if is_demo { format!(r#"<p class="demo-line">{}</p>"#, error::DEMO_REFUSAL) } else { String::new() };
    let help = if current == "/mcp" { "/help/guides/mcp" } else { "/help/guides/api" };
    format!(
        r#"<header class="top"><a class="brand" href="/">{BRAND}Callboard</a><nav aria-label="Main">{links}<a href="{help}">Help</a></nav><button class="icon-button" type="button" data-theme-switch aria-label="Theme">{THEME}</button></header>{line}"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_lights_the_page_it_is_on() {
        let bar = bar("/mcp", false);
        assert_eq!(bar.matches("aria-current").count(), 1);
        assert!(bar.contains(r#"<a href="/mcp" aria-current="page">MCP</a>"#));
        assert!(!bar.contains("demo"));
    }
}
