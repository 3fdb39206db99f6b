//! The closed vocabularies of a diagnosis.

use serde::{Deserialize, Serialize};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$about])* #[serde(rename = $word)] $variant),+
        }

        impl $name {
            /// Every word, in the order of documents.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The spelling on the wire and in SQL.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }

            /// Reads a word.
            #[must_use]
            pub fn parse(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

words! {
    /// How far a diagnosis is.
    DiagnosisStatus {
        /// It waits for its job, or its job is at work.
        Running = "running",
        /// There is an answer.
        Completed = "completed",
        /// There is none; the error says why.
        Failed = "failed",
    }
}

words! {
    /// What causes a failure.
    Category {
        /// The application is wrong.
        AppBug = "app-bug",
        /// The test is wrong.
        TestBug = "test-bug",
        /// The test depends on timing or order.
        FlakyTest = "flaky-test",
        /// Machines, networks or services that the test runs on.
        Infrastructure = "infrastructure",
        /// Configuration, versions or data of the environment.
        Environment = "environment",
        /// The evidence does not say.
        Unknown = "unknown",
    }
}

words! {
    /// How much a failure matters.
    Severity {
        /// Nobody can work around it.
        Blocker = "blocker",
        /// A main function fails.
        High = "high",
        /// A function fails in some cases.
        Medium = "medium",
        /// Hardly anybody notices.
        Low = "low",
    }
}

words! {
    /// How sure a diagnosis is.
    Confidence {
        /// A score of 70 and more.
        High = "high",
        /// A score of 40 and more.
        Medium = "medium",
        /// Less.
        Low = "low",
    }
}

impl Confidence {
    /// The word for a score of 0 to 100.
    #[must_use]
    pub const fn from_score(score: u8) -> Self {
        match score {
            70.. => Self::High,
            40.. => Self::Medium,
            _ => Self::Low,
        }
    }
}
