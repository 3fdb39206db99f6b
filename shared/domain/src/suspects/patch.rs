//! Hunks of a unified diff.

/// Lines of a patch that are looked at.
const MAX_LINES: usize = 5_000;

/// Lines of one place in a file.
#[derive(Debug, Default)]
pub(super) struct Hunk {
    /// Removed lines, without their sign.
    pub(super) removed: String,
    /// Added lines.
    pub(super) added: String,
    /// Lines around them, with the heading of the hunk.
    pub(super) context: String,
    /// Numbers of the first line and of the one after the last, before the change.
    pub(super) lines: (u32, u32),
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Patch {
    pub(super) hunks: Vec<Hunk>,
}

impl Patch {
    /// Takes the hunks of a patch apart. What is no diff has none.
    pub(super) fn parse(text: &str) -> Self {
        let mut hunks: Vec<Hunk> = Vec::new();
        for line in text.lines().take(MAX_LINES) {
            if let Some(rest) = line.strip_prefix("@@ ") {
                let (ranges, heading) = rest.split_once(" @@").unwrap_or((rest, ""));
                let context = format!("{}\n", heading.trim());
                hunks.push(Hunk { lines: old_lines(ranges), context, ..Hunk::default() });
                continue;
            }
            let Some(hunk) = hunks.last_mut() else { continue };
            let place = match line.as_bytes().first() {
                Some(b'-') => &mut hunk.removed,
                Some(b'+') => &mut hunk.added,
                Some(b' ') => &mut hunk.context,
                _ => continue,
            };
            place.push_str(&line[1..]);
            place.push('\n');
        }
        Self { hunks }
    }
}

/// `-3,7 +3,8` → (3, 10).
fn old_lines(ranges: &str) -> (u32, u32) {
    let old = ranges.split(' ').next().and_then(|old| old.strip_prefix('-')).unwrap_or_default();
    let (first, count) = old.split_once(',').unwrap_or((old, "1"));
    let first: u32 = first.parse().unwrap_or(0);
    (first, first.saturating_add(count.parse().unwrap_or(1)))
}
