//! The other calls: settle, credit and bucket states.
//!
//! Must only translate: a wire shape in, an engine call, a JSON shape out.

use catraca::core::request::DEFAULT_NAMESPACE;
use catraca::settlement::BucketState;
use catraca::shape::Shape;
use catraca::{Engine, Outcome, Settle, Stub};
use serde::Serialize;

use super::problem::Problem;
use super::wire::{WireBuckets, WireCredit, WireSettle, read};

/// `POST /v1/settle`.
pub fn settle(engine: &Engine, body: &[u8]) -> Result<Vec<u8>, Problem> {
    let wire: WireSettle<'_> = read(body)?;
    let stub = match (&wire.ticket, &wire.r#ref) {
        (Some(ticket), None) => Stub::Ticket(ticket),
        (None, Some(name)) => Stub::Reference(name, wire.subject.subject()),
        _ => {
            let detail = "name the check by its `ticket`, or by its `ref` and `subject`";
            return Err(Problem::bad("bad-settle", detail));
        }
    };
    let outcome = Outcome::from(wire.outcome);
    let call = Settle { namespace: DEFAULT_NAMESPACE, stub, outcome: &outcome };
    encode(&Shape(&engine.settle(&call)?))
}

/// `POST /v1/credit`.
pub fn credit(engine: &Engine, body: &[u8]) -> Result<Vec<u8>, Problem> {
    let wire: WireCredit<'_> = read(body)?;
    let subject = wire.subject.subject();
    let credited = engine.credit(DEFAULT_NAMESPACE, &wire.r#ref, &wire.event, &subject)?;
    encode(&Shape(&credited))
}

/// `POST /v1/buckets`.
pub fn buckets(engine: &Engine, body: &[u8]) -> Result<Vec<u8>, Problem> {
    let wire: WireBuckets<'_> = read(body)?;
    let states = engine.buckets(DEFAULT_NAMESPACE, &wire.subject.subject())?;
    encode(&Buckets { buckets: states.iter().map(Shape).collect() })
}

/// `POST /v1/buckets/{policy}`.
pub fn bucket(engine: &Engine, policy: &str, body: &[u8]) -> Result<Vec<u8>, Problem> {
    let wire: WireBuckets<'_> = read(body)?;
    encode(&Shape(&engine.bucket_state(DEFAULT_NAMESPACE, policy, &wire.subject.subject())?))
}

#[derive(Serialize)]
struct Buckets<'a> {
    buckets: Vec<Shape<&'a BucketState>>,
}

fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, Problem> {
    serde_json::to_vec(value).map_err(|error| Problem::internal(&error))
}
