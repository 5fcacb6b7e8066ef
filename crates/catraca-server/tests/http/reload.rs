//! Another catalog while running, with real files: written in place, renamed over, swapped by
//! symlink, half there, gone, and back.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::keys::keygen;
use crate::served::Served;
use crate::talk::JSON;

/// No change takes this long to be seen; a test that waits longer has failed.
const PATIENCE: Duration = Duration::from_secs(30);

fn catalog(limit: u32) -> String {
    format!("[policy.login]\nby = ['user']\nwindow = '{limit} per 1h'\n")
}

/// A folder of one test's own.
fn folder(name: &str) -> PathBuf {
    let name = format!("reload-{}-{name}", std::process::id());
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn peek(served: &Served) -> (i64, Value) {
    let body = r#"{"gate":"login","subject":{"user":"ana"}}"#;
    let decision = served.json("/v1/peek", body).1;
    (decision["limit"].as_i64().unwrap_or(-1), decision["revision"].clone())
}

fn ready(served: &Served) -> Value {
    served.ask("GET /readyz", &[]).json()
}

/// Asks until it holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        std::thread::yield_now();
    }
}

fn comes_to(served: &Served, limit: i64) {
    until(&format!("limit {limit}"), || peek(served).0 == limit);
    assert_eq!(ready(served)["revision"], peek(served).1);
}

/// covers: 003-07
#[test]
fn a_rewrite_a_rename_and_a_symlink_swap_are_all_seen_and_counts_are_kept() {
    let folder = folder("ways");
    let file = folder.join("shop.toml");
    fs::write(&file, catalog(10)).unwrap();
    let served = Served::of(&file);
    let body = r#"{"gate":"login","subject":{"user":"ana"}}"#;
    assert_eq!(served.json("/v1/check", body).1["remaining"], 9);
    let first = peek(&served).1;
    fs::write(&file, catalog(11)).unwrap();
    comes_to(&served, 11);
    assert_ne!(peek(&served).1, first);
    // As editors do it.
    fs::write(folder.join("shop.toml~"), catalog(12)).unwrap();
    fs::rename(folder.join("shop.toml~"), &file).unwrap();
    comes_to(&served, 12);
    assert_eq!(served.json("/v1/peek", body).1["remaining"], 11);
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
    let served = Served::of(&folder.join("shop.toml"));
    assert_eq!(peek(&served).0, 10);
    symlink("two", folder.join("next")).unwrap();
    fs::rename(folder.join("next"), folder.join("data")).unwrap();
    comes_to(&served, 20);
}

#[test]
fn what_is_wrong_leaves_the_old_in_force_and_says_so_until_it_is_right() {
    let folder = folder("wrong");
    let file = folder.join("shop.toml");
    fs::write(&file, catalog(10)).unwrap();
    let served = Served::of(&file);
    let revision = peek(&served).1;
    let is_stale = || ready(&served)["problems"][0]["what"] == "catalog";
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
        until("a problem", is_stale);
        assert_eq!(peek(&served), (10, revision.clone()), "{text:?}");
        let metrics = served.ask("GET /metrics", &[]).body;
        let failed = format!("catraca_reloads_total{{result=\"refused\"}} {}\n", failures + 1);
        assert!(metrics.contains(&failed), "{text:?}: {metrics}");
        assert!(metrics.contains("catraca_catalog_stale 1\n"), "{metrics}");
        fs::write(&file, catalog(10)).unwrap();
        until("no problem", || !is_stale());
        assert!(served.ask("GET /metrics", &[]).body.contains("catraca_catalog_stale 0\n"));
    }
    fs::write(&file, catalog(12)).unwrap();
    comes_to(&served, 12);
    served.signal("TERM");
    let said = served.ended().1;
    assert!(said.contains("ERROR") && said.contains("shop.toml:3:"), "{said}");
}

