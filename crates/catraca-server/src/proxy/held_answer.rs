//! A response that is held back until the rules have read it, because a ban may replace it.
//!
//! Only a ban with a `status` replaces the response that triggers it. Such a response is small: a
//! body over the limit of rules, and a stream that is not JSON and has no length, are passed on as
//! they arrive, and then a ban concerns the next request.

use std::sync::Arc;

use catraca::core::cell::block::Origin;
use catraca::http_outcome::is_json;
use catraca::settlement::Settlement;
use catraca::{CheckMode, Decision};
use hyper::body::SizeHint;
use hyper::http::{HeaderMap, header};

use super::admission::CheckInput;
use super::answer_body::{AnswerBody, HoldResult};
use super::failure::UpstreamFailure;
use super::responses::OwnResponse;
use crate::context::ServerContext;

/// Whether a response can be held back.
pub fn can_hold(headers: &HeaderMap, size: &SizeHint, bytes_max: usize) -> bool {
    let is_json = headers.get(header::CONTENT_TYPE).is_some_and(is_json);
    match size.exact() {
        Some(bytes) => bytes <= bytes_max as u64,
        None => is_json,
    }
}

/// Holds a response back and settles it. If that started a ban with a status, the denial of the
/// ban is the error.
pub async fn settle_held(
    body: &mut AnswerBody,
    bytes_max: usize,
    input: &Arc<CheckInput>,
    server: &ServerContext,
) -> Result<(), OwnResponse> {
    let settle = match body.hold(bytes_max).await {
        Ok(HoldResult::Complete(settle)) => settle,
        Ok(HoldResult::TooLarge) => return Ok(()),
        Err(_) => {
            if let Some(mut settle) = body.take_settle() {
                settle.on_failure(UpstreamFailure::Broken);
            }
            return Err(UpstreamFailure::Broken.problem().into());
        }
    };
    let Some(settle) = settle else { return Ok(()) };
    let settlement = settle.settle().await;
    match settlement.is_some_and(|settlement| has_replacing_ban(&settlement)) {
        true => denial(input, server).await.map_or(Ok(()), |denial| Err(denial.into())),
        false => Ok(()),
    }
}

fn has_replacing_ban(settlement: &Settlement) -> bool {
    let mut rows = settlement.rows.iter();
    rows.any(|row| row.blocked_by == Some(Origin::Ban) && row.status.is_some())
}

/// The decision about the next request of the same caller: what the banned caller gets.
async fn denial(input: &Arc<CheckInput>, server: &ServerContext) -> Option<Decision> {
    let decision = server.decide(&input.check(), CheckMode::Peek).await.ok()?;
    (!decision.allowed).then_some(decision)
}
