//! `POST /v1/credit` and `POST /v1/buckets`: bodies in JSON, states of buckets also in
//! XML.

use catraca::json::{AsJson, BucketStateBody};
use catraca::{Credit, Subject};
use data_encoding::HEXLOWER;
use hyper::http::{HeaderValue, header};
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::bodies::accept_header::wants_xml;
use crate::http::bodies::dict_xml;
use crate::http::bodies::problem::{HttpResponse, Problem, respond_json, typed_response};
use crate::http::bodies::wire::{WireBuckets, WireCredit, read};
use crate::http::endpoint::ApiResult;
use crate::http::request::ApiRequest;

/// The XML of a bucket state shows this fact (`CATEGORY`) about the value of this attribute, as the
/// DICT API of Pix defines it.
const PARTICIPANT: &str = "participant";
const CATEGORY: &str = "category";

/// `POST /v1/credit`.
pub async fn credit(request: &ApiRequest) -> ApiResult {
    let wire: WireCredit<'_> = read(&request.body)?;
    let caller = &request.caller;
    let subject = caller.with_fixed_attributes(wire.subject.subject())?;
    let credit = Credit {
        namespace: caller.namespace(),
        reference: &wire.r#ref,
        event: &wire.event,
        subject: &subject,
    };
    let credited = request.app().credit(&credit).await?;
    respond_json(&AsJson(&credited))
}

/// `POST /v1/buckets`.
pub async fn buckets(request: &ApiRequest) -> ApiResult {
    let wire: WireBuckets<'_> = read(&request.body)?;
    let subject = request.caller.with_fixed_attributes(wire.subject.subject())?;
    let [stated] = request.query_params(["namespace"])?;
    let namespace = request.shown_namespace(stated).await?;
    let states = request.app().buckets(&namespace, &subject).await?;
    if wants_xml(request.headers()) {
        return xml_response(request, &namespace, &subject, |header| {
            dict_xml::states(header, &states)
        });
    }
    let buckets = states.iter().map(BucketStateBody::from).collect();
    let body = BucketStates { buckets };
    respond_json(&body).map(with_vary)
}

/// `POST /v1/buckets/{policy}`.
pub async fn bucket(request: &ApiRequest) -> ApiResult {
    let wire: WireBuckets<'_> = read(&request.body)?;
    let subject = request.caller.with_fixed_attributes(wire.subject.subject())?;
    let [stated] = request.query_params(["namespace"])?;
    let namespace = request.shown_namespace(stated).await?;
    let state = request.app().bucket_state(&namespace, request.path_param(0), &subject).await?;
    if wants_xml(request.headers()) {
        return xml_response(request, &namespace, &subject, |header| {
            dict_xml::state(header, &state)
        });
    }
    respond_json(&AsJson(&state)).map(with_vary)
}

/// The buckets of a subject.
#[derive(Serialize, JsonSchema)]
pub struct BucketStates<'a> {
    buckets: Vec<BucketStateBody<'a>>,
}

/// A bucket state as DICT XML, with a random correlation id.
fn xml_response(
    request: &ApiRequest,
    namespace: &str,
    subject: &Subject<'_>,
    write: impl FnOnce(&dict_xml::DictHeader<'_>) -> Vec<u8>,
) -> Result<HttpResponse, Problem> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| Problem::internal(&error))?;
    let category = category(request, namespace, subject)?;
    let header = dict_xml::DictHeader {
        at: request.app().now(),
        correlation: &HEXLOWER.encode(&random),
        category: category.as_deref(),
    };
    Ok(with_vary(typed_response(dict_xml::XML, write(&header))))
}

/// The category of the subject's participant, if it has both.
fn category(
    request: &ApiRequest,
    namespace: &str,
    subject: &Subject<'_>,
) -> Result<Option<String>, Problem> {
    let participant = subject.pairs().find(|(name, _)| *name == PARTICIPANT);
    let Some((_, participant)) = participant else { return Ok(None) };
    let mut facts = request.app().facts_in_namespace(namespace, PARTICIPANT, &participant)?;
    Ok(facts.remove(CATEGORY))
}

/// Adds `Vary`: the response depends on `Accept`.
fn with_vary(mut response: HttpResponse) -> HttpResponse {
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    response
}
