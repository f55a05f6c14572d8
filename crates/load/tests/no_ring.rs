//! Where no io_uring can be had the driver of sessions that complete says so, and nothing is begun.
//!
//! One test alone in this file: it takes the process's descriptors away.

#![allow(clippy::unwrap_used)]

mod support;

use plimsoll_load::mock::MockOpener;
use plimsoll_load::{Control, Tables, run_completion};
use plimsoll_session::CompletionOpener;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::Arc;
use support::config;

#[test]
fn a_segment_without_a_ring_begins_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let opener: Arc<dyn CompletionOpener> = Arc::new(MockOpener::new(|_| panic!("nothing is to be begun")));
    let sessions = (0..4).map(|number| opener.open(number).unwrap()).collect();
    let (tables, control) = (Tables::create(folder.path()).unwrap(), Control::new(2));
    let found = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(3), ..found }).unwrap();
    let refused = run_completion(sessions, &opener, &config(), &control, tables);
    setrlimit(Resource::Nofile, found).unwrap();
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("no io_uring can be created"), "{error}");
    assert_eq!(control.identity().planned, 0);
}
