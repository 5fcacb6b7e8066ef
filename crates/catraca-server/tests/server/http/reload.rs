//! Reload of the catalog of a running server from files that are written in place, renamed over,
//! swapped by symlink, written in part, removed and put back.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::keys::keygen;
use crate::raw_connection::JSON;
use crate::test_server::TestServer;

/// Longer than any change takes: a test that waits this long has failed.
const TIMEOUT: Duration = Duration::from_secs(30);

fn catalog(limit: u32) -> String {
    format!("[policy.login]\nby = ['user']\nwindow = '{limit} per 1h'\n")
}

/// A new folder for one test.
fn folder(name: &str) -> PathBuf {
    let name = format!("reload-{}-{name}", std::process::id());
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn peek(server: &TestServer) -> (i64, Value) {
    let body = r#"{"gate":"login","subject":{"user":"ana"}}"#;
    let decision = server.json("/v1/peek", body).1;
    (decision["limit"].as_i64().unwrap_or(-1), decision["revision"].clone())
}

fn ready(server: &TestServer) -> Value {
    server.request("GET /readyz", &[]).json()
}

/// Waits until `holds` returns true.
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < TIMEOUT, "never: {what}");
        std::thread::yield_now();
    }
}

fn wait_for_limit(server: &TestServer, limit: i64) {
    wait_until(&format!("limit {limit}"), || peek(server).0 == limit);
    assert_eq!(ready(server)["revision"], peek(server).1);
}

/// covers: 003-07
#[test]
fn a_rewrite_a_rename_and_a_symlink_swap_are_all_seen_and_counts_are_kept() {
    let folder = folder("ways");
    let file = folder.join("shop.toml");
    fs::write(&file, catalog(10)).unwrap();
    let server = TestServer::from_file(&file);
    let body = r#"{"gate":"login","subject":{"user":"ana"}}"#;
    assert_eq!(server.json("/v1/check", body).1["remaining"], 9);
    let first = peek(&server).1;
    fs::write(&file, catalog(11)).unwrap();
    wait_for_limit(&server, 11);
    assert_ne!(peek(&server).1, first);
    // Editors write a new file and rename it over the old one.
    fs::write(folder.join("shop.toml~"), catalog(12)).unwrap();
    fs::rename(folder.join("shop.toml~"), &file).unwrap();
    wait_for_limit(&server, 12);
    assert_eq!(server.json("/v1/peek", body).1["remaining"], 11);
}

/// covers: 003-07
#[test]
fn a_mounted_folder_that_is_swapped_whole_is_seen() {
    let folder = folder("swap");
    for (name, limit) in [("one", 10), ("two", 20)] {
        fs::create_dir(folder.join(name)).unwrap();
        fs::write(folder.join(name).join("shop.toml"), catalog(limit)).unwrap();
    }
    symlink("one", folder.join("data")).unwrap();
    symlink("data/shop.toml", folder.join("shop.toml")).unwrap();
    let server = TestServer::from_file(&folder.join("shop.toml"));
    assert_eq!(peek(&server).0, 10);
    symlink("two", folder.join("next")).unwrap();
    fs::rename(folder.join("next"), folder.join("data")).unwrap();
    wait_for_limit(&server, 20);
}

#[test]
fn what_is_wrong_leaves_the_old_in_force_and_says_so_until_it_is_right() {
    let folder = folder("wrong");
    let file = folder.join("shop.toml");
    fs::write(&file, catalog(10)).unwrap();
    let server = TestServer::from_file(&file);
    let revision = peek(&server).1;
    let is_stale = || ready(&server)["problems"][0]["what"] == "catalog";
    assert!(!is_stale());
    let half = catalog(11);
    for (failures, text) in [
        Some(half[..half.len() - 9].to_owned()),
        Some(String::new()),
        Some("[auth]\nkeys = 1\n".to_owned() + &half),
        None,
    ]
    .into_iter()
    .enumerate()
    {
        match &text {
            Some(text) => fs::write(&file, text).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }
        wait_until("a problem", is_stale);
        assert_eq!(peek(&server), (10, revision.clone()), "{text:?}");
        let metrics = server.request("GET /metrics", &[]).body;
        let failed = format!("catraca_reloads_total{{result=\"refused\"}} {}\n", failures + 1);
        assert!(metrics.contains(&failed), "{text:?}: {metrics}");
        assert!(metrics.contains("catraca_catalog_stale 1\n"), "{metrics}");
        fs::write(&file, catalog(10)).unwrap();
        wait_until("no problem", || !is_stale());
        assert!(server.request("GET /metrics", &[]).body.contains("catraca_catalog_stale 0\n"));
    }
    fs::write(&file, catalog(12)).unwrap();
    wait_for_limit(&server, 12);
    server.signal("TERM");
    let stderr = server.wait_for_exit().1;
    assert!(stderr.contains("ERROR") && stderr.contains("shop.toml:3:"), "{stderr}");
}

