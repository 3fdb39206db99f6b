//! Retention: how long data is kept, and deleting it after that.
//!
//! Rows hold their dates: a run is dated when it ends and whenever something
//! joins it (`dating`), and again when the policy changes (`redating`). The
//! sweep (`sweep`) reads what is due and checks it against the policy in force
//! and its exceptions (`exempt`). A change that keeps less comes into force
//! after a grace (`changes`, `environment`). Numbers outlive what they were
//! counted from.

pub(crate) mod branches;
mod changes;
mod dating;
mod environment;
mod estimates;
mod exempt;
mod lanes;
mod preview;
mod redating;
mod settings;
mod sweep;
mod trimming;

pub(crate) use changes::renew_pending;
pub use changes::{
    ApplyRetention, Shortened, apply, edit_instance, edit_project, undo_instance, undo_project,
};
pub(crate) use dating::end_of_evidence;
pub use dating::{EvidenceEnds, RunEnds, ends_of_run};
pub use environment::start;
pub(crate) use estimates::estimates;
pub use estimates::{PresetEstimate, estimate_presets};
pub use lanes::{ForgetNumbers, forget_numbers};
pub use preview::{Exemptions, Preview};
pub(crate) use redating::enqueue as enqueue_redating;
pub use redating::{Redate, redate};
pub use settings::{
    ChangePreview, InstanceRetention, Locked, PendingChange, ProjectRetention, of_instance, of_project,
    preview_instance, preview_project,
};
pub use sweep::{Swept, sweep};
