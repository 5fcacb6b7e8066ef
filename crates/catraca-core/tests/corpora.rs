//! Runs the checks of the fuzz targets with the inputs in `fuzz/corpus`.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]
#![allow(clippy::disallowed_methods, clippy::disallowed_macros, reason = "a test reads files")]

#[path = "../../../fuzz/checks/body_cost.rs"]
mod body_cost;
#[path = "../../../fuzz/checks/canonical_path.rs"]
mod canonical_path;
#[path = "../../../fuzz/checks/forwarded_headers.rs"]
mod forwarded_headers;
#[path = "../../../fuzz/checks/retry_after.rs"]
mod retry_after;

use std::fs;
use std::path::Path;

#[test]
fn inputs_of_body_cost() {
    replay("body_cost", body_cost::check);
}

#[test]
fn inputs_of_canonical_path() {
    replay("canonical_path", canonical_path::check);
}

#[test]
fn inputs_of_forwarded_headers() {
    replay("forwarded_headers", forwarded_headers::check);
}

#[test]
fn inputs_of_retry_after() {
    replay("retry_after", retry_after::check);
}

/// Runs a check with every input of a corpus.
fn replay(name: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut count = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        check(&fs::read(&path).unwrap());
        count += 1;
    }
    assert!(count > 5, "{} has {count} inputs", folder.display());
}
