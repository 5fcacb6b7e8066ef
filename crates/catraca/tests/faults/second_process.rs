//! A second process cannot open the same file until the first one has ended.

use catraca::records::{OpenError, Options, Records};

use crate::helpers::{ChildProcess, Folder, open, role, url};

pub fn a_second_process_is_refused() {
    let folder = Folder::new("second");
    let mut running = ChildProcess::start(&mut role("hold", &folder.0));
    assert_eq!(running.lines.recv().unwrap(), "ready");
    let error = Records::open(&url(&folder.0), Options::default()).expect_err("must not open");
    assert!(matches!(error, OpenError::InUse { .. }), "{error}");
    let message = error.to_string();
    for part in ["catraca.db", &running.child.id().to_string(), "stop it", "postgres:"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    // No other file can be removed to get in.
    for file in std::fs::read_dir(&folder.0).unwrap() {
        let name = file.unwrap().file_name();
        assert!(["catraca.db", "catraca.db-shm", "catraca.db-wal"].map(Into::into).contains(&name));
    }
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    open(&folder.0).close();
}
