//! A booking site for many tenants: the curl calls of its own manual, limits of tenants and
//! clients, and two bookings of one slot.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread;

use anyhow::{Context, Result, ensure};

use super::http_client::{DemoRequest, send};
use super::stage::Stage;
use super::upstream::{self, UpstreamRequest, UpstreamResponse};
use crate::TestContext;

const TENANT: [(&str, &str); 1] = [("X-Tenant-Id", "tenant_1")];
const BOOKING: &str = r#"{"start_at":"2030-01-07T10:00:00Z","duration":30}"#;

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
        "409 Conflict" => r#"{"error":"slot unavailable","conflict":true}"#,
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
    call_curl(&stage)?;
    limits(&stage)?;
    race(&stage)?;
    let test = r#"{"action":"test_concurrent_appointments"}"#;
    let report = stage.call("/v1/selftest", test)?;
    println!("> POST /v1/selftest {test}\n< {report}");
    println!("  The server tests itself, in a namespace of its own.\n");
    stage.end()
}

/// The first manual test of the source, unchanged but for the port: no slug is sent.
fn call_curl(stage: &Stage) -> Result<()> {
    let line = "GET /api/services";
    for number in 1..=10 {
        let response = send(&stage.proxy, &DemoRequest { line, headers: &TENANT, body: "" })?;
        ensure!(response.status == 200, "call {number}: {}", response.status);
        let limit = response.header("x-ratelimit-limit");
        ensure!(limit.is_some(), "call {number} has no X-RateLimit-Limit");
        thread::sleep(std::time::Duration::from_millis(100));
    }
    println!("> 10 times {line}  X-Tenant-Id: tenant_1, at ten a second");
    println!("< 200, with X-RateLimit-Limit, -Remaining and -Reset");
    println!("  They reach no limit: sixty a minute and ten a second are allowed.\n");
    Ok(())
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

/// The second manual test: two bookings of one slot at the same time.
fn race(stage: &Stage) -> Result<()> {
    let line = "POST /api/appointments";
    let request = DemoRequest { line, headers: &TENANT, body: BOOKING };
    let mut statuses = thread::scope(|scope| -> Result<Vec<u16>> {
        let both = [(); 2].map(|()| scope.spawn(|| send(&stage.proxy, &request)));
        both.into_iter()
            .map(|one| Ok(one.join().ok().context("a request panicked")??.status))
            .collect()
    })?;
    statuses.sort_unstable();
    println!("> twice at once: {line}  {BOOKING}\n< {statuses:?}");
    println!("  One of two bookings of the same slot wins.\n");
    ensure!(statuses == [201, 409], "{statuses:?}");
    Ok(())
}
