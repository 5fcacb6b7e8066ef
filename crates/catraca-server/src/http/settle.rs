//! Settling: what must survive is on disk before it is answered.
//!
//! The engine is called and the receipt awaited, so that no worker waits for the disk. A settle
//! whose ban rules may take more than about a millisecond runs on a thread for blocking work, so
//! that other callers' checks do not wait for it. Must not claim `durable` for what is only
//! counted: that may lose what came since the last snapshot.

use std::sync::Arc;

use bytes::Bytes;
use catraca::core::limit::Limit;
use catraca::records::Receipt;
use catraca::settlement::{Settled, SettledRow, Settlement};
use catraca::shape::Shape;
use catraca::{Catalog, Settle, Stub};
use serde::Serialize;
use tokio::runtime::Handle;

use super::Front;
use super::auth::Caller;
use super::calls::encode;
use super::problem::Problem;
use super::wire::{WireSettle, read};

/// The estimated work from which a settle leaves the async workers: about a millisecond.
const OFFLOAD_WORK: u64 = 1_000_000;

/// How many settles run off the async workers at once: half of the cores, so that the other half is
/// left for the workers.
pub fn offloaded_max() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1))
}

/// `POST /v1/settle`.
pub async fn settle(front: &Front, by: &Arc<Caller>, body: &Bytes) -> Result<Vec<u8>, Problem> {
    let work = front.engine.catalog().rule_cost.estimate(body.len());
    let (settlement, receipt) = match work < OFFLOAD_WORK {
        true => apply(front, by, body).await?,
        false => offload(front.clone(), Arc::clone(by), body.clone()).await?,
    };
    let durable = match receipt {
        _ if !must_survive(&front.engine.catalog(), &settlement) => None,
        Some(receipt) => Some(receipt.await.is_durable()),
        None => Some(false),
    };
    encode(&Answer { settlement: Shape(&settlement), durable })
}

#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    settlement: Shape<&'a Settlement>,
    #[serde(skip_serializing_if = "Option::is_none")]
    durable: Option<bool>,
}

/// Whether it left a bucket in debt or started a block; what was settled before was answered
/// before. A window in debt is a counter: it is as full as it can be, and lapses.
fn must_survive(catalog: &Catalog, settlement: &Settlement) -> bool {
    let owes = |row: &SettledRow| {
        let policy = catalog.find(&row.policy).map(|(_, policy)| policy);
        let tiers = policy.iter().flat_map(|policy| policy.tiers.iter().map(|tier| &tier.terms));
        let mut terms = policy.iter().flat_map(|policy| &policy.base).chain(tiers);
        row.balance.is_some_and(|balance| balance < 0)
            && terms.any(|terms| matches!(terms.limit, Limit::Bucket(_)))
    };
    let mut rows = settlement.rows.iter();
    settlement.state == Settled::Applied && rows.any(|row| owes(row) || row.blocked_by.is_some())
}

/// Applies a settle on a thread for blocking work. A request that is given up while it waits for
/// its turn is not applied; one that has begun is, answered or not.
async fn offload(front: Front, by: Arc<Caller>, body: Bytes) -> Applied {
    let turn = Arc::clone(&front.offloaded).acquire_owned().await;
    let turn = turn.map_err(|error| Problem::internal(&error))?;
    let runtime = Handle::current();
    let work = move || {
        let _turn = turn;
        runtime.block_on(apply(&front, &by, &body))
    };
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Problem::internal(&error)))
}

type Applied = Result<(Settlement, Option<Receipt>), Problem>;

async fn apply(front: &Front, by: &Caller, body: &[u8]) -> Applied {
    let wire: WireSettle<'_> = read(body)?;
    let body_bytes_max = front.engine.catalog().settle.body_bytes_max;
    let outcome = wire.outcome.read(body, body_bytes_max)?;
    let stub = match (&wire.ticket, &wire.r#ref) {
        (Some(ticket), None) => Stub::Ticket(ticket),
        (None, Some(name)) => Stub::Reference(name, by.subject(wire.subject.subject())?),
        _ => {
            let detail = "name the check by its `ticket`, or by its `ref` and `subject`";
            return Err(Problem::bad("bad-settle", detail));
        }
    };
    let call = Settle { namespace: by.namespace(), stub, outcome: &outcome };
    let settle = front.settle(&call);
    let (settled, receipt) = match &front.records {
        Some(records) => {
            let (settled, receipt) = records.acknowledged_later(None, None, settle).await;
            (settled, Some(receipt))
        }
        None => (settle.await, None),
    };
    Ok((settled?, receipt))
}
