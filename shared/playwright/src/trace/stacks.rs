//! Stacks that lie in a file beside the events. A frame names its source by a
//! place in a list, so that a few bytes stand for a long name any number of
//! times: stacks are kept as they are packed, and written out only for the
//! calls that are read, up to a bound.

use std::collections::HashMap;

use serde_json::Value;

use super::events::{self, Frame, PackedFrame};
use super::{ParseError, TraceError};
use callboard_domain::text::{cut, cut_str};

/// Longest file of stacks that is read: it is parsed as a whole, and takes
/// several times its size in memory.
pub(super) const MAX_FILE_BYTES: u64 = 16 << 20;
/// Frames of one stack.
const MAX_FRAMES: usize = 50;
/// Characters of the name of a file or a function.
const MAX_NAME_CHARS: usize = 1_000;
/// Bytes of all stacks that are written out.
const MAX_WRITTEN_BYTES: usize = 64 << 20;

/// The stacks of the calls of one file of events.
#[derive(Default)]
pub(super) struct Stacks {
    files: Vec<String>,
    of_calls: HashMap<String, Vec<PackedFrame>>,
}

impl Stacks {
    /// Reads a file of at most `max_stacks` stacks; what is none holds none.
    pub(super) fn read(content: &[u8], max_stacks: usize) -> Result<Self, ParseError> {
        let text = std::str::from_utf8(content).unwrap_or_default();
        let Some(packed) = events::read::<events::Stacks>(text) else { return Ok(Self::default()) };
        if packed.stacks.len() > max_stacks {
            return Err(TraceError::TooLarge("too many stacks"));
        }
        let id = |id: Value| match id {
            Value::String(id) => id,
            id => format!("call@{id}"),
        };
        let of_call = |(call, frames): (Value, Vec<PackedFrame>)| (id(call), shortened(frames));
        Ok(Self {
            files: packed.files.into_iter().map(|file| cut(file, MAX_NAME_CHARS)).collect(),
            of_calls: packed.stacks.into_iter().map(of_call).collect(),
        })
    }

    /// Writes out the stack of a call; empty when there is none.
    pub(super) fn frames(&self, call: &str, room: &mut Room) -> Result<Vec<Frame>, ParseError> {
        let Some(packed) = self.of_calls.get(call) else { return Ok(Vec::new()) };
        let mut stack = Vec::with_capacity(packed.len());
        for (file, line, column, function) in packed {
            let file = self.files.get(*file).map_or("", String::as_str);
            let function = cut_str(function, MAX_NAME_CHARS);
            room.take(size_of::<Frame>() + file.len() + function.len())?;
            stack.push(Frame {
                file: file.to_owned(),
                line: *line,
                column: *column,
                function: function.to_owned(),
            });
        }
        Ok(stack)
    }
}

/// What may still be written out of the stacks of a trace.
pub(super) struct Room(usize);

impl Room {
    /// Room for the stacks of a whole trace.
    pub(super) const fn of_trace() -> Self {
        Self(MAX_WRITTEN_BYTES)
    }

    fn take(&mut self, bytes: usize) -> Result<(), ParseError> {
        self.0 = self.0.checked_sub(bytes).ok_or(TraceError::TooLarge("its stacks are too large"))?;
        Ok(())
    }
}

/// The part of a stack that is kept, without the room of the rest.
fn shortened<F>(mut stack: Vec<F>) -> Vec<F> {
    stack.truncate(MAX_FRAMES);
    stack.shrink_to_fit();
    stack
}

/// A stack as an event carries it, as far as it is kept.
pub(super) fn kept(stack: Vec<Frame>) -> Vec<Frame> {
    let shorter = |frame: Frame| Frame {
        file: cut(frame.file, MAX_NAME_CHARS),
        function: cut(frame.function, MAX_NAME_CHARS),
        ..frame
    };
    shortened(stack).into_iter().map(shorter).collect()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    /// A file in which each of these calls has 50 frames in one source.
    fn file_of(source: &str, calls: usize) -> Vec<u8> {
        let frames = vec!["[0,1,2,\"f\"]"; 50].join(",");
        let mut file = format!(r#"{{"files":["{source}"],"stacks":[[0,[]]"#);
        for call in 1..=calls {
            let _ = write!(file, ",[{call},[{frames}]]");
        }
        file.push_str("]}");
        file.into_bytes()
    }

    fn bytes_of(stack: &[Frame]) -> usize {
        stack.iter().map(|frame| frame.file.capacity() + frame.function.capacity()).sum()
    }

    #[test]
    fn a_name_is_cut_however_many_frames_share_it() {
        let stacks = Stacks::read(&file_of(&"x".repeat(100_000), 40), 100).unwrap();
        let mut room = Room::of_trace();
        let written: Vec<Vec<Frame>> =
            (0..=41).map(|call| stacks.frames(&format!("call@{call}"), &mut room).unwrap()).collect();
        let frames: Vec<usize> = written.iter().map(Vec::len).collect();
        assert_eq!(frames, [&[0][..], &[50; 40], &[0]].concat());
        assert!(written.iter().all(|stack| bytes_of(stack) <= 50 * (MAX_NAME_CHARS + 8)));
        assert_eq!(written[1][0].function, "f");
    }

    #[test]
    fn stacks_that_multiply_are_too_large() {
        let stacks = Stacks::read(&file_of(&"x".repeat(1_000), 1), 100).unwrap();
        let (mut room, mut written) = (Room::of_trace(), 0);
        let refused = loop {
            match stacks.frames("call@1", &mut room) {
                Ok(stack) => written += bytes_of(&stack),
                Err(error) => break error,
            }
            assert!(written <= MAX_WRITTEN_BYTES);
        };
        assert_eq!(refused, TraceError::TooLarge("its stacks are too large"));
        assert_eq!(
            Stacks::read(&file_of("a.ts", 3), 3).map(drop),
            Err(TraceError::TooLarge("too many stacks"))
        );
    }

    #[test]
    fn a_stack_of_an_event_is_cut_as_well() {
        let frame = Frame { file: "x".repeat(5_000), function: "y".repeat(5_000), ..Frame::default() };
        let mut stack = Vec::with_capacity(100_000);
        stack.extend(vec![frame; 60]);
        let stack = kept(stack);
        assert_eq!((stack.len(), bytes_of(&stack)), (50, 50 * 2 * MAX_NAME_CHARS));
        assert!(stack.capacity() < 100);
    }
}
