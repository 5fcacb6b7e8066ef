//! The preset `dict` behind the proxy: every operation of the DICT has a route to its own buckets,
//! and the worker takes the bank's figures over.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::helpers::{ProxyServer, TestUpstream, wait_until};
use crate::raw_connection::{JSON, RawConnection};
use crate::test_server::catalog_file;

const PRESET: &str = include_str!("../../../../../presets/dict/catalog.toml");
const PAYERS: [&str; 6] = [
    "11144477735",
    "52998224725",
    "11222333000181",
    "12345678909",
    "12ABC34501DE35",
    "98765432100",
];
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// Method, path, and the policy that is charged.
const OPERATIONS: [(&str, &str, &str); 41] = [
    ("POST", "/entries/", "entries_write"),
    ("PUT", "/entries/maria@example.com", "entries_update"),
    ("POST", "/entries/maria@example.com/delete", "entries_write"),
    ("GET", "/entries/maria@example.com/statistics", "entries_statistics_read"),
    ("POST", "/keys/check", "keys_check"),
    ("POST", "/claims/", "claims_write"),
    ("GET", "/claims/?Participant=12345678", "claims_list_without_role"),
    ("GET", "/claims/?Participant=12345678&IsDonor=true", "claims_list_with_role"),
    ("GET", "/claims/?Participant=12345678&IsClaimer=true", "claims_list_with_role"),
    ("GET", "/claims/1", "claims_read"),
    ("POST", "/claims/1/acknowledge", "claims_write"),
    ("POST", "/claims/1/confirm", "claims_write"),
    ("POST", "/claims/1/cancel", "claims_write"),
    ("POST", "/claims/1/complete", "claims_write"),
    ("POST", "/sync-verifications/", "sync_verifications_write"),
    ("POST", "/cids/files/", "cids_files_write"),
    ("GET", "/cids/files/1", "cids_files_read"),
    ("GET", "/cids/events", "cids_events_list"),
    ("GET", "/cids/entries/aa", "cids_entries_read"),
    ("POST", "/infraction-reports/", "infraction_reports_write"),
    ("GET", "/infraction-reports/", "infraction_reports_list_without_role"),
    ("GET", "/infraction-reports/?IsReporter=true", "infraction_reports_list_with_role"),
    ("GET", "/infraction-reports/?IsCounterparty=true", "infraction_reports_list_with_role"),
    ("GET", "/infraction-reports/1", "infraction_reports_read"),
    ("PUT", "/infraction-reports/1", "infraction_reports_write"),
    ("POST", "/infraction-reports/1/acknowledge", "infraction_reports_write"),
    ("POST", "/infraction-reports/1/cancel", "infraction_reports_write"),
    ("POST", "/infraction-reports/1/close", "infraction_reports_write"),
    ("POST", "/refunds/", "refunds_write"),
    ("GET", "/refunds/", "refund_list_without_role"),
    ("GET", "/refunds/?ParticipantRole=REQUESTING", "refund_list_with_role"),
    ("GET", "/refunds/1", "refunds_read"),
    ("POST", "/refunds/1/cancel", "refunds_write"),
    ("POST", "/refunds/1/close", "refunds_write"),
    ("POST", "/fraud-markers/", "fraud_markers_write"),
    ("GET", "/fraud-markers/", "fraud_markers_list"),
    ("GET", "/fraud-markers/1", "fraud_markers_read"),
    ("POST", "/fraud-markers/1/cancel", "fraud_markers_write"),
    ("GET", "/persons/11144477735/statistics", "persons_statistics_read"),
    ("GET", "/event-notifications?Participant=12345678", "event_list"),
    ("GET", "/policies/KEYS_CHECK", "policies_read"),
];

fn preset(upstream: &TestUpstream) -> String {
    PRESET.replace("${DICT_UPSTREAM:http://127.0.0.1:16422}", &upstream.url)
}

fn call(server: &ProxyServer, path: &str, body: &str) -> Value {
    let mut client = RawConnection::open(&server.http);
    client.send(&format!("POST {path}"), &[JSON], body.as_bytes());
    client.read_response().json()
}

