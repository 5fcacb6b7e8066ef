//! Mistakes in the configuration of a client, and the header that names it.

use std::time::{Duration, SystemTime};

use catraca::client::ClientWarning;
use catraca::core::time::Time;
use catraca::{Check, FailMode};

use super::dropping_proxy::start_with_date;
use super::{CATALOG, builder, client};
use crate::keys::keygen;
use crate::test_server::TestServer;

#[tokio::test]
async fn mistakes_are_named_and_a_correct_client_has_none() {
    let reader = keygen(&["--role", "read", "--name", "dash"]);
    let checker = keygen(&["--role", "check", "--name", "shop"]);
    let tables = format!("{}{}", reader.table, checker.table);
    let server = TestServer::with_catalog(&format!("{CATALOG}{tables}"));
    let shop = builder(&server.address).key(&checker.key).caller("shop/1.4").build().unwrap();
    assert_eq!(shop.verify(&["login", "lookup", "free"]).await, []);
    let dash = builder(&server.address).key(&reader.key).build().unwrap();
    let warnings = dash.verify(&["login", "logn"]).await;
    let names: Vec<&str> = warnings.iter().map(|warning| warning.name()).collect();
    assert_eq!(names, ["wrong-role", "unknown-gate"]);
    assert!(warnings[1].to_string().contains("`logn`"));
    let stranger = builder(&server.address).key("catraca_wrong").build().unwrap();
    let warnings = stranger.verify(&["login"]).await;
    let names: Vec<&str> = warnings.iter().map(|warning| warning.name()).collect();
    assert_eq!(names, ["key-refused"]);
}

/// Regression: `verify` was an error while the server was down, and a program with
/// `FailMode::Open` that called it at its start did not start.
#[tokio::test]
async fn a_server_that_cannot_be_reached_is_a_warning() {
    // Nothing listens on port 1, so the connection is refused at once.
    let client = builder("127.0.0.1:1").fail(FailMode::Open).build().unwrap();
    let warnings = client.verify(&["login"]).await;
    let names: Vec<&str> = warnings.iter().map(|warning| warning.name()).collect();
    assert_eq!(names, ["unavailable"]);
    let text = warnings[0].to_string();
    assert!(text.contains("http://127.0.0.1:1 cannot be reached"), "{text}");
    assert!(client.check(&Check::new("login", [("ip", "::1")])).await.unwrap().allowed);
}

#[tokio::test]
async fn a_gate_that_only_the_default_policy_decides_is_unknown() {
    let server = TestServer::with_catalog(&format!("default = 'free'\n{CATALOG}"));
    let warnings = client(&server).verify(&["login", "undeclared"]).await;
    let names: Vec<&str> = warnings.iter().map(|warning| warning.name()).collect();
    assert_eq!(names, ["unknown-gate"]);
}

#[tokio::test]
async fn a_key_of_one_namespace_finds_unknown_gates_too() {
    let shop = keygen(&["--role", "check", "--name", "shop", "--namespace", "shop"]);
    let server = TestServer::with_catalog(&format!("{CATALOG}{}", shop.table));
    let client = builder(&server.address).key(&shop.key).build().unwrap();
    let warnings = client.verify(&["login", "logn"]).await;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].to_string().contains("`logn`"));
}

#[tokio::test]
async fn a_program_that_checks_needs_no_admin_key() {
    let admin = keygen(&["--role", "admin", "--name", "ops"]);
    let server = TestServer::with_catalog(&format!("{CATALOG}{}", admin.table));
    let client = builder(&server.address).key(&admin.key).build().unwrap();
    let warnings = client.verify(&["login"]).await;
    assert_eq!(warnings, [ClientWarning::AdminKey]);
    assert_eq!(warnings[0].name(), "admin-key");
    let open = TestServer::with_catalog(CATALOG);
    let client = super::client(&open);
    assert_eq!(client.verify(&["login"]).await, [], "a server without keys is no mistake");
}

#[tokio::test]
async fn a_clock_that_differs_by_more_than_30_s_is_named() {
    let server = TestServer::with_catalog(CATALOG);
    let names = |behind: u64| {
        let time = Time::from(SystemTime::now() - Duration::from_secs(behind));
        let address = start_with_date(&server.address, http_date(time));
        async move {
            let client = builder(&address).build().unwrap();
            let warnings = client.verify(&["login"]).await;
            warnings.iter().map(|warning| warning.name()).collect::<Vec<_>>()
        }
    };
    assert_eq!(names(0).await, Vec::<&str>::new());
    // Below the bound by more than this test can take to reach the server.
    assert_eq!(names(5).await, Vec::<&str>::new());
    assert_eq!(names(31).await, ["clock-difference"]);
}

#[tokio::test]
async fn a_client_names_itself_by_default() {
    let server = TestServer::with_catalog(CATALOG);
    client(&server).check(&Check::new("free", [("ip", "::1")])).await.unwrap();
    let callers = server.request("GET /v1/stats/callers", &[]).json();
    let expected = concat!("catraca-rust/", env!("CARGO_PKG_VERSION"));
    assert_eq!(callers["callers"][0]["caller"], expected, "{callers}");
}

/// An instant as HTTP writes it.
fn http_date(time: Time) -> String {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    // The first day of 1970 was a Thursday.
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    let day = DAYS[(time.micros() / 86_400_000_000 % 7) as usize];
    let text = time.to_rfc3339();
    let month: usize = text[5..7].parse().unwrap();
    let name = &MONTHS[3 * (month - 1)..3 * month];
    format!("{day}, {} {name} {} {} GMT", &text[8..10], &text[..4], &text[11..19])
}
