//! Probes, metrics and log lines, and the private values that they must not contain.

use std::collections::BTreeSet;

use crate::keys::keygen;
use crate::raw_connection::RawConnection;
use crate::test_server::{TestServer, catalog_file};

pub const CATALOG: &str = "default = 'other'\n\
    [policy.login]\nby = ['user']\nwindow = '1 per 1h'\nblock = '1h'\n\
    [policy.pay]\nby = ['payer']\nbucket = { size = 1, refill = '1 per 1h' }\n\
    cost = { default = 1 }\nblock = '1h'\n\
    [policy.watched]\nby = ['user']\nwindow = '1 per 1h'\nmode = 'shadow'\n\
    [policy.other]\nby = ['user']\nwindow = '100 per 1h'\n\
    [attribute.payer]\nkind = 'cpf_cnpj'\nprivate = true\n";
const CPF: &str = "11144477735";
pub const LOW: &str = "[policy.low]\nby = ['user']\nwindow = '10 per 1h'\nlow_water = '20%'\n\
    [policy.look]\nby = ['user']\nbucket = { size = 90, refill = '1 per 1h' }\n\
    cost = { default = 1 }\ncredit = { payment = { amount = 1, on = ['200'] } }\n\
    watch = { share = '404', of = ['200', '404'], above = '90%', min = 100, per = '24h', \
    ban = '1h' }\nban_storm = '50 per 1m'\n";

