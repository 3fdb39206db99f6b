//! Pictures of an execution: those of a comparison side by side, and the ones
//! of the last pass beside what the page looked like when it failed.

use callboard_query::shapes::{FileItem, part_of_comparison};

/// What the parts of a comparison are called, in the order people read them.
const PARTS: [&str; 4] = ["Expected", "Before", "Now", "Difference"];

/// The pictures of one comparison.
pub(crate) struct Comparison {
    /// Its name in the test.
    pub name: String,
    /// The attempt that made it, from 0.
    pub retry: i64,
    repetition: i64,
    /// Its pictures with what they are.
    pub parts: Vec<(&'static str, FileItem)>,
}

/// Takes the pictures of comparisons out of the files of an execution. A
/// picture without its other half is none.
pub(crate) fn comparisons(files: &mut Vec<FileItem>) -> Vec<Comparison> {
    let mut found: Vec<Comparison> = Vec::new();
    for file in files.iter().filter(|file| file.content_type.starts_with("image/")) {
        let Some((name, place)) = part_of_comparison(&file.name) else { continue };
        let is_same = |each: &&mut Comparison| {
            each.name == name
                && (each.retry, each.repetition) == (file.attempt.retry, file.attempt.repetition)
        };
        let part = (PARTS[place], file.clone());
        match found.iter_mut().find(is_same) {
            Some(comparison) => comparison.parts.push(part),
            None => found.push(Comparison {
                name: name.to_owned(),
                retry: file.attempt.retry,
                repetition: file.attempt.repetition,
                parts: vec![part],
            }),
        }
    }
    found.retain(|comparison| comparison.parts.len() > 1);
    for comparison in &mut found {
        comparison.parts.sort_by_key(|(word, _)| PARTS.iter().position(|part| part == word));
    }
    let is_taken = |file: &FileItem| {
        found.iter().any(|comparison| comparison.parts.iter().any(|(_, part)| part.id == file.id))
    };
    files.retain(|file| !is_taken(file));
    found
}
