//! API keys that disappear from the catalog: a running server keeps the old ones, and a start
//! without keys needs `--allow-no-keys`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::keys::{Key, keygen};
use crate::test_server::{TestServer, binary, catalog_file};
use catraca_testkit::postgres::{PASSWORD, PostgresServer};

const POLICY: &str = "[policy.login]\nby = ['user']\nwindow = '9 per 1m'\n";

/// A catalog that includes its keys from another file.
fn with_key_file(settings: &str) -> (PathBuf, PathBuf) {
    let file = catalog_file(&format!("include = ['keys.toml']\n{POLICY}{settings}"));
    let keys = file.with_file_name("keys.toml");
    (file, keys)
}

/// Asserts that a start is refused; returns its standard error.
fn refused_start(file: &Path) -> String {
    let serve = ["serve", "--listen", "127.0.0.1:0", "--config"];
    let output = binary().args(serve).arg(file).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    stderr
}

fn requires_key(server: &TestServer, key: &Key) -> bool {
    let without = server.request("GET /v1/whoami", &[]).status;
    let with = key.request(server, "GET /v1/whoami").status;
    assert_eq!(with, 200);
    without == 401
}

/// The audit's changes of whether keys are required, newest first.
fn key_changes(audit: &serde_json::Value) -> Vec<(bool, Option<String>)> {
    let acts = audit["acts"].as_array().unwrap().iter().filter(|act| act["act"] == "auth");
    let change = |act: &serde_json::Value| {
        let why = act["why"].as_str().map(str::to_owned);
        (act["after"].to_string().contains("true"), why)
    };
    acts.map(change).collect()
}

#[test]
fn a_reload_without_keys_is_refused_and_the_old_keys_stay() {
    let admin = keygen(&["--role", "admin"]);
    for settings in ["", "[records]\nurl = 'none'\n"] {
        let (file, keys) = with_key_file(settings);
        fs::write(&keys, &admin.table).unwrap();
        let server = TestServer::from_file(&file);
        for emptied in ["", "# no keys\n", "[auth]\nkey = []\n"] {
            fs::write(&keys, emptied).unwrap();
            let answer = admin.post(&server, "/v1/config/reload", "");
            assert_eq!(answer.problem_code(), "bad-catalog", "{emptied:?}");
            assert!(answer.body.contains("has no keys"), "{}", answer.body);
            assert!(answer.body.contains("--allow-no-keys"), "{}", answer.body);
            assert!(requires_key(&server, &admin), "{emptied:?}");
        }
        // The same for a catalog without the include, reloaded by a signal.
        fs::write(&file, POLICY).unwrap();
        server.signal("HUP");
        assert_eq!(admin.post(&server, "/v1/config/reload", "").problem_code(), "bad-catalog");
        assert!(requires_key(&server, &admin));
        let ready = admin.request(&server, "GET /readyz").json();
        assert_eq!(ready["problems"][0]["what"], "catalog", "{ready}");
    }
}

#[test]
fn a_start_without_keys_is_refused_once_there_were_some_unless_it_is_meant() {
    let admin = keygen(&["--role", "admin"]);
    let (file, keys) = with_key_file("");
    fs::write(&keys, &admin.table).unwrap();
    let server = TestServer::from_file(&file);
    assert!(requires_key(&server, &admin));
    server.signal("KILL");
    drop(server);
    fs::write(&keys, "").unwrap();
    for _ in 0..2 {
        let stderr = refused_start(&file);
        assert!(stderr.contains("has no keys") && stderr.contains("--allow-no-keys"), "{stderr}");
        assert!(stderr.contains(file.to_str().unwrap()), "{stderr}");
    }
    drop(TestServer::without_keys(&file));
    // Later starts do not need the option.
    let server = TestServer::from_file(&file);
    assert_eq!(server.request("GET /v1/whoami", &[]).status, 200);
    let audit = server.request("GET /v1/audit", &[]).json();
    let flag = Some("catraca serve --allow-no-keys".to_owned());
    assert_eq!(key_changes(&audit), [(false, flag), (true, None)]);
    drop(server);
    fs::write(&keys, &admin.table).unwrap();
    assert!(requires_key(&TestServer::from_file(&file), &admin));
    fs::write(&keys, "").unwrap();
    refused_start(&file);
}

#[test]
fn keys_that_come_by_a_reload_are_remembered_too() {
    let admin = keygen(&["--role", "admin"]);
    let (file, keys) = with_key_file("");
    fs::write(&keys, "").unwrap();
    let server = TestServer::from_file(&file);
    fs::write(&keys, &admin.table).unwrap();
    let answer = server.request("POST /v1/config/reload", &[]);
    // The file watcher may have loaded the file before the call.
    assert!([200, 401].contains(&answer.status), "{answer:?}");
    assert_eq!(admin.post(&server, "/v1/config/reload", "").status, 200);
    server.signal("KILL");
    drop(server);
    fs::write(&keys, "").unwrap();
    assert!(refused_start(&file).contains("has no keys"));
}

/// Without records only a running server knows that there were keys.
#[test]
fn without_records_a_start_without_keys_is_not_refused() {
    let admin = keygen(&["--role", "admin"]);
    let (file, keys) = with_key_file("[records]\nurl = 'none'\n");
    fs::write(&keys, &admin.table).unwrap();
    assert!(requires_key(&TestServer::from_file(&file), &admin));
    fs::write(&keys, "").unwrap();
    assert_eq!(TestServer::from_file(&file).request("GET /v1/whoami", &[]).status, 200);
}

#[test]
fn records_in_postgresql_remember_keys_for_every_node() {
    let postgres = PostgresServer::start();
    let url = format!("postgres://catraca@127.0.0.1:{}/postgres", postgres.port);
    let records = format!("[records]\nurl = '{url}'\npassword_file = 'password'\n");
    let [one, other] = [(); 2].map(|()| {
        let (file, keys) = with_key_file(&records);
        fs::write(file.with_file_name("password"), format!("{PASSWORD}\n")).unwrap();
        fs::write(file.with_file_name("catraca.secret"), "5e".repeat(32)).unwrap();
        fs::write(&keys, "").unwrap();
        (file, keys)
    });
    let admin = keygen(&["--role", "admin"]);
    fs::write(&one.1, &admin.table).unwrap();
    assert!(requires_key(&TestServer::from_file(&one.0), &admin));
    assert!(refused_start(&other.0).contains("has no keys"));
    fs::write(&one.1, "").unwrap();
    assert!(refused_start(&one.0).contains("--allow-no-keys"));
    drop(TestServer::without_keys(&other.0));
    let server = TestServer::from_file(&one.0);
    let audit = server.request("GET /v1/audit", &[]).json();
    let flag = Some("catraca serve --allow-no-keys".to_owned());
    assert_eq!(key_changes(&audit), [(false, flag), (true, None)]);
}
