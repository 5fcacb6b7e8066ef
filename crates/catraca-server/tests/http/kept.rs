//! What survives: a server that is killed, or told to stop, knows the same when it is back.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::served::{Served, binary, file};

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

fn check(served: &Served, gate: &str, subject: &str) -> Value {
    served.json("/v1/check", &format!(r#"{{"gate":"{gate}","subject":{subject}}}"#)).1
}

fn settle(served: &Served, checked: &Value, outcome: &str) -> Value {
    let ticket = checked["ticket"].as_str().unwrap();
    served.json("/v1/settle", &format!(r#"{{"ticket":"{ticket}","outcome":{outcome}}}"#)).1
}

fn payer() -> String {
    format!(r#"{{"payer":"{PAYER}"}}"#)
}

/// covers: X-24, X-26, 002-48
#[test]
fn a_debt_and_a_ban_that_were_answered_durable_survive_a_kill() {
    let file = file(CATALOG);
    let served = Served::of(&file);
    let owed = settle(&served, &check(&served, "lookup", &payer()), r#"{"status":404}"#);
    assert_eq!((&owed["durable"], &owed["policies"][0]["balance"]), (&true.into(), &(-15).into()));
    let ana = r#"{"customer":"ana"}"#;
    let banned = settle(&served, &check(&served, "pay", ana), r#"{"body":{"reject_id":5}}"#);
    assert_eq!(
        (&banned["durable"], &banned["policies"][0]["blocked_by"]),
        (&true.into(), &"ban".into())
    );
    // What is only counted makes no such promise.
    let counted = settle(&served, &check(&served, "pay", r#"{"customer":"rui"}"#), "{}");
    assert_eq!(counted.get("durable"), None, "{counted}");
    served.signal("KILL");
    drop(served);
    let served = Served::of(&file);
    assert!(served.greeting.contains("1 blocks"), "{}", served.greeting);
    let denied = check(&served, "lookup", &payer());
    assert_eq!(denied["policies"][0]["balance"], -15, "{denied}");
    assert_eq!(check(&served, "pay", ana)["reason"], "blocked");
    for entry in fs::read_dir(file.parent().unwrap()).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(PAYER.len()).any(|at| at == PAYER.as_bytes()));
    }
}

/// covers: 002-19
#[test]
fn a_server_that_is_told_to_stop_forgets_no_counter() {
    let file = file(&format!("{CATALOG}[store]\nsnapshot_interval = '1h'\n"));
    let served = Served::of(&file);
    let ticket = check(&served, "lookup", &payer());
    let ana = r#"{"customer":"ana"}"#;
    assert_eq!(check(&served, "search", ana)["remaining"], 2);
    served.signal("TERM");
    let (status, said) = served.ended();
    assert!(status.success(), "{said}");
    let secret = file.with_file_name("catraca.secret");
    let mode = fs::metadata(&secret).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let before = fs::read(&secret).unwrap();
    let served = Served::of(&file);
    assert_eq!(check(&served, "search", ana)["remaining"], 1);
    // The same secret: a ticket of the process before is still good.
    assert_eq!(settle(&served, &ticket, r#"{"status":200}"#)["state"], "settled");
    assert_eq!(fs::read(&secret).unwrap(), before);
}

#[test]
fn a_server_that_keeps_nothing_says_so() {
    let served = Served::demo();
    assert!(served.greeting.contains("Nothing is kept"), "{}", served.greeting);
    let file = file(&format!("{CATALOG}[records]\nurl = 'none'\n"));
    let served = Served::of(&file);
    assert!(served.greeting.contains("Nothing is kept"), "{}", served.greeting);
    let owed = settle(&served, &check(&served, "lookup", &payer()), r#"{"status":404}"#);
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
        let file = file(CATALOG);
        let served = Served::of(&file);
        served.signal("TERM");
        assert!(served.ended().0.success());
        let damaged = file.with_file_name(name);
        fs::write(&damaged, bytes).unwrap();
        refused(&file, why);
        assert_eq!(fs::read(&damaged).unwrap(), bytes);
    }
    let file = file(CATALOG);
    let served = Served::of(&file);
    refused(&file, "in use");
    drop(served);
    fs::remove_file(file.with_file_name("catraca.secret")).unwrap();
    refused(&file, "which is missing");
}

#[test]
fn records_that_are_gone_are_not_made_anew_beside_their_snapshot() {
    let file = file(CATALOG);
    let served = Served::of(&file);
    served.signal("TERM");
    assert!(served.ended().0.success());
    let records = file.with_file_name("catraca.db");
    fs::remove_file(&records).unwrap();
    refused(&file, "catraca restore");
    assert!(!records.exists());
    fs::remove_file(file.with_file_name("catraca.snapshot")).unwrap();
    drop(Served::of(&file));
}

/// Every process counts its tickets from the start.
#[test]
fn a_ticket_gives_back_its_own_lease_and_none_of_the_process_before() {
    let file = file("[policy.fetch]\nby = ['t']\ninflight = 2\nhold = '1h'\n");
    let served = Served::of(&file);
    let subject = r#"{"t":"x"}"#;
    assert_eq!(check(&served, "fetch", subject)["remaining"], 1);
    served.signal("TERM");
    assert!(served.ended().0.success());
    let served = Served::of(&file);
    let second = check(&served, "fetch", subject);
    assert_eq!(second["remaining"], 0, "{second}");
    settle(&served, &second, r#"{"status":200}"#);
    assert_eq!(check(&served, "fetch", subject)["remaining"], 0, "one of two is still held");
    assert_eq!(check(&served, "fetch", subject)["allowed"], false);
}

/// A window in debt is a counter like any other, and promises no more.
#[test]
fn a_window_in_debt_is_not_called_durable() {
    let served = Served::of(&file(
        "[policy.w]\nby = ['t']\nwindow = '10 per 1h'\ndebt = true\n\
         cost = { '404' = 30, default = 1 }\n",
    ));
    let settled = settle(&served, &check(&served, "w", r#"{"t":"x"}"#), r#"{"status":404}"#);
    assert_eq!(settled["policies"][0]["balance"], -20, "{settled}");
    assert_eq!(settled.get("durable"), None, "{settled}");
}

fn refused(file: &std::path::Path, why: &str) {
    let serve = ["serve", "--listen", "127.0.0.1:0", "--config"];
    let ran = binary().args(serve).arg(file).output().unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(2), "{said}");
    assert!(said.contains(why) && said.contains(file.to_str().unwrap()), "{said}");
    assert!(ran.stdout.is_empty(), "it must not have listened");
}
