//! What a policy of retention deletes, in words.

use callboard_query::retention::Preview;

use super::{grouped, size};

/// `12 runs, 40 files and evidence of 7 results (1.2 GB)`, to begin a sentence;
/// `None` when nothing is deleted.
pub(crate) fn deletes(preview: &Preview) -> Option<String> {
    let counted = |count: i64, noun: &str| {
        format!("{}\u{a0}{noun}{}", grouped(count), if count == 1 { "" } else { "s" })
    };
    let mut parts = Vec::new();
    if preview.runs > 0 {
        parts.push(counted(preview.runs, "run"));
    }
    if preview.files > 0 {
        parts.push(counted(preview.files, "file"));
    }
    if preview.evidence_slices > 0 {
        parts.push(format!("evidence of {}", counted(preview.evidence_slices, "result")));
    }
    let last = parts.pop()?;
    let list = if parts.is_empty() { last } else { format!("{} and {last}", parts.join(", ")) };
    let bytes = if preview.bytes > 0 { format!(" ({})", size(preview.bytes)) } else { String::new() };
    let text = format!("{}{list}{bytes}", if preview.partial { "at least " } else { "" });
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_deleted_is_a_list_of_what_there_is() {
        let of = |runs, files, evidence_slices, bytes, partial| {
            let preview = Preview { runs, files, evidence_slices, bytes, partial, ..Preview::default() };
            deletes(&preview).unwrap_or_default().replace('\u{a0}', " ")
        };
        assert_eq!(of(192, 1, 7, 1_200_000, false), "192 runs, 1 file and evidence of 7 results (1.2 MB)");
        assert_eq!(of(1, 0, 0, 0, true), "At least 1 run");
        assert_eq!(of(0, 0, 1, 9, false), "Evidence of 1 result (9 B)");
        assert_eq!(of(0, 0, 0, 0, false), "");
    }
}
