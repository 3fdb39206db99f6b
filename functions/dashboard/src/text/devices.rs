//! Browsers in words: `Firefox on Linux` instead of what they call themselves.

/// Names are looked for in this order, because many browsers name others too.
const BROWSERS: [(&str, &str); 9] = [
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("HeadlessChrome/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
    ("node", "Node.js"),
    ("undici", "Node.js"),
];
const SYSTEMS: [(&str, &str); 6] = [
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Mac OS X", "macOS"),
    ("Windows", "Windows"),
    ("Linux", "Linux"),
];
/// Longest name that is shown as it is, characters.
const LONGEST: usize = 60;

/// A browser or program by what it calls itself.
pub(crate) fn device(agent: &str) -> String {
    let named = |table: &[(&str, &'static str)]| {
        table.iter().find(|(part, _)| agent.contains(part)).map(|(_, name)| *name)
    };
    match (named(&BROWSERS), named(&SYSTEMS)) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(name), None) | (None, Some(name)) => name.to_owned(),
        (None, None) if agent.trim().is_empty() => "Unknown program".to_owned(),
        (None, None) => agent.chars().take(LONGEST).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_are_named_as_people_do() {
        let chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";
        assert_eq!(device(chrome), "Chrome on Linux");
        assert_eq!(device(&format!("{chrome} Edg/140.0")), "Edge on Linux");
        let safari = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605 Version/18.0 Mobile Safari/604";
        assert_eq!(device(safari), "Safari on iPhone");
        assert_eq!(device("curl/8.5.0"), "curl");
        assert_eq!(device(""), "Unknown program");
        assert_eq!(device("callboard-reporter/1.0"), "callboard-reporter/1.0");
    }
}
