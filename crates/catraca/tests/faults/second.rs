//! A second process on the same file does not start, until the first has ended.

use catraca::records::{OpenError, Options, Records};

use crate::helpers::{Folder, Running, open, role, url};

pub fn a_second_process_is_refused() {
    let folder = Folder::new("second");
    let mut running = Running::start(&mut role("hold", &folder.0));
    assert_eq!(running.lines.recv().unwrap(), "ready");
    let error = Records::open(&url(&folder.0), Options::default()).expect_err("must not open");
    assert!(matches!(error, OpenError::InUse { .. }), "{error}");
    let said = error.to_string();
    for part in ["catraca.db", &running.child.id().to_string(), "stop it", "postgres:"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    // The lock file is still there; nobody holds it.
    assert!(folder.0.join("catraca.db.lock").exists());
    open(&folder.0).close();
}
