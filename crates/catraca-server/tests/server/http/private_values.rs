//! Private values sent in every call, valid or not: none of them appears on disk, in the logs or in
//! the metrics.

use std::fs;

use catraca_server::http::endpoint::ANY_METHOD;
use catraca_server::http::table::endpoints;
use serde_json::json;

use crate::raw_connection::JSON;
use crate::test_server::{TestServer, catalog_file};

const CATALOG: &str = r#"
[policy.login]
by     = ["ip"]
window = "1 per 1h"
block  = "2h"

[policy.lookup]
by     = ["payer"]
bucket = { size = 5, refill = "1 per 1h" }
cost   = { "404" = 20, default = 1 }
debt   = true
block  = "1h"

[policy.pay]
each = ["customer", "session"]
ban  = [ { when = "body.reject_id == 5", for = "10m", reason = "reject 5" } ]

[policy.api]
by     = ["token"]
window = "1 per 1h"
block  = "1h"
tier   = [ { when = { plan = "gold" }, window = "3 per 1h" } ]

[attribute.payer]
kind    = "cpf_cnpj"
private = true

[attribute.customer]
private = true

[attribute.ip]
private = true

[facts.token.known]
plan = "silver"

[store]
snapshot_interval = "100ms"

[server]
log_level = "debug"
"#;

/// A taxpayer number, an e-mail address, a token, a session and an IP address, by attribute.
const PLANTED: [(&str, &str); 5] = [
    ("payer", "52998224725"),
    ("customer", "ana.planted@example.com"),
    ("token", "tok-planted-c0ffee"),
    ("session", "sess-planted-8a9b"),
    ("ip", "203.0.113.177"),
];
/// The gates and their attributes.
const GATES: [(&str, &str); 5] = [
    ("login", "ip"),
    ("lookup", "payer"),
    ("pay", "customer"),
    ("pay", "session"),
    ("api", "token"),
];

fn value(attribute: &str) -> &'static str {
    PLANTED.iter().find(|(name, _)| *name == attribute).unwrap().1
}

/// Sends a request and returns its status, or 0. The live feed never ends its response, so it is
/// not read.
fn send(server: &TestServer, request: &str, body: &str) -> u16 {
    let mut connection = server.connect();
    connection.send(request, &[JSON], body.as_bytes());
    if request.contains("/v1/events") {
        return 200;
    }
    // The server may close the connection of a malformed request without a response.
    connection.try_read_response().map_or(0, |answer| answer.status)
}

/// Creates blocks, bans, debts, facts and list entries for every planted value.
fn act(server: &TestServer) {
    for (gate, attribute) in GATES {
        let subject = json!({ attribute: value(attribute) });
        let check = json!({ "gate": gate, "subject": subject }).to_string();
        let ticket = server.json("/v1/check", &check).1["ticket"].clone();
        if let Some(ticket) = ticket.as_str() {
            let outcome = json!({ "status": 404, "body": { "reject_id": 5 } });
            server.json("/v1/settle", &json!({ "ticket": ticket, "outcome": outcome }).to_string());
        }
        let denied = server.json("/v1/check", &check).1;
        assert_eq!(denied["allowed"], false, "{gate} {attribute}: {denied}");
        let order =
            json!({ "policy": gate, "subject": subject, "for": "3h", "reason": "planted test" });
        assert_eq!(send(server, "POST /v1/blocks", &order.to_string()), 200, "{order}");
    }
    let facts = json!({ "facts": { "plan": "gold" } }).to_string();
    assert_eq!(send(server, &format!("PUT /v1/facts/token/{}", value("token")), &facts), 200);
    for attribute in ["customer", "session"] {
        let entry = json!({ "attribute": attribute, "value": value(attribute) }).to_string();
        assert_eq!(send(server, "POST /v1/blocklist", &entry), 200, "{entry}");
    }
}

