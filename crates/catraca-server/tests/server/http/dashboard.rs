//! The queries of the dashboard on the metrics of a real server.

use std::collections::BTreeSet;

use super::observe::{CATALOG, LOW, check, scrape, series};
use crate::test_server::TestServer;

/// A dashboard that is loaded: every query names series that a server has after its first calls.
///
/// covers: 004-90
#[test]
fn every_query_of_the_dashboard_finds_series_of_a_server() {
    let server = TestServer::with_catalog(&format!("{CATALOG}{LOW}"));
    for gate in ["login", "login", "watched", "watched"] {
        check(&server, gate, r#"{"user":"ana"}"#);
    }
    let look_up = r#"{"gate":"look","subject":{"user":"ana"},"ref":"E1"}"#;
    let ticket = server.json("/v1/check", look_up).1["ticket"].clone();
    let settle = format!(r#"{{"ticket":{ticket},"outcome":{{"status":200}}}}"#);
    assert_eq!(server.post("/v1/settle", &settle).status, 200);
    let credit = r#"{"ref":"E1","event":"payment","subject":{"user":"ana"}}"#;
    assert_eq!(server.post("/v1/credit", credit).status, 200);
    let text = scrape(&server);
    let exported: BTreeSet<&str> =
        series(&text).into_iter().map(|name| name.split('{').next().unwrap()).collect();
    let dashboard = include_str!("../../../../../deploy/grafana/catraca.json");
    let dashboard: serde_json::Value = serde_json::from_str(dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut queries = 0;
    for target in panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten() {
        let query = target["expr"].as_str().unwrap();
        let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let names: Vec<&str> = words.filter(|word| word.starts_with("catraca_")).collect();
        assert!(!names.is_empty(), "{query}");
        for name in names {
            assert!(exported.contains(name), "{name} of `{query}` is not exported:\n{text}");
        }
        queries += 1;
    }
    assert!(queries > 9, "{queries}");
}
