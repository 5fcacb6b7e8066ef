//! A full disk: calls fail with an error that says so, change nothing, and succeed when there is
//! space again.
//!
//! The cells are on a small tmpfs, which only root can mount; else the test is skipped.

use std::fs;
use std::io::Write;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;

use catraca::store::StoreError;

use super::helpers::{Database, HOUR, check, gate, long_deadline, peek, row, runtime, window};
use catraca_testkit::postgres::other_user;

/// A tmpfs that is unmounted on drop.
struct SmallFileSystem(PathBuf);

impl SmallFileSystem {
    /// Mounts it; `None` if this process may not.
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

    /// Fills the remaining space with a file; returns its path.
    fn fill(&self) -> PathBuf {
        let path = self.0.join("filler");
        let mut file = fs::File::create(&path).unwrap();
        while file.write(&[0; 4_096]).is_ok_and(|written| written > 0) {}
        path
    }
}

impl Drop for SmallFileSystem {
    fn drop(&mut self) {
        let ended = Command::new("umount").arg("--lazy").arg(&self.0).status();
        assert!(ended.is_ok_and(|done| done.success()), "{} is left", self.0.display());
    }
}

#[test]
fn a_full_disk_is_told_changes_nothing_and_is_over_when_there_is_room() {
    let database = Database::new();
    let runtime = runtime();
    let place = Path::new(&database.server.directory).join("small");
    let Some(small) = SmallFileSystem::mount(place.clone()) else {
        println!("skipped: only root can make a small file system");
        return;
    };
    let store = runtime.block_on(database.open(long_deadline()));
    database.query(&format!("CREATE TABLESPACE small LOCATION '{}'", place.display()));
    database.query("ALTER TABLE catraca_store.cells SET TABLESPACE small");
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
    database.query("ALTER TABLE catraca_store.cells SET TABLESPACE pg_default");
    database.query("DROP TABLESPACE small");
}

fn is_full(error: &StoreError) -> bool {
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert!(error.to_string().contains("disk"), "{error}");
    true
}
