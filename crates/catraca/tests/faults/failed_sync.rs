//! One failing sync, each sync in turn: no act is acknowledged without a successful sync, and
//! refused acts are written later.
//!
//! A small library loaded before the C library makes the call fail, so that SQLite itself is
//! unchanged.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::helpers::{ChildProcess, Folder, active_marks, open, role};

/// Fails the n-th sync of the process, of any file.
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

/// More syncs than the acts need, so that the last rounds have no failure.
const SYNCS: u64 = 24;

pub fn a_failed_sync_is_never_acknowledged() {
    let library = Folder::new("library");
    let library_file = build(&library.0);
    let mut closed = 0;
    let mut refused = 0;
    let mut untouched = 0;
    for number in 1..=SYNCS {
        let folder = Folder::new(&format!("sync{number}"));
        let mut command = role("sync", &folder.0);
        command.env("LD_PRELOAD", &library_file).env("FAIL_SYNC_AT", number.to_string());
        let (lines, passed) = ChildProcess::start(&mut command).finish();
        assert!(passed, "sync {number}: {lines:?}");
        if lines.iter().any(|line| line.starts_with("closed ")) {
            closed += 1;
            assert!(lines[0].contains("catraca.db"), "{lines:?}");
            // Files of a failed start must not prevent the next one.
            assert!(active_marks(&open(&folder.0)).blocks.is_empty());
            continue;
        }
        let later = lines.iter().filter(|line| line.starts_with("later ")).count();
        let failures = format!("failures {}", u64::from(later > 0));
        assert_eq!(lines.last(), Some(&failures), "sync {number}: {lines:?}");
        if later > 0 {
            refused += 1
        } else {
            untouched += 1
        }
        assert_eq!(active_marks(&open(&folder.0)).lists.len(), 8, "sync {number}: {lines:?}");
    }
    println!(
        "{SYNCS} syncs: {closed} refused to start, {refused} refused an act, {untouched} none"
    );
    assert!(closed > 0 && refused >= 8, "the failures did not reach the records");
}

fn build(folder: &Path) -> PathBuf {
    let source = folder.join("fail.c");
    let library = folder.join("fail.so");
    std::fs::write(&source, LIBRARY).unwrap();
    let mut cc = Command::new("cc");
    let built = cc.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl").status();
    assert!(built.expect("a C compiler is needed").success());
    library
}
