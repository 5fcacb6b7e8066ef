//! `POST /v1/credit` and `POST /v1/buckets`: parse the body, call the engine, respond in JSON or
//! XML.

use axum::http::{HeaderMap, HeaderValue, header};
use catraca::json::AsJson;
use catraca::settlement::BucketState;
use catraca::{App, Credit, Subject};
use data_encoding::HEXLOWER;
use serde::Serialize;

use crate::auth::Caller;
use crate::context::ServerContext;
use crate::http::bodies::accept_header::wants_xml;
use crate::http::bodies::dict_xml;
use crate::http::bodies::problem::{FullResponse, Problem, json_response, typed_response};
use crate::http::bodies::wire::{WireBuckets, WireCredit, read};

/// The XML of a bucket state shows this fact (`CATEGORY`) about the value of this attribute, as the
/// DICT API of Pix defines it.
const PARTICIPANT: &str = "participant";
const CATEGORY: &str = "category";

/// An authenticated request to one of the calls of this file.
pub struct CreditOrBucketRequest<'a> {
    /// The key that was presented.
    pub caller: &'a Caller,
    /// The request headers.
    pub headers: &'a HeaderMap,
    /// The request body.
    pub body: &'a [u8],
}

/// `POST /v1/credit`.
pub async fn credit(
    context: &ServerContext,
    request: &CreditOrBucketRequest<'_>,
) -> Result<FullResponse, Problem> {
    let wire: WireCredit<'_> = read(request.body)?;
    let caller = request.caller;
    let subject = caller.with_fixed_attributes(wire.subject.subject())?;
    let credit = Credit {
        namespace: caller.namespace(),
        reference: &wire.r#ref,
        event: &wire.event,
        subject: &subject,
    };
    let credited = context.app.credit(&credit).await?;
    encode(&AsJson(&credited)).map(json_response)
}

/// `POST /v1/buckets`.
pub async fn buckets(
    context: &ServerContext,
    request: &CreditOrBucketRequest<'_>,
) -> Result<FullResponse, Problem> {
    let wire: WireBuckets<'_> = read(request.body)?;
    let subject = request.caller.with_fixed_attributes(wire.subject.subject())?;
    let states = context.app.buckets(request.caller.namespace(), &subject).await?;
    if wants_xml(request.headers) {
        return xml_response(&context.app, &subject, |header| dict_xml::states(header, &states));
    }
    let body = Buckets { buckets: states.iter().map(AsJson).collect() };
    encode(&body).map(|body| with_vary(json_response(body)))
}

/// `POST /v1/buckets/{policy}`.
pub async fn bucket(
    context: &ServerContext,
    request: &CreditOrBucketRequest<'_>,
    policy: &str,
) -> Result<FullResponse, Problem> {
    let wire: WireBuckets<'_> = read(request.body)?;
    let subject = request.caller.with_fixed_attributes(wire.subject.subject())?;
    let state = context.app.bucket_state(request.caller.namespace(), policy, &subject).await?;
    if wants_xml(request.headers) {
        return xml_response(&context.app, &subject, |header| dict_xml::state(header, &state));
    }
    encode(&AsJson(&state)).map(|body| with_vary(json_response(body)))
}

#[derive(Serialize)]
struct Buckets<'a> {
    buckets: Vec<AsJson<&'a BucketState>>,
}

/// A bucket state as DICT XML, with a random correlation id.
fn xml_response(
    app: &App,
    subject: &Subject<'_>,
    write: impl FnOnce(&dict_xml::DictHeader<'_>) -> Vec<u8>,
) -> Result<FullResponse, Problem> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| Problem::internal(&error))?;
    let category = category(app, subject)?;
    let header = dict_xml::DictHeader {
        at: app.now(),
        correlation: &HEXLOWER.encode(&random),
        category: category.as_deref(),
    };
    Ok(with_vary(typed_response(dict_xml::XML, write(&header))))
}

/// The category of the subject's participant, if it has both.
fn category(app: &App, subject: &Subject<'_>) -> Result<Option<String>, Problem> {
    let participant = subject.pairs().iter().find(|(name, _)| *name == PARTICIPANT);
    let Some((_, participant)) = participant else { return Ok(None) };
    Ok(app.facts_about(PARTICIPANT, participant)?.remove(CATEGORY))
}

/// Adds `Vary`: the response depends on `Accept`.
fn with_vary(mut response: FullResponse) -> FullResponse {
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    response
}

/// Serializes a value as JSON.
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, Problem> {
    serde_json::to_vec(value).map_err(|error| Problem::internal(&error))
}
