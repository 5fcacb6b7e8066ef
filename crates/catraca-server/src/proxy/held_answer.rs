//! A response that is held back until the rules have read it, because a ban may replace it.
//!
//! Only a ban with a `status` replaces the response that triggers it. If no rule of such a ban
//! reads the body, a response whose head matches none of them is passed on as it arrives. So are a
//! body over the limit of rules, and a stream that is not JSON and has no length; then a ban
//! concerns the next request.

use std::sync::Arc;

use catraca::core::cell::block::Origin;
use catraca::http_outcome::is_json;
use catraca::settlement::{SettledRow, Settlement};
use catraca::{CheckMode, Decision, Error};
use hyper::body::SizeHint;
use hyper::http::{HeaderMap, header};
use tracing::error;

use super::admission::CheckInput;
use super::answer_body::{AnswerBody, HoldResult};
use super::answer_stream::AnswerError;
use super::failure::UpstreamFailure;
use super::responses::OwnResponse;
use super::upload_body::UploadState;
use crate::context::ServerContext;
use crate::http_wire::problem::Problem;

/// Whether a response can be held back.
pub fn can_hold(headers: &HeaderMap, size: &SizeHint, bytes_max: usize) -> bool {
    let is_json = headers.get(header::CONTENT_TYPE).is_some_and(is_json);
    match size.exact() {
        Some(bytes) => bytes <= bytes_max as u64,
        None => is_json,
    }
}

/// Why a response that was held back is not passed on.
pub enum HeldFailure {
    /// It did not arrive in full. Its settle has the failure.
    Upstream(UpstreamFailure),
    /// A ban replaces it.
    Replaced(OwnResponse),
}

impl HeldFailure {
    /// The response to the client.
    pub fn into_response(self) -> OwnResponse {
        match self {
            Self::Upstream(failure) => failure.problem().into(),
            Self::Replaced(response) => response,
        }
    }
}

/// Holds a response back and settles it. If that started a ban with a status, the denial of the
/// ban is the error.
pub async fn settle_held(
    body: &mut AnswerBody,
    bytes_max: usize,
    input: &Arc<CheckInput>,
    server: &ServerContext,
    upload: Option<&UploadState>,
) -> Result<(), HeldFailure> {
    let settle = match body.hold(bytes_max).await {
        Ok(HoldResult::Complete(settle)) => settle,
        Ok(HoldResult::TooLarge) => return Ok(()),
        Err(error) => {
            // A client must not be able to hide the status by breaking its own upload, which ends
            // the connection to the upstream.
            let is_clients = upload.is_some_and(UploadState::has_failed);
            let failure = match error {
                _ if is_clients => UpstreamFailure::RequestBody,
                AnswerError::Broken => UpstreamFailure::Broken,
                AnswerError::Timeout => UpstreamFailure::Timeout,
                AnswerError::HoldOver => UpstreamFailure::HoldOver,
            };
            if let Some(mut settle) = body.take_settle() {
                match is_clients {
                    true => settle.on_broken("client-gone"),
                    false => settle.on_failure(failure),
                }
            }
            return Err(HeldFailure::Upstream(failure));
        }
    };
    let Some(settle) = settle else { return Ok(()) };
    let settlement = settle.settle().await;
    let Some(ban) = settlement.as_ref().and_then(replacing_ban) else { return Ok(()) };
    match denial(input, server, ban).await {
        Ok(None) => Ok(()),
        Ok(Some(denial)) => Err(HeldFailure::Replaced(denial.into())),
        Err(error) => {
            if server.proxy_metrics.note_settle_failure() {
                error!(
                    %error,
                    "a ban replaces a response, but its denial could not be read from the store; \
                     the client gets this error instead of the response"
                );
            }
            Err(HeldFailure::Replaced(Problem::from(error).into()))
        }
    }
}

/// The row of the first ban that this settle started and that has a status.
fn replacing_ban(settlement: &Settlement) -> Option<&SettledRow> {
    let mut rows = settlement.rows.iter();
    rows.find(|row| row.blocked_by == Some(Origin::Ban) && row.status.is_some())
}

/// The decision about the next request of the same caller, with the status and the text that the
/// ban has for the request that started it.
async fn denial(
    input: &Arc<CheckInput>,
    server: &ServerContext,
    ban: &SettledRow,
) -> Result<Option<Decision>, Error> {
    let mut decision = server.decide(&input.check(), CheckMode::Peek).await?;
    if decision.allowed {
        return Ok(None);
    }
    if decision.policy.as_deref() == Some(&*ban.policy) {
        decision.status = ban.status;
        decision.message = ban.message.clone().or(decision.message);
    }
    Ok(Some(decision))
}