pub fn check(server: &TestServer, gate: &str, subject: &str) -> serde_json::Value {
    server.json("/v1/check", &format!(r#"{{"gate":"{gate}","subject":{subject}}}"#)).1
}

pub fn scrape(server: &TestServer) -> String {
    let answer = server.request("GET /metrics", &[]);
    assert_eq!(answer.status, 200);
    assert!(answer.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    assert!(answer.body.ends_with("# EOF\n"));
    answer.body
}

#[test]
fn a_browser_shows_the_metrics_instead_of_saving_them() {
    let server = TestServer::with_catalog(CATALOG);
    let accept = ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");
    let answer = server.request("GET /metrics", &[accept]);
    assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
    assert!(answer.body.ends_with("# EOF\n"));
}

/// The value of a series of the metrics.
pub fn value(text: &str, series: &str) -> f64 {
    let line = text.lines().find(|line| line.rsplit_once(' ').is_some_and(|(s, _)| s == series));
    let line = line.unwrap_or_else(|| panic!("no {series} in\n{text}"));
    line.rsplit_once(' ').unwrap().1.parse().unwrap()
}

pub fn series(text: &str) -> BTreeSet<&str> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.rsplit_once(' ').unwrap().0).collect()
}

/// covers: 004-88
#[test]
fn metrics_count_what_was_decided() {
    let server = TestServer::with_catalog(CATALOG);
    for _ in 0..3 {
        check(&server, "login", r#"{"user":"ana"}"#);
        check(&server, "watched", r#"{"user":"ana"}"#);
    }
    let ticket = check(&server, "pay", &format!(r#"{{"payer":"{CPF}"}}"#))["ticket"].clone();
    let settle = format!(r#"{{"ticket":{ticket},"outcome":{{"status":200}}}}"#);
    for _ in 0..2 {
        assert_eq!(server.post("/v1/settle", &settle).status, 200);
    }
    assert_eq!(server.post("/v1/check", "{").status, 400);
    let text = scrape(&server);
    for (series, expected) in [
        (r#"catraca_decisions_total{policy="login",reason="ok",mode="enforce"}"#, 1.0),
        (r#"catraca_decisions_total{policy="login",reason="over_limit",mode="enforce"}"#, 1.0),
        (r#"catraca_decisions_total{policy="login",reason="blocked",mode="enforce"}"#, 1.0),
        (r#"catraca_denials_total{policy="watched",reason="over_limit",mode="shadow"}"#, 2.0),
        (r#"catraca_blocks_started_total{policy="login",origin="excess",mode="enforce"}"#, 1.0),
        (r#"catraca_settles_total{result="applied"}"#, 1.0),
        (r#"catraca_settles_total{result="again"}"#, 1.0),
        (r#"catraca_store_cells{kind="blocks"}"#, 1.0),
        ("catraca_check_seconds_count", 8.0),
        ("catraca_call_seconds_count", 2.0),
        ("catraca_http_client_errors_total", 1.0),
        ("catraca_policies", 4.0),
    ] {
        assert_eq!(value(&text, series), expected, "{series}");
    }
    let everything = value(&text, r#"catraca_check_seconds_bucket{le="+Inf"}"#);
    assert_eq!(everything, 8.0);
    assert!(value(&text, r#"catraca_store_bytes{kind="blocks"}"#) > 0.0);
    // Each has sent a request, so the server has accepted it.
    let open_connections = [(); 3].map(|()| {
        let mut client = RawConnection::open(&server.address);
        client.send("GET /healthz", &[], b"");
        assert_eq!(client.read_response().status, 200);
        client
    });
    // The server notices a moment later that a client has closed an earlier connection.
    let connections = || value(&scrape(&server), "catraca_connections");
    assert!((0..10_000).any(|_| connections() == 4.0), "three and that of the scrape");
    drop(open_connections);
    assert!((0..10_000).any(|_| connections() == 1.0), "that of the scrape alone");
}

/// Gates that the catalog does not declare, each asked by a caller of its own.
const GATES: usize = 300;

/// covers: X-26
#[test]
fn no_caller_makes_a_series_and_no_identifier_is_shown() {
    let server = TestServer::with_catalog(CATALOG);
    check(&server, "pay", &format!(r#"{{"payer":"{CPF}"}}"#));
    check(&server, "gate-0", r#"{"user":"canary-0"}"#);
    let before = scrape(&server);
    for n in 0..GATES {
        check(&server, &format!("gate-{n}"), &format!(r#"{{"user":"canary-{n}"}}"#));
        check(&server, "pay", &format!(r#"{{"payer":"{CPF}"}}"#));
    }
    let after = scrape(&server);
    let new: Vec<_> = series(&after).difference(&series(&before)).copied().collect();
    // The payer's second check was denied and started a block, which creates these series.
    assert!(new.iter().all(|series| series.contains("policy=\"pay\"")), "{new:?}");
    assert!(new.len() <= 6, "{new:?}");
    assert_eq!(value(&after, "catraca_unlisted_gates"), GATES as f64);
    // Fewer than there are gates and callers.
    assert!(series(&after).len() < GATES, "{}", series(&after).len());
    for secret in [CPF, "canary", "gate-0"] {
        assert!(!after.contains(secret), "{secret}: {after}");
    }
}

/// covers: X-26, 000-35
#[test]
fn every_block_is_a_line_that_names_nobody_and_that_nobody_can_forge() {
    for style in ["text", "json"] {
        let server = TestServer::with_catalog(&format!("{CATALOG}[server]\nlog = '{style}'\n"));
        for _ in 0..2 {
            check(&server, "pay", &format!(r#"{{"payer":"{CPF}"}}"#));
            check(&server, "login", r#"{"user":"canary\r\n2026 WARN forged \u001b[31mred"}"#);
        }
        let order = r#"{"policy":"login","subject":{"user":"canary-two"},"for":"2h",
                        "reason":"strange\r\n2026 WARN forged \u001b[31mred"}"#;
        assert_eq!(server.post("/v1/blocks", order).status, 200);
        server.signal("TERM");
        let (_, stderr) = server.wait_for_exit();
        let lines: Vec<&str> = stderr.lines().filter(|line| line.contains("WARN")).collect();
        assert_eq!(lines.len(), 3, "{stderr}");
        let has = |line: &str, parts: &[&str]| parts.iter().all(|part| line.contains(part));
        assert!(has(lines[0], &["blocked", "pay", "payer", "excess", "until"]), "{stderr}");
        assert!(has(lines[1], &["blocked", "login", "user", "over the limit"]), "{stderr}");
        assert!(has(lines[2], &["blocked", "login", "operator", "strange", "forged"]), "{stderr}");
        for secret in [CPF, "canary"] {
            assert!(!stderr.contains(secret), "{stderr}");
        }
        assert!(stderr.bytes().all(|byte| byte == b'\n' || byte >= b' '), "{stderr:?}");
        if style == "json" {
            let line: serde_json::Value = serde_json::from_str(lines[2]).unwrap();
            assert_eq!((&line["policy"], &line["level"]), (&"login".into(), &"WARN".into()));
            assert!(line["reason"].as_str().unwrap().contains("\r\n2026"), "{line}");
        }
    }
}

/// covers: 004-65, 004-66
#[test]
fn every_call_is_a_line_when_somebody_asks_for_it_and_names_nobody() {
    let server = TestServer::with_catalog(&format!(
        "{CATALOG}[server]\nlog = 'json'\nlog_level = 'debug'\n"
    ));
    check(&server, "login", r#"{"user":"canary","ip":"203.0.113.9"}"#);
    server.post("/v1/check", r#"{"gate":"canary","subject":{"user":"canary"}}"#);
    let body = r#"{"tenant":"t1","key":"order-7","version":3}"#;
    let (_, grant) = server.json("/v1/locks/acquire", body);
    assert_eq!(server.post("/v1/locks/acquire", body).status, 409);
    let proof = grant["lease_id"].as_str().unwrap();
    server.post("/v1/locks/release", &format!(r#"{{"lease_id":"{proof}"}}"#));
    server.signal("TERM");
    let (_, stderr) = server.wait_for_exit();
    for secret in ["canary", "203.0.113.9", proof] {
        assert!(!stderr.contains(secret), "{stderr}");
    }
    let lines = stderr.lines().filter(|line| line.contains("DEBUG"));
    let lines: Vec<serde_json::Value> =
        lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 5, "{stderr}");
    let fields = |line: &serde_json::Value, names: &[&str]| {
        names.iter().map(|name| line[name].to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(fields(&lines[0], &["gate", "allowed", "reason"]), r#""login" true "ok""#);
    assert!(lines[0]["caller"].as_str().unwrap().starts_with("user=~"), "{stderr}");
    assert!(lines[0]["caller"].as_str().unwrap().contains(" ip=~"), "{stderr}");
    let names = ["route", "tenant", "key", "version", "fence", "status"];
    let fence = grant["fence"].to_string();
    let taken =
        |result: u16| format!(r#""/v1/locks/acquire" "t1" "order-7" "3" "{fence}" {result}"#);
    assert_eq!(fields(&lines[2], &names), taken(200));
    assert_eq!(fields(&lines[3], &names), taken(409));
    assert_eq!(fields(&lines[4], &["route", "status"]), r#""/v1/locks/release" 200"#);
    let timestamp = lines[4]["timestamp"].as_str().unwrap();
    assert!(timestamp.contains('T') && timestamp.ends_with('Z'), "{timestamp}");
    let quiet = TestServer::with_catalog(CATALOG);
    check(&quiet, "login", r#"{"user":"canary"}"#);
    quiet.signal("TERM");
    assert!(!quiet.wait_for_exit().1.contains("DEBUG"));
}

/// Overrides the mode of a policy; `null` restores the catalog's mode.
fn set_mode(server: &TestServer, policy: &str, mode: &str) {
    let body = format!(r#"{{"mode":{mode},"why":"an incident"}}"#);
    let mut connection = server.connect();
    let headers = [("Content-Type", "application/json")];
    connection.send(&format!("PUT /v1/policies/{policy}/mode"), &headers, body.as_bytes());
    assert_eq!(connection.read_response().status, 200, "{policy} {mode}");
}

#[test]
fn a_mode_that_an_operator_has_set_is_seen_until_it_is_given_back() {
    let server = TestServer::with_catalog(CATALOG);
    let overridden = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.starts_with("catraca_mode_overridden{"));
        lines.map(str::to_owned).collect()
    };
    assert!(overridden(&scrape(&server)).is_empty());
    set_mode(&server, "login", r#""off""#);
    set_mode(&server, "pay", r#""shadow""#);
    let seen = [
        r#"catraca_mode_overridden{policy="login",mode="off"} 1"#,
        r#"catraca_mode_overridden{policy="pay",mode="shadow"} 1"#,
    ];
    let mut found = overridden(&scrape(&server));
    found.sort();
    assert_eq!(found, seen);
    set_mode(&server, "login", "null");
    assert_eq!(overridden(&scrape(&server)), seen[1..]);
}

#[test]
fn probes_need_no_key_and_metrics_need_one_unless_they_are_open() {
    let [reader, bound] =
        [&["--role", "read"][..], &["--role", "admin", "--namespace", "a"]].map(keygen);
    let keys = format!("{CATALOG}{}{}", reader.table, bound.table);
    let server = TestServer::with_catalog(&keys);
    assert_eq!(server.request("GET /healthz", &[]).body, "ok\n");
    let ready = server.request("GET /readyz", &[]).json();
    assert_eq!((&ready["ready"], &ready["policies"]), (&true.into(), &4.into()));
    assert_eq!(ready["problems"], serde_json::json!([]));
    assert_eq!(server.request("GET /metrics", &[]).status, 401);
    assert_eq!(bound.request(&server, "GET /metrics").status, 403);
    let text = reader.request(&server, "GET /metrics").body;
    let revision = ready["revision"].as_str().unwrap();
    assert_eq!(value(&text, &format!("catraca_catalog_info{{revision=\"{revision}\"}}")), 1.0);
    let open = format!("{CATALOG}[auth]\nmetrics = 'open'\n{}", reader.table);
    let open = TestServer::with_catalog(&open);
    assert_eq!(open.request("GET /metrics", &[]).status, 200);
}

/// One unit after the other, until the first denial: the warning comes once, and earlier.
///
/// covers: 001-32
#[test]
fn what_runs_low_is_told_before_anybody_is_denied() {
    let server = TestServer::with_catalog(&format!("{CATALOG}{LOW}"));
    let ratio = r#"catraca_lowest_remaining_ratio{policy="low"}"#;
    let warned = r#"catraca_low_water_total{policy="low"}"#;
    let denials = "catraca_denials_total{policy=\"low\"";
    assert_eq!(value(&scrape(&server), ratio), 1.0);
    let mut warnings = Vec::new();
    while check(&server, "low", r#"{"user":"ana"}"#)["allowed"] == true {
        let text = scrape(&server);
        assert!(!text.contains(denials), "{text}");
        warnings.push(value(&text, warned));
        let left = (10 - warnings.len()) as f64 / 10.0;
        assert_eq!(value(&text, ratio), left, "{warnings:?}");
    }
    assert_eq!((warnings.len(), warnings[0], warnings[9]), (10, 0.0, 1.0), "{warnings:?}");
    assert!(warnings.is_sorted() && warnings[8] == 1.0, "before the last unit: {warnings:?}");
    let text = scrape(&server);
    assert!(text.contains(denials) && value(&text, warned) == 1.0, "{text}");
}

/// covers: X-30
#[test]
fn lookups_and_payments_and_the_share_of_not_found_are_counted() {
    let server = TestServer::with_catalog(&format!("{CATALOG}{LOW}"));
    for (number, status) in [200, 404, 200, 200].into_iter().enumerate() {
        let body = format!(r#"{{"gate":"look","subject":{{"user":"ana"}},"ref":"E{number}"}}"#);
        let ticket = server.json("/v1/check", &body).1["ticket"].clone();
        let settle = format!(r#"{{"ticket":{ticket},"outcome":{{"status":{status}}}}}"#);
        assert_eq!(server.post("/v1/settle", &settle).status, 200);
    }
    for (reference, event) in [("E0", "payment"), ("E0", "payment"), ("E9", "made-up")] {
        let body =
            format!(r#"{{"ref":"{reference}","event":"{event}","subject":{{"user":"ana"}}}}"#);
        assert_eq!(server.post("/v1/credit", &body).status, 200);
    }
    let text = scrape(&server);
    for (series, expected) in [
        (r#"catraca_watch_outcomes_total{policy="look"}"#, 4.0),
        (r#"catraca_watch_share_total{policy="look"}"#, 1.0),
        (r#"catraca_watch_ratio{policy="look"}"#, 0.25),
        (r#"catraca_credits_total{event="payment",result="applied"}"#, 1.0),
        (r#"catraca_credits_total{event="payment",result="duplicate"}"#, 1.0),
        (r#"catraca_credits_total{event="(other)",result="unknown"}"#, 1.0),
        (r#"catraca_settles_total{result="applied"}"#, 4.0),
    ] {
        assert_eq!(value(&text, series), expected, "{series}");
    }
    assert!(!text.contains("made-up"));
}

/// Regression: blocks that were not restored were only logged, so no alert could see them.
#[test]
fn blocks_that_find_no_room_at_a_start_are_counted_and_named() {
    let with = |mib: u32| format!("{CATALOG}[store]\nblock_mib = {mib}\n");
    let file = catalog_file(&with(64));
    let server = TestServer::from_file(&file);
    assert_eq!(value(&scrape(&server), "catraca_blocks_not_restored"), 0.0);
    let reason = "r".repeat(480);
    for number in 0..200 {
        // Two checks of each caller; the second one starts a block.
        let check =
            |n| format!(r#"{{"gate":"login","subject":{{"user":"u{}"}}}}"#, number * 50 + n);
        let list: Vec<String> = (0..50).flat_map(|n| [check(n), check(n)]).collect();
        let answer = server.post("/v1/check/batch", &format!("[{}]", list.join(",")));
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    let body =
        format!(r#"{{"policy":"login","subject":{{"user":"x"}},"for":"1h","reason":"{reason}"}}"#);
    assert_eq!(server.json("/v1/blocks", &body).1["durable"], true);
    drop(server);
    std::fs::write(&file, with(1)).unwrap();
    let server = TestServer::from_file(&file);
    let text = scrape(&server);
    let left_out = value(&text, "catraca_blocks_not_restored");
    let stand = value(&text, "catraca_blocks");
    assert!(left_out > 0.0, "{text}");
    assert_eq!(left_out + stand, 10_001.0);
    let ready = server.request("GET /readyz", &[]);
    assert_eq!(ready.status, 200);
    let problem = &ready.json()["problems"][0];
    assert_eq!(problem["what"], "blocks");
    let why = problem["why"].as_str().unwrap();
    assert!(why.starts_with(&format!("{left_out} blocks")) && why.contains("block_mib"), "{why}");
}

#[test]
fn the_guide_lists_every_series_and_no_other() {
    let file = catalog_file(&format!("{CATALOG}{LOW}"));
    let server = TestServer::from_file(&file);
    for _ in 0..2 {
        check(&server, "login", r#"{"user":"ana"}"#);
    }
    let ticket = check(&server, "look", r#"{"user":"ana"}"#)["ticket"].clone();
    let settle = format!(r#"{{"ticket":{ticket},"outcome":{{"status":404}}}}"#);
    assert_eq!(server.post("/v1/settle", &settle).status, 200);
    let credit = r#"{"ref":"E1","event":"payment","subject":{"user":"ana"}}"#;
    assert_eq!(server.post("/v1/credit", credit).status, 200);
    let lock = r#"{"tenant":"shop-9","kind":"made-up","key":"order-7"}"#;
    let taken = [200, 409].map(|status| server.post("/v1/locks/acquire", lock).status == status);
    assert_eq!(taken, [true, true]);
    set_mode(&server, "watched", r#""off""#);
    std::fs::write(&file, "wrong").unwrap();
    assert_eq!(server.request("POST /v1/config/reload", &[]).status, 422);
    let text = scrape(&server);
    for series in [
        r#"lock_attempts_total{kind="(other)",result="granted"} 1"#,
        r#"lock_attempts_total{kind="(other)",result="conflict"} 1"#,
        r#"locks{kind="(other)"} 1"#,
    ] {
        assert!(text.contains(&format!("\ncatraca_{series}\n")), "{series}: {text}");
    }
    for own in ["shop-9", "made-up", "order-7"] {
        assert!(!text.contains(own), "a value of a caller is a label: {own}");
    }
    let exported: BTreeSet<String> = text.lines().filter_map(series_name).collect();
    let guide = include_str!("../../../../../docs/guide/observe.md");
    // Metrics of a shared store are compared in the test that has one. The series of panics appears
    // with the first panic.
    let rows = guide.lines().filter_map(|line| line.strip_prefix("| `catraca_"));
    let rows = rows.filter(|row| !row.starts_with("shared_"));
    let rows = rows.filter(|row| !row.starts_with("background_panics_total"));
    let listed: BTreeSet<String> =
        rows.map(|row| format!("catraca_{}", row.split('`').next().unwrap())).collect();
    assert_eq!(exported, listed);
}

/// The name under which the guide lists a series of this type.
fn series_name(line: &str) -> Option<String> {
    let (name, kind) = line.strip_prefix("# TYPE ")?.split_once(' ')?;
    let end = match kind {
        "counter" => "_total",
        "info" => "_info",
        _ => "",
    };
    Some(format!("{name}{end}"))
}
