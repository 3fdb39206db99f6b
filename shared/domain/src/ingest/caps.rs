//! How much of each kind of evidence one attempt may bring. What is above is
//! cut, never refused; how a cut is marked is said by `text` and `evidence`.

/// Most test cases one request may carry.
pub const MAX_TEST_CASES: usize = 50_000;

/// One cap as configuration sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapSetting {
    /// Environment variable that sets it.
    pub variable: &'static str,
    /// Value when the variable is not set.
    pub default: usize,
    /// Smallest value accepted.
    pub min: usize,
    /// Largest value accepted.
    pub max: usize,
    /// What is counted.
    pub meaning: &'static str,
}

const fn cap(
    variable: &'static str,
    default: usize,
    min: usize,
    max: usize,
    meaning: &'static str,
) -> CapSetting {
    CapSetting { variable, default, min, max, meaning }
}

const CONSOLE_ENTRIES: CapSetting =
    cap("SERVICE_INGEST_MAX_CONSOLE_ENTRIES", 200, 10, 5_000, "Console entries kept per attempt.");
const CONSOLE_ENTRY_CHARS: CapSetting = cap(
    "SERVICE_INGEST_MAX_CONSOLE_ENTRY_CHARS",
    2_000,
    200,
    20_000,
    "Characters kept of one console entry.",
);
const STEPS: CapSetting = cap("SERVICE_INGEST_MAX_STEPS", 500, 20, 5_000, "Steps kept per attempt.");
const STEP_EVENTS: CapSetting =
    cap("SERVICE_INGEST_MAX_STEP_EVENTS", 1_000, 20, 10_000, "Timeline events kept per attempt.");
const ARIA_CHARS: CapSetting = cap(
    "SERVICE_INGEST_MAX_ARIA_CHARS",
    100_000,
    1_000,
    1_000_000,
    "Characters kept of an accessibility snapshot.",
);
const ERROR_CHARS: CapSetting =
    cap("SERVICE_INGEST_MAX_ERROR_CHARS", 20_000, 1_000, 100_000, "Characters kept of an attempt's error.");
const SAMPLE_ERROR_CHARS: CapSetting = cap(
    "SERVICE_INGEST_MAX_SAMPLE_ERROR_CHARS",
    50_000,
    1_000,
    200_000,
    "Characters kept of the sample error of a failure cluster.",
);
const TEST_SOURCE_CHARS: CapSetting = cap(
    "SERVICE_INGEST_MAX_TEST_SOURCE_CHARS",
    50_000,
    1_000,
    200_000,
    "Characters kept of a test's source.",
);
const SOURCE_FRAMES: CapSetting =
    cap("SERVICE_INGEST_MAX_SOURCE_FRAMES", 8, 1, 32, "Source frames kept per attempt.");
const SOURCE_FRAME_CHARS: CapSetting =
    cap("SERVICE_INGEST_MAX_SOURCE_FRAME_CHARS", 4_000, 500, 20_000, "Characters kept of one source frame.");
const NETWORK_ENTRIES: CapSetting =
    cap("SERVICE_INGEST_MAX_NETWORK_ENTRIES", 500, 50, 5_000, "Network requests kept per attempt.");

/// The caps in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caps {
    /// Console entries per attempt.
    pub console_entries: usize,
    /// Characters of one console entry; standard output and standard error
    /// may have ten times as many.
    pub console_entry_chars: usize,
    /// Steps per attempt.
    pub steps: usize,
    /// Timeline events per attempt.
    pub step_events: usize,
    /// Characters of an accessibility snapshot.
    pub aria_chars: usize,
    /// Characters of an attempt's error as evidence.
    pub error_chars: usize,
    /// Characters of the sample error of a failure cluster.
    pub sample_error_chars: usize,
    /// Characters of a test's source.
    pub test_source_chars: usize,
    /// Source frames per attempt.
    pub source_frames: usize,
    /// Characters of one source frame.
    pub source_frame_chars: usize,
    /// Network requests per attempt.
    pub network_entries: usize,
}

impl Caps {
    /// Every cap with its variable, default and range, for the registry of
    /// configuration.
    pub const SETTINGS: [CapSetting; 11] = [
        CONSOLE_ENTRIES,
        CONSOLE_ENTRY_CHARS,
        STEPS,
        STEP_EVENTS,
        ARIA_CHARS,
        ERROR_CHARS,
        SAMPLE_ERROR_CHARS,
        TEST_SOURCE_CHARS,
        SOURCE_FRAMES,
        SOURCE_FRAME_CHARS,
        NETWORK_ENTRIES,
    ];

    /// The caps `configured` answers by variable name; the default where it
    /// answers nothing, the nearest bound where it answers too much or too
    /// little.
    #[must_use]
    pub fn configured(configured: impl Fn(&str) -> Option<usize>) -> Self {
        let value = |setting: CapSetting| {
            configured(setting.variable).unwrap_or(setting.default).clamp(setting.min, setting.max)
        };
        Self {
            console_entries: value(CONSOLE_ENTRIES),
            console_entry_chars: value(CONSOLE_ENTRY_CHARS),
            steps: value(STEPS),
            step_events: value(STEP_EVENTS),
            aria_chars: value(ARIA_CHARS),
            error_chars: value(ERROR_CHARS),
            sample_error_chars: value(SAMPLE_ERROR_CHARS),
            test_source_chars: value(TEST_SOURCE_CHARS),
            source_frames: value(SOURCE_FRAMES),
            source_frame_chars: value(SOURCE_FRAME_CHARS),
            network_entries: value(NETWORK_ENTRIES),
        }
    }
}

impl Default for Caps {
    fn default() -> Self {
        Self::configured(|_| None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configured_caps_stay_within_their_range() {
        assert_eq!(Caps::default().steps, 500);
        let caps = Caps::configured(|variable| match variable {
            "SERVICE_INGEST_MAX_STEPS" => Some(19),
            "SERVICE_INGEST_MAX_ERROR_CHARS" => Some(200_000),
            "SERVICE_INGEST_MAX_SOURCE_FRAMES" => Some(3),
            _ => None,
        });
        assert_eq!((caps.steps, caps.error_chars, caps.source_frames), (20, 100_000, 3));
        assert!(Caps::SETTINGS.iter().all(|cap| cap.min <= cap.default && cap.default <= cap.max));
    }
}
