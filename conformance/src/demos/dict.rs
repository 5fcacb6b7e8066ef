//! A participant of Pix whose lookups go through the proxy: what DICT answers decides the price.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::http_client::DemoRequest;
use super::stage::Stage;
use super::upstream::{self, UpstreamRequest, UpstreamResponse};
use crate::TestContext;
use crate::dict_simulator::DictSimulator;

const PARTICIPANT: &str = "12345678";
/// What the bank has assigned; a participant without a category counts as H.
const CATEGORY: char = 'E';

/// The directory: it knows keys that contain `maria`, and lists the participant's buckets.
fn answer(request: &UpstreamRequest) -> UpstreamResponse {
    if request.line.starts_with("GET /api/v2/policies") {
        let mut dict = DictSimulator::default();
        dict.set_category(0, PARTICIPANT, CATEGORY);
        dict.fill(PARTICIPANT);
        let states = dict.states(0, PARTICIPANT, "2026-01-01T00:00:00Z").unwrap_or_default();
        let content_type = "application/xml";
        return UpstreamResponse { status: "200 OK", content_type, parts: vec![states] };
    }
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
    let variables =
        [("DICT_UPSTREAM", url.as_str()), ("DICT_PARTICIPANT", PARTICIPANT), ("DICT_POLL", "1h")];
    let stage = Stage::start_with(context, binary, "dict", &variables)?;
    show_poll(&stage)?;
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
    ensure!(denied.header("content-type") == Some("application/problem+xml"), "no XML");
    ensure!(denied.body.contains("/error/RateLimited</type>"), "not the error of the DICT");
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
    show_states(&stage)?;
    stage.end()
}

/// The worker has asked the bank: the category is a fact, and the bucket has its size.
fn show_poll(stage: &Stage) -> Result<()> {
    let subject = format!(r#"{{"subject":{{"participant":"{PARTICIPANT}"}}}}"#);
    let path = "/v1/buckets/entries_read_participant_antiscan";
    stage.wait_until("the bucket has the size of the category", |stage| {
        Ok(stage.call(path, &subject)?["size"] == 4_500)
    })?;
    let line = format!("GET /v1/facts/participant/{PARTICIPANT}");
    let facts = stage.call_as(&line, "application/json", "")?;
    println!("> {line}\n< {facts}");
    println!(
        "  The worker has polled the bank, whose category is now a fact: {CATEGORY} has a bucket \
         of 5,000, of which a tenth is margin.\n"
    );
    ensure!(facts.contains(&format!(r#""category":"{CATEGORY}""#)), "not the category: {facts}");
    Ok(())
}

/// The states of all buckets, as the bank itself lists them.
fn show_states(stage: &Stage) -> Result<()> {
    let subject = format!(r#"{{"subject":{{"participant":"{PARTICIPANT}"}}}}"#);
    let xml = stage.call_as("POST /v1/buckets", "application/xml", &subject)?;
    let (head, policies) = xml.split_once("<Policy>").context("no policies")?;
    let first = policies.split("</Policy>").next().unwrap_or_default();
    println!("> POST /v1/buckets  Accept: application/xml\n< {head}<Policy>{first}</Policy> ...");
    println!("  All buckets with the elements of the DICT's own list.\n");
    ensure!(xml.contains(&format!("<Category>{CATEGORY}</Category>")), "no category: {xml}");
    Ok(())
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
