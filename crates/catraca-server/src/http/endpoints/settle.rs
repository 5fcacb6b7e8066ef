//! `POST /v1/settle`: applies the outcome of a check; a block or a debt is on disk before the
//! response.
//!
//! The acknowledgement of the records is awaited, so that no async worker blocks on the disk. A
//! settle whose ban rules may take more than about a millisecond runs on a thread for blocking
//! work, so that checks on the same worker do not wait for it. `durable` is only sent for what is
//! in the records: counters may lose what was counted since the last snapshot.

use std::sync::Arc;

use bytes::Bytes;
use catraca::core::limit::Limit;
use catraca::json::AsJson;
use catraca::records::Receipt;
use catraca::settlement::{SettleState, SettledRow, Settlement};
use catraca::{Catalog, CheckRef, Settle};
use serde::Serialize;
use tokio::runtime::Handle;

use super::credit_and_buckets::encode;
use crate::auth::Caller;
use crate::context::ServerContext;
use crate::http::bodies::problem::Problem;
use crate::http::bodies::wire::{WireSettle, read};

/// Settles of at least this estimated cost run off the async workers: about a millisecond.
const OFFLOAD_WORK: u64 = 1_000_000;

/// `POST /v1/settle`.
pub async fn settle(
    context: &Arc<ServerContext>,
    caller: &Arc<Caller>,
    body: &Bytes,
) -> Result<Vec<u8>, Problem> {
    let work = context.engine.catalog().rule_cost.estimate(body.len());
    let (settlement, ack) = match work < OFFLOAD_WORK {
        true => apply(context, caller, body).await?,
        false => offload(Arc::clone(context), Arc::clone(caller), body.clone()).await?,
    };
    let durable = match ack {
        // Counters alone: the response says nothing about durability.
        _ if !must_be_durable(&context.engine.catalog(), &settlement) => None,
        Some(ack) => Some(ack.await.is_durable()),
        None => Some(false),
    };
    encode(&SettleBody { settlement: AsJson(&settlement), durable })
}

#[derive(Serialize)]
struct SettleBody<'a> {
    #[serde(flatten)]
    settlement: AsJson<&'a Settlement>,
    #[serde(skip_serializing_if = "Option::is_none")]
    durable: Option<bool>,
}

/// Whether it left a bucket in debt or started a block; a repeated settle was already acknowledged
/// the first time. A window below zero is only a counter: it is as full as it can be, and ends with
/// the window.
fn must_be_durable(catalog: &Catalog, settlement: &Settlement) -> bool {
    let in_debt = |row: &SettledRow| {
        let policy = catalog.find(&row.policy).map(|(_, policy)| policy);
        let tiers = policy.iter().flat_map(|policy| policy.tiers.iter().map(|tier| &tier.terms));
        let mut terms = policy.iter().flat_map(|policy| &policy.base).chain(tiers);
        row.balance.is_some_and(|balance| balance < 0)
            && terms.any(|terms| matches!(terms.limit, Limit::Bucket(_)))
    };
    let mut rows = settlement.rows.iter();
    settlement.state == SettleState::Applied
        && rows.any(|row| in_debt(row) || row.blocked_by.is_some())
}

/// Applies a settle on a thread for blocking work. A request that is cancelled while it waits for
/// its permit is not applied; one that has started is applied even if the client is gone.
async fn offload(context: Arc<ServerContext>, caller: Arc<Caller>, body: Bytes) -> ApplyResult {
    let permit = Arc::clone(&context.offload_permits).acquire_owned().await;
    let permit = permit.map_err(|error| Problem::internal(&error))?;
    let runtime = Handle::current();
    let work = move || {
        // Held until the work is done.
        let _permit = permit;
        runtime.block_on(apply(&context, &caller, &body))
    };
    let joined = tokio::task::spawn_blocking(work).await;
    joined.unwrap_or_else(|error| Err(Problem::internal(&error)))
}

/// The settlement, and the acknowledgement of its records if there are any.
type ApplyResult = Result<(Settlement, Option<Receipt>), Problem>;

async fn apply(context: &ServerContext, caller: &Caller, body: &[u8]) -> ApplyResult {
    let wire: WireSettle<'_> = read(body)?;
    let body_bytes_max = context.engine.catalog().settle.body_bytes_max;
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
    // Not awaited yet: the records must note which events it causes.
    let settle = context.settle(&call);
    let (settled, ack) = match &context.records {
        Some(records) => {
            let (settled, ack) = records.run_recorded_async(None, None, settle).await;
            (settled, Some(ack))
        }
        None => (settle.await, None),
    };
    Ok((settled?, ack))
}
