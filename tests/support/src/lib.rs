//! What the tests of the whole service share.
//!
//! Lives here: fresh databases on both engines, an S3 server, a code host and a model endpoint in
//! the test process, the service in the process or as a child process, and functions
//! under an emulated Lambda runtime. Everything started here ends when it is
//! dropped. Must not live here: assertions about answers; they belong to the
//! tests that make them.
//!
//! Nothing here changes the environment of the test process, because tests
//! run side by side in it. What reads the environment (bucket credentials,
//! the settings of a service) is started as a child process with its own:
//! `Service` keeps files in a folder, `Process` and `Function` can use S3.

pub mod access;
pub mod accounts;
pub mod client;
pub mod code_host;
pub mod databases;
pub mod form;
pub mod lambda;
pub mod model_server;
pub mod process;
pub mod provider;
pub mod s3;
pub mod service;
pub mod slack;
mod smtp;

pub use accounts::for_each_secured_service;
pub use client::{Answer, Client};
pub use code_host::{CodeHost, Dialect, Fault};
pub use databases::{TestDatabase, backends, for_each_backend, for_each_database};
pub use form::{Form, report_archive};
pub use lambda::{EventTooLarge, Function, Gateway};
pub use model_server::{ModelServer, Play};
pub use process::{Process, Runner};
pub use provider::Provider;
pub use s3::{BucketFault, ObjectRead, S3Server};
pub use service::{Service, for_each_service};
pub use slack::SlackServer;
pub use smtp::{Encryption, MailServer, ReceivedMail};

/// Names and values of environment variables for a child process.
pub type Settings = Vec<(String, String)>;
