//! The RateLimit headers, parsed by a library for structured fields.

use sfv::{BareItem, List, ListEntry, Parser};

use crate::raw_connection::HttpResponse;
use crate::test_server::TestServer;

const CATALOG: &str = r#"
[network]
trusted_proxies = ["127.0.0.0/8"]

[policy.burst]
by     = ["ip"]
window = "100 per 1s"

[policy.day]
by     = ["ip"]
bucket = { size = 3, refill = "1 per 30s" }

[policy.quiet]
by     = ["ip"]
window = "1 per 1m"
mode   = "shadow"

[policy.vast]
by     = ["ip"]
bucket = { size = 4503599627370496, refill = "1 per 1us" }

[policy.pay]
each = ["ip"]
ban  = [ { when = "status == 402", for = "10m", reason = "r" } ]

[gate.all]
policies = ["burst", "day", "quiet", "pay"]
"#;

/// The items of a structured list: a name and its whole-number parameters.
fn items(answer: &HttpResponse, header: &str) -> Vec<(String, Vec<(String, i64)>)> {
    let text = answer.header(header).unwrap_or_else(|| panic!("{header}: {answer:?}"));
    let list: List = Parser::new(text).parse().unwrap_or_else(|e| panic!("{text}: {e}"));
    list.into_iter()
        .map(|entry| {
            let ListEntry::Item(item) = entry else { panic!("{text}") };
            let BareItem::String(name) = item.bare_item else { panic!("{text}") };
            let number = |value: BareItem| match value {
                BareItem::Integer(number) => i64::from(number),
                other => panic!("{other:?}"),
            };
            let params = item.params.into_iter();
            let params = params.map(|(key, value)| (key.as_str().to_owned(), number(value)));
            (name.as_str().to_owned(), params.collect())
        })
        .collect()
}

fn parameter(params: &[(String, i64)], name: &str) -> Option<i64> {
    params.iter().find(|(own, _)| own == name).map(|(_, value)| *value)
}

/// covers: B-71
#[test]
fn both_fields_parse_and_agree_with_the_decision() {
    let server = TestServer::with_catalog(CATALOG);
    for left in (0..3).rev() {
        let answer = server.request("GET /v1/gates/all/authorize", &[]);
        assert_eq!((answer.status, answer.header("retry-after")), (200, None));
        let policies = items(&answer, "ratelimit-policy");
        let names: Vec<&str> = policies.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["burst", "day"], "neither a shadow nor a ban-only row is a limit");
        assert_eq!(
            (parameter(&policies[0].1, "q"), parameter(&policies[0].1, "w")),
            (Some(100), Some(1))
        );
        assert_eq!(
            (parameter(&policies[1].1, "q"), parameter(&policies[1].1, "w")),
            (Some(3), Some(90))
        );
        let limits = items(&answer, "ratelimit");
        assert_eq!(parameter(&limits[1].1, "r"), Some(left));
        let wait = parameter(&limits[1].1, "t").unwrap();
        assert!((1..=90).contains(&wait), "{wait}");
    }
    let denied = server.request("GET /v1/gates/all/authorize", &[]);
    assert_eq!(denied.status, 429);
    let limits = items(&denied, "ratelimit");
    assert_eq!(parameter(&limits[1].1, "r"), Some(0));
    let wait: i64 = denied.header("retry-after").unwrap().parse().unwrap();
    assert_eq!(parameter(&limits[1].1, "t"), Some(wait));
    assert!((1..=30).contains(&wait), "{wait}");
}

#[test]
fn no_number_is_longer_than_a_structured_field_may_hold() {
    let server = TestServer::with_catalog(CATALOG);
    let answer = server.request("GET /v1/gates/vast/authorize", &[]);
    assert_eq!(parameter(&items(&answer, "ratelimit-policy")[0].1, "q"), Some(999_999_999_999_999));
    assert_eq!(parameter(&items(&answer, "ratelimit")[0].1, "r"), Some(999_999_999_999_999));
}

#[test]
fn what_has_room_invites_nobody_whom_a_ban_keeps_out() {
    let server = TestServer::with_catalog(CATALOG);
    let ban = r#"{"policy":"pay","subject":{"ip":"127.0.0.1"},"for":"1h"}"#;
    assert_eq!(server.post("/v1/blocks", ban).status, 200);
    let denied = server.request("GET /v1/gates/all/authorize", &[]);
    assert_eq!((denied.status, denied.header("ratelimit")), (429, None));
    assert_eq!(denied.header("retry-after"), Some("3600"));
    assert_eq!(items(&denied, "ratelimit-policy").len(), 2, "a denial does not change the limits");
}

