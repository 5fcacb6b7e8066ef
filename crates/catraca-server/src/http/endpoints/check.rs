//! `POST /v1/check` and `/v1/peek`: one check, or a list of them.
//!
//! This is the hot path: a single check allocates only its body and its response.

use bytes::Bytes;
use catraca::{Check, CheckMode, Decision};

use crate::auth::Caller;
use crate::context::ServerContext;
use crate::http::bodies::decision_writer;
use crate::http::bodies::problem::{FullResponse, Problem, json_response};
use crate::http::bodies::wire::{LIST_MAX, WireCheck, is_list, read, read_list};
use crate::observe::traces::RequestSpan;

/// An authenticated check call.
pub struct CheckRequest<'a> {
    /// The key that was presented.
    pub caller: &'a Caller,
    /// The trace span of the call.
    pub span: &'a RequestSpan,
    /// Whether the checks charge or only look.
    pub mode: CheckMode,
}

/// Handles one check, or a list of them. The checks of a list are independent: each is decided, or
/// is a problem, in its own position.
pub async fn handle(
    context: &ServerContext,
    request: &CheckRequest<'_>,
    body: &Bytes,
) -> FullResponse {
    let body = match is_list(body) {
        // Boxed, so that the future of a single check, which is created for every request, stays
        // small.
        true => Box::pin(check_list(context, request, body)).await,
        false => check_single(context, request, body).await,
    };
    body.map_or_else(|problem| problem.to_response(), json_response)
}

async fn check_single(
    context: &ServerContext,
    request: &CheckRequest<'_>,
    body: &[u8],
) -> Result<Vec<u8>, Problem> {
    let wire: WireCheck<'_> = read(body)?;
    let mut out = Vec::with_capacity(decision_writer::TYPICAL_BYTES);
    let decision = decide(context, request, &wire).await?;
    request.span.set_decision(&wire.gate, &decision);
    decision_writer::write(&decision, &mut out);
    Ok(out)
}

async fn check_list(
    context: &ServerContext,
    request: &CheckRequest<'_>,
    body: &[u8],
) -> Result<Vec<u8>, Problem> {
    let checks: Vec<WireCheck<'_>> = read_list(body)?;
    if checks.len() > LIST_MAX {
        let detail =
            format!("a list may have up to {LIST_MAX} checks; this one has {}", checks.len());
        return Err(Problem::bad("list-too-long", detail));
    }
    let mut out = vec![b'['];
    let mut denied = 0;
    for (index, check) in checks.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        match decide(context, request, check).await {
            Ok(decision) => {
                denied += usize::from(!decision.allowed);
                decision_writer::write(&decision, &mut out);
            }
            Err(problem) => out.extend(problem.to_json()),
        }
    }
    request.span.set_list_decisions(checks.len(), denied);
    out.push(b']');
    Ok(out)
}

async fn decide(
    context: &ServerContext,
    request: &CheckRequest<'_>,
    wire: &WireCheck<'_>,
) -> Result<Decision, Problem> {
    let caller = request.caller;
    let mut check = Check::new(&wire.gate, caller.with_fixed_attributes(wire.subject.subject())?);
    check.namespace = caller.namespace();
    check.cost = wire.cost;
    check.reference = wire.r#ref.as_deref();
    check.lists = wire.lists.unwrap_or(true);
    Ok(context.decide(&check, request.mode).await?)
}
