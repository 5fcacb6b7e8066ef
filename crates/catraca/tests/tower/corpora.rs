//! Runs the checks of the fuzz targets with the inputs in `fuzz/corpus`.

#[path = "../../../../fuzz/checks/event_stream.rs"]
mod event_stream;
#[path = "../../../../fuzz/checks/request_values.rs"]
mod request_values;

use std::fs;
use std::path::Path;

#[test]
fn inputs_of_event_stream() {
    replay("event_stream", event_stream::check);
}

#[test]
fn inputs_of_request_values() {
    replay("request_values", request_values::check);
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
