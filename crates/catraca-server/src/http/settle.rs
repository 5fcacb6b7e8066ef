//! Settling: what must survive is on disk before it is answered.
//!
//! The engine is called and the receipt awaited, so that no worker waits for the disk. Must not
//! claim `durable` for what is only counted: that may lose what came since the last snapshot.

use catraca::core::limit::Limit;
use catraca::records::Receipt;
use catraca::settlement::{Settled, SettledRow, Settlement};
use catraca::shape::Shape;
use catraca::{Catalog, Outcome, Settle, Stub};
use serde::Serialize;

use super::Front;
use super::auth::Caller;
use super::calls::encode;
use super::problem::Problem;
use super::wire::{WireSettle, read};

/// `POST /v1/settle`.
pub async fn settle(front: &Front, by: &Caller, body: &[u8]) -> Result<Vec<u8>, Problem> {
    let (settlement, receipt) = apply(front, by, body).await?;
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

async fn apply(
    front: &Front,
    by: &Caller,
    body: &[u8],
) -> Result<(Settlement, Option<Receipt>), Problem> {
    let wire: WireSettle<'_> = read(body)?;
    let outcome = Outcome::from(wire.outcome);
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
