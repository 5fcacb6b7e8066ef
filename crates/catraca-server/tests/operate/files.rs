//! Backup and restore of the records, by their file.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::desk::{CATALOG, IP, Ran, command, done, run};
use crate::served::{Served, file};

/// Somebody who is blocked only after the backup.
const LATER: &str = "ip=192.0.2.200";

/// Runs a verb about files.
fn ran(verb: &str, place: [&Path; 2], more: &[&str]) -> Ran {
    let [config, backup] = place.map(|path| path.to_str().unwrap());
    let args = [&[verb, "--config", config, backup], more].concat();
    Ran::of(command("http://127.0.0.1:9", &args).output().unwrap())
}

fn fine(ran: &Ran) -> &str {
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    &ran.out
}

/// A catalog whose records hold one block, and a backup of them; the server is gone.
fn kept() -> (PathBuf, PathBuf) {
    let config = file(CATALOG);
    let backup = config.with_file_name("monday.db");
    let served = Served::of(&config);
    done(&served, &["blocks", "add", "login", IP, "--for", "1h", "--reason", "fraud"]);
    fine(&ran("backup", [&config, &backup], &[]));
    (config, backup)
}

#[test]
fn a_backup_is_made_while_the_server_goes_on_and_put_back_while_none_does() {
    let config = file(CATALOG);
    let (records, backup) = (config.with_file_name("catraca.db"), config.with_file_name("m.db"));
    let served = Served::of(&config);
    done(&served, &["blocks", "add", "login", IP, "--for", "1h"]);
    let said = ran("backup", [&config, &backup], &[]);
    assert!(fine(&said).contains("catraca.secret"), "{}", said.out);
    let mode = fs::metadata(&backup).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    ran("backup", [&config, &backup], &[]).says(2, &["exists already"]);
    done(&served, &["blocks", "release", IP]);
    done(&served, &["blocks", "add", "login", LATER, "--for", "forever"]);
    ran("restore", [&config, &backup], &["--force"]).says(2, &["in use by process"]);
    served.signal("TERM");
    assert!(served.ended().0.success());

    ran("restore", [&config, &backup], &[]).says(2, &["exists already", "--force"]);
    let said = ran("restore", [&config, &backup], &["--force"]);
    assert!(fine(&said).contains("catraca.db.old"), "{}", said.out);
    assert!(records.with_file_name("catraca.db.old").exists());
    assert!(said.out.contains("catraca.snapshot.old"), "{}", said.out);
    let served = Served::of(&config);
    assert_eq!(run(&served, &["check", "login", IP]).code, Some(1), "blocked as on monday");
    assert_eq!(run(&served, &["check", "login", LATER]).code, Some(0), "nobody knows of a block");
}

#[test]
fn records_that_are_missing_are_put_back_without_force() {
    let (config, backup) = kept();
    for ending in ["", "-wal", "-shm"] {
        fs::remove_file(config.with_file_name(format!("catraca.db{ending}"))).ok();
    }
    fine(&ran("restore", [&config, &backup], &[]));
    let served = Served::of(&config);
    let found = done(&served, &["blocks", "list", IP]);
    assert!(found.contains("fraud"), "{found}");
}

/// The header of the file has its schema at byte 60 and whose it is at byte 68.
#[test]
fn what_is_damaged_newer_or_foreign_is_refused_by_name() {
    let (config, backup) = kept();
    let whole = fs::read(&backup).unwrap();
    let records = config.with_file_name("catraca.db");
    let before = fs::read(&records).unwrap();
    let newer = [&whole[..60], &99_u32.to_be_bytes(), &whole[64..]].concat();
    let foreign = [&whole[..68], &[0; 4], &whole[72..]].concat();
    let mut damaged = whole.clone();
    damaged[8_192..12_288].fill(0xa5);
    let wrong: [(&[u8], &str); 6] = [
        (&newer, "schema 99"),
        (&foreign, "another program"),
        (&damaged, "damaged"),
        (&whole[..whole.len() / 2], "damaged"),
        (&b"not a database ".repeat(300), "damaged"),
        (b"", "the file is empty"),
    ];
    for (bytes, word) in wrong {
        fs::write(&backup, bytes).unwrap();
        ran("restore", [&config, &backup], &["--force"]).says(2, &[word, "monday.db"]);
        assert_eq!(fs::read(&records).unwrap(), before, "{word}");
        assert!(!config.with_file_name("catraca.db.old").exists(), "{word}");
        assert!(!config.with_file_name("catraca.db.new").exists(), "{word}");
    }
    fs::remove_file(&backup).unwrap();
    ran("restore", [&config, &backup], &["--force"]).says(2, &["monday.db"]);
    assert!(!backup.exists());
}

#[test]
fn the_place_is_named_once() {
    let (config, backup) = kept();
    let records = config.with_file_name("catraca.db");
    let copy = config.with_file_name("tuesday.db");
    let [config, records, copy] = [&config, &records, &copy].map(|path| path.to_str().unwrap());
    let run = |args: &[&str]| Ran::of(command("http://127.0.0.1:9", args).output().unwrap());
    fine(&run(&["backup", "--records", records, copy]));
    assert!(fs::metadata(copy).unwrap().len() > 0 && backup.exists());
    run(&["backup", copy]).says(2, &["--config"]);
    run(&["backup", "--records", records, "--config", config, "x"]).says(2, &["--records"]);
    run(&["backup", "--records", "no-such.db", "x"]).says(2, &["no-such.db"]);
    let none = file("[records]\nurl = \"none\"\n");
    ran("backup", [&none, Path::new("x")], &[]).says(2, &["keeps no records"]);
    assert!(!Path::new("x").exists());
}
