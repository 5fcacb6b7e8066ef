//! The other calls: credit and bucket states.
//!
//! Must only translate: a wire shape in, an engine call, a JSON shape out.

use catraca::Engine;
use catraca::settlement::BucketState;
use catraca::shape::Shape;
use serde::Serialize;

use super::auth::Caller;
use super::problem::Problem;
use super::wire::{WireBuckets, WireCredit, read};

/// `POST /v1/credit`.
pub fn credit(engine: &Engine, by: &Caller, body: &[u8]) -> Result<Vec<u8>, Problem> {
    let wire: WireCredit<'_> = read(body)?;
    let subject = by.subject(wire.subject.subject())?;
    let credited = engine.credit(by.namespace(), &wire.r#ref, &wire.event, &subject)?;
    encode(&Shape(&credited))
}

/// `POST /v1/buckets`.
pub fn buckets(engine: &Engine, by: &Caller, body: &[u8]) -> Result<Vec<u8>, Problem> {
    let wire: WireBuckets<'_> = read(body)?;
    let states = engine.buckets(by.namespace(), &by.subject(wire.subject.subject())?)?;
    encode(&Buckets { buckets: states.iter().map(Shape).collect() })
}

/// `POST /v1/buckets/{policy}`.
pub fn bucket(engine: &Engine, by: &Caller, policy: &str, body: &[u8]) -> Result<Vec<u8>, Problem> {
    let wire: WireBuckets<'_> = read(body)?;
    let subject = by.subject(wire.subject.subject())?;
    encode(&Shape(&engine.bucket_state(by.namespace(), policy, &subject)?))
}

#[derive(Serialize)]
struct Buckets<'a> {
    buckets: Vec<Shape<&'a BucketState>>,
}

/// A value as JSON.
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, Problem> {
    serde_json::to_vec(value).map_err(|error| Problem::internal(&error))
}
