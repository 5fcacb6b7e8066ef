//! `POST /v1/settle`: applies the outcome of a check.

use bytes::Bytes;
use catraca::json::AsJson;
use catraca::settlement::Settlement;
use catraca::{CheckRef, Settle};
use serde::Serialize;

use super::credit_and_buckets::encode;
use crate::auth::Caller;
use crate::context::ServerContext;
use crate::http::bodies::problem::Problem;
use crate::http::bodies::wire::{WireSettle, read};

/// `POST /v1/settle`.
pub async fn settle(
    context: &ServerContext,
    caller: &Caller,
    body: &Bytes,
) -> Result<Vec<u8>, Problem> {
    let wire: WireSettle<'_> = read(body)?;
    let body_bytes_max = context.app.catalog().settle.body_bytes_max;
    let outcome = wire.outcome.read(body, body_bytes_max)?;
    let check = match (&wire.ticket, &wire.r#ref) {
        (Some(ticket), None) => CheckRef::Ticket(ticket),
        (None, Some(name)) => {
            CheckRef::Reference(name, caller.with_fixed_attributes(wire.subject.subject())?)
        }
        _ => {
            let detail = "name the check by its `ticket`, or by its `ref` and `subject`";
            return Err(Problem::bad("bad-settle", detail));
        }
    };
    let call = Settle { namespace: caller.namespace(), check, outcome: &outcome };
    let answer = context.app.settle(&call).await?;
    encode(&SettleBody { settlement: AsJson(&answer.settlement), durable: answer.durable })
}

#[derive(Serialize)]
struct SettleBody<'a> {
    #[serde(flatten)]
    settlement: AsJson<&'a Settlement>,
    /// Only for what is in the records; the response says nothing about counters.
    #[serde(skip_serializing_if = "Option::is_none")]
    durable: Option<bool>,
}
