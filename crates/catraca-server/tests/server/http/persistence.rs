//! State that survives a kill or a stop: blocks, counters, the secret, and refused starts on
//! damaged files.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::test_server::{TestServer, binary, catalog_file};

const CATALOG: &str = r#"
[policy.lookup]
by     = ["payer"]
bucket = { size = 5, refill = "1 per 1h" }
cost   = { "404" = 20, default = 1 }
debt   = true

[policy.pay]
by  = ["customer"]
ban = [ { when = "body.reject_id == 5", for = "10m", reason = "reject 5" } ]

[policy.search]
by     = ["customer"]
window = "3 per 1h"

[attribute.payer]
kind    = "cpf_cnpj"
private = true
"#;

const PAYER: &str = "52998224725";

fn check(server: &TestServer, gate: &str, subject: &str) -> Value {
    server.json("/v1/check", &format!(r#"{{"gate":"{gate}","subject":{subject}}}"#)).1
}

fn settle(server: &TestServer, checked: &Value, outcome: &str) -> Value {
    let ticket = checked["ticket"].as_str().unwrap();
    server.json("/v1/settle", &format!(r#"{{"ticket":"{ticket}","outcome":{outcome}}}"#)).1
}

fn payer() -> String {
    format!(r#"{{"payer":"{PAYER}"}}"#)
}

/// covers: X-24, X-26, 002-48
#[test]
fn a_debt_and_a_ban_that_were_answered_durable_survive_a_kill() {
    let file = catalog_file(CATALOG);
    let server = TestServer::from_file(&file);
    let owed = settle(&server, &check(&server, "lookup", &payer()), r#"{"status":404}"#);
    assert_eq!((&owed["durable"], &owed["policies"][0]["balance"]), (&true.into(), &(-15).into()));
    let ana = r#"{"customer":"ana"}"#;
    let banned = settle(&server, &check(&server, "pay", ana), r#"{"body":{"reject_id":5}}"#);
    assert_eq!(
        (&banned["durable"], &banned["policies"][0]["blocked_by"]),
        (&true.into(), &"ban".into())
    );
    // A settle that only counts is not durable.
    let counted = settle(&server, &check(&server, "pay", r#"{"customer":"rui"}"#), "{}");
    assert_eq!(counted.get("durable"), None, "{counted}");
    server.signal("KILL");
    drop(server);
    let server = TestServer::from_file(&file);
    assert!(server.greeting.contains("1 block,"), "{}", server.greeting);
    let denied = check(&server, "lookup", &payer());
    assert_eq!(denied["policies"][0]["balance"], -15, "{denied}");
    assert_eq!(check(&server, "pay", ana)["reason"], "blocked");
    for entry in fs::read_dir(file.parent().unwrap()).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(PAYER.len()).any(|at| at == PAYER.as_bytes()));
    }
}

/// As after a lost log: the snapshot was written later than the newest row of the records.
#[test]
fn records_older_than_the_snapshot_are_reported() {
    let file = catalog_file(CATALOG);
    let run = |act: &dyn Fn(&TestServer)| {
        let server = TestServer::from_file(&file);
        act(&server);
        server.signal("TERM");
        let (status, log) = server.wait_for_exit();
        assert!(status.success(), "{log}");
        log
    };
    let problems =
        |server: &TestServer| server.request("GET /readyz", &[]).json()["problems"].to_string();
    run(&|_| {});
    let records = file.with_file_name("catraca.db");
    let old = fs::read(&records).unwrap();
    run(&|server| {
        let entry = r#"{"attribute":"customer","value":"ana"}"#;
        assert_eq!(server.json("/v1/blocklist", entry).1["durable"], true);
    });
    run(&|server| assert_eq!(problems(server), "[]"));
    fs::write(&records, old).unwrap();
    let log = run(&|server| {
        let problems = problems(server);
        assert!(problems.contains("records") && problems.contains("missing"), "{problems}");
    });
    assert!(log.contains("missing from the records"), "{log}");
    // The next snapshot is of these records.
    run(&|server| assert_eq!(problems(server), "[]"));
}

/// covers: 002-19
#[test]
fn a_server_that_is_told_to_stop_forgets_no_counter() {
    let file = catalog_file(&format!("{CATALOG}[store]\nsnapshot_interval = '1h'\n"));
    let server = TestServer::from_file(&file);
    let ticket = check(&server, "lookup", &payer());
    let ana = r#"{"customer":"ana"}"#;
    assert_eq!(check(&server, "search", ana)["remaining"], 2);
    server.signal("TERM");
    let (status, stderr) = server.wait_for_exit();
    assert!(status.success(), "{stderr}");
    let secret = file.with_file_name("catraca.secret");
    let mode = fs::metadata(&secret).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let before = fs::read(&secret).unwrap();
    let server = TestServer::from_file(&file);
    assert_eq!(check(&server, "search", ana)["remaining"], 1);
    // The secret is the same, so a ticket of the previous process is still valid.
    assert_eq!(settle(&server, &ticket, r#"{"status":200}"#)["state"], "settled");
    assert_eq!(fs::read(&secret).unwrap(), before);
}

#[test]
fn a_server_that_keeps_nothing_says_so() {
    let server = TestServer::demo();
    assert!(server.greeting.contains("Nothing is stored"), "{}", server.greeting);
    let file = catalog_file(&format!("{CATALOG}[records]\nurl = 'none'\n"));
    let server = TestServer::from_file(&file);
    assert!(server.greeting.contains("Nothing is stored"), "{}", server.greeting);
    let owed = settle(&server, &check(&server, "lookup", &payer()), r#"{"status":404}"#);
    assert_eq!(owed["durable"], false, "{owed}");
    assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn what_cannot_be_trusted_is_refused_by_name_and_left_as_it_is() {
    let damages: [(&str, &[u8], &str); 4] = [
        ("catraca.snapshot", b"CATRACA\n\x01\0\0\0rubbish", "is damaged"),
        ("catraca.snapshot", b"CATRACA\n\xff\0\0\0", "format 255"),
        ("catraca.secret", b"abc", "64 hexadecimal digits"),
        ("catraca.db", b"no database at all, but long enough to be one", "catraca.db"),
    ];
    for (name, bytes, why) in damages {
        let file = catalog_file(CATALOG);
        let server = TestServer::from_file(&file);
        server.signal("TERM");
        assert!(server.wait_for_exit().0.success());
        let damaged = file.with_file_name(name);
        fs::write(&damaged, bytes).unwrap();
        assert_start_refused(&file, why);
        assert_eq!(fs::read(&damaged).unwrap(), bytes);
    }
    let file = catalog_file(CATALOG);
    let server = TestServer::from_file(&file);
    assert_start_refused(&file, "in use");
    drop(server);
    fs::remove_file(file.with_file_name("catraca.secret")).unwrap();
    assert_start_refused(&file, "is missing: restore it");
}

#[test]
fn records_that_are_gone_are_not_made_anew_beside_their_snapshot() {
    let file = catalog_file(CATALOG);
    let server = TestServer::from_file(&file);
    server.signal("TERM");
    assert!(server.wait_for_exit().0.success());
    let records = file.with_file_name("catraca.db");
    fs::remove_file(&records).unwrap();
    assert_start_refused(&file, "catraca restore");
    assert!(!records.exists());
    fs::remove_file(file.with_file_name("catraca.snapshot")).unwrap();
    drop(TestServer::from_file(&file));
}

/// Every process numbers its tickets from the start again.
#[test]
fn a_ticket_gives_back_its_own_lease_and_none_of_the_process_before() {
    let file = catalog_file("[policy.fetch]\nby = ['t']\ninflight = 2\nhold = '1h'\n");
    let server = TestServer::from_file(&file);
    let subject = r#"{"t":"x"}"#;
    assert_eq!(check(&server, "fetch", subject)["remaining"], 1);
    server.signal("TERM");
    assert!(server.wait_for_exit().0.success());
    let server = TestServer::from_file(&file);
    let second = check(&server, "fetch", subject);
    assert_eq!(second["remaining"], 0, "{second}");
    settle(&server, &second, r#"{"status":200}"#);
    assert_eq!(check(&server, "fetch", subject)["remaining"], 0, "one of two is still held");
    assert_eq!(check(&server, "fetch", subject)["allowed"], false);
}

/// A window in debt is a counter like any other, and is not durable.
#[test]
fn a_window_in_debt_is_not_called_durable() {
    let server = TestServer::from_file(&catalog_file(
        "[policy.w]\nby = ['t']\nwindow = '10 per 1h'\ndebt = true\n\
         cost = { '404' = 30, default = 1 }\n",
    ));
    let settled = settle(&server, &check(&server, "w", r#"{"t":"x"}"#), r#"{"status":404}"#);
    assert_eq!(settled["policies"][0]["balance"], -20, "{settled}");
    assert_eq!(settled.get("durable"), None, "{settled}");
}

fn assert_start_refused(file: &std::path::Path, why: &str) {
    let serve = ["serve", "--listen", "127.0.0.1:0", "--config"];
    let output = binary().args(serve).arg(file).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains(why) && stderr.contains(file.to_str().unwrap()), "{stderr}");
    assert!(output.stdout.is_empty(), "the server must not listen");
}