#[test]
fn a_signal_and_a_call_do_not_wait_for_the_watch_and_the_call_says_what_came_of_it() {
    let folder = folder("told");
    let file = folder.join("shop.toml");
    let more = |limit: u32| format!("[policy.more]\nby = []\nwindow = '{limit} per 1h'\n");
    fs::write(&file, format!("include = ['more.toml']\n{}", catalog(10))).unwrap();
    fs::write(folder.join("more.toml"), more(1)).unwrap();
    let served = Served::of(&file);
    let before = peek(&served).1;
    fs::write(folder.join("more.toml"), more(2)).unwrap();
    let answer = served.ask("POST /v1/config/reload", &[]);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let done = answer.json();
    assert_eq!((&done["before"], &done["revision"]), (&before, &peek(&served).1));
    assert_eq!(done["changes"], json!(["policy more limit: window 1 per 1h -> window 2 per 1h"]));
    assert_eq!((&done["durable"], &done["after_restart"]), (&true.into(), &json!([])));
    let (_, more) = served.json("/v1/peek", r#"{"gate":"more","subject":{}}"#);
    assert_eq!(more["limit"], 2);
    fs::write(&file, "[policy.login]\nby = 7\n").unwrap();
    let answer = served.ask("POST /v1/config/reload", &[]);
    assert_eq!((answer.status, answer.problem().as_str()), (422, "bad-catalog"));
    assert!(answer.body.contains("shop.toml:2:"), "{}", answer.body);
    fs::write(&file, catalog(13)).unwrap();
    served.signal("HUP");
    comes_to(&served, 13);
    let demo = Served::demo().ask("POST /v1/config/reload", &[]);
    assert_eq!((demo.status, demo.problem().as_str()), (409, "no-catalog-file"));
}

#[test]
fn every_change_is_in_the_audit_with_who_wanted_it() {
    let folder = folder("audit");
    let file = folder.join("shop.toml");
    fs::write(&file, catalog(10)).unwrap();
    let served = Served::of(&file);
    // The watch may be faster than the call, which then finds nothing to change.
    let (limit, first) = (11..50)
        .find_map(|limit| {
            let first = peek(&served).1;
            fs::write(&file, catalog(limit)).unwrap();
            let (status, done) = served.json("/v1/config/reload", r#"{"why":"more callers"}"#);
            assert_eq!(status, 200, "{done}");
            (done["changes"] != json!([])).then_some((limit, first))
        })
        .unwrap();
    fs::write(&file, catalog(limit + 1)).unwrap();
    comes_to(&served, i64::from(limit + 1));
    let told = |from: u32| {
        let to = from + 1;
        format!("policy login limit: window {from} per 1h -> window {to} per 1h")
    };
    // The watch answers nobody, so its lines may come a moment later.
    let acts = || served.ask("GET /v1/audit", &[]).json()["acts"].as_array().unwrap().clone();
    until("the last change", || acts().iter().any(|act| act["target"] == told(limit)));
    let acts = acts();
    let changes: Vec<&Value> = acts.iter().filter(is("change")).collect();
    assert_eq!(changes[0]["target"], told(limit));
    assert_eq!(changes[0]["why"], "the files changed");
    assert_eq!(changes[1]["target"], told(limit - 1));
    assert_eq!((&changes[1]["by"], &changes[1]["why"]), (&"local".into(), &"more callers".into()));
    let revisions: Vec<&Value> = acts.iter().filter(is("catalog")).collect();
    assert_eq!(revisions[1]["before"]["revision"], first);
    assert_eq!(revisions[0]["after"]["revision"], peek(&served).1);
}

fn is(act: &str) -> impl Fn(&&Value) -> bool {
    move |row| row["act"] == act
}

#[test]
fn keys_come_and_go_with_the_catalog_but_never_all_of_them() {
    let folder = folder("keys");
    let file = folder.join("shop.toml");
    let [old, new] = ["old", "new"].map(|name| keygen(&["--role", "admin", "--name", name]));
    let with = |table: &str| fs::write(&file, format!("{}{table}", catalog(10))).unwrap();
    with(&old.table);
    let served = Served::on_file("0.0.0.0:0", &file);
    assert_eq!(old.post(&served, "/v1/config/reload", "").status, 200);
    with(&new.table);
    // Whoever comes first, this call or the watch, puts the new key in the place of the old one.
    let answer = old.post(&served, "/v1/config/reload", "");
    assert!([200, 401].contains(&answer.status), "{}", answer.body);
    assert_eq!(old.post(&served, "/v1/config/reload", "").status, 401);
    assert_eq!(new.post(&served, "/v1/config/reload", "").status, 200);
    with("");
    let answer = new.post(&served, "/v1/config/reload", "");
    assert_eq!(answer.problem(), "bad-catalog");
    assert!(answer.body.contains("no keys"), "{}", answer.body);
    assert_eq!(served.ask("POST /v1/config/reload", &[]).status, 401);
    assert_eq!(new.ask(&served, "GET /v1/whoami").status, 200);
    // Without a key only the place is told, and with one everything.
    let (short, whole) = (ready(&served), new.ask(&served, "GET /readyz").json());
    assert_eq!(short["problems"][0]["place"], "shop.toml");
    assert!(!short.to_string().contains("no keys"), "{short}");
    assert!(whole.to_string().contains("no keys"), "{whole}");
}

#[test]
fn the_kill_switch_counts_within_a_second_for_every_connection() {
    let served = Served::with(&catalog(1));
    let body = r#"{"gate":"login","subject":{"user":"ana"}}"#;
    let mut talks: Vec<_> = (0..8).map(|_| served.connect()).collect();
    let mut allowed = |wanted: bool| {
        for talk in &mut talks {
            talk.post("/v1/check", body);
            assert_eq!(talk.answer().json()["allowed"], wanted);
        }
    };
    assert_eq!(served.json("/v1/check", body).1["allowed"], true);
    allowed(false);
    for (mode, passes) in [("\"off\"", true), ("\"shadow\"", true), ("null", false)] {
        let begun = Instant::now();
        let head = "PUT /v1/policies/login/mode";
        let mut talk = served.connect();
        talk.send(head, &[JSON], format!(r#"{{"mode":{mode},"why":"drill"}}"#).as_bytes());
        let answer = talk.answer();
        assert_eq!(answer.status, 200, "{}", answer.body);
        allowed(passes);
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    }
    let audit = served.ask("GET /v1/audit", &[]).json();
    let switched = audit["acts"].as_array().unwrap().iter().filter(is("mode")).count();
    assert_eq!(switched, 3, "{audit}");
}

/// A second reload forgot what the first one had left for the next start.
#[test]
fn settings_that_wait_for_a_restart_are_named_until_it_comes_or_they_are_taken_back() {
    let folder = folder("waiting");
    let file = folder.join("shop.toml");
    let write = |limit: u32, settings: &str| {
        fs::write(&file, format!("{}{settings}", catalog(limit))).unwrap();
    };
    write(10, "");
    let served = Served::of(&file);
    let waiting = || served.ask("GET /v1/config", &[]).json()["after_restart"].clone();
    let said = || {
        let ready = served.ask("GET /readyz", &[]);
        assert_eq!((ready.status, &ready.json()["ready"]), (200, &true.into()));
        ready.json()["problems"].clone()
    };
    assert_eq!((waiting(), said()), (json!([]), json!([])));
    let changed = "[server]\nidle_timeout = '30s'\n[store]\nblock_mib = 9\n";
    for limit in [11, 12] {
        write(limit, changed);
        let (_, answer) = served.json("/v1/config/reload", "{}");
        assert_eq!(answer["after_restart"], json!(["[server] idle_timeout", "[store]"]));
        assert_eq!(waiting(), answer["after_restart"]);
        let why = "these settings count from the next start on: [server] idle_timeout, [store]";
        assert_eq!(said(), json!([{ "what": "restart", "why": why }]));
    }
    // What is wrong changes nothing, and so nothing of this.
    write(13, "[server]\nidle_timeout = 'x'\n");
    assert_eq!(served.json("/v1/config/reload", "{}").0, 422);
    assert_eq!(waiting(), json!(["[server] idle_timeout", "[store]"]));
    write(13, "");
    assert_eq!(served.json("/v1/config/reload", "{}").1["after_restart"], json!([]));
    assert_eq!((waiting(), said()), (json!([]), json!([])));
    write(14, changed);
    assert_eq!(served.json("/v1/config/reload", "{}").0, 200);
    drop(served);
    let again = Served::of(&file);
    assert_eq!(again.ask("GET /v1/config", &[]).json()["after_restart"], json!([]));
}
