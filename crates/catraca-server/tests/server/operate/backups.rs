//! `catraca backup` and `catraca restore` of the records' file.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::operate::helpers::{CATALOG, CliOutput, IP, command, run, run_ok, url};
use crate::test_server::{TestServer, catalog_file};

/// A subject that is blocked only after the backup.
const LATER: &str = "ip=192.0.2.200";

/// Runs `backup` or `restore` with these catalog and backup files.
fn run_on_files(verb: &str, files: [&Path; 2], more: &[&str]) -> CliOutput {
    let [config, backup] = files.map(|path| path.to_str().unwrap());
    let args = [&[verb, "-c", config, backup], more].concat();
    CliOutput::new(command("http://127.0.0.1:9", &args).output().unwrap())
}

fn assert_success(output: &CliOutput) -> &str {
    assert_eq!(output.code, Some(0), "{}", output.err);
    &output.out
}

/// A catalog file whose records hold one block, and a backup of them; the server has ended.
fn catalog_and_backup() -> (PathBuf, PathBuf) {
    let config = catalog_file(CATALOG);
    let backup = config.with_file_name("monday.db");
    let server = TestServer::from_file(&config);
    run_ok(&server, &["blocks", "add", "login", IP, "--for", "1h", "--reason", "fraud"]);
    assert_success(&run_on_files("backup", [&config, &backup], &[]));
    (config, backup)
}

#[test]
fn a_backup_is_made_while_the_server_goes_on_and_put_back_while_none_does() {
    let config = catalog_file(CATALOG);
    let records = config.with_file_name("catraca.db");
    let backup = config.with_file_name("m.db");
    let server = TestServer::from_file(&config);
    run_ok(&server, &["blocks", "add", "login", IP, "--for", "1h"]);
    let output = run_on_files("backup", [&config, &backup], &[]);
    assert!(assert_success(&output).contains("catraca.secret"), "{}", output.out);
    let mode = fs::metadata(&backup).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    run_on_files("backup", [&config, &backup], &[]).assert_exit(2, &["exists already"]);
    run_ok(&server, &["blocks", "release", IP]);
    run_ok(&server, &["blocks", "add", "login", LATER, "--for", "forever"]);
    run_on_files("restore", [&config, &backup], &["--force"])
        .assert_exit(2, &["in use by process"]);
    server.signal("TERM");
    assert!(server.wait_for_exit().0.success());

    run_on_files("restore", [&config, &backup], &[]).assert_exit(2, &["exists already", "--force"]);
    let output = run_on_files("restore", [&config, &backup], &["--force"]);
    assert!(assert_success(&output).contains("catraca.db.old"), "{}", output.out);
    assert!(records.with_file_name("catraca.db.old").exists());
    assert!(output.out.contains("catraca.snapshot.old"), "{}", output.out);
    let server = TestServer::from_file(&config);
    assert_eq!(run(&server, &["check", "login", IP]).code, Some(1), "blocked in the backup");
    assert_eq!(
        run(&server, &["check", "login", LATER]).code,
        Some(0),
        "the block is not in the backup"
    );
}

#[test]
fn records_that_are_missing_are_put_back_without_force() {
    let (config, backup) = catalog_and_backup();
    for ending in ["", "-wal", "-shm"] {
        fs::remove_file(config.with_file_name(format!("catraca.db{ending}"))).ok();
    }
    assert_success(&run_on_files("restore", [&config, &backup], &[]));
    let server = TestServer::from_file(&config);
    let found = run_ok(&server, &["blocks", "list", IP]);
    assert!(found.contains("fraud"), "{found}");
}

/// In the header of an SQLite file, bytes 60 to 63 are the schema version and 68 to 71 the
/// application id.
#[test]
fn what_is_damaged_newer_or_foreign_is_refused_by_name() {
    let (config, backup) = catalog_and_backup();
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
        run_on_files("restore", [&config, &backup], &["--force"])
            .assert_exit(2, &[word, "monday.db"]);
        assert_eq!(fs::read(&records).unwrap(), before, "{word}");
        assert!(!config.with_file_name("catraca.db.old").exists(), "{word}");
        assert!(!config.with_file_name("catraca.db.new").exists(), "{word}");
    }
    fs::remove_file(&backup).unwrap();
    run_on_files("restore", [&config, &backup], &["--force"]).assert_exit(2, &["monday.db"]);
    assert!(!backup.exists());
}

#[test]
fn the_place_is_named_once() {
    let (config, backup) = catalog_and_backup();
    let records = config.with_file_name("catraca.db");
    let copy = config.with_file_name("tuesday.db");
    let [config, records, copy] = [&config, &records, &copy].map(|path| path.to_str().unwrap());
    let run = |args: &[&str]| CliOutput::new(command("http://127.0.0.1:9", args).output().unwrap());
    assert_success(&run(&["backup", "--records", records, copy]));
    assert!(fs::metadata(copy).unwrap().len() > 0 && backup.exists());
    run(&["backup", copy]).assert_exit(2, &["--catalog"]);
    run(&["backup", "--records", records, "--config", config, "x"]).assert_exit(2, &["--records"]);
    run(&["backup", "--records", "no-such.db", "x"]).assert_exit(2, &["no-such.db"]);
    let none = catalog_file("[records]\nurl = \"none\"\n");
    run_on_files("backup", [&none, Path::new("x")], &[]).assert_exit(2, &["has no records"]);
    assert!(!Path::new("x").exists());
}

