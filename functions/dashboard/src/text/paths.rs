//! Paths that do not fit are cut in the middle: the folder shrinks, the file
//! with its line stays. Styles do the cutting; here the path is divided.

/// The part that may shrink and the part that stays.
pub(crate) fn split_for_truncation(path: &str) -> (&str, &str) {
    match path.rfind('/') {
        Some(slash) => path.split_at(slash + 1),
        None => ("", path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_stays_whole() {
        assert_eq!(
            split_for_truncation("tests/cart/total.spec.ts:7:5"),
            ("tests/cart/", "total.spec.ts:7:5")
        );
        assert_eq!(split_for_truncation("unknown"), ("", "unknown"));
    }
}
