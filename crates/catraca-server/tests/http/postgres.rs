//! Records in PostgreSQL under the real binary: what survives, what an outage looks like, and two
//! nodes at once.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::admin::{CATALOG, done, durable, payer, reason};
use crate::served::{Served, binary, file};
use crate::server::{PASSWORD, Server};

/// Two nodes of one catalog, with the secret and the password that both need.
pub fn nodes(server: &Server) -> [PathBuf; 2] {
    [(); 2].map(|()| {
        let url = format!("postgres://catraca@127.0.0.1:{}/postgres", server.port);
        let records = format!("[records]\nurl = '{url}'\npassword_file = 'password'\n");
        let file = file(&format!("{CATALOG}{records}"));
        fs::write(file.with_file_name("password"), format!("{PASSWORD}\n")).unwrap();
        fs::write(file.with_file_name("catraca.secret"), "5e".repeat(32)).unwrap();
        file
    })
}

fn order(customer: &str) -> String {
    let subject = format!(r#"{{"customer":"{customer}"}}"#);
    format!(r#"{{"policy":"api","subject":{subject},"for":"1h","reason":"fraud"}}"#)
}

fn blocked(served: &Served, customer: &str) -> bool {
    reason(served, "api", &format!(r#"{{"customer":"{customer}"}}"#)) == "blocked"
}

/// covers: X-24, B-03
#[test]
fn acts_survive_kills_and_a_restart_of_the_database() {
    let server = Server::start();
    let [file, _] = nodes(&server);
    let served = Served::of(&file);
    assert!(served.greeting.contains("postgres://catraca"), "{}", served.greeting);
    assert!(!served.greeting.contains(PASSWORD), "{}", served.greeting);
    durable(&served, "POST /v1/blocks", &order("before"));
    server.stop("QUIT");
    let begun = Instant::now();
    assert_eq!(done(&served, "POST /v1/blocks", &order("meanwhile"))["durable"], false);
    assert!(blocked(&served, "meanwhile") && reason(&served, "lookup", &payer()) == "ok");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    server.run();
    while done(&served, "POST /v1/blocks", &order("after"))["durable"] != true {}
    served.signal("KILL");
    drop(served);
    let served = Served::of(&file);
    for customer in ["before", "meanwhile", "after"] {
        assert!(blocked(&served, customer), "{customer}");
    }
    // A stop does not wait for a database that is away.
    server.stop("INT");
    assert_eq!(done(&served, "POST /v1/blocks", &order("late"))["durable"], false);
    served.signal("TERM");
    let (status, said) = served.ended();
    assert!(!status.success() && said.contains("could not be written"), "{said}");
    assert!(!said.contains(PASSWORD), "{said}");
}

/// covers: X-24
#[test]
fn two_nodes_share_their_records_and_need_one_secret() {
    let server = Server::start();
    let [one, other] = nodes(&server);
    let (first, second) = (Served::of(&one), Served::of(&other));
    durable(&first, "POST /v1/blocks", &order("of-the-first"));
    durable(&second, "POST /v1/blocks", &order("of-the-second"));
    let seen = done(&first, "GET /v1/blocks", "")["blocks"].as_array().unwrap().len();
    assert_eq!(seen, 2);
    drop(first);
    let first = Served::of(&one);
    assert!(blocked(&first, "of-the-first") && blocked(&first, "of-the-second"));
    drop((first, second));
    let refused = |why: &str| {
        let serve = ["serve", "--listen", "127.0.0.1:0", "--config"];
        let ran = binary().args(serve).arg(&one).output().unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.code() == Some(2) && said.contains(why), "{said}");
    };
    let secret = one.with_file_name("catraca.secret");
    fs::write(&secret, "e5".repeat(32)).unwrap();
    refused("bring the old secret back");
    fs::remove_file(&secret).unwrap();
    refused("openssl rand -hex");
    fs::write(one.with_file_name("password"), "wrong").unwrap();
    fs::write(&secret, "5e".repeat(32)).unwrap();
    refused("password authentication failed");
}