#[test]
fn backups_at_once_hurt_neither_each_other_nor_what_lies_beside_them() {
    let (config, backup) = catalog_and_backup();
    let beside = backup.with_file_name("tuesday.db.new");
    fs::write(&beside, "mine").unwrap();
    let to = config.with_file_name("tuesday.db");
    let all: Vec<CliOutput> = std::thread::scope(|scope| {
        let one = |_| scope.spawn(|| run_on_files("backup", [&config, &to], &[]));
        let running: Vec<_> = (0..4).map(one).collect();
        running.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(all.iter().filter(|output| output.code == Some(0)).count(), 1);
    all.iter()
        .filter(|output| output.code != Some(0))
        .for_each(|output| output.assert_exit(2, &["exists already"]));
    assert_eq!(fs::read_to_string(&beside).unwrap(), "mine");
    let left = fs::read_dir(config.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    let drafts = left.filter(|path| path.to_string_lossy().ends_with(".new"));
    assert_eq!(drafts.collect::<Vec<_>>(), [beside], "no temporary file is left");
    assert!(fs::metadata(&to).unwrap().len() > 0);
}

#[test]
fn a_folder_in_place_of_a_file_is_called_one() {
    let (config, backup) = catalog_and_backup();
    let folder = config.with_file_name("folder");
    fs::create_dir(&folder).unwrap();
    let run = |verb: &str, records: &Path, file: &Path| {
        let [records, file] = [records, file].map(|path| path.to_str().unwrap());
        let args = [verb, "--records", records, file];
        CliOutput::new(command("http://127.0.0.1:9", &args).output().unwrap())
    };
    run("backup", &folder, &config.with_file_name("x.db"))
        .assert_exit(2, &["folder", "not a regular file"]);
    run("restore", &folder, &backup).assert_exit(2, &["folder", "not a regular file"]);
    run("restore", &config.with_file_name("x.db"), &folder).assert_exit(2, &["not a regular file"]);
    assert!(!config.with_file_name("folder.lock").exists(), "no lock file is created");
}

#[test]
fn an_act_that_cannot_be_told_was_done_and_says_so() {
    let (config, _) = catalog_and_backup();
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let to = config.with_file_name("wednesday.db");
    let [config_name, to_name] = [&config, &to].map(|path| path.to_str().unwrap());
    let args = ["backup", "--catalog", config_name, to_name];
    let output =
        CliOutput::new(command("http://127.0.0.1:9", &args).stdout(full()).output().unwrap());
    output.assert_exit(4, &["done (", "wednesday.db is a copy", "No space left"]);
    assert!(fs::metadata(&to).unwrap().len() > 0);
    let server = TestServer::from_file(&config);
    let args = ["blocks", "add", "login", LATER, "--for", "1h"];
    let output = CliOutput::new(command(&url(&server), &args).stdout(full()).output().unwrap());
    output.assert_exit(4, &["the server has executed the call", "No space left"]);
    assert_eq!(run(&server, &["check", "login", LATER]).code, Some(1), "the block applies");
}

/// Acquires a lock as soon as it is free; returns its fence.
fn fence(server: &TestServer, key: &str, ttl_ms: u32) -> i64 {
    let body = format!(r#"{{"key":"{key}","ttl_ms":{ttl_ms}}}"#);
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let (status, answer) = server.json("/v1/locks/acquire", &body);
        if status == 200 {
            return answer["fence"].as_i64().unwrap();
        }
        assert!(Instant::now() < deadline, "{answer}");
    }
}

fn kill(server: TestServer) {
    server.signal("KILL");
    drop(server);
}

/// After a kill fences may be ahead of the clock, and an older backup does not contain them.
#[test]
fn numbers_of_locks_never_repeat_after_an_older_backup_and_leases_are_waited_for() {
    let config = catalog_file(CATALOG);
    let backup = config.with_file_name("b1.db");
    let server = TestServer::from_file(&config);
    fence(&server, "p", 1_000);
    assert_success(&run_on_files("backup", [&config, &backup], &[]));
    kill(server);
    let server = TestServer::from_file(&config);
    let last = fence(&server, "p", 2_000);
    kill(server);
    let output = run_on_files("restore", [&config, &backup], &["--force"]);
    let delay = "no locks are granted for 2 s after the next start";
    assert!(assert_success(&output).contains(delay), "{}", output.out);
    let server = TestServer::from_file(&config);
    let (status, refused) = server.json("/v1/locks/acquire", r#"{"key":"p"}"#);
    assert_eq!((status, &refused["code"]), (503, &"locks-starting".into()));
    let next = fence(&server, "p", 1_000);
    assert!(next > last, "{next} after {last}");
}
