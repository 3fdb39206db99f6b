//! How alike two sequences are: twice the matched length over the sum of the
//! lengths, where matches are the longest common block and, recursively, what
//! lies left and right of it (Ratcliff and Metzener, 1988).

/// From 0 (nothing in common) to 1 (equal). Two empty sequences are equal.
#[must_use]
pub fn ratio<T: PartialEq>(one: &[T], other: &[T]) -> f64 {
    let total = one.len() + other.len();
    if total == 0 {
        return 1.0;
    }
    as_f64(2 * matched(one, other)) / as_f64(total)
}

/// [`ratio`] over characters.
#[must_use]
pub fn text_ratio(one: &str, other: &str) -> f64 {
    if one == other {
        return 1.0;
    }
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    ratio(&one, &other)
}

/// Length of all matching blocks. A stack of its own: recursion could be as
/// deep as the texts are long.
fn matched<T: PartialEq>(one: &[T], other: &[T]) -> usize {
    let mut sum = 0;
    let mut pending = vec![(one, other)];
    let mut lengths = Vec::new();
    while let Some((left, right)) = pending.pop() {
        let Some((at_left, at_right, length)) = longest_block(left, right, &mut lengths) else { continue };
        sum += length;
        pending.push((&left[..at_left], &right[..at_right]));
        pending.push((&left[at_left + length..], &right[at_right + length..]));
    }
    sum
}

/// The longest common block, the earliest of equally long ones: `(start in
/// one, start in other, length)`. `lengths` is room that is used again.
fn longest_block<T: PartialEq>(
    one: &[T],
    other: &[T],
    lengths: &mut Vec<usize>,
) -> Option<(usize, usize, usize)> {
    lengths.clear();
    lengths.resize(other.len() + 1, 0);
    let mut best = None;
    let mut best_length = 0;
    for (i, item) in one.iter().enumerate() {
        // From the right, so that `lengths[j]` still is of the row before.
        for j in (0..other.len()).rev() {
            lengths[j + 1] = if *item == other[j] { lengths[j] + 1 } else { 0 };
        }
        for (j, &length) in lengths[1..].iter().enumerate() {
            if length > best_length {
                best_length = length;
                best = Some((i + 1 - length, j + 1 - length, length));
            }
        }
    }
    best
}

/// Lengths stay far below 2^52.
#[expect(clippy::cast_precision_loss, reason = "lengths stay far below 2^52")]
pub(super) const fn as_f64(count: usize) -> f64 {
    count as f64
}
