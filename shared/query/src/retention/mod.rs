//! How long things are kept, and letting them go when their time is over.
//!
//! Dates stand in the rows: a run is dated when it ends and whenever something
//! joins it (`dating`), and anew when the policy changes (`redating`). The
//! sweep (`sweep`) reads what is due and asks only then whether it is kept
//! as an exception (`exempt`). Numbers outlive what they were counted from.

mod dating;
mod exempt;
mod lanes;
mod preview;
mod redating;
mod settings;
mod sweep;
mod trimming;

pub use dating::{EvidenceEnds, RunEnds, ends_of_run};
pub(crate) use dating::{date_run, end_of_evidence};
pub use lanes::{ForgetNumbers, forget_numbers};
pub use preview::{Exemptions, Preview, preview};
pub use redating::{Redate, redate};
pub use settings::{
    InstanceRetention, Locked, ProjectRetention, edit_instance, edit_project, of_instance, of_project,
};
pub use sweep::{Swept, sweep};
