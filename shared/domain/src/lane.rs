//! Lanes: the combinations of branch and environment under which rollups are
//! kept.
//!
//! Invariant: every combination of one branch (or all) and one environment
//! (or all) is exactly one lane, so every rollup read is one key range.

/// Which of branch and environment a lane is restricted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i16)]
pub enum LaneKind {
    /// Everything of the project.
    All = 0,
    /// One branch, any environment.
    Branch = 1,
    /// One environment, any branch.
    Environment = 2,
    /// One branch in one environment.
    BranchAndEnvironment = 3,
}

impl LaneKind {
    /// The stored code, 0..=3.
    #[must_use]
    pub const fn code(self) -> i64 {
        self as i64
    }

    /// Reads a stored code.
    #[must_use]
    pub fn from_code(code: i64) -> Option<Self> {
        [Self::All, Self::Branch, Self::Environment, Self::BranchAndEnvironment]
            .into_iter()
            .find(|kind| kind.code() == code)
    }
}

/// What identifies a lane within its project. Parts the kind does not restrict
/// are empty, so the key is unique; a run without a branch has the branch `""`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneKey {
    /// What the lane is restricted to.
    pub kind: LaneKind,
    /// The branch, or empty.
    pub branch: String,
    /// The environment, or empty.
    pub environment: String,
}

impl LaneKey {
    /// The one lane a reader asks for who names a branch, an environment, both
    /// or neither; `Some("")` as the branch asks for runs without one.
    #[must_use]
    pub fn asked(branch: Option<&str>, environment: Option<&str>) -> Self {
        let kind = match (branch, environment) {
            (None, None) => LaneKind::All,
            (Some(_), None) => LaneKind::Branch,
            (None, Some(_)) => LaneKind::Environment,
            (Some(_), Some(_)) => LaneKind::BranchAndEnvironment,
        };
        Self {
            kind,
            branch: branch.unwrap_or_default().to_owned(),
            environment: environment.unwrap_or_default().to_owned(),
        }
    }
}

/// The lanes a run writes into: two, or four when it names an environment; the
/// most specific one, which the run row carries, comes last.
#[must_use]
pub fn lanes_of(branch: Option<&str>, environment: Option<&str>) -> Vec<LaneKey> {
    let branch = Some(branch.unwrap_or_default());
    let environment = environment.filter(|name| !name.is_empty());
    let mut lanes = vec![LaneKey::asked(None, None), LaneKey::asked(branch, None)];
    if environment.is_some() {
        lanes.push(LaneKey::asked(None, environment));
        lanes.push(LaneKey::asked(branch, environment));
    }
    lanes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_writes_two_lanes_or_four_with_an_environment() {
        let kinds = |lanes: &[LaneKey]| lanes.iter().map(|lane| lane.kind.code()).collect::<Vec<_>>();
        assert_eq!(kinds(&lanes_of(Some("main"), None)), [0, 1]);
        assert_eq!(kinds(&lanes_of(Some("main"), Some(""))), [0, 1]);
        let lanes = lanes_of(Some("main"), Some("staging"));
        assert_eq!(kinds(&lanes), [0, 1, 2, 3]);
        assert_eq!(lanes[3], LaneKey::asked(Some("main"), Some("staging")));
        assert_eq!(lanes[1], LaneKey::asked(Some("main"), None));
    }

    #[test]
    fn runs_without_a_branch_have_a_lane_of_their_own() {
        assert_eq!(lanes_of(None, None), [LaneKey::asked(None, None), LaneKey::asked(Some(""), None)]);
    }

    #[test]
    fn kinds_survive_storage() {
        for lane in lanes_of(Some("main"), Some("staging")) {
            assert_eq!(LaneKind::from_code(lane.kind.code()), Some(lane.kind));
        }
        assert_eq!(LaneKind::from_code(4), None);
    }
}
