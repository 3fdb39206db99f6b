//! Styles, scripts and images, compiled in. Every address carries a
//! fingerprint of the bytes behind it, so an answer can be kept for ever and a
//! new version is a new address.

use std::sync::LazyLock;

use axum::response::{IntoResponse, Response};
use callboard_http::ApiError;
use callboard_http::extract::Tail;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use sha2::{Digest, Sha256};

const FINGERPRINT_BYTES: usize = 6;
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// A file of the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asset {
    /// All styles, in the order of their layers.
    Styles,
    /// Applies the chosen theme before anything is painted.
    Theme,
    /// What makes pages handier: copying, shortcuts, filters that apply immediately.
    Page,
    /// What the browser remembers of earlier visits.
    Visits,
    /// Looking for anything from anywhere.
    Palette,
    /// The test grid by keyboard.
    Grid,
    /// The cursor of charts, and a closer look at a part of them.
    Chart,
    /// Forms that call the API.
    FormApi,
    /// Buttons that open dialogs.
    Dialogs,
    /// Long lists to choose from.
    Chooser,
    /// Rows that are chosen together.
    Bulk,
    /// Files that take a while to make.
    Export,
    /// The list of a page as a file.
    Save,
    /// What a change of retention deletes, before it is saved.
    Retention,
    /// A diagnosis that runs.
    Diagnosis,
    /// The notifications of the reader.
    Bell,
    /// Passwords that can be looked at.
    Password,
    /// The pages in front of the door.
    Entrance,
    /// Keeps pages of runs that go on up to date.
    Live,
    /// Parts that are asked for when somebody comes near them.
    Later,
    /// Pictures at their full size.
    Pictures,
    /// Every icon as a symbol.
    Icons,
    /// The icon of the browser's tab.
    Favicon,
    /// What a browser may fetch before it is clicked.
    Speculation,
}

/// Declared first, so that a rule's place in a file never decides.
const STYLES: &str = concat!(
    include_str!("../assets/styles/tokens.css"),
    include_str!("../assets/styles/base.css"),
    include_str!("../assets/styles/layout.css"),
    include_str!("../assets/styles/outcome.css"),
    include_str!("../assets/styles/live.css"),
    include_str!("../assets/styles/table.css"),
    include_str!("../assets/styles/filter_bar.css"),
    include_str!("../assets/styles/tree.css"),
    include_str!("../assets/styles/charts.css"),
    include_str!("../assets/styles/grid.css"),
    include_str!("../assets/styles/timeline.css"),
    include_str!("../assets/styles/insights.css"),
    include_str!("../assets/styles/flaky.css"),
    include_str!("../assets/styles/health.css"),
    include_str!("../assets/styles/analytics.css"),
    include_str!("../assets/styles/tags.css"),
    include_str!("../assets/styles/clusters.css"),
    include_str!("../assets/styles/palette.css"),
    include_str!("../assets/styles/code.css"),
    include_str!("../assets/styles/evidence.css"),
    include_str!("../assets/styles/welcome.css"),
    include_str!("../assets/styles/inbox.css"),
    include_str!("../assets/styles/forms.css"),
    include_str!("../assets/styles/entrance.css"),
    include_str!("../assets/styles/accounts.css"),
    include_str!("../assets/styles/retention.css"),
    include_str!("../assets/styles/help.css"),
);

/// Scripts that write text of others into the page, after what shows it.
macro_rules! with_visible_text {
    ($($script:literal),+) => {
        concat!(
            include_str!("../assets/scripts/visible-text.js"),
            $(include_str!(concat!("../assets/scripts/", $script, ".js"))),+
        )
    };
}

impl Asset {
    const ALL: [Self; 24] = [
        Self::Styles,
        Self::Theme,
        Self::Page,
        Self::Visits,
        Self::Palette,
        Self::Grid,
        Self::Chart,
        Self::FormApi,
        Self::Dialogs,
        Self::Chooser,
        Self::Bulk,
        Self::Export,
        Self::Save,
        Self::Retention,
        Self::Diagnosis,
        Self::Bell,
        Self::Password,
        Self::Entrance,
        Self::Live,
        Self::Later,
        Self::Pictures,
        Self::Icons,
        Self::Favicon,
        Self::Speculation,
    ];

    const fn file(self) -> (&'static str, &'static str) {
        match self {
            Self::Styles => ("dashboard", "css"),
            Self::Theme => ("theme", "js"),
            Self::Page => ("page", "js"),
            Self::Visits => ("visits", "js"),
            Self::Palette => ("palette", "js"),
            Self::Grid => ("grid", "js"),
            Self::Chart => ("chart", "js"),
            Self::FormApi => ("form-api", "js"),
            Self::Dialogs => ("dialogs", "js"),
            Self::Chooser => ("chooser", "js"),
            Self::Bulk => ("bulk", "js"),
            Self::Export => ("export", "js"),
            Self::Save => ("save", "js"),
            Self::Retention => ("retention", "js"),
            Self::Diagnosis => ("diagnosis", "js"),
            Self::Bell => ("bell", "js"),
            Self::Password => ("password", "js"),
            Self::Entrance => ("entrance", "js"),
            Self::Live => ("live", "js"),
            Self::Later => ("later", "js"),
            Self::Pictures => ("pictures", "js"),
            Self::Icons => ("icons", "svg"),
            Self::Favicon => ("favicon", "svg"),
            Self::Speculation => ("speculation", "json"),
        }
    }