#[test]
fn a_signal_and_a_call_do_not_wait_for_the_watch_and_the_call_says_what_came_of_it() {
    let folder = folder("reported");
    let file = folder.join("shop.toml");
    let more = |limit: u32| format!("[policy.more]\nby = []\nwindow = '{limit} per 1h'\n");
    fs::write(&file, format!("include = ['more.toml']\n{}", catalog(10))).unwrap();
    fs::write(folder.join("more.toml"), more(1)).unwrap();
    let server = TestServer::from_file(&file);
    let before = peek(&server).1;
    fs::write(folder.join("more.toml"), more(2)).unwrap();
    let answer = server.request("POST /v1/config/reload", &[]);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let done = answer.json();
    assert_eq!((&done["before"], &done["revision"]), (&before, &peek(&server).1));
    assert_eq!(done["changes"], json!(["policy more limit: window 1 per 1h -> window 2 per 1h"]));
    assert_eq!((&done["durable"], &done["after_restart"]), (&true.into(), &json!([])));
    let (_, more) = server.json("/v1/peek", r#"{"gate":"more","subject":{}}"#);
    assert_eq!(more["limit"], 2);
    fs::write(&file, "[policy.login]\nby = 7\n").unwrap();
    let answer = server.request("POST /v1/config/reload", &[]);
    assert_eq!((answer.status, answer.problem_code().as_str()), (422, "bad-catalog"));
    assert!(answer.body.contains("shop.toml:2:"), "{}", answer.body);
    fs::write(&file, catalog(13)).unwrap();
    server.signal("HUP");
    wait_for_limit(&server, 13);
    let demo = TestServer::demo().request("POST /v1/config/reload", &[]);
    assert_eq!((demo.status, demo.problem_code().as_str()), (409, "no-catalog-file"));
}

#[test]
fn every_change_is_in_the_audit_with_who_wanted_it() {
    let folder = folder("audit");
    let file = folder.join("shop.toml");
    fs::write(&file, catalog(10)).unwrap();
    let server = TestServer::from_file(&file);
    // The file watcher may load the file before the call, which then finds nothing to change.
    let changed = (11..50).find_map(|limit| {
        let first = peek(&server).1;
        fs::write(&file, catalog(limit)).unwrap();
        let (status, done) = server.json("/v1/config/reload", r#"{"why":"more callers"}"#);
        assert_eq!(status, 200, "{done}");
        (done["changes"] != json!([])).then_some((limit, first))
    });
    let (limit, first) = changed.unwrap();
    fs::write(&file, catalog(limit + 1)).unwrap();
    wait_for_limit(&server, i64::from(limit + 1));
    let change_from = |from: u32| {
        let to = from + 1;
        format!("policy login limit: window {from} per 1h -> window {to} per 1h")
    };
    // A reload by the watcher is recorded asynchronously, so its audit lines may come later.
    let acts = || server.request("GET /v1/audit", &[]).json()["acts"].as_array().unwrap().clone();
    wait_until("the last change", || acts().iter().any(|act| act["target"] == change_from(limit)));
    let acts = acts();
    let changes: Vec<&Value> = acts.iter().filter(is_act("change")).collect();
    assert_eq!(changes[0]["target"], change_from(limit));
    assert_eq!(changes[0]["why"], "the files changed");
    assert_eq!(changes[1]["target"], change_from(limit - 1));
    assert_eq!((&changes[1]["by"], &changes[1]["why"]), (&"local".into(), &"more callers".into()));
    let revisions: Vec<&Value> = acts.iter().filter(is_act("catalog")).collect();
    assert_eq!(revisions[1]["before"]["revision"], first);
    assert_eq!(revisions[0]["after"]["revision"], peek(&server).1);
}

/// Regression: if the watcher was faster, the reason of an explicit reload was lost.
#[test]
fn a_reload_after_the_watcher_is_audited_and_says_since_when_the_revision_is_in_force() {
    let folder = folder("late");
    let file = folder.join("shop.toml");
    fs::write(&file, catalog(10)).unwrap();
    let server = TestServer::from_file(&file);
    fs::write(&file, catalog(11)).unwrap();
    wait_for_limit(&server, 11);
    let (status, done) = server.json("/v1/config/reload", r#"{"why":"case 12"}"#);
    assert_eq!((status, &done["changes"]), (200, &json!([])), "{done}");
    let since = done["in_force_since"].as_str().unwrap();
    let audit = server.request("GET /v1/audit?act=reload", &[]).json();
    assert_eq!(audit["acts"][0]["why"], "case 12");
    let target = format!("revision {}, in force since {since}", done["revision"].as_str().unwrap());
    assert_eq!(audit["acts"][0]["target"], target);
}

fn is_act(act: &str) -> impl Fn(&&Value) -> bool {
    move |row| row["act"] == act
}

#[test]
fn keys_come_and_go_with_the_catalog_but_never_all_of_them() {
    let folder = folder("keys");
    let file = folder.join("shop.toml");
    let [old, new] = ["old", "new"].map(|name| keygen(&["--role", "admin", "--name", name]));
    let with = |table: &str| fs::write(&file, format!("{}{table}", catalog(10))).unwrap();
    with(&old.table);
    let server = TestServer::from_file_on("0.0.0.0:0", &file);
    assert_eq!(old.post(&server, "/v1/config/reload", "").status, 200);
    with(&new.table);
    // This call or the watcher, whichever is first, replaces the old key by the new one.
    let answer = old.post(&server, "/v1/config/reload", "");
    assert!([200, 401].contains(&answer.status), "{}", answer.body);
    assert_eq!(old.post(&server, "/v1/config/reload", "").status, 401);
    assert_eq!(new.post(&server, "/v1/config/reload", "").status, 200);
    with("");
    let answer = new.post(&server, "/v1/config/reload", "");
    assert_eq!(answer.problem_code(), "bad-catalog");
    assert!(answer.body.contains("no keys"), "{}", answer.body);
    assert_eq!(server.request("POST /v1/config/reload", &[]).status, 401);
    assert_eq!(new.request(&server, "GET /v1/whoami").status, 200);
    // Without a key the response shows only the position of the error, with a key all of it.
    let short = ready(&server);
    let whole = new.request(&server, "GET /readyz").json();
    assert_eq!(short["problems"][0]["place"], "shop.toml");
    assert!(!short.to_string().contains("no keys"), "{short}");
    assert!(whole.to_string().contains("no keys"), "{whole}");
}

#[test]
fn the_kill_switch_counts_within_a_second_for_every_connection() {
    let server = TestServer::with_catalog(&catalog(1));
    let body = r#"{"gate":"login","subject":{"user":"ana"}}"#;
    let mut talks: Vec<_> = (0..8).map(|_| server.connect()).collect();
    let mut allowed = |wanted: bool| {
        for connection in &mut talks {
            connection.post("/v1/check", body);
            assert_eq!(connection.read_response().json()["allowed"], wanted);
        }
    };
    assert_eq!(server.json("/v1/check", body).1["allowed"], true);
    allowed(false);
    for (mode, passes) in [("\"off\"", true), ("\"shadow\"", true), ("null", false)] {
        let begun = Instant::now();
        let head = "PUT /v1/policies/login/mode";
        let mut connection = server.connect();
        connection.send(head, &[JSON], format!(r#"{{"mode":{mode},"why":"drill"}}"#).as_bytes());
        let answer = connection.read_response();
        assert_eq!(answer.status, 200, "{}", answer.body);
        allowed(passes);
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    }
    let audit = server.request("GET /v1/audit", &[]).json();
    let switched = audit["acts"].as_array().unwrap().iter().filter(is_act("mode")).count();
    assert_eq!(switched, 3, "{audit}");
}

/// Regression: a second reload forgot the changes that the first one left for the next start.
#[test]
fn settings_that_wait_for_a_restart_are_named_until_it_comes_or_they_are_taken_back() {
    let folder = folder("waiting");
    let file = folder.join("shop.toml");
    let write = |limit: u32, settings: &str| {
        fs::write(&file, format!("{}{settings}", catalog(limit))).unwrap();
    };
    write(10, "");
    let server = TestServer::from_file(&file);
    let waiting = || server.request("GET /v1/config", &[]).json()["after_restart"].clone();
    let reload_warnings = || {
        let ready = server.request("GET /readyz", &[]);
        assert_eq!((ready.status, &ready.json()["ready"]), (200, &true.into()));
        ready.json()["problems"].clone()
    };
    assert_eq!((waiting(), reload_warnings()), (json!([]), json!([])));
    let changed = "[server]\nidle_timeout = '30s'\n[store]\nblock_mib = 9\n";
    for limit in [11, 12] {
        write(limit, changed);
        let (_, answer) = server.json("/v1/config/reload", "{}");
        assert_eq!(answer["after_restart"], json!(["[server] idle_timeout", "[store] block_mib"]));
        assert_eq!(waiting(), answer["after_restart"]);
        let why = "these settings take effect after a restart: [server] idle_timeout, \
                   [store] block_mib";
        assert_eq!(reload_warnings(), json!([{ "what": "restart", "why": why }]));
    }
    // An invalid catalog changes nothing, also not the list of pending settings.
    write(13, "[server]\nidle_timeout = 'x'\n");
    assert_eq!(server.json("/v1/config/reload", "{}").0, 422);
    assert_eq!(waiting(), json!(["[server] idle_timeout", "[store] block_mib"]));
    write(13, "");
    assert_eq!(server.json("/v1/config/reload", "{}").1["after_restart"], json!([]));
    assert_eq!((waiting(), reload_warnings()), (json!([]), json!([])));
    write(14, changed);
    assert_eq!(server.json("/v1/config/reload", "{}").0, 200);
    drop(server);
    let again = TestServer::from_file(&file);
    assert_eq!(again.request("GET /v1/config", &[]).json()["after_restart"], json!([]));
}

/// Regression: a namespace that a reload added had no part of the memory of its own until a
/// restart, and nothing said so.
#[test]
fn a_new_namespace_gets_its_part_of_the_memory_after_a_restart() {
    let file = folder("namespace").join("catalog.toml");
    let ana = keygen(&["--role", "admin"]);
    let shop = keygen(&["--role", "check", "--namespace", "shop"]);
    let blog = keygen(&["--role", "check", "--namespace", "blog"]);
    let rest = format!("{}{}{}", catalog(2), ana.table, shop.table);
    fs::write(&file, format!("[server]\nwatch_files = false\n{rest}")).unwrap();
    let server = TestServer::from_file(&file);
    fs::write(&file, format!("[server]\nwatch_files = false\n{rest}{}", blog.table)).unwrap();
    let expected = json!(["the part of the memory that only the namespace `blog` can use"]);
    for path in ["/v1/config/reload?dry_run=true", "/v1/config/reload"] {
        let answer = ana.post(&server, path, "{}").json();
        assert_eq!(answer["after_restart"], expected, "{answer}");
    }
    assert_eq!(ready(&server)["problems"][0]["what"], "restart");
    drop(server);
    let server = TestServer::from_file(&file);
    let answer = ana.post(&server, "/v1/config/reload", "{}").json();
    assert_eq!(answer["after_restart"], json!([]), "{answer}");
}
