//! Every call of the server's own table, tried in every way that must not work.

use crate::keys::{Key, keygen};
use crate::roles::{Access, ROLES, ROWS, Reach, Role, Row};
use crate::served::Served;
use crate::talk::Answer;

const POLICY: &str = "[policy.login]\nby = ['ip']\nwindow = '5 per 1m'\n";

/// A request of a row, for each of its methods.
fn requests(row: &Row) -> Vec<String> {
    let pieces = row.path.split('/').map(|piece| if piece.starts_with('{') { "x" } else { piece });
    let path = pieces.collect::<Vec<_>>().join("/");
    let any = ["GET", "POST", "DELETE", "OPTIONS"];
    let methods = if row.methods.is_empty() { &any[..] } else { row.methods };
    methods.iter().map(|method| format!("{method} {path}")).collect()
}

fn refused(answer: &Answer, status: u16, code: &str, request: &str) {
    assert_eq!((answer.status, answer.problem().as_str()), (status, code), "{request}");
    let challenged = answer.header("www-authenticate").is_some();
    assert_eq!(challenged, status == 401, "{request}: {answer:?}");
}

/// A key of every role, free and bound to a namespace.
fn keys() -> Vec<(Role, bool, Key)> {
    let key = |(name, role): &(&str, Role), bound: bool| {
        let args = ["--role", name, "--namespace", "shop"];
        (*role, bound, keygen(&args[..if bound { 4 } else { 2 }]))
    };
    let both = |role| [key(role, false), key(role, true)];
    ROLES.iter().flat_map(both).collect()
}

fn served(keys: &[(Role, bool, Key)]) -> Served {
    let tables: String = keys.iter().map(|(.., key)| key.table.as_str()).collect();
    Served::with(&format!("{POLICY}{tables}"))
}

/// covers: B-59, X-25
#[test]
fn every_call_refuses_everybody_whom_the_table_does_not_name() {
    let keys = keys();
    let served = served(&keys);
    let stranger = keygen(&["--role", "admin"]);
    let mut tried = 0;
    for (row, request) in
        ROWS.iter().flat_map(|row| requests(row).into_iter().map(move |r| (row, r)))
    {
        let least = match row.access {
            Access::Least(least) => least,
            Access::Metrics => Role::Read,
            Access::Open => {
                let piece = row.path.contains('{');
                assert_eq!(served.ask(&request, &[]).status, if piece { 404 } else { 200 });
                continue;
            }
        };
        refused(&served.ask(&request, &[]), 401, "no-key", &request);
        refused(&stranger.ask(&served, &request), 401, "unknown-key", &request);
        for (role, bound, key) in &keys {
            let answer = key.ask(&served, &request);
            if *role < least {
                refused(&answer, 403, "role-too-low", &request);
            } else if *bound && row.reach == Reach::Catalog {
                refused(&answer, 403, "bound-key", &request);
            } else {
                assert!(![401, 403].contains(&answer.status), "{request}: {answer:?}");
            }
            tried += 1;
        }
        tried += 2;
    }
    assert!(tried >= 200, "{tried}");
}

#[test]
fn a_path_or_method_without_a_row_is_refused_before_and_after_the_key() {
    let keys = keys();
    let served = served(&keys);
    let admin = &keys.iter().rfind(|(_, bound, _)| !bound).unwrap().2;
    for request in ["GET /", "GET /v1/check/", "POST /v1//check", "GET /v1/buckets/a/b"] {
        refused(&served.ask(request, &[]), 401, "no-key", request);
        refused(&admin.ask(&served, request), 404, "unknown-call", request);
    }
    for request in ["GET /v1/check", "PATCH /v1/blocks", "TRACE /v1/config"] {
        refused(&served.ask(request, &[]), 401, "no-key", request);
        refused(&admin.ask(&served, request), 405, "wrong-method", request);
    }
    let options = admin.ask(&served, "OPTIONS /v1/blocks");
    assert_eq!((options.status, options.header("allow")), (204, Some("GET,HEAD,POST")));
}

#[test]
fn a_call_of_operators_needs_a_host_of_ours_and_no_foreign_page_with_keys_and_without() {
    let admin = keygen(&["--role", "admin"]);
    let bearer = format!("Bearer {}", admin.key);
    let keyed = Served::with(&format!("{POLICY}[server]\nhosts = ['a.example']\n{}", admin.table));
    let free = Served::with(POLICY);
    for row in ROWS.iter().filter(|row| row.access == Access::Least(Role::Admin)) {
        for request in requests(row) {
            for (served, host, origin, code) in [
                (&keyed, "evil.example", "", Some("wrong-host")),
                (&keyed, "a.example", "https://evil.example", Some("wrong-origin")),
                (&keyed, "a.example", "https://a.example", None),
                (&free, "127.evil.example", "", Some("wrong-host")),
                (&free, "a.example", "", Some("wrong-host")),
                (&free, "localhost", "null", Some("wrong-origin")),
                (&free, "127.0.0.1", "", None),
            ] {
                let origin =
                    if origin.is_empty() { String::new() } else { format!("Origin: {origin}\r\n") };
                let head = format!(
                    "{request} HTTP/1.1\r\nHost: {host}\r\nAuthorization: {bearer}\r\n{origin}\
                     Content-Length: 0\r\n\r\n"
                );
                let mut talk = served.connect();
                talk.raw(head.as_bytes());
                let answer = talk.answer();
                match code {
                    Some(code) => refused(&answer, 403, code, &head),
                    None => assert_ne!(answer.status, 403, "{head}"),
                }
            }
        }
    }
}
