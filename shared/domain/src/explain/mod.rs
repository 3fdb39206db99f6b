//! Says why a test failed from what is stored of the failure and of the last
//! time it passed. Every sentence rests on a field of the evidence; what is
//! not known is not said.

mod headline;
mod steps;
mod test_steps;
mod verdict;
mod wrong_page;

pub use headline::{Covered, Headline, PassedIn, covered_by, headline, received};
pub use steps::{Divergence, first_divergence};
pub use test_steps::{compared_titles, failing_step};
pub use verdict::{Facts, Judgement, Verdict, judge};
pub use wrong_page::{OtherPage, other_page};
