//! Which action failed, and with what words.

use super::events::Frame;
use super::{Action, Trace};
use crate::healing::chain_in_error;

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
        let failed: Vec<&Action> = self
            .actions
            .iter()
            .filter(|action| action.error.is_some() && !self.has_failing_child(action))
            .collect();
        let reported = failed
            .iter()
            .rev()
            .find(|action| action.error.as_ref().is_some_and(|error| is_reported(&error.message)));
        // A step knows the call log; the call behind it, when it stands alone, does not.
        let first = failed.iter().find(|action| action.is_step).or_else(|| failed.first());
        let action = reported.or(first).copied().or_else(|| self.unfinished())?;
        Some(FailingAction {
            action,
            message: action.error.as_ref().map_or("", |error| &error.message),
            steps: self.steps_around(action),
        })
    }

    fn has_failing_child(&self, parent: &Action) -> bool {
        self.actions.iter().any(|action| action.error.is_some() && action.parent.as_ref() == Some(&parent.id))
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