/// Sends every call of the table with a planted value in the path, the query and the body.
fn misuse(server: &TestServer, planted: &str) {
    let bodies = [
        format!(r#"{{"{planted}":"{planted}"}}"#),
        format!(r#"{{"gate":"{planted}","subject":{{"ip":"{planted}","payer":"{planted}"}}}}"#),
        format!(r#"{{"policy":"login","subject":"{planted}","for":"{planted}","#),
        format!(r#"{{"ticket":"{planted}","outcome":{{"status":"{planted}"}}}}"#),
    ];
    for row in endpoints() {
        let pieces = row.path.split('/').map(|piece| match piece.starts_with('{') {
            true => planted,
            false => piece,
        });
        let path = pieces.collect::<Vec<_>>().join("/");
        let own = [row.method];
        let methods = if row.method == ANY_METHOD { &["GET", "POST"][..] } else { &own[..] };
        for method in methods {
            for body in &bodies {
                send(server, &format!("{method} {path}"), body);
                // Most calls refuse an unknown parameter before they read the body.
                send(server, &format!("{method} {path}?{planted}={planted}"), body);
            }
        }
    }
    let mut connection = server.connect();
    connection
        .send_bytes(format!("GET /{planted} HTTP/9.9\r\n{planted}: {planted}\r\n\r\n").as_bytes());
    let mut connection = server.connect();
    let headers = [("Authorization", planted), ("X-Forwarded-For", planted), ("Cookie", planted)];
    connection.send("GET /v1/gates/login/authorize", &headers, b"");
    assert!(connection.read_response().status >= 200);
}

/// covers: B-14, X-26
#[test]
fn no_planted_identifier_leaves_the_process() {
    let file = catalog_file(CATALOG);
    let server = TestServer::from_file(&file);
    act(&server);
    for (_, planted) in PLANTED {
        misuse(&server, planted);
    }
    let metrics = server.request("GET /metrics", &[]).body;
    server.signal("TERM");
    let greeting = server.greeting.clone();
    let (status, stderr) = server.wait_for_exit();
    assert!(status.success(), "{stderr}");
    let mut sources = vec![("metrics".to_owned(), metrics), ("stdout".to_owned(), greeting)];
    sources.push(("stderr".to_owned(), stderr));
    for entry in fs::read_dir(file.parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        sources.push((path.display().to_string(), text));
    }
    for (source, text) in &sources {
        for (_, planted) in PLANTED {
            assert!(!text.contains(planted), "{planted} is in {source}");
        }
    }
    // The search must be able to find a value that is there.
    let holds = |name: &str, what: &str| {
        sources.iter().any(|(source, text)| source.ends_with(name) && text.contains(what))
    };
    assert!(holds("catraca.db", "planted test") && holds("catraca.snapshot", "planted test"));
    assert!(holds("stderr", "DEBUG check decided") && holds("stderr", "DEBUG lock call"));
}

/// The log of a server on which an address and a payer were blocked.
fn log_of_blocks(log_subjects: &str) -> String {
    let catalog = "[policy.login]\nby = ['ip']\nwindow = '1 per 1h'\nblock = '2h'\n\
        [policy.lookup]\nby = ['payer', 'shop']\nwindow = '1 per 1h'\nblock = '2h'\n\
        [attribute.payer]\nprivate = true\n\
        [server]\nlog_level = 'debug'\n";
    let server = TestServer::with_catalog(&format!("{catalog}{log_subjects}"));
    let subjects = [
        ("login", json!({ "ip": "203.0.113.177" })),
        ("lookup", json!({ "payer": "planted-payer", "shop": "planted-shop" })),
    ];
    for (gate, subject) in subjects {
        let check = json!({ "gate": gate, "subject": subject }).to_string();
        server.json("/v1/check", &check);
        assert_eq!(server.json("/v1/check", &check).1["allowed"], false);
    }
    server.signal("TERM");
    server.wait_for_exit().1
}

#[test]
fn clear_subjects_show_all_but_private_values() {
    let lines_with = |log: &str, level: &str, value: &str| {
        log.lines().filter(|line| line.contains(level) && line.contains(value)).count()
    };
    let clear = log_of_blocks("log_subjects = 'clear'\n");
    for value in ["203.0.113.177", "planted-shop"] {
        assert_eq!(lines_with(&clear, "WARN blocked", value), 1, "{clear}");
        assert_eq!(lines_with(&clear, "DEBUG check decided", value), 2, "{clear}");
    }
    assert!(!clear.contains("planted-payer"), "{clear}");
    let pseudonyms = log_of_blocks("");
    assert_eq!(lines_with(&pseudonyms, "WARN blocked", "by="), 2, "{pseudonyms}");
    for value in ["203.0.113.177", "planted-shop", "planted-payer"] {
        assert!(!pseudonyms.contains(value), "{pseudonyms}");
    }
}
