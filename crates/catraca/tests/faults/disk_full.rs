//! A full disk: acts are not acknowledged while it is full, and written when there is space again.
//!
//! The disk is a small tmpfs in a mount namespace of the child process, removed when the child
//! ends.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::helpers::{ChildProcess, Folder, active_marks, open, role};

/// covers: B-03
pub fn a_full_disk_is_admitted() {
    let folder = Folder::new("full");
    let copy = Folder::new("copy");
    let script = "\"$1\"";
    let mut command = small_disk_command(&folder.0, &copy.0, script);
    let (lines, passed) = ChildProcess::start(&mut command).finish();
    assert!(passed, "the child failed: {:?}", lines.last());
    let marks = |word: &str| -> BTreeSet<String> {
        let lines = lines.iter().filter_map(|line| line.strip_prefix(word));
        lines.map(|mark| mark.trim_start().to_owned()).collect()
    };
    let did = marks("did ");
    let later = marks("later ");
    assert!(did.len() > 20 && later.len() == 20, "{} {}", did.len(), later.len());
    println!("{} acts acknowledged, {} refused and written later", did.len(), later.len());
    let all: BTreeSet<String> = did.union(&later).cloned().collect();
    let found = active_marks(&open(&copy.0));
    assert!(found.lists == all && found.facts == all, "an act was lost");
    assert!(all.is_subset(&found.blocks), "a block was lost");
}

/// The process is killed while its own log fills the disk; the next one starts on the full disk,
/// with and without room for the index of the log (`-shm`).
///
/// covers: B-03
pub fn a_full_disk_does_not_prevent_a_start() {
    for removed in ["nothing", "catraca.db-shm"] {
        let folder = Folder::new("restart");
        let copy = Folder::new("restart-copy");
        let script = format!(
            "{{ CATRACA_ROLE=fill-and-die \"$1\"; rm -f \"$CATRACA_FOLDER\"/{removed}; \
             cat /dev/zero > \"$CATRACA_FOLDER\"/zeros 2> /dev/null; \
             CATRACA_ROLE=restart \"$1\"; }}"
        );
        let mut command = small_disk_command(&folder.0, &copy.0, &script);
        let (lines, passed) = ChildProcess::start(&mut command).finish();
        assert!(passed, "the child failed: {:?}", lines.last());
        let did: BTreeSet<String> =
            lines.iter().filter_map(|line| line.strip_prefix("did ")).map(str::to_owned).collect();
        assert!(did.len() > 20, "{}", did.len());
        let found = active_marks(&open(&copy.0));
        assert!(did.is_subset(&found.lists) && did.is_subset(&found.blocks), "an act was lost");
        println!("{} acts acknowledged before and after the start", did.len());
    }
}

/// Root may mount; other users need a user namespace, where the system allows it.
fn small_disk_command(disk: &Path, copy: &Path, script: &str) -> Command {
    let own = Command::new("unshare").args(["--mount", "true"]).output();
    let may = own.expect("`unshare` of util-linux is needed here").status.success();
    let child = role("fill", disk);
    let mut command = Command::new("unshare");
    command.args(if may { &["--mount"][..] } else { &["--mount", "--map-root-user"] });
    let script = format!(
        "mount -t tmpfs -o size=6m none \"$CATRACA_FOLDER\" && {script} && \
         cp \"$CATRACA_FOLDER\"/catraca.db* \"$2\""
    );
    command.args(["sh", "-c", &script, "sh"]).arg(child.get_program()).arg(copy);
    command.envs(child.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}
