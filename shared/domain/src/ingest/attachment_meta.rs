//! What clients tell about the files that tests attached, beside the files
//! themselves.

use serde::Deserialize;

use super::lenient::{self, Maybe};
use crate::text::read_repaired;

/// Most attachments of one attempt.
pub const MAX_ATTACHMENTS: usize = 100;

/// What a client tells about one attachment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AttachmentMeta {
    /// Name the test gave it.
    #[serde(deserialize_with = "lenient::optional_text")]
    pub name: Option<String>,
    /// Type.
    #[serde(deserialize_with = "lenient::optional_text")]
    pub content_type: Option<String>,
    /// Name of the client's file.
    #[serde(deserialize_with = "lenient::optional_text")]
    pub original_name: Option<String>,
}

/// The first entries of a list, read in place: what is told of attachments
/// beyond [`MAX_ATTACHMENTS`] takes no memory however long the list is.
struct Metas(Vec<AttachmentMeta>);

impl<'de> Deserialize<'de> for Metas {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(MetasVisitor)
    }
}

struct MetasVisitor;

impl<'de> serde::de::Visitor<'de> for MetasVisitor {
    type Value = Metas;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Metas, A::Error> {
        let mut metas = Vec::new();
        while metas.len() < MAX_ATTACHMENTS {
            // An entry that is no object keeps its place: the files are told by position.
            match seq.next_element::<Maybe<AttachmentMeta>>()? {
                Some(meta) => metas.push(meta.0.unwrap_or_default()),
                None => return Ok(Metas(metas)),
            }
        }
        while seq.next_element::<serde::de::IgnoredAny>()?.is_some() {}
        Ok(Metas(metas))
    }
}

/// What is told about the attachments of an attempt, by their position; `None`
/// when the text is no list.
#[must_use]
pub fn attachment_metas(text: &str) -> Option<Vec<AttachmentMeta>> {
    read_repaired::<Metas>(text).map(|metas| metas.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_keep_their_place_and_the_list_an_end() {
        let metas =
            attachment_metas(r#"[{"name":"a\u0000"},7,{"name":1,"contentType":"image/png"}]"#).unwrap();
        assert_eq!(metas.len(), 3);
        assert_eq!(metas[0].name.as_deref(), Some("a\u{fffd}"));
        assert_eq!(metas[1], AttachmentMeta::default());
        assert_eq!(metas[2].content_type.as_deref(), Some("image/png"));
        let long = format!("[{}{{}}]", "{},".repeat(5_000));
        assert_eq!(attachment_metas(&long).map(|metas| metas.len()), Some(MAX_ATTACHMENTS));
        for broken in ["", "{}", "[{", "null"] {
            assert_eq!(attachment_metas(broken), None, "{broken}");
        }
    }
}