/// The tokens of a policy of the participant.
fn tokens(server: &ProxyServer, policy: &str, participant: &str) -> i64 {
    let body = format!(r#"{{"subject":{{"participant":"{participant}"}}}}"#);
    call(server, &format!("/v1/buckets/{policy}"), &body)["balance"].as_i64().unwrap()
}

/// covers: 001-02, 001-08
#[test]
fn every_operation_has_a_route_to_its_own_bucket() {
    let upstream = TestUpstream::constant(OK);
    let server = ProxyServer::start(&preset(&upstream));
    for (method, path, policy) in OPERATIONS {
        let mut client = server.connect();
        let header = [("PI-RequestingParticipant", "12345678")];
        client.send(&format!("{method} /api/v2{path}"), &header, b"");
        let response = client.read_response();
        assert_eq!(response.status, 200, "{method} {path}");
        let charged = response.header("ratelimit-policy").and_then(|text| text.split('"').nth(1));
        assert_eq!(charged, Some(policy), "{method} {path}");
    }
    // Checks of keys are served by another host of the bank, under another path.
    let mut client = server.connect();
    client.send("POST /api-np/v2/keys/check", &[("PI-RequestingParticipant", "20000001")], b"");
    assert_eq!(client.read_response().status, 200);
    // A signed request has its participant in the XML: it counts for the configured one.
    let mut client = server.connect();
    client.send("POST /api/v2/cids/files", &[], b"");
    assert_eq!(client.read_response().status, 200);
    let slow = "cids_files_write";
    wait_until("the default participant is charged", || tokens(&server, slow, "unset") == 197);
}

/// The bucket of a day is drained: the bank gets no further request.
///
/// covers: 001-06
#[test]
fn an_empty_bucket_is_the_429_of_the_dict_and_does_not_reach_the_bank() {
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&seen);
    let upstream = TestUpstream::start(move |call| {
        call.read_body();
        counted.fetch_add(1, Ordering::SeqCst);
        call.send(OK);
        true
    });
    let server = ProxyServer::start(&preset(&upstream));
    let mut client = server.connect();
    let mut ask = || {
        let participant = ("PI-RequestingParticipant", "12345678");
        client.send("POST /api/v2/cids/files/", &[participant], b"");
        client.read_response()
    };
    for number in 1..=198 {
        assert_eq!(ask().status, 200, "{number}");
    }
    let denied = ask();
    assert_eq!(denied.status, 429);
    assert_eq!(denied.header("content-type"), Some("application/problem+xml"));
    let kind = "<type>https://dict.pi.rsfn.net.br/api/v2/error/RateLimited</type>";
    for part in [kind, "<title>Rate limited</title>", "<status>429</status>"] {
        assert!(denied.body.contains(part), "{part} is not in {}", denied.body);
    }
    // One token in 36 minutes.
    let wait: u64 = denied.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=36 * 60).contains(&wait), "{wait}");
    assert_eq!(seen.load(Ordering::SeqCst), 198);
}

/// Method and key type of each shape of key, as a client writes it in a path.
const KEYS: [(&str, &str, &str); 6] = [
    ("maria@example.com", "EMAIL", "entries_read_user_antiscan"),
    ("maria%40example.com", "EMAIL", "entries_read_user_antiscan"),
    ("%2B5561912345678", "PHONE", "entries_read_user_antiscan"),
    ("52998224725", "CPF", "entries_read_user_antiscan_v2"),
    ("11222333000181", "CNPJ", "entries_read_user_antiscan_v2"),
    ("123e4567-e89b-12d3-a456-426655440000", "EVP", "entries_read_user_antiscan_v2"),
];

