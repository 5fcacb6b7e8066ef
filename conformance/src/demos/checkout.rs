//! A checkout of edge functions: one catalog has the limit of every action.

use std::path::Path;

use anyhow::{Result, ensure};

use super::http_client::{DemoRequest, send};
use super::stage::Stage;
use super::upstream::{self, UpstreamRequest, UpstreamResponse};
use crate::TestContext;

const LOGIN: &str = "POST /functions/v1/buyer-auth-login";
const ORDER: &str = "POST /functions/v1/create-order";

/// The edge functions, which know nothing of limits.
fn answer(request: &UpstreamRequest) -> UpstreamResponse {
    let is_preflight = request.line.starts_with("OPTIONS");
    let body = if is_preflight { "" } else { r#"{"ok":true}"# };
    let parts = if body.is_empty() { Vec::new() } else { vec![body.to_owned()] };
    UpstreamResponse { status: "200 OK", content_type: "application/json", parts }
}

pub(super) fn run(context: &TestContext, binary: &Path) -> Result<()> {
    let url = upstream::start(answer)?;
    let stage = Stage::start(context, binary, "checkout", "FUNCTIONS_UPSTREAM", &url)?;
    let buyer = [("X-Forwarded-For", "198.51.100.7")];
    let other = [("X-Forwarded-For", "198.51.100.8")];
    let post = |line, headers| DemoRequest { line, headers, body: "{}" };
    stage.ask(
        &post(LOGIN, &buyer),
        200,
        "The function buyer-auth-login has the limits of the policy buyer_auth_login: ten attempts \
         in any fifteen minutes. The request has no numbers.",
    )?;
    for _ in 2..=10 {
        let response = send(&stage.proxy, &post(LOGIN, &buyer))?;
        ensure!(response.status == 200, "{} within the limit", response.status);
    }
    let denied = stage.ask(
        &post(LOGIN, &buyer),
        429,
        "The eleventh attempt is denied, and blocks the address for half an hour.",
    )?;
    ensure!(denied.body == r#"{"error":"Rate limit exceeded","retryAfter":1800}"#);
    stage.ask(&post(LOGIN, &buyer), 429, "Attempts during the block do not extend it.")?;
    stage.ask(
        &post(ORDER, &buyer),
        200,
        "Orders are another action, with a count of their own.",
    )?;
    stage.ask(&post(LOGIN, &other), 200, "Another address is not affected.")?;
    let preflight =
        DemoRequest { line: "OPTIONS /functions/v1/buyer-auth-login", headers: &buyer, body: "" };
    stage.ask(
        &preflight,
        200,
        "A browser's preflight takes no attempt of the action; default counts it.",
    )?;
    stage.ask(
        &post("POST /functions/v1/export-report", &other),
        200,
        "A function that the catalog does not name is counted by the policy default.",
    )?;
    blocklist(&stage)?;
    report(&stage)?;
    stage.end()
}

/// An operator lists an address, and removes it again.
fn blocklist(stage: &Stage) -> Result<()> {
    let carder = [("X-Forwarded-For", "203.0.113.66")];
    let order = DemoRequest { line: ORDER, headers: &carder, body: "{}" };
    stage.ask(&order, 200, "This address may order.")?;
    let entry = r#"[{"range":"203.0.113.66","reason":"carding"}]"#;
    println!("> POST /v1/blocklist {entry}");
    stage.call("/v1/blocklist", entry)?;
    stage.ask(
        &order,
        403,
        "An operator has put it on the blocklist, without an end: waiting does not help, so the \
         status is 403.",
    )?;
    let check = |lists: bool| {
        let subject = r#"{"ip":"203.0.113.66"}"#;
        let body =
            format!(r#"{{"gate":"stripe_create_payment","subject":{subject},"lists":{lists}}}"#);
        println!("> POST /v1/check {body}");
        stage.call("/v1/check", &body)
    };
    ensure!(check(true)?["reason"] == "blocklisted", "the blocklist does not decide");
    println!("< denied: blocklisted\n");
    ensure!(check(false)?["allowed"] == true, "the variant without lists is denied");
    println!("< allowed\n  A program may ask for the limits alone, without the lists.\n");
    Ok(())
}

/// What an operator sees: attempts by action, and who was blocked.
fn report(stage: &Stage) -> Result<()> {
    let get = |line| send(&stage.api, &DemoRequest { line, headers: &[], body: "" });
    let read = |line| -> Result<serde_json::Value> { Ok(serde_json::from_str(&get(line)?.body)?) };
    let actions = read("GET /v1/stats/actions")?;
    println!("> GET /v1/stats/actions");
    for row in actions["actions"].as_array().into_iter().flatten() {
        println!("< {}: {} attempts, {} blocked", row["action"], row["total"], row["blocked"]);
    }
    let logins = actions["actions"].as_array().into_iter().flatten();
    let logins = logins.filter(|row| row["action"] == "buyer_auth_login");
    let attempts: u64 = logins.filter_map(|row| row["total"].as_u64()).sum();
    ensure!(attempts == 13, "{attempts} logins are counted, of 13");
    let top = read("GET /v1/stats/top-blocked")?;
    ensure!(top["subjects"][0]["subject"]["ip"] == "198.51.100.7", "{top}");
    println!("  Attempts are counted, not rows; 198.51.100.7 was blocked most often: once.");
    Ok(())
}
