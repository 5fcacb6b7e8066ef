//! A shop whose payment API rejects a card: the customer must wait, in every browser.

use std::path::Path;

use anyhow::{Result, ensure};

use super::http_client::DemoRequest;
use super::stage::Stage;
use super::upstream::{self, UpstreamRequest, UpstreamResponse};
use crate::TestContext;

const SUBMIT: &str = "POST /CheckoutServices-SubmitPayment";

/// The payment API: it rejects amounts above 100, and every gift card.
fn answer(request: &UpstreamRequest) -> UpstreamResponse {
    let is_card = request.line.starts_with("POST /GiftCard");
    let is_rejected = request.body.contains("500");
    let body = match (is_card, is_rejected) {
        (true, _) => r#"{"error":"card refused"}"#,
        (false, true) => r#"{"reject_id":5}"#,
        (false, false) => r#"{"reject_id":0}"#,
    };
    UpstreamResponse {
        status: if is_card { "422 Unprocessable Content" } else { "200 OK" },
        content_type: "application/json",
        parts: vec![body.to_owned()],
    }
}

pub(super) fn run(context: &TestContext, binary: &Path) -> Result<()> {
    let url = upstream::start(answer)?;
    let stage = Stage::start(context, binary, "soft-ban", "PAYMENT_UPSTREAM", &url)?;
    let ana = [("X-Customer-No", "00012345"), ("X-Session-Id", "s1")];
    let guest = [("X-Session-Id", "s1")];
    let other_browser = [("X-Customer-No", "00012345"), ("X-Session-Id", "s2")];
    let bea = [("X-Customer-No", "00099999"), ("X-Session-Id", "s9")];
    let pay = |headers, amount| DemoRequest { line: SUBMIT, headers, body: amount };
    stage.ask(
        &pay(&ana, r#"{"amount":20}"#),
        200,
        "The payment API accepts, and its answer passes unchanged.",
    )?;
    let banned = stage.ask(
        &pay(&ana, r#"{"amount":500}"#),
        400,
        "The payment API has answered {\"reject_id\":5}, which bans for ten minutes. The rule has \
         an answer_status, so its own answer replaces that of the payment API.",
    )?;
    ensure!(banned.body.contains("O pagamento foi recusado"), "the rejection's text is missing");
    let denied = stage.ask(
        &pay(&ana, r#"{"amount":20}"#),
        429,
        "Ana must wait, and reads the guard's text. The payment API does not get the request.",
    )?;
    ensure!(denied.body.contains("Houve muitas tentativas"), "the guard's text is missing");
    stage.ask(&pay(&other_browser, r#"{"amount":20}"#), 429, "So must she in another browser.")?;
    stage.ask(&pay(&guest, r#"{"amount":20}"#), 429, "And logged out, in the same browser.")?;
    stage.ask(&pay(&bea, r#"{"amount":20}"#), 200, "Another customer is not affected.")?;
    let card =
        DemoRequest { line: "POST /GiftCard-Redeem", headers: &bea, body: r#"{"card":"1"}"# };
    for attempt in 1..=5 {
        let why = format!("Gift card {attempt} is refused with 422; the fifth one bans.");
        stage.ask(&card, 422, &why)?;
    }
    stage.wait_until("the fifth card bans", |stage| {
        let body = r#"{"gate":"redeem_gift_card","subject":{"session":"s9"}}"#;
        Ok(stage.call("/v1/peek", body)?["allowed"] == false)
    })?;
    stage.ask(
        &card,
        429,
        "Five refused gift cards in ten minutes ban for half an hour. This rule has no status, so \
         it concerns the next attempt.",
    )?;
    stage.ask(&pay(&bea, r#"{"amount":20}"#), 200, "Paying is another gate, and still allowed.")?;
    stage.end()
}
