//! Starts that are refused because a file is not a regular file.

use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::process::{Command, Output};

use crate::cli::test_dir::TestDir;

const POLICY: &str = "[policy.login]\nby = ['user']\nwindow = '5 per 1h'\n";

/// Starts a server that must exit; `timeout` kills it after 30 s, with code 124.
fn start(dir: &TestDir, listen: &str) -> (Option<i32>, String) {
    let mut command = Command::new("timeout");
    command.args(["30", env!("CARGO_BIN_EXE_catraca"), "serve", "--listen", listen]);
    let output: Output =
        command.args(["--config", "catalog.toml"]).current_dir(dir.path("")).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

fn pipe(dir: &TestDir, name: &str) {
    assert!(Command::new("mkfifo").arg(dir.path(name)).status().unwrap().success());
}

/// A certificate and its key, made by `openssl`.
fn certificate(dir: &TestDir) {
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]);
    openssl.args(["-nodes", "-days", "2", "-subj", "/CN=localhost"]);
    openssl.args(["-keyout", "key.pem", "-out", "cert.pem"]).current_dir(dir.path(""));
    assert!(openssl.output().unwrap().status.success());
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_refused_by_name_and_nobody_waits_for_a_writer() {
    let postgres = "[records]\nurl = 'postgres://ana@127.0.0.1:1/shop'\npassword_file = 'pipe'\n";
    for (settings, wanted) in [
        ("[auth]\nsecret_file = 'pipe'\n", "cannot read the secret pipe: "),
        ("[server]\ntls_cert = 'pipe'\ntls_key = 'key.pem'\n", "tls_cert = \"pipe\": "),
        ("[server]\ntls_cert = 'cert.pem'\ntls_key = 'pipe'\n", "tls_key = \"pipe\": "),
        ("[store]\nsnapshot = 'pipe'\n", "pipe"),
        (
            "[auth]\nsecret_file = 'secret'\n[records]\nurl = 'sqlite:pipe'\n",
            "cannot open the records pipe: ",
        ),
        (postgres, "[records] password_file: cannot read pipe: "),
    ] {
        let dir = TestDir::with_file("catalog.toml", &format!("{POLICY}{settings}"));
        certificate(&dir);
        dir.write("secret", "0f".repeat(32));
        pipe(&dir, "pipe");
        let (code, stderr) = start(&dir, "127.0.0.1:0");
        assert_eq!(code, Some(2), "{settings}: {stderr}");
        assert!(
            stderr.contains(wanted) && stderr.contains("not a regular file"),
            "{settings}: {stderr}"
        );
    }
}

/// Regression: the error was that the secret in the same folder cannot be created.
#[test]
fn a_missing_folder_of_the_records_is_named_with_the_remedy() {
    let settings = "[records]\nurl = 'sqlite:data/catraca.db'\n";
    let dir = TestDir::with_file("catalog.toml", &format!("{POLICY}{settings}"));
    let (code, stderr) = start(&dir, "127.0.0.1:0");
    assert_eq!(code, Some(2), "{stderr}");
    let wanted = "the folder data of the records data/catraca.db does not exist: create it";
    assert!(stderr.contains(wanted) && !stderr.contains("secret"), "{stderr}");
    assert!(stderr.contains("[records] url"), "{stderr}");
}

#[test]
fn a_pipe_or_a_folder_is_no_catalog_to_serve() {
    let dir = TestDir::new();
    pipe(&dir, "catalog.toml");
    let (code, stderr) = start(&dir, "127.0.0.1:0");
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("cannot read catalog.toml: it is not a regular file"), "{stderr}");
    std::fs::remove_file(dir.path("catalog.toml")).unwrap();
    std::fs::create_dir(dir.path("catalog.toml")).unwrap();
    let (code, stderr) = start(&dir, "127.0.0.1:0");
    assert!(code == Some(2) && stderr.contains("it is not a regular file"), "{code:?}: {stderr}");
}

/// A mounted ConfigMap has its files behind symlinks.
#[test]
fn links_to_regular_files_are_read() {
    let dir = TestDir::with_file("real.toml", &format!("{POLICY}[auth]\nsecret_file = 'secret'\n"));
    dir.write("real-secret", "0f".repeat(32));
    symlink("real.toml", dir.path("catalog.toml")).unwrap();
    symlink("real-secret", dir.path("secret")).unwrap();
    // The start fails after the files were read: the address is in use.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let (code, stderr) = start(&dir, &taken.local_addr().unwrap().to_string());
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("another process, maybe another catraca, listens there"), "{stderr}");
}
