//! A public API with ten requests a second by address, and a block of five minutes.

use std::path::Path;

use anyhow::{Result, ensure};

use super::http_client::DemoRequest;
use super::stage::Stage;
use super::upstream::{self, UpstreamRequest, UpstreamResponse};
use crate::TestContext;

/// The API, which knows nothing of limits.
fn answer(_: &UpstreamRequest) -> UpstreamResponse {
    let parts = vec![r#"{"hello":"world"}"#.to_owned()];
    UpstreamResponse { status: "200 OK", content_type: "application/json", parts }
}

pub(super) fn run(context: &TestContext, binary: &Path) -> Result<()> {
    let url = upstream::start(answer)?;
    let stage = Stage::start(context, binary, "window-block", "API_UPSTREAM", &url)?;
    let address = |own: &'static str| [("X-Forwarded-For", own)];
    let get = |headers| DemoRequest { line: "GET /orders", headers, body: "" };
    let anonymous = address("198.51.100.7");
    stage.ask(
        &get(&anonymous),
        200,
        "No token: the limit is that of the address, ten in any second.",
    )?;
    // As many as it takes: a slow machine may need more than a second for eleven requests.
    let denied = stage.repeat_until(&get(&anonymous), 429, 200)?;
    println!("  The eleventh request within a second is denied, and blocks for five minutes.\n");
    let wait: u64 = denied.header("retry-after").unwrap_or("0").parse()?;
    ensure!((298..=300).contains(&wait), "the block lasts {wait} seconds");
    stage.ask(
        &get(&anonymous),
        429,
        "The window is free again after a second, and the block is still active.",
    )?;
    let other = address("198.51.100.8");
    stage.ask(&get(&other), 200, "Another address is not affected.")?;
    let partner = [("X-Forwarded-For", "198.51.100.7"), ("API_KEY", "abc123")];
    stage.ask(
        &get(&partner),
        200,
        "The same address with a known token: the token has its own limit, a hundred a second. The \
         catalog contains only the token's hash.",
    )?;
    let unknown = [("X-Forwarded-For", "198.51.100.7"), ("API_KEY", "invented")];
    stage.ask(&get(&unknown), 429, "An unknown token gives no fresh quota.")?;
    let body = r#"{"gate":"ip","subject":{"ip":"198.51.100.7"}}"#;
    let reset = r#"{"policy":"ip","subject":{"ip":"198.51.100.7"},"why":"demo"}"#;
    println!("> POST /v1/reset {reset}");
    stage.call("/v1/reset", reset)?;
    ensure!(stage.call("/v1/peek", body)?["allowed"] == true, "the reset has no effect");
    stage.ask(&get(&anonymous), 200, "An operator has cleared the window and the block.")?;
    stage.end()
}