#[test]
fn where_nothing_is_counted_there_is_no_field() {
    let server = TestServer::with_catalog(CATALOG);
    let answer = server.request("GET /v1/gates/pay/authorize", &[]);
    assert_eq!((answer.status, answer.header("ratelimit")), (200, None));
    assert_eq!(answer.header("ratelimit-policy"), None);
}

/// covers: 004-57, 004-58, 004-59
#[test]
fn the_older_headers_are_there_on_request_only() {
    let plain = TestServer::with_catalog(CATALOG).request("GET /v1/gates/day/authorize", &[]);
    assert_eq!(plain.header("x-ratelimit-limit"), None);
    let server = TestServer::with_catalog(&format!("{CATALOG}\n[server]\nx_ratelimit = true\n"));
    let before = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let answer = server.request("GET /v1/gates/day/authorize", &[]);
    assert_eq!(answer.header("x-ratelimit-limit"), Some("3"));
    assert_eq!(answer.header("x-ratelimit-remaining"), Some("2"));
    let reset: u64 = answer.header("x-ratelimit-reset").unwrap().parse().unwrap();
    assert!((before.as_secs()..before.as_secs() + 120).contains(&reset), "{reset}");
    (0..2).for_each(|_| drop(server.request("GET /v1/gates/day/authorize", &[])));
    let denied = server.request("GET /v1/gates/day/authorize", &[]);
    assert_eq!((denied.status, denied.header("x-ratelimit-limit")), (429, Some("3")));
    assert_eq!(denied.header("x-ratelimit-remaining"), Some("0"));
    let later: u64 = denied.header("x-ratelimit-reset").unwrap().parse().unwrap();
    assert!(later > reset, "{later} {reset}");
}

const WINDOWS: &str = r#"
[network]
trusted_proxies = ["127.0.0.0/8"]

[policy.global]
by     = ["ip"]
window = ["600 per 1m", "3 per 1h", "20 per 500ms"]

[policy.pay]
each   = ["ip", "session"]
window = "50 per 1m"

[gate.both]
policies = ["global", "pay"]

[server]
x_ratelimit = true
"#;

/// covers: 004-57
#[test]
fn every_window_is_an_item_and_the_older_headers_show_one() {
    let server = TestServer::with_catalog(WINDOWS);
    let check = r#"{"gate":"both","subject":{"ip":"127.0.0.1","session":"s"}}"#;
    let decision = server.post("/v1/check", check).json();
    assert_eq!(decision["limit"], 3, "the smallest share is left of three an hour");
    assert_eq!(
        (decision["policy"].as_str(), decision["remaining"].as_i64()),
        (Some("global"), Some(2))
    );
    assert_eq!(decision["reset_after_ms"], 3_600_000);
    let windows = decision["policies"][0]["windows"].as_array().unwrap();
    let limits: Vec<_> = windows.iter().map(|window| window["limit"].as_i64().unwrap()).collect();
    assert_eq!(limits, [600, 3, 20]);
    assert_eq!(decision["policies"][1].get("windows"), None, "one window");

    let allowed = server.request("GET /v1/gates/both/authorize", &[]);
    assert_eq!(allowed.status, 200);
    let policies = items(&allowed, "ratelimit-policy");
    let names: Vec<&str> = policies.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["global:60s", "global:3600s", "global:500ms", "pay:ip"]);
    let windows: Vec<_> = policies.iter().map(|(_, params)| parameter(params, "w")).collect();
    assert_eq!(windows, [Some(60), Some(3600), None, Some(60)]);
    let left = items(&allowed, "ratelimit");
    let left: Vec<_> = left.iter().map(|(_, params)| parameter(params, "r").unwrap()).collect();
    assert_eq!(left[..2], [598, 1]);
    assert_eq!(allowed.header("x-ratelimit-limit"), Some("600"), "the first listed");
    assert_eq!(allowed.header("x-ratelimit-remaining"), Some("598"));

    server.request("GET /v1/gates/both/authorize", &[]);
    let denied = server.request("GET /v1/gates/both/authorize", &[]);
    assert_eq!((denied.status, denied.header("x-ratelimit-limit")), (429, Some("3")));
    assert_eq!(denied.header("x-ratelimit-remaining"), Some("0"));
    let waits = items(&denied, "ratelimit");
    let retry: i64 = denied.header("retry-after").unwrap().parse().unwrap();
    assert_eq!(parameter(&waits[1].1, "t"), Some(retry), "the window that denies");
    assert!(parameter(&waits[0].1, "t").unwrap() <= 60, "the other is empty within a minute");
}
