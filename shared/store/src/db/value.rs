//! Values bound to statements, the same for both engines.
//!
//! Invariant: no bound text holds U+0000, which PostgreSQL cannot store or
//! compare: it is replaced where a value is made, so that no reader of input
//! that forgets about it makes a statement fail on one engine.

use std::borrow::Cow;

use callboard_domain::text::clean;

/// One bound value. Lists bind as an array on PostgreSQL and as a JSON text
/// (for `json_each`) on SQLite.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Any integer column.
    Int(Option<i64>),
    /// A score or ratio.
    Real(Option<f64>),
    /// Text.
    Text(Option<String>),
    /// Hashes and packed arrays.
    Bytes(Option<Vec<u8>>),
    /// A list of integers for `in_ints`.
    Ints(Vec<i64>),
    /// A list of texts for `in_texts`.
    Texts(Vec<String>),
    /// A list of byte strings for `in_bytes`.
    BytesList(Vec<Vec<u8>>),
    /// Rows of integers, column by column: as many arrays for `unnest` on
    /// PostgreSQL, one JSON text of a list for each row on SQLite. It comes last, as
    /// the engines count it differently.
    IntColumns(Vec<Vec<i64>>),
}

/// The values of one call, in placeholder order.
pub type Args = Vec<Value>;

/// Builds [`Args`] from values convertible into [`Value`].
macro_rules! args {
    ($($value:expr),* $(,)?) => { vec![$($crate::db::Value::from($value)),*] };
}
pub(crate) use args;

/// A text without U+0000, and without a copy when there is none.
fn storable(text: String) -> String {
    match clean(&text) {
        Cow::Owned(cleaned) => cleaned,
        Cow::Borrowed(_) => text,
    }
}

macro_rules! from {
    ($($source:ty => |$v:ident| $make:expr;)+) => {$(
        impl From<$source> for Value {
            fn from($v: $source) -> Self { $make }
        }
    )+};
}

from! {
    i64 => |v| Value::Int(Some(v));
    Option<i64> => |v| Value::Int(v);
    bool => |v| Value::Int(Some(i64::from(v)));
    f64 => |v| Value::Real(Some(v));
    Option<f64> => |v| Value::Real(v);
    String => |v| Value::Text(Some(storable(v)));
    &str => |v| Value::Text(Some(clean(v).into_owned()));
    &String => |v| Value::Text(Some(clean(v).into_owned()));
    Option<String> => |v| Value::Text(v.map(storable));
    Option<&str> => |v| Value::Text(v.map(|v| clean(v).into_owned()));
    Vec<u8> => |v| Value::Bytes(Some(v));
    &[u8] => |v| Value::Bytes(Some(v.to_vec()));
    [u8; 32] => |v| Value::Bytes(Some(v.to_vec()));
    Option<Vec<u8>> => |v| Value::Bytes(v);
    Vec<i64> => |v| Value::Ints(v);
    Vec<String> => |v| Value::Texts(v.into_iter().map(storable).collect());
    Vec<Vec<u8>> => |v| Value::BytesList(v);
    Vec<Vec<i64>> => |v| Value::IntColumns(v);
    callboard_domain::ids::ProjectId => |v| Value::Int(Some(v.0));
    callboard_domain::ids::RunId => |v| Value::Int(Some(v.0));
    callboard_domain::ids::TestCaseId => |v| Value::Int(Some(v.0));
    callboard_domain::ids::ExecutionId => |v| Value::Int(Some(v.0));
    callboard_domain::ids::FileId => |v| Value::Int(Some(v.0));
    callboard_domain::ids::ReportId => |v| Value::Int(Some(v.0));
    callboard_domain::ids::PackId => |v| Value::Int(Some(v.0));
    callboard_domain::ids::BlobId => |v| Value::Int(Some(v.0));
    callboard_domain::ids::SlotId => |v| Value::Int(Some(v.0));
    Option<callboard_domain::ids::RunId> => |v| Value::Int(v.map(|id| id.0));
    callboard_domain::ids::UserId => |v| Value::Int(Some(v.0));
    Option<callboard_domain::ids::UserId> => |v| Value::Int(v.map(|id| id.0));
    callboard_domain::ids::ApiKeyId => |v| Value::Int(Some(v.0));
    Option<callboard_domain::ids::ApiKeyId> => |v| Value::Int(v.map(|id| id.0));
    callboard_domain::ids::InvitationId => |v| Value::Int(Some(v.0));
    callboard_domain::ids::TagId => |v| Value::Int(Some(v.0));
    callboard_domain::ids::LinkId => |v| Value::Int(Some(v.0));
    callboard_domain::ids::MarkerId => |v| Value::Int(Some(v.0));
    callboard_domain::ids::TestFunctionId => |v| Value::Int(Some(v.0));
    callboard_domain::ids::DeletionId => |v| Value::Int(Some(v.0));
    callboard_domain::ids::ExportId => |v| Value::Int(Some(v.0));
    callboard_domain::ids::ChannelId => |v| Value::Int(Some(v.0));
    callboard_domain::ids::SubscriptionId => |v| Value::Int(Some(v.0));
    callboard_domain::ids::DeliveryId => |v| Value::Int(Some(v.0));
    callboard_domain::ids::DiagnosisId => |v| Value::Int(Some(v.0));
    callboard_domain::ids::HistoryJoinId => |v| Value::Int(Some(v.0));
    callboard_domain::ids::ClusterId => |v| Value::Int(Some(v.0));
    Option<callboard_domain::ids::ProjectId> => |v| Value::Int(v.map(|id| id.0));
    callboard_domain::time::Timestamp => |v| Value::Int(Some(v.0));
    Option<callboard_domain::time::Timestamp> => |v| Value::Int(v.map(|t| t.0));
    callboard_domain::time::Day => |v| Value::Int(Some(v.0));
}
