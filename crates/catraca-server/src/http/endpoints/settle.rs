//! `POST /v1/settle`: applies the outcome of a check.

use catraca::json::SettlementBody;
use catraca::{CheckRef, Settle};

use crate::http::bodies::problem::{Problem, respond_json};
use crate::http::bodies::wire::{WireSettle, read};
use crate::http::endpoint::ApiResult;
use crate::http::request::ApiRequest;

/// `POST /v1/settle`.
pub async fn settle(request: &ApiRequest) -> ApiResult {
    let wire: WireSettle<'_> = read(&request.body)?;
    let body_bytes_max = request.app().catalog().settle.body_bytes_max;
    let outcome = wire.outcome.read(body_bytes_max)?;
    let check = match (&wire.ticket, &wire.r#ref) {
        (Some(ticket), None) => CheckRef::Ticket(ticket),
        (None, Some(name)) => {
            CheckRef::Reference(name, request.caller.with_fixed_attributes(wire.subject.subject())?)
        }
        _ => {
            let detail = "name the check by its `ticket`, or by its `ref` and `subject`";
            return Err(Problem::bad("bad-settle", detail));
        }
    };
    let call = Settle { namespace: request.namespace(), check, outcome: &outcome };
    let answer = request.app().settle(&call).await?;
    respond_json(&SettlementBody::from(&answer))
}
