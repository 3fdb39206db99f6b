//! The browser configuration a test ran with.

use serde::{Deserialize, Serialize};

use super::steps::cut_in_place;
use crate::ingest::lenient;

const MAX_NAME_CHARS: usize = 200;
const MAX_USER_AGENT_CHARS: usize = 500;
const MAX_WORD_CHARS: usize = 100;
/// Together with the two names, keys and numbers this stays below 4 KiB.
const MAX_TEXT_BYTES: usize = 1_600;

/// Resolved configuration of the browser project; unknown keys are left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the fields are the test runner's options of these names")]
pub struct Browser {
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_text")]
    pub project_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_text")]
    pub browser_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_text")]
    pub channel: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_object")]
    pub viewport: Option<Viewport>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_number")]
    pub device_scale_factor: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_flag")]
    pub is_mobile: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_flag")]
    pub has_touch: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_text")]
    pub locale: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_text")]
    pub timezone_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_object")]
    pub geolocation: Option<Geolocation>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_text")]
    pub color_scheme: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_text")]
    pub reduced_motion: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_text")]
    pub forced_colors: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_flag")]
    pub offline: Option<bool>,
    #[serde(
        rename = "bypassCSP",
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::optional_flag"
    )]
    pub bypass_csp: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_flag")]
    pub java_script_enabled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_text")]
    pub service_workers: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_text")]
    pub user_agent: Option<String>,
}

/// Size of the page in CSS pixels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "named by what they are")]
pub struct Viewport {
    #[serde(deserialize_with = "lenient::count")]
    pub width: i64,
    #[serde(deserialize_with = "lenient::count")]
    pub height: i64,
}

/// Position the browser reported, in degrees and metres.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "named by what they are")]
pub struct Geolocation {
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_number")]
    pub longitude: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_number")]
    pub latitude: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient::optional_number")]
    pub accuracy: Option<f64>,
}

impl Browser {
    /// A configuration of which only the name is known: it is both the
    /// browser project and the browser.
    #[must_use]
    pub fn named(name: String) -> Self {
        Self { project_name: Some(name.clone()), browser_name: Some(name), ..Self::default() }
    }

    /// Whether there is more to it than the two names the execution row has.
    #[must_use]
    pub fn is_more_than_names(&self) -> bool {
        let names = Self {
            project_name: self.project_name.clone(),
            browser_name: self.browser_name.clone(),
            ..Self::default()
        };
        *self != names
    }

    /// Texts cut to their bounds, the whole below 4 KiB.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        for name in [&mut self.project_name, &mut self.browser_name].into_iter().flatten() {
            cut_in_place(name, MAX_NAME_CHARS);
        }
        let mut bytes = 0;
        for (text, max_chars) in [
            (&mut self.channel, MAX_WORD_CHARS),
            (&mut self.locale, MAX_WORD_CHARS),
            (&mut self.timezone_id, MAX_WORD_CHARS),
            (&mut self.color_scheme, MAX_WORD_CHARS),
            (&mut self.reduced_motion, MAX_WORD_CHARS),
            (&mut self.forced_colors, MAX_WORD_CHARS),
            (&mut self.service_workers, MAX_WORD_CHARS),
            (&mut self.user_agent, MAX_USER_AGENT_CHARS),
        ] {
            if let Some(text) = text {
                cut_in_place(text, max_chars);
                bytes += text.len();
            }
            text.take_if(|_| bytes > MAX_TEXT_BYTES);
        }
        self
    }
}
