//! The presets behind a proxy: each path has its own limit, and denials have the documented shape.

use crate::raw_connection::HttpResponse;
use crate::test_server::{TestServer, catalog_file};

fn send_request(server: &TestServer, request: (&str, &str), more: &[(&str, &str)]) -> HttpResponse {
    let described = [("X-Forwarded-Method", request.0), ("X-Forwarded-Uri", request.1)];
    server.request("GET /v1/authorize", &[&described[..], more].concat())
}

/// covers: 004-17, 004-18
#[test]
fn the_routes_of_a_booking_site_take_each_path_to_its_own_limit() {
    let preset = include_str!("../../../../../presets/booking/catalog.toml");
    let server = TestServer::with_catalog(preset);
    let appointments =
        ["global", "appointments_client", "appointments_address", "appointments_tenant"];
    for (path, policies) in [
        ("/api/appointments/7", &appointments[..]),
        ("/api/appointments/7/notes?all", &appointments),
        ("/api/services/3", &["global", "public"]),
        ("/api/employees/3/hours", &["global", "public"]),
        ("/about", &["global"]),
    ] {
        let caller =
            [("X-Forwarded-For", "198.51.100.7"), ("X-Tenant-Id", "t1"), ("X-Shop-Slug", "cuts")];
        let answer = send_request(&server, ("GET", path), &caller);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        let met = answer.header("ratelimit-policy").unwrap().split(", ");
        let names = met.filter_map(|one| one.split('"').nth(1));
        // Each window is an item of its own: `global:60s`.
        let mut met: Vec<_> = names.filter_map(|name| name.split(':').next()).collect();
        met.dedup();
        assert_eq!(met, policies, "{path}");
    }
}

/// The loop of docs/guide/serve.md, on the preset.
/// covers: 004-68
#[test]
fn one_tenants_calls_in_a_loop_really_exceed_the_limit() {
    let preset = include_str!("../../../../../presets/booking/catalog.toml");
    let server = TestServer::with_catalog(preset);
    let call = |tenant: &str| {
        let caller =
            [("X-Forwarded-For", "198.51.100.7"), ("X-Tenant-Id", tenant), ("X-Shop-Slug", "cuts")];
        send_request(&server, ("GET", "/api/services/3"), &caller).status
    };
    let passed = (0..70).filter(|_| call("t1") == 200).count();
    assert!((10..=60).contains(&passed), "{passed}");
    assert_eq!((call("t1"), call("t2")), (429, 200));
}

/// The default time to live of a kind of lock, in seconds.
fn ttl_seconds(server: &TestServer, kind: &str) -> u64 {
    let body = format!(r#"{{"kind":"{kind}","key":"k"}}"#);
    // The response has the remaining time, so a few milliseconds are missing: round up.
    server.json("/v1/locks/acquire", &body).1["ttl_ms"].as_u64().unwrap().div_ceil(1_000)
}

/// covers: 004-48, 004-49, 004-50, 004-51, 004-55
#[test]
fn locks_of_a_booking_site_last_as_environment_variables_say() {
    let preset = || catalog_file(include_str!("../../../../../presets/booking/catalog.toml"));
    let kinds = ["appointment", "payment", "resource", "default"];
    let usual = TestServer::with_env::<&str>(&preset(), &[]);
    assert_eq!(kinds.map(|kind| ttl_seconds(&usual, kind)), [10, 30, 5, 5]);
    drop(usual);
    let production = [
        ("OPTIMISTIC_LOCK_APPOINTMENT_TTL", "15000"),
        ("OPTIMISTIC_LOCK_PAYMENT_TTL", "45000"),
        ("OPTIMISTIC_LOCK_RESOURCE_TTL", "6000"),
        ("OPTIMISTIC_LOCK_DEFAULT_TTL", "7000"),
    ];
    let server = TestServer::with_env(&preset(), &production);
    assert_eq!(kinds.map(|kind| ttl_seconds(&server, kind)), [15, 45, 6, 7]);
}

/// The file as it is shipped, read as a shell reads it.
///
/// covers: 004-54, 004-55
#[test]
fn the_production_profile_is_in_force_in_a_server_that_has_its_variables() {
    let profile = include_str!("../../../../../presets/booking/production.env");
    let lines = profile.lines().filter(|line| !line.starts_with('#'));
    let variables: Vec<(&str, &str)> =
        lines.map(|line| line.split_once('=').expect("NAME=VALUE")).collect();
    assert_eq!(variables.len(), 4, "{variables:?}");
    let preset = catalog_file(include_str!("../../../../../presets/booking/catalog.toml"));
    let server = TestServer::with_env(&preset, &variables);
    let limit = |policy: &str| {
        let path = format!("GET /v1/policies/{policy}");
        server.request(&path, &[]).json()["limit"].as_str().unwrap().to_owned()
    };
    assert!(limit("global").contains("300 per 1m"), "{}", limit("global"));
    assert!(limit("public").contains("30 per 1m"), "{}", limit("public"));
    let kinds = ["appointment", "payment", "resource", "default"];
    assert_eq!(kinds.map(|kind| ttl_seconds(&server, kind)), [15, 45, 5, 5]);
}

/// covers: 000-39
#[test]
fn a_banned_customer_is_told_429_and_for_how_long() {
    let preset = include_str!("../../../../../presets/soft-ban/catalog.toml");
    let server = TestServer::with_catalog(preset);
    let submit = |more: &[(&str, &str)]| {
        send_request(&server, ("POST", "/CheckoutServices-SubmitPayment"), more)
    };
    let ana = [("X-Customer-No", "00012345"), ("X-Session-Id", "s1")];
    assert_eq!(submit(&ana).status, 200);
    let check = r#"{"gate":"submit_payment","subject":{"customer":"00012345","session":"s1"}}"#;
    let checked = server.json("/v1/check", check).1;
    let ticket = checked["ticket"].as_str().unwrap();
    let outcome = r#"{"status":200,"body":{"reject_id":5}}"#;
    let settle = format!(r#"{{"ticket":"{ticket}","outcome":{outcome}}}"#);
    assert_eq!(server.json("/v1/settle", &settle).0, 200);
    let denied = submit(&ana);
    assert_eq!(denied.status, 429, "{denied:?}");
    assert!(matches!(denied.header("retry-after"), Some("600" | "599")), "{denied:?}");
    assert_eq!(submit(&[("X-Session-Id", "s1")]).status, 429, "logged out, in the same browser");
    assert_eq!(submit(&[("X-Session-Id", "s2")]).status, 200, "another session");
}
