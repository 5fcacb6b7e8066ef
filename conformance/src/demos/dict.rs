//! A participant of Pix whose lookups go through the proxy: what DICT answers decides the price.

use std::path::Path;

use anyhow::{Result, ensure};

use super::http_client::DemoRequest;
use super::stage::Stage;
use super::upstream::{self, UpstreamRequest, UpstreamResponse};
use crate::TestContext;

/// The directory: it knows keys that contain `maria`.
fn answer(request: &UpstreamRequest) -> UpstreamResponse {
    let is_known = request.line.contains("maria");
    let (status, body) = match is_known {
        true => ("200 OK", "<GetEntryResponse><Key>maria@example.com</Key></GetEntryResponse>"),
        false => ("404 Not Found", "<problem><title>Not found</title></problem>"),
    };
    UpstreamResponse { status, content_type: "application/xml", parts: vec![body.to_owned()] }
}

const PAYER: &str = "11144477735";

pub(super) fn run(context: &TestContext, binary: &Path) -> Result<()> {
    let url = upstream::start(answer)?;
    let stage = Stage::start(context, binary, "dict", "DICT_UPSTREAM", &url)?;
    let look_up = |line: &str, payer: &str, reference: &str, status, why: &str| {
        let headers = [
            ("PI-RequestingParticipant", "12345678"),
            ("PI-PayerId", payer),
            ("PI-EndToEndId", reference),
        ];
        stage.ask(&DemoRequest { line, headers: &headers, body: "" }, status, why)
    };
    look_up(
        "GET /api/v2/entries/maria@example.com",
        PAYER,
        "E1",
        200,
        "An e-mail address: the gate is getEntry.EMAIL, by the shape of the key. A key that is \
         found costs one token.",
    )?;
    expect_tokens(&stage, "entries_read_user_antiscan", 98)?;
    let subject = format!(r#"{{"participant":"12345678","payer":"{PAYER}"}}"#);
    let credit = format!(r#"{{"ref":"E1","event":"payment","subject":{subject}}}"#);
    println!("> POST /v1/credit {credit}");
    stage.call("/v1/credit", &credit)?;
    println!("  The payment of this lookup has arrived: the token comes back.\n");
    expect_tokens(&stage, "entries_read_user_antiscan", 99)?;
    for (number, tokens) in [(1, 79), (2, 59), (3, 39), (4, 19), (5, 0)] {
        let reference = format!("F{number}");
        let why = format!("Not found: 20 tokens of the payer and 3 of the participant ({number}).");
        look_up("GET /api/v2/entries/52998224725", PAYER, &reference, 404, &why)?;
        expect_tokens(&stage, "entries_read_user_antiscan_v2", tokens)?;
    }
    let denied = look_up(
        "GET /api/v2/entries/52998224725",
        PAYER,
        "F6",
        429,
        "The payer's bucket is empty. DICT does not get the request, and the denial looks like \
         its own.",
    )?;
    ensure!(denied.body.contains("problem"), "the denial is no problem document");
    look_up(
        "GET /api/v2/entries/maria@example.com",
        PAYER,
        "E2",
        200,
        "E-mail addresses have another bucket, which has tokens.",
    )?;
    look_up(
        "GET /api/v2/entries/52998224725",
        "52998224725",
        "G1",
        404,
        "Another payer has buckets of his own.",
    )?;
    look_up(
        "GET /api/v2/entries/not-a-key",
        PAYER,
        "H1",
        400,
        "A value that has the shape of no key is refused: no request chooses its own bucket.",
    )?;
    stage.end()
}

/// Checks the tokens that the payer has left, and prints them.
fn expect_tokens(stage: &Stage, policy: &str, expected: i64) -> Result<()> {
    let subject = format!(r#"{{"participant":"12345678","payer":"{PAYER}"}}"#);
    let body = format!(r#"{{"subject":{subject}}}"#);
    let path = format!("/v1/buckets/{policy}");
    stage.wait_until(&format!("{policy} has {expected} tokens"), |stage| {
        let found = stage.call(&path, &body)?["available"].as_i64();
        // A bucket refills while the demo runs.
        Ok(found.is_some_and(|found| (expected..=expected + 2).contains(&found)))
    })?;
    println!("  The payer has {expected} tokens left in {policy}.\n");
    Ok(())
}
