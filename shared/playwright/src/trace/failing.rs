//! Which action failed, and with what words.

use std::collections::HashSet;

use super::events::Frame;
use super::{Action, Trace};
use crate::healing::chain_in_error;

/// Different errors that are compared with the reported ones: those of a test
/// that fails for a reason are few, and comparing is costly.
const MAX_COMPARED: usize = 200;

/// The action that made the test fail.
#[derive(Debug, Clone, PartialEq)]
pub struct FailingAction<'a> {
    /// The action.
    pub action: &'a Action,
    /// Its error; empty when it never ended.
    pub message: &'a str,
    /// Titles of the steps of the test around it, outermost first.
    pub steps: Vec<&'a str>,
}

impl Trace {
    /// The last action whose error `is_reported` recognises as the one the
    /// runner reported; else the first that failed; else the innermost that
    /// never ended. Of an action inside of another only the inner one counts.
    #[must_use]
    pub fn failing_action(&self, is_reported: impl Fn(&str) -> bool) -> Option<FailingAction<'_>> {
        let with_error = || self.actions.iter().filter_map(|action| Some((action, action.error.as_ref()?)));
        let outer: HashSet<&str> = with_error().filter_map(|(action, _)| action.parent.as_deref()).collect();
        let failed: Vec<(&Action, &str)> = with_error()
            .filter(|(action, _)| !outer.contains(action.id.as_str()))
            .map(|(action, error)| (action, error.message.as_str()))
            .collect();
        let reported = last_reported(&failed, is_reported);
        let failed = failed.iter().map(|(action, _)| *action);
        // A step knows the call log; the call behind it, when it stands alone, does not.
        let first = || failed.clone().find(|action| action.is_step).or_else(|| failed.clone().next());
        let action = reported.or_else(first).or_else(|| self.unfinished())?;
        Some(FailingAction {
            action,
            message: action.error.as_ref().map_or("", |error| &error.message),
            steps: self.steps_around(action),
        })
    }

    /// The innermost call that never ended: the last one that began. Hooks
    /// never end in a trace: it is written while they run.
    fn unfinished(&self) -> Option<&Action> {
        self.actions
            .iter()
            .rev()
            .find(|action| action.end.is_none() && (action.api.is_some() || !action.is_step))
    }

    fn steps_around(&self, action: &Action) -> Vec<&str> {
        let mut around = Vec::new();
        let mut parent = action.parent.as_ref();
        // The bound stops circles.
        while let (Some(id), true) = (parent, around.len() < 50) {
            let Some(step) = self.action(id) else { break };
            if step.is_named_step {
                around.push(step.title.as_str());
            }
            parent = step.parent.as_ref();
        }
        around.reverse();
        around
    }

    /// Titles of the steps the test named, in order.
    pub fn named_steps(&self) -> impl Iterator<Item = &Action> {
        self.actions.iter().filter(|action| action.is_named_step)
    }
}

/// The last of these actions whose error is a reported one, as far as errors
/// are compared.
fn last_reported<'a>(
    failed: &[(&'a Action, &'a str)],
    is_reported: impl Fn(&str) -> bool,
) -> Option<&'a Action> {
    let mut refuted = HashSet::new();
    failed.iter().rev().find_map(|(action, message)| {
        if refuted.len() == MAX_COMPARED || refuted.contains(message) {
            return None;
        }
        if is_reported(message) {
            return Some(*action);
        }
        refuted.insert(*message);
        None
    })
}

impl FailingAction<'_> {
    /// The locator as it is written in the test: from the trace, else from the
    /// first chain in the words of the error.
    #[must_use]
    pub fn locator(&self) -> Option<String> {
        if let Some(locator) = &self.action.locator {
            return Some(locator.clone());
        }
        chain_in_error(self.message)
    }

    /// Where in the sources it was called, innermost first.
    #[must_use]
    pub fn frames(&self) -> &[Frame] {
        &self.action.stack
    }

    /// From when to when it ran, epoch milliseconds.
    #[must_use]
    pub const fn window(&self) -> (f64, Option<f64>) {
        (self.action.start, self.action.end)
    }
}
