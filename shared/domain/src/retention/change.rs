//! What a change of a policy means for data: which keys keep less than
//! before. Those wait for a grace; the others apply immediately.

use serde_json::{Value, json};

use super::{Edit, KEYS, Overrides, Policy, Takes};

/// A change of what is set at one level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// What is set from now on.
    pub in_force: Overrides,
    /// What is to be set once the grace is over; empty when nothing is kept
    /// for less time.
    pub waiting: Edit,
}

/// The keys that keep less under `new` than under `old`.
#[must_use]
pub fn shortened(old: &Policy, new: &Policy) -> Vec<&'static str> {
    let (old, new) = (json!(old), json!(new));
    KEYS.iter()
        .filter(|(key, takes)| keeps_less(takes, &value_of(&old, key), &value_of(&new, key)))
        .map(|(key, _)| *key)
        .collect()
}

/// The value of a key, with what holds where null means another key.
fn value_of(policy: &Value, key: &str) -> Value {
    let at = |key: &str| policy.pointer(&format!("/{}", key.replace('.', "/"))).cloned().unwrap_or_default();
    match at(key) {
        Value::Null if key == "runs.untrackedBranchDays" => at("runs.days"),
        value => value,
    }
}

fn keeps_less(takes: &Takes, old: &Value, new: &Value) -> bool {
    // Without a number of days, data is kept.
    let days = |value: &Value| value.as_i64().unwrap_or(i64::MAX);
    match takes {
        Takes::Days => days(new) < days(old),
        Takes::Number(_) => new.as_i64() < old.as_i64(),
        Takes::Flag => new.as_bool() < old.as_bool(),
    }
}

/// Splits the way from what is in force to what is wanted. `resolve` says which
/// policy follows from what is set. The policy of [`Split::in_force`] keeps at
/// least what is kept now; with [`Split::waiting`] applied it is what is wanted.
#[must_use]
pub fn split(in_force: &Overrides, wanted: &Overrides, resolve: impl Fn(&Overrides) -> Policy) -> Split {
    let mut split = Split { in_force: wanted.clone(), waiting: Edit::default() };
    for key in shortened(&resolve(in_force), &resolve(wanted)) {
        split.waiting.0.insert(key, wanted.0.get(key).cloned());
        match in_force.0.get(key) {
            Some(value) => split.in_force.0.insert(key, value.clone()),
            None => split.in_force.0.remove(key),
        };
    }
    split
}

#[cfg(test)]
mod tests {
    use super::super::{Level, Preset};
    use super::*;

    fn set(value: Value) -> Overrides {
        let edit = Edit::read(value.as_object().unwrap(), Level::Instance).unwrap();
        Overrides::default().with(&edit)
    }

    fn resolve(set: &Overrides) -> Policy {
        set.over(&Policy::default())
    }

    #[test]
    fn the_old_defaults_keep_less_than_those_of_today() {
        let lean = resolve(&Overrides::default().with(&Preset::Lean.edit()));
        let keys = shortened(&Policy::default(), &lean);
        assert_eq!(keys.len(), 17, "{keys:?}");
        assert_eq!(shortened(&lean, &Policy::default()), [""; 0]);
    }

    #[test]
    fn only_what_keeps_less_waits() {
        let now = set(json!({ "runs": { "days": 30 }, "evidence": { "failedDays": 10 } }));
        let wanted = set(json!({ "runs": { "days": 1, "keepLast": 5 }, "keep": { "lastGreen": false } }));
        let split = split(&now, &wanted, resolve);
        let in_force = resolve(&split.in_force);
        assert_eq!((in_force.runs.days, in_force.runs.keep_last), (Some(30), 5));
        assert_eq!((in_force.evidence.failed_days, in_force.keep.last_green), (None, true));
        assert_eq!(
            split.waiting.keys().collect::<Vec<_>>(),
            ["keep.lastGreen", "runs.days", "runs.untrackedBranchDays"]
        );
        assert_eq!(split.in_force.with(&split.waiting), wanted);
    }

    /// Values at the edges of every key, in every combination of two policies that differ in the keys of runs, whose
    /// meanings depend on each other.
    #[test]
    fn nothing_is_kept_for_less_time_before_the_grace_is_over() {
        let days = [Value::Null, json!(1), json!(30), json!(90)];
        let mut policies = Vec::new();
        for all in &days {
            for untracked in &days {
                for keep_last in [0, 4] {
                    let runs =
                        json!({ "days": all, "untrackedBranchDays": untracked, "keepLast": keep_last });
                    policies.push(set(json!({ "runs": runs, "keep": { "firstFailure": keep_last == 0 } })));
                }
            }
        }
        policies.push(Overrides::default());
        for old in &policies {
            for new in &policies {
                let split = split(old, new, resolve);
                let early = shortened(&resolve(old), &resolve(&split.in_force));
                assert_eq!(early, [""; 0], "{old:?} to {new:?}");
                assert_eq!(split.in_force.with(&split.waiting), *new);
                assert_eq!(Edit::from_json(&split.waiting.to_json()), split.waiting);
            }
        }
    }
}
