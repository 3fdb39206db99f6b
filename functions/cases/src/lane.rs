//! The slice of a project's history that answers are about.

pub(crate) use callboard_http::lane::Lane;
