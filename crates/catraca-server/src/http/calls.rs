//! The other calls: credit and bucket states.
//!
//! Must only translate: a wire shape in, an engine call, JSON or XML out.

use axum::http::{HeaderMap, HeaderValue, header};
use catraca::settlement::BucketState;
use catraca::shape::Shape;
use catraca::{Engine, Subject};
use data_encoding::HEXLOWER;
use serde::Serialize;

use super::Front;
use super::accept::wants_xml;
use super::auth::Caller;
use super::problem::{Answer, Problem, json, typed};
use super::wire::{WireBuckets, WireCredit, read};
use super::xml;

/// The attribute and the fact that a bucket state in XML shows.
const PARTICIPANT: &str = "participant";
const CATEGORY: &str = "category";

/// Who asks, and how.
pub struct Asked<'a> {
    /// Whose key it is.
    pub by: &'a Caller,
    /// The request's headers.
    pub headers: &'a HeaderMap,
    /// Its body.
    pub body: &'a [u8],
}

/// `POST /v1/credit`.
pub async fn credit(front: &Front, asked: &Asked<'_>) -> Result<Answer, Problem> {
    let (by, wire) = (asked.by, read::<WireCredit<'_>>(asked.body)?);
    let subject = by.subject(wire.subject.subject())?;
    let named = (&*wire.r#ref, &*wire.event);
    let credited = front.credit(by.namespace(), named, &subject).await?;
    encode(&Shape(&credited)).map(json)
}

/// `POST /v1/buckets`.
pub async fn buckets(front: &Front, asked: &Asked<'_>) -> Result<Answer, Problem> {
    let wire: WireBuckets<'_> = read(asked.body)?;
    let subject = asked.by.subject(wire.subject.subject())?;
    let states = front.buckets(asked.by.namespace(), &subject).await?;
    if wants_xml(asked.headers) {
        return in_xml(&front.engine, &subject, |about| xml::states(about, &states));
    }
    let all = Buckets { buckets: states.iter().map(Shape).collect() };
    encode(&all).map(|body| varying(json(body)))
}

/// `POST /v1/buckets/{policy}`.
pub async fn bucket(front: &Front, asked: &Asked<'_>, policy: &str) -> Result<Answer, Problem> {
    let wire: WireBuckets<'_> = read(asked.body)?;
    let subject = asked.by.subject(wire.subject.subject())?;
    let state = front.bucket_state(asked.by.namespace(), policy, &subject).await?;
    if wants_xml(asked.headers) {
        return in_xml(&front.engine, &subject, |about| xml::state(about, &state));
    }
    encode(&Shape(&state)).map(|body| varying(json(body)))
}

#[derive(Serialize)]
struct Buckets<'a> {
    buckets: Vec<Shape<&'a BucketState>>,
}

fn in_xml(
    engine: &Engine,
    subject: &Subject<'_>,
    write: impl FnOnce(&xml::About<'_>) -> Vec<u8>,
) -> Result<Answer, Problem> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| Problem::internal(&error))?;
    let category = category(engine, subject)?;
    let about = xml::About {
        at: engine.now(),
        correlation: &HEXLOWER.encode(&random),
        category: category.as_deref(),
    };
    Ok(varying(typed(xml::KIND, write(&about))))
}

/// The participant's category, if there is a participant and it has one.
fn category(engine: &Engine, subject: &Subject<'_>) -> Result<Option<String>, Problem> {
    let participant = subject.pairs().iter().find(|(name, _)| *name == PARTICIPANT);
    let Some((_, participant)) = participant else { return Ok(None) };
    let facts = engine.facts_about(PARTICIPANT, participant).map_err(Problem::from)?;
    Ok(facts.into_iter().find(|(name, _)| **name == *CATEGORY).map(|(_, fact)| fact.to_string()))
}

/// The same request may be answered in another shape.
fn varying(mut answer: Answer) -> Answer {
    answer.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    answer
}

/// A value as JSON.
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, Problem> {
    serde_json::to_vec(value).map_err(|error| Problem::internal(&error))
}
