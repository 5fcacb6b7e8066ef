//! A disk without room: calls say so, change nothing, and pass again as soon as there is some.
//!
//! The cells are put on a small file system in memory, which only root can make.

use std::fs;
use std::io::Write;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;

use catraca::store::StoreError;

use crate::helpers::{Database, HOUR, check, gate, patient, peek, row, runtime, window};
use crate::server::other_user;

/// A file system that goes with this value.
struct Small(PathBuf);

impl Small {
    /// None where this process may not make one.
    fn mount(place: PathBuf) -> Option<Self> {
        let user = other_user()?;
        fs::create_dir_all(&place).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=2m", "catraca-test"]).arg(&place);
        if !mount.status().is_ok_and(|done| done.success()) {
            return None;
        }
        chown(&place, Some(user), None).unwrap();
        Some(Self(place))
    }

    /// Takes all the room that is left; gives it back with the file that is returned.
    fn fill(&self) -> PathBuf {
        let path = self.0.join("filler");
        let mut file = fs::File::create(&path).unwrap();
        while file.write(&[0; 4_096]).is_ok_and(|written| written > 0) {}
        path
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let ended = Command::new("umount").arg("--lazy").arg(&self.0).status();
        assert!(ended.is_ok_and(|done| done.success()), "{} is left", self.0.display());
    }
}

#[test]
fn a_full_disk_is_told_changes_nothing_and_is_over_when_there_is_room() {
    let (database, runtime) = (Database::new(), runtime());
    let place = Path::new(&database.server.directory).join("small");
    let Some(small) = Small::mount(place.clone()) else {
        println!("skipped: only root can make a small file system");
        return;
    };
    let store = runtime.block_on(database.open(patient()));
    database.ask(&format!("CREATE TABLESPACE small LOCATION '{}'", place.display()));
    database.ask("ALTER TABLE catraca_store.cells SET TABLESPACE small");
    let one = |number: u64| gate([row(number, window(5, HOUR))]);
    for number in 0..50 {
        assert!(runtime.block_on(check(&store, &one(number))).unwrap().passed);
    }
    let filler = small.fill();
    let refused: Vec<u64> = (50..1_000)
        .filter(|number| match runtime.block_on(check(&store, &one(*number))) {
            Ok(reply) => !reply.passed,
            Err(error) => is_full(&error),
        })
        .collect();
    println!("{} of 950 new keys found no room", refused.len());
    assert!(refused.len() > 100, "the disk was not full: {refused:?}");
    let looked = runtime.block_on(check(&store, &peek(row(1, window(5, HOUR))))).unwrap();
    assert_eq!(looked.rows[0].free, 4, "what was counted can still be read");
    fs::remove_file(filler).unwrap();
    for number in refused {
        let after = runtime.block_on(check(&store, &one(number))).unwrap();
        assert_eq!((after.passed, after.rows[0].free), (true, 4), "what was refused cost nothing");
    }
    database.ask("ALTER TABLE catraca_store.cells SET TABLESPACE pg_default");
    database.ask("DROP TABLESPACE small");
}

fn is_full(error: &StoreError) -> bool {
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert!(error.to_string().contains("disk"), "{error}");
    true
}