/// covers: 001-08, 001-12, 001-13
#[test]
fn a_lookup_of_every_key_type_takes_from_the_payers_bucket_of_that_type() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&lines);
    let upstream = TestUpstream::start(move |call| {
        seen.lock().unwrap().push(call.line().to_owned());
        call.send(OK);
        true
    });
    let server = ProxyServer::start(&preset(&upstream));
    for (number, (key, kind, charged)) in KEYS.into_iter().enumerate() {
        // A payer of each lookup's own, so that a balance is that of one lookup.
        let payer = PAYERS[number];
        let reference = format!("E{number}");
        let headers = [
            ("PI-RequestingParticipant", "12345678"),
            ("PI-PayerId", payer),
            ("PI-EndToEndId", &*reference),
        ];
        let mut client = server.connect();
        client.send(&format!("GET /api/v2/entries/{key}"), &headers, b"");
        assert_eq!(client.read_response().status, 200, "{kind}");
        // An escape that a path does not need is written out.
        let written = key.replace("%40", "@").replace("%2B", "+");
        let line = format!("GET /api/v2/entries/{written} HTTP/1.1");
        assert_eq!(lines.lock().unwrap().last(), Some(&line), "{kind}");
        let balance = |policy: &str| {
            let subject = format!(r#"{{"participant":"12345678","payer":"{payer}"}}"#);
            let body = format!(r#"{{"subject":{subject}}}"#);
            call(&server, &format!("/v1/buckets/{policy}"), &body)["balance"].as_i64().unwrap()
        };
        let full = if payer.len() == 14 { 990 } else { 99 };
        wait_until(kind, || balance(charged) == full - 1);
        let other = ["entries_read_user_antiscan", "entries_read_user_antiscan_v2"]
            .into_iter()
            .find(|policy| *policy != charged);
        assert_eq!(balance(other.unwrap()), full, "{kind}");
    }
}

/// DICT has no bucket for them.
///
/// covers: 001-08
#[test]
fn operations_of_funds_recovery_are_forwarded_and_charge_nothing() {
    let upstream = TestUpstream::constant(OK);
    // A limit that would deny if it were in force.
    let server = ProxyServer::start(&preset(&upstream).replace("1000 per 1m", "1 per 24h"));
    for line in [
        "POST /api/v2/funds-recoveries/",
        "GET /api/v2/funds-recoveries?Participant=12345678",
        "GET /api/v2/funds-recoveries/1",
        "PUT /api/v2/funds-recoveries/1",
        "POST /api/v2/funds-recoveries/1/cancel",
    ] {
        let mut client = server.connect();
        client.send(line, &[("PI-RequestingParticipant", "12345678")], b"");
        assert_eq!(client.read_response().status, 200, "{line}");
    }
    let mut client = server.connect();
    client.send("POST /api/v2/no-such-operation", &[], b"");
    assert_eq!(client.read_response().status, 404, "what the catalog does not name");
}

/// The preset with a worker whose first poll is its only one.
fn polling(upstream: &TestUpstream) -> String {
    preset(upstream)
        .replace("${DICT_POLL:off}", "1h")
        .replace("${DICT_PARTICIPANT:unset}", "12345678")
}

fn bucket_state(name: &str, tokens: i64, size: i64) -> String {
    format!(
        "<Policy><AvailableTokens>{tokens}</AvailableTokens><Capacity>{size}</Capacity>\
         <Name>{name}</Name></Policy>"
    )
}

/// An answer of `listBucketStates` with a category and these policies.
fn states(category: &str, policies: &str) -> String {
    let body = format!(
        "<ListPoliciesResponse><ResponseTime>2026-01-01T00:00:00Z</ResponseTime>\
         <Category>{category}</Category><Policies>{policies}</Policies></ListPoliciesResponse>"
    );
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}")
}

/// The worker is built in: it reads the category and the balances, and keeps the margin.
///
/// covers: 001-02, X-09
#[test]
fn the_poll_takes_the_figures_of_the_bank_over() {
    let polls = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&polls);
    let upstream = TestUpstream::start(move |call| {
        assert!(call.line().starts_with("GET /api/v2/policies/ "), "{}", call.line());
        assert_eq!(call.header("pi-requestingparticipant").as_deref(), Some("12345678"));
        seen.fetch_add(1, Ordering::SeqCst);
        let policies = bucket_state("CIDS_FILES_WRITE", 150, 200)
            + &bucket_state("ENTRIES_READ_PARTICIPANT_ANTISCAN", 30_000, 30_000)
            + &bucket_state("NEW_OF_THE_BANK", 1, 1);
        call.send(&states("C", &policies));
        true
    });
    let server = ProxyServer::start(&polling(&upstream));
    wait_until("the first poll", || polls.load(Ordering::SeqCst) == 1);
    // 150 of the bank's 200 are 148 of our 198.
    wait_until("the balance is the bank's", || {
        tokens(&server, "cids_files_write", "12345678") == 148
    });
    let lookups = "entries_read_participant_antiscan";
    assert_eq!(tokens(&server, lookups, "12345678"), 27_000, "category C, less the margin");
    assert_eq!(tokens(&server, lookups, "87654321"), 45, "another participant has H");
    assert_eq!(server.metric("catraca_background_failing{task=\"dict-poll\"}"), 0);
    // A bucket that the catalog does not have is no failure, and not silent.
    assert_eq!(server.metric("catraca_dict_unmirrored_buckets"), 1);
    let mut client = RawConnection::open(&server.http);
    client.send("GET /readyz", &[], b"");
    let note = &client.read_response().json()["notes"][0];
    assert_eq!(note["what"], "dict", "{note}");
    let why = note["why"].as_str().unwrap();
    assert!(why.contains("not corrected: NEW_OF_THE_BANK; add policies"), "{why}");
}

