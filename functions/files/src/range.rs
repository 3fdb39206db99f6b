//! Byte ranges (RFC 9110, section 14). One range is answered; a header that
//! asks for several, or that makes no sense, is as good as none.

use http::header::{HeaderMap, IF_RANGE, RANGE};

/// What part of the bytes a request is for. `from < to <= size` always.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All of them.
    Whole,
    /// Those from an offset to another, which is not included.
    Part {
        /// Offset of the first byte.
        from: u64,
        /// Offset behind the last byte.
        to: u64,
    },
    /// A part that lies outside.
    Unsatisfiable,
}

impl Wanted {
    /// Reads the headers of a GET for bytes with this strong tag (as it is
    /// written in `ETag`) and this size.
    pub(crate) fn new(headers: &HeaderMap, tag: &str, size: u64) -> Self {
        let mut ranges = headers.get_all(RANGE).iter();
        let (Some(range), None) = (ranges.next(), ranges.next()) else { return Self::Whole };
        // A date never matches: bytes here have a tag and no date.
        let is_current = headers.get(IF_RANGE).is_none_or(|named| named.as_bytes() == tag.as_bytes());
        match range.to_str() {
            Ok(range) if is_current => Self::parse(range, size),
            _ => Self::Whole,
        }
    }

    fn parse(header: &str, size: u64) -> Self {
        let spec = header.split_once('=').filter(|(unit, _)| unit.trim().eq_ignore_ascii_case("bytes"));
        let Some((first, last)) = spec.and_then(|(_, range)| range.trim().split_once('-')) else {
            return Self::Whole;
        };
        match (first, last, number(first), number(last)) {
            (_, "", Some(first), _) => Self::between(first, size, size),
            ("", _, _, Some(suffix)) => Self::between(size.saturating_sub(suffix), size, size),
            (_, _, Some(first), Some(last)) if first <= last => {
                Self::between(first, last.saturating_add(1), size)
            }
            _ => Self::Whole,
        }
    }

    fn between(from: u64, to: u64, size: u64) -> Self {
        if from < size { Self::Part { from, to: to.min(size) } } else { Self::Unsatisfiable }
    }
}

/// A number of any length; what is beyond 64 bits is beyond every file.
fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    const TAG: &str = "\"abc\"";

    fn part(from: u64, to: u64) -> Wanted {
        Wanted::Part { from, to }
    }

    #[test]
    fn one_range_is_cut_to_the_bytes_there_are() {
        for (header, wanted) in [
            ("bytes=0-0", part(0, 1)),
            ("bytes=0-", part(0, 10)),
            ("bytes=9-", part(9, 10)),
            ("bytes=2-5", part(2, 6)),
            ("bytes=2-99", part(2, 10)),
            ("bytes=2-99999999999999999999999", part(2, 10)),
            ("bytes=-3", part(7, 10)),
            ("bytes=-99", part(0, 10)),
            ("Bytes= 4-4 ", part(4, 5)),
            ("bytes=10-", Wanted::Unsatisfiable),
            ("bytes=99999999999999999999999-", Wanted::Unsatisfiable),
            ("bytes=-0", Wanted::Unsatisfiable),
        ] {
            assert_eq!(Wanted::parse(header, 10), wanted, "{header}");
        }
        for header in ["bytes=0-", "bytes=-1", "bytes=0-0"] {
            assert_eq!(Wanted::parse(header, 0), Wanted::Unsatisfiable, "{header} of nothing");
        }
    }

    #[test]
    fn several_ranges_and_nonsense_get_the_whole_file() {
        for header in [
            "bytes=0-1,3-4",
            "bytes=0-1, 99-",
            "bytes=5-2",
            "bytes=-",
            "bytes=",
            "bytes=a-b",
            "bytes=+1-2",
            "bytes=0x1-2",
            "bytes=1 -2",
            "bytes=--1",
            "bytes 0-1",
            "items=0-1",
            "",
        ] {
            assert_eq!(Wanted::parse(header, 10), Wanted::Whole, "{header}");
        }
        let mut headers = HeaderMap::new();
        headers.append(RANGE, HeaderValue::from_static("bytes=0-1"));
        assert_eq!(Wanted::new(&headers, TAG, 10), part(0, 2));
        headers.append(RANGE, HeaderValue::from_static("bytes=3-4"));
        assert_eq!(Wanted::new(&headers, TAG, 10), Wanted::Whole);
    }

    #[test]
    fn a_range_of_other_bytes_than_these_gets_the_whole_file() {
        for (named, wanted) in [
            (TAG, part(0, 2)),
            ("\"other\"", Wanted::Whole),
            ("W/\"abc\"", Wanted::Whole),
            ("Wed, 21 Oct 2015 07:28:00 GMT", Wanted::Whole),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RANGE, HeaderValue::from_static("bytes=0-1"));
            headers.insert(IF_RANGE, HeaderValue::from_str(named).unwrap());
            assert_eq!(Wanted::new(&headers, TAG, 10), wanted, "{named}");
        }
    }

    fn headers() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<String>(),
            "bytes=[0-9, -]{0,24}",
            (any::<u64>(), any::<u64>()).prop_map(|(first, last)| format!("bytes={first}-{last}")),
            (0..40_u64, 0..40_u64).prop_map(|(first, last)| format!("bytes={first}-{last}")),
            any::<u64>().prop_map(|suffix| format!("bytes=-{suffix}")),
        ]
    }

    proptest! {
        #[test]
        fn whatever_is_asked_for_lies_within_the_bytes(header in headers(), size in prop_oneof![0..40_u64, any::<u64>()]) {
            if let Wanted::Part { from, to } = Wanted::parse(&header, size) {
                prop_assert!(from < to && to <= size);
            }
        }
    }
}
