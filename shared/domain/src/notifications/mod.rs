//! Notifications: where they go, what they are about, and the message that all
//! channels share.

mod message;
mod schedule;

use serde::Serialize;

use crate::annotations::words;

pub use message::{FailureLine, MAX_MESSAGE_BYTES, Message, one_line};
pub use schedule::{Digest, QuietHours, Schedule, TimeOfDay, TimeZone, UnknownTimeZone, Weekday};

words! {
    /// A kind of channel.
    ChannelKind {
        /// Signed JSON to an address of the recipient's own.
        Webhook = "webhook",
        /// Slack: an incoming webhook, or a channel that a bot writes to.
        Slack = "slack",
        /// A workflow webhook of Microsoft Teams.
        Teams = "teams",
        /// A webhook of Discord.
        Discord = "discord",
        /// Mail to one address.
        Email = "email",
        /// The notifications of a person in the header of the pages.
        Browser = "browser",
        /// Mail to the confirmed address of a person.
        PersonalEmail = "personal_email",
    }
}

impl ChannelKind {
    /// Whether its recipient recognises a repeated delivery by its id, so that one that was cut off can be sent again.
    #[must_use]
    pub fn recognises_repeats(self) -> bool {
        self == Self::Webhook
    }

    /// Whether a person has one of it, which has no address of its own.
    #[must_use]
    pub const fn is_personal(self) -> bool {
        matches!(self, Self::Browser | Self::PersonalEmail)
    }

    /// Whether it sends mail.
    #[must_use]
    pub const fn is_mail(self) -> bool {
        matches!(self, Self::Email | Self::PersonalEmail)
    }

    /// Whether its address is one of a chat: with https, and without a secret of its own.
    #[must_use]
    pub fn is_chat(self) -> bool {
        matches!(self, Self::Slack | Self::Teams | Self::Discord)
    }
}

words! {
    /// What a subscription can ask for.
    NotificationEvent {
        /// A run ended, however.
        RunFinished = "run.finished",
        /// A run ended and did not pass.
        RunFailed = "run.failed",
        /// A branch went red: its newest full run failed, the one before passed.
        BranchRed = "run.failed.default_branch",
        /// A branch is green again.
        BranchRecovered = "run.recovered",
        /// Shards of a run never finished.
        ShardMissing = "shard.missing",
        /// A failure was seen for the first time.
        ClusterNew = "cluster.new",
        /// A failure came back after it was fixed.
        ClusterRegressed = "cluster.regressed",
        /// A fix held.
        ClusterVerified = "cluster.verified",
        /// A test left quarantine.
        QuarantineReleased = "quarantine.released",
        /// A test began to fail; for subscriptions to that test.
        TestFailed = "test.failed",
        /// A test that failed passes again; for subscriptions to that test.
        TestFixed = "test.fixed",
        /// A test became flaky.
        TestFlaky = "test.flaky",
        /// A test became slower for good.
        TestSlower = "perf.regression",
        /// Files or evidence of a run were not stored.
        EvidenceDropped = "evidence.dropped",
        /// A diagnosis of a failure is there.
        DiagnosisCompleted = "diagnosis.completed",
        /// A project or the instance comes near its storage quota.
        StorageQuota = "storage.quota",
        /// A late shard or a re-run changed an outcome that was sent.
        RunRevised = "run.revised",
        /// A channel paused after failures.
        ChannelPaused = "channel.paused",
        /// Several messages in one.
        Summary = "summary",
        /// A test message that a person asked for.
        Test = "test",
    }
}

impl NotificationEvent {
    /// The words a subscription may contain: all but the last four, which nobody has to ask for.
    #[must_use]
    pub fn subscribable() -> &'static [&'static str] {
        &Self::WORDS[..Self::WORDS.len() - 4]
    }
}

words! {
    /// How far a delivery is.
    DeliveryState {
        /// Waits to be sent, or to be sent again.
        Pending = "pending",
        /// Stored before the call, so that a crash in between is noticed.
        Sending = "sending",
        /// The recipient accepted it.
        Sent = "sent",
        /// The process ended while it was sent; it may have arrived.
        Unknown = "unknown",
        /// Every attempt failed.
        Failed = "failed",
        /// Its channel is paused.
        Parked = "parked",
        /// Not sent: its project was deleted, or its recipient has no access any more.
        Skipped = "skipped",
    }
}

/// How an address is shown to people: its host, and the last characters of a
/// path that may be a secret; of a mail address the first character and the domain.
#[must_use]
pub fn masked_address(address: &str) -> String {
    const SHOWN: usize = 4;
    if let Some((mailbox, domain)) = address.rsplit_once('@')
        && !address.contains("://")
    {
        let first = mailbox.chars().next().unwrap_or('…');
        return format!("{first}…@{domain}");
    }
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let chars: Vec<char> = path.chars().collect();
    if chars.len() <= 2 * SHOWN {
        return format!("{host}/…");
    }
    let end: String = chars[chars.len() - SHOWN..].iter().collect();
    format!("{host}/…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_shows_its_host_and_hides_its_secret() {
        let slack = masked_address("https://hooks.example.com/services/T0/B0/abcdefghijkl");
        assert_eq!(slack, "hooks.example.com/…ijkl");
        assert_eq!(masked_address("https://example.com/secret"), "example.com/…");
        assert_eq!(masked_address("https://example.com"), "example.com/…");
        assert_eq!(masked_address("releases@example.com"), "r…@example.com");
        assert_eq!(masked_address("https://u@example.com/secret"), "u@example.com/…");
    }

    #[test]
    fn nobody_subscribes_to_summaries_and_test_messages() {
        let words = NotificationEvent::subscribable();
        assert!(!words.contains(&"test") && !words.contains(&"summary") && !words.contains(&"run.revised"));
        assert!(
            NotificationEvent::subscribable().iter().all(|word| NotificationEvent::parse(word).is_some())
        );
    }
}