#[test]
fn a_poll_that_fails_is_a_problem_and_changes_nothing() {
    let upstream = TestUpstream::constant("HTTP/1.1 503 Unavailable\r\ncontent-length: 0\r\n\r\n");
    let server = ProxyServer::start(&polling(&upstream));
    let failing = "catraca_background_failing{task=\"dict-poll\"}";
    wait_until("the failure is reported", || server.metric(failing) == 1);
    assert_eq!(tokens(&server, "cids_files_write", "12345678"), 198);
}

/// Regression: the worker dropped the header, so its next poll met the bank's 429 again.
#[test]
fn a_poll_that_the_bank_refuses_blocks_further_calls_for_its_retry_after() {
    let upstream = TestUpstream::constant(
        "HTTP/1.1 429 Too Many Requests\r\nretry-after: 120\r\ncontent-length: 0\r\n\r\n",
    );
    let server = ProxyServer::start(&polling(&upstream));
    let failing = "catraca_background_failing{task=\"dict-poll\"}";
    wait_until("the failure is reported", || server.metric(failing) == 1);
    let body = r#"{"gate":"listBucketStates","subject":{"participant":"12345678"}}"#;
    let next = call(&server, "/v1/peek", body);
    assert_eq!(next["reason"], "blocked", "{next}");
}

#[test]
fn a_poll_that_is_denied_says_why() {
    let upstream = TestUpstream::constant(OK);
    let list = "[[blocklist]]\nattribute = 'participant'\nvalue = '12345678'\n";
    let server = ProxyServer::start(&format!("{}\n{list}", polling(&upstream)));
    let problem = || {
        let mut client = RawConnection::open(&server.http);
        client.send("GET /readyz", &[], b"");
        client.read_response().body
    };
    let why = "the poll is denied by listBucketStates: blocklisted";
    wait_until("the reason is reported", || problem().contains(why));
    assert_eq!(upstream.connections(), 0);
}

/// Regression: the fact of all namespaces was written again with every poll, each time with a row
/// in the audit, because that of the namespace goes before it.
#[test]
fn a_category_of_the_namespace_is_left_alone() {
    let polls = AtomicUsize::new(0);
    let upstream = TestUpstream::start(move |call| {
        let tokens = [150, 140][polls.fetch_add(1, Ordering::SeqCst)];
        call.send(&states("C", &bucket_state("CIDS_FILES_WRITE", tokens, 200)));
        true
    });
    let quiet = preset(&upstream).replace("${DICT_PARTICIPANT:unset}", "12345678");
    let file = catalog_file(&quiet);
    let mut server = ProxyServer::start_file(&file);
    let mut client = RawConnection::open(&server.http);
    let body = br#"{"namespace":"default","facts":{"category":"A"}}"#;
    client.send("PUT /v1/facts/participant/12345678", &[JSON], body);
    assert_eq!(client.read_response().status, 200);
    drop(client);
    server.stop();
    // The records have one owner, which the context is.
    drop(server);

    std::fs::write(&file, quiet.replace("${DICT_POLL:off}", "1h")).unwrap();
    for balance in [148, 138] {
        let mut server = ProxyServer::start_file(&file);
        wait_until("the poll", || tokens(&server, "cids_files_write", "12345678") == balance);
        let mut client = RawConnection::open(&server.http);
        client.send("GET /v1/audit?by=dict-poll", &[], b"");
        let audit = client.read_response().json();
        assert_eq!(audit["acts"].as_array().map(Vec::len), Some(1), "{audit}");
        let lookups = "entries_read_participant_antiscan";
        assert_eq!(tokens(&server, lookups, "12345678"), 45_000, "category A, less the margin");
        drop(client);
        server.stop();
    }
}
