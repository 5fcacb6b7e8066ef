//! A disk that fails to sync, once, at every place in turn: no acknowledgement without a sync that
//! worked, and nothing lost that was refused.
//!
//! The failure comes from a small library loaded before the C library, so that SQLite is the very
//! one that ships.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::helpers::{Folder, Running, found, open, role};

/// Fails the n-th sync of the process, whatever the file.
const LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_long calls;

static int fails(void) {
    const char *at = getenv("FAIL_SYNC_AT");
    return at && atomic_fetch_add(&calls, 1) + 1 == atol(at);
}

int fsync(int file) {
    if (fails()) { errno = EIO; return -1; }
    return ((int (*)(int)) dlsym(RTLD_NEXT, "fsync"))(file);
}

int fdatasync(int file) {
    if (fails()) { errno = EIO; return -1; }
    return ((int (*)(int)) dlsym(RTLD_NEXT, "fdatasync"))(file);
}
"#;

/// More than the acts need, so that the last ones fail nothing.
const PLACES: u64 = 24;

pub fn a_failed_sync_is_never_acknowledged() {
    let library = Folder::new("library");
    let library_file = build(&library.0);
    let mut closed = 0;
    let mut refused = 0;
    let mut untouched = 0;
    for place in 1..=PLACES {
        let folder = Folder::new(&format!("sync{place}"));
        let mut command = role("sync", &folder.0);
        command.env("LD_PRELOAD", &library_file).env("FAIL_SYNC_AT", place.to_string());
        let (lines, passed) = Running::start(&mut command).finish();
        assert!(passed, "place {place}: {lines:?}");
        if lines.iter().any(|line| line.starts_with("closed ")) {
            closed += 1;
            assert!(lines[0].contains("catraca.db"), "{lines:?}");
            // What failed at a start must not stand in the way of the next one.
            assert!(found(&open(&folder.0)).blocks.is_empty());
            continue;
        }
        let later = lines.iter().filter(|line| line.starts_with("later ")).count();
        let failures = format!("failures {}", u64::from(later > 0));
        assert_eq!(lines.last(), Some(&failures), "place {place}: {lines:?}");
        if later > 0 {
            refused += 1
        } else {
            untouched += 1
        }
        assert_eq!(found(&open(&folder.0)).lists.len(), 8, "place {place}: {lines:?}");
    }
    println!(
        "{PLACES} places: {closed} refused to start, {refused} refused an act, {untouched} none"
    );
    assert!(closed > 0 && refused >= 8, "the failures did not reach the records");
}

fn build(folder: &Path) -> PathBuf {
    let source = folder.join("fail.c");
    let library = folder.join("fail.so");
    std::fs::write(&source, LIBRARY).unwrap();
    let mut cc = Command::new("cc");
    let built = cc.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl").status();
    assert!(built.expect("a C compiler, which SQLite needs too").success());
    library
}