    const fn content_type(self) -> &'static str {
        match self {
            Self::Styles => "text/css; charset=utf-8",
            Self::Theme
            | Self::Page
            | Self::Visits
            | Self::Palette
            | Self::Grid
            | Self::Chart
            | Self::FormApi
            | Self::Dialogs
            | Self::Chooser
            | Self::Bulk
            | Self::Export
            | Self::Save
            | Self::Retention
            | Self::Diagnosis
            | Self::Bell
            | Self::Password
            | Self::Entrance
            | Self::Live
            | Self::Later
            | Self::Pictures => "text/javascript; charset=utf-8",
            Self::Icons | Self::Favicon => "image/svg+xml",
            Self::Speculation => "application/speculationrules+json",
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Styles => STYLES,
            Self::Theme => include_str!("../assets/scripts/theme.js"),
            Self::Page => with_visible_text!("page"),
            Self::Visits => include_str!("../assets/scripts/visits.js"),
            Self::Palette => with_visible_text!("palette"),
            Self::Grid => include_str!("../assets/scripts/grid.js"),
            Self::Chart => include_str!("../assets/scripts/chart.js"),
            Self::FormApi => with_visible_text!("form-api"),
            Self::Dialogs => with_visible_text!("dialogs"),
            Self::Chooser => with_visible_text!("chooser"),
            Self::Bulk => include_str!("../assets/scripts/bulk.js"),
            Self::Export => with_visible_text!("export"),
            Self::Save => include_str!("../assets/scripts/save.js"),
            Self::Retention => include_str!("../assets/scripts/retention.js"),
            Self::Diagnosis => include_str!("../assets/scripts/diagnosis.js"),
            Self::Bell => with_visible_text!("shared-stream", "bell"),
            Self::Password => include_str!("../assets/scripts/password.js"),
            Self::Entrance => include_str!("../assets/scripts/entrance.js"),
            Self::Live => with_visible_text!("shared-stream", "live"),
            Self::Later => include_str!("../assets/scripts/later.js"),
            Self::Pictures => include_str!("../assets/scripts/pictures.js"),
            Self::Icons => include_str!("../assets/icons.svg"),
            Self::Favicon => include_str!("../assets/favicon.svg"),
            Self::Speculation => include_str!("../assets/speculation.json"),
        }
    }

    /// Where the file is, from the root of the site.
    pub(crate) fn url(self) -> &'static str {
        &URLS[self as usize]
    }
}

static URLS: LazyLock<[String; Asset::ALL.len()]> = LazyLock::new(|| {
    Asset::ALL.map(|asset| {
        let (stem, extension) = asset.file();
        let digest = Sha256::digest(asset.text());
        format!("/static/{stem}-{}.{extension}", hex::encode(&digest[..FINGERPRINT_BYTES]))
    })
});

/// One file by its fingerprinted name.
pub(crate) async fn serve(Tail(name): Tail) -> Result<Response, ApiError> {
    let asset = Asset::ALL
        .into_iter()
        .find(|asset| asset.url().strip_prefix("/static/") == Some(name.as_str()))
        .ok_or_else(ApiError::route_not_found)?;
    Ok(([(CONTENT_TYPE, asset.content_type()), (CACHE_CONTROL, FOR_EVER)], asset.text()).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_is_served_for_ever_under_its_fingerprint_and_nowhere_else() {
        for asset in Asset::ALL {
            let name = asset.url().strip_prefix("/static/").unwrap();
            let response = serve(Tail(name.to_owned())).await.unwrap();
            assert_eq!(response.headers()[CACHE_CONTROL], FOR_EVER);
            let (stem, extension) = asset.file();
            assert!(serve(Tail(format!("{stem}.{extension}"))).await.is_err());
        }
    }

    #[test]
    fn icons_that_templates_name_exist() {
        let templates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
        let mut folders = vec![templates];
        let mut named = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap();
                for part in text.split("|icon").collect::<Vec<_>>().split_last().unwrap().1 {
                    let Some(name) = part.strip_suffix('"').and_then(|part| part.rsplit('"').next()) else {
                        continue;
                    };
                    named += 1;
                    let symbol = format!("id=\"{name}\"");
                    assert!(Asset::Icons.text().contains(&symbol), "{}: {name}", path.display());
                }
            }
        }
        assert!(named > 10, "the search above finds the icons");
    }
}
