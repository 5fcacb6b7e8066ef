//! A booking site for many tenants: the curl calls of its own manual as they are written there, and
//! limits of tenants and clients.

use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, ensure};

use super::http_client::{DemoRequest, send};
use super::stage::Stage;
use super::upstream::{self, UpstreamRequest, UpstreamResponse};
use crate::{Scratch, TestContext};

const TENANT: [(&str, &str); 1] = [("X-Tenant-Id", "tenant_1")];
/// The first test of the manual: ten pages, at ten a second.
const PAGES: &str = r#"for i in {1..10}; do
  curl -H "X-Tenant-Id: tenant_1" http://localhost:3000/api/services
  sleep 0.1
done"#;
/// The second one: two bookings of one time, at once.
const BOOKINGS: &str = r#"curl -X POST -H "X-Tenant-Id: tenant_1" \
  -d '{"start_at": "2024-01-01T10:00:00Z", "duration": 30}' \
  http://localhost:3000/api/appointments &

curl -X POST -H "X-Tenant-Id: tenant_1" \
  -d '{"start_at": "2024-01-01T10:00:00Z", "duration": 30}' \
  http://localhost:3000/api/appointments &

wait"#;

/// The application: pages, and bookings that Catraca's slots keep apart.
fn answer(request: &UpstreamRequest, api: &str) -> UpstreamResponse {
    let is_booking = request.line.starts_with("POST /api/appointments");
    let status = match is_booking.then(|| book(request, api)) {
        Some(Ok(200)) => "201 Created",
        Some(Ok(_)) => "409 Conflict",
        Some(Err(_)) => "500 Internal Server Error",
        None => "200 OK",
    };
    let body = match status {
        "409 Conflict" => r#"{"error":"Horário não disponível","conflict":true}"#,
        _ => r#"{"ok":true}"#,
    };
    let parts = vec![body.to_owned()];
    UpstreamResponse { status, content_type: "application/json", parts }
}

/// Holds the slot, which no other request can hold then; the status of that call.
fn book(request: &UpstreamRequest, api: &str) -> Result<u16> {
    let tenant = request.header("x-tenant-id").context("no tenant")?;
    let body: serde_json::Value = serde_json::from_str(&request.body)?;
    let start = body["start_at"].as_str().context("no start")?;
    let end = start.replacen(":00:00", ":30:00", 1);
    let slot =
        format!(r#"{{"tenant":"{tenant}","calendar":"ana","start":"{start}","end":"{end}"}}"#);
    let line = "POST /v1/slots/hold";
    let held = send(api, &DemoRequest { line, headers: &[], body: &slot })?;
    Ok(held.status)
}

pub(super) fn run(context: &TestContext, binary: &Path) -> Result<()> {
    let api = Arc::new(OnceLock::new());
    let own: Arc<OnceLock<String>> = Arc::clone(&api);
    let url = upstream::start(move |request| {
        answer(request, own.get().map(String::as_str).unwrap_or_default())
    })?;
    let stage = Stage::start(context, binary, "booking", "APP_UPSTREAM", &url)?;
    api.set(stage.api.clone()).ok().context("the address is set twice")?;
    the_manual_runs_as_it_is_written(context, &stage)?;
    limits(&stage)?;
    let test = r#"{"action":"test_concurrent_appointments"}"#;
    let report = stage.call("/v1/selftest", test)?;
    println!("> POST /v1/selftest {test}\n< {report}");
    println!("  The server tests itself, in a namespace of its own.\n");
    stage.end()
}

/// covers: 004-68, 004-69, X-32, X-35
fn the_manual_runs_as_it_is_written(context: &TestContext, stage: &Stage) -> Result<()> {
    let pages = run_script(context, stage, PAGES)?;
    println!("  They reach no limit: sixty a minute and ten a second are allowed.\n");
    ensure!(pages == [200; 10], "{pages:?}");
    let bookings = run_script(context, stage, BOOKINGS)?;
    println!("  One of two bookings of the same time wins.\n");
    ensure!(bookings == [201, 409], "{bookings:?}");
    Ok(())
}

/// Runs calls of curl to port 3000 and returns their statuses, sorted. A configuration file of curl
/// leads them to the proxy, which has a free port.
fn run_script(context: &TestContext, stage: &Stage, script: &str) -> Result<Vec<u16>> {
    let folder = Scratch::new("curl")?;
    let settings = format!(
        "silent\noutput = \"/dev/null\"\nwrite-out = \"%{{http_code}}\\n\"\nnoproxy = \"*\"\n\
         connect-to = \"localhost:3000:{}\"\n",
        stage.proxy
    );
    fs::write(folder.path().join(".curlrc"), settings)?;
    script.lines().for_each(|line| println!("$ {line}"));
    let mut bash = context.repo.command("bash");
    let ran = bash.args(["-c", script]).env("CURL_HOME", folder.path()).output()?;
    let printed = String::from_utf8(ran.stdout)?;
    let errors = String::from_utf8_lossy(&ran.stderr);
    ensure!(ran.status.success(), "{}: {printed}{errors}", ran.status);
    let mut statuses: Vec<u16> =
        printed.lines().map(|line| line.parse().context("no status")).collect::<Result<_>>()?;
    statuses.sort_unstable();
    println!("< {statuses:?}");
    Ok(statuses)
}

fn limits(stage: &Stage) -> Result<()> {
    let login = DemoRequest { line: "POST /api/auth/login", headers: &TENANT, body: "{}" };
    let denied = stage.repeat_until(&login, 429, 20)?;
    ensure!(denied.body.contains(r#""conflict":true"#), "the denial is another: {}", denied.body);
    println!("  A client may try five logins a second and ten a minute.\n");
    let other = [("X-Tenant-Id", "tenant_1"), ("X-Forwarded-For", "198.51.100.9")];
    stage.ask(
        &DemoRequest { headers: &other, ..login },
        200,
        "Another client of the same tenant still can: one attacker does not lock it out.",
    )?;
    Ok(())
}
