//! The operators' desk: what every operator's call has in common.
//!
//! A call is read here, answered on a thread that may wait for the disk, and rendered here. Must
//! not act by itself: each call is a function in a file of its own.

pub mod audit;
pub mod blocks;
pub mod config;
mod events;
pub mod facts;
pub mod lists;
pub mod policies;
pub mod privacy;
pub mod reload;
pub mod reset;
pub mod stats;
pub mod whoami;

use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;

use axum::body::{Body, HttpBody};
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::http::{Method, Response, StatusCode};
use axum::routing::{get, post, put};
use axum::{Extension, Router};
use bytes::Bytes;
use catraca::core::address::forwarded::Client;
use catraca::core::request::storable;
use catraca::records::{Deed, Receipt, Record, Records, RecordsError};
use catraca::{Engine, Time};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::auth::Caller;
use super::operator::operator;
use super::problem::{Problem, json};
use super::router::bad_path;
use super::visit::Visit;
use super::{Front, authorize, body, wire};

/// The most bytes of a motive or a reason.
const TEXT_MAX: usize = 500;

/// What a call comes to.
type Answered = Result<Value, Problem>;
/// A call.
type Verb = fn(&Desk<'_>, &Call) -> Answered;

/// What a call works with.
pub struct Desk<'a> {
    front: &'a Front,
    engine: &'a Engine,
    by: &'a Caller,
}

/// A call as it came.
pub struct Call {
    path: Vec<String>,
    query: Vec<(String, String)>,
    body: Bytes,
    by: Arc<Caller>,
    client: Client,
    peer: std::net::IpAddr,
}

/// Every operator's call.
pub fn routes() -> Router<Front> {
    let list = |verbs: [Verb; 3]| get(on(verbs[0])).post(on(verbs[1])).delete(on(verbs[2]));
    let facts = get(on(facts::all)).put(on(facts::state)).delete(on(facts::forget));
    Router::new()
        .route("/v1/blocks", get(on(blocks::list)).post(on(blocks::add)))
        .route("/v1/blocks/{id}", get(on(blocks::one)).delete(on(blocks::release)))
        .route("/v1/blocklist", list([lists::blocked, lists::block, lists::unblock]))
        .route("/v1/allowlist", list([lists::allowed, lists::allow, lists::disallow]))
        .route("/v1/facts", get(on(facts::stated)))
        .route("/v1/facts/{attribute}/{value}", facts)
        .route("/v1/policies", get(on(policies::all)))
        .route("/v1/policies/{name}", get(on(policies::one)))
        .route("/v1/policies/{name}/mode", put(on(policies::mode)))
        .route("/v1/config", get(on(config::config)))
        .route("/v1/config/reload", post(on(reload::reload)))
        .route("/v1/reset", post(on(reset::reset)))
        .route("/v1/buckets/reconcile", post(on(reset::reconcile)))
        .route("/v1/whoami", get(on(whoami::whoami)))
        .route("/v1/stats", get(on(stats::policies)))
        .route("/v1/stats/top-blocked", get(on(stats::top_blocked)))
        .route("/v1/stats/actions", get(on(stats::actions)))
        .route("/v1/audit", get(on(audit::audit)))
        .route("/v1/privacy/export", post(on(privacy::export)))
        .route("/v1/privacy/erase", post(on(privacy::erase)))
        .route("/v1/events", get(events::events))
}

/// A handler that answers with a verb.
fn on(
    verb: Verb,
) -> impl Fn(State<Front>, On, Pieces, Request) -> Answering + Clone + Send + Sync + 'static {
    move |State(front), Extension(visit), path, request| {
        Box::pin(async move {
            let read = match &path {
                Ok(path) => Call::read(&front, &visit, path, request).await,
                Err(_) => Err(bad_path()),
            };
            let done = match read {
                Ok(call) => answer(front, call, verb).await,
                Err(problem) => Err(problem),
            };
            let done = done.and_then(|value| super::calls::encode(&value));
            done.map_or_else(|problem| problem.answer(), json).map(Body::new)
        })
    }
}

type On = Extension<Arc<Visit>>;
type Pieces = Result<RawPathParams, RawPathParamsRejection>;
type Answering = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// On a thread of its own kind: records are read from and written to a disk.
async fn answer(front: Front, call: Call, verb: Verb) -> Answered {
    let work = move || {
        let desk = Desk { front: &front, engine: &front.engine, by: &call.by };
        verb(&desk, &call)
    };
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Problem::internal(&error)))
}

impl Desk<'_> {
    /// The records, without which most of this makes no sense.
    fn records(&self) -> Result<&Records, Problem> {
        let detail = "this server keeps no records: start it with --config FILE, and without \
                      `[records] url = \"none\"`";
        let missing = || Problem::new(StatusCode::CONFLICT, "no-records", detail);
        self.front.records.as_deref().ok_or_else(missing)
    }

    /// Runs an engine's act, audited, and waits until it is on disk; says whether it is.
    fn acted<R>(
        &self,
        why: Option<&str>,
        act: impl FnOnce() -> Result<R, catraca::Error>,
    ) -> Result<(R, bool), Problem> {
        let (done, receipt) = self.records()?.acknowledged(Some(self.by.name()), why, act);
        Ok((done?, durable(receipt)))
    }

    /// Records what was done, audited, and waits until it is on disk; says whether it is.
    fn recorded(&self, why: Option<&str>, deeds: Vec<Deed>) -> Result<bool, Problem> {
        let at = self.engine.now();
        let records = deeds.into_iter().map(|deed| Record::operator(at, self.by.name(), why, deed));
        self.written(records.collect())
    }

    /// Writes records and tells other nodes that there is something to read; says whether they
    /// are on disk.
    fn written(&self, records: Vec<Record>) -> Result<bool, Problem> {
        let durable = durable(self.records()?.record(records));
        self.front.stir();
        Ok(durable)
    }
}

/// What an operator says of their own act.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Motive {
    /// For the audit.
    #[schemars(length(max = TEXT_MAX), example = &"the caller was wronged")]
    why: Option<String>,
}

/// An answer as JSON.
fn told<T: Serialize>(answer: &T) -> Answered {
    serde_json::to_value(answer).map_err(|error| Problem::internal(&error))
}

fn durable(receipt: Receipt) -> bool {
    receipt.wait().is_durable()
}

impl Call {
    async fn read(
        front: &Front,
        visit: &Visit,
        path: &RawPathParams,
        request: Request,
    ) -> Result<Self, Problem> {
        let path = path.iter().map(|(_, value)| value.to_owned()).collect();
        let query = request.uri().query().unwrap_or_default().as_bytes();
        let query = form_urlencoded::parse(query).into_owned().collect();
        let unnamed = || Problem::internal(&"the request came past the guard");
        let by = operator(&request).cloned().ok_or_else(unnamed)?;
        let (peer, client) = (visit.peer, authorize::caller(front, visit.peer, request.headers()));
        let takes_body = match *request.method() {
            Method::GET | Method::HEAD => false,
            // Its body only says why, and may be left out.
            Method::DELETE => request.body().size_hint().upper() != Some(0),
            Method::POST if request.uri().path() == "/v1/config/reload" => {
                request.body().size_hint().upper() != Some(0)
            }
            _ => true,
        };
        let (head, body) = request.into_parts();
        let body =
            if takes_body { body::read(&head.headers, body, visit).await? } else { Bytes::new() };
        Ok(Self { path, query, body, by, client, peer })
    }

    /// A part of the path, counted from zero.
    fn part(&self, place: usize) -> &str {
        self.path.get(place).map_or("", String::as_str)
    }

    /// The body.
    fn wire<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        wire::read(&self.body)
    }

    /// Why, if the body says so.
    fn motive(&self) -> Result<Motive, Problem> {
        if self.body.is_empty() { Ok(Motive::default()) } else { self.wire() }
    }

    /// What the query asks for; anything that nobody knows is refused.
    fn asked<const N: usize>(&self, known: [&str; N]) -> Result<[Option<&str>; N], Problem> {
        let mut found = [None; N];
        for (name, value) in &self.query {
            let place = known.iter().position(|one| one == name);
            let place = place.ok_or_else(|| unknown_parameter(name, &known))?;
            storable(format_args!("`{name}` in the query"), value)?;
            if found[place].replace(value.as_str()).is_some() {
                let detail = format!("`{name}` is given twice in the query");
                return Err(Problem::bad("bad-query", detail));
            }
        }
        Ok(found)
    }
}

fn unknown_parameter(name: &str, known: &[&str]) -> Problem {
    let name: String = name.chars().take(TEXT_MAX).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Problem::bad("bad-query", format!("nobody knows `{name}` in the query; it takes: {known}"))
}

/// A number of the query.
fn number<T: FromStr>(name: &str, text: Option<&str>) -> Result<Option<T>, Problem> {
    let bad = || Problem::bad("bad-query", format!("`{name}` must be a whole number"));
    text.map(|text| text.parse().map_err(|_| bad())).transpose()
}

/// An instant of the query or a body.
fn instant(name: &str, text: Option<&str>) -> Result<Option<Time>, Problem> {
    let bad = || {
        let detail = format!("`{name}` must be an instant such as 2026-01-31T12:00:00Z");
        Problem::bad("bad-instant", detail)
    };
    text.map(|text| Time::parse_rfc3339(text).map_err(|_| bad())).transpose()
}

/// A text that a person wrote, within bounds.
fn bounded<'t>(name: &str, text: Option<&'t str>) -> Result<Option<&'t str>, Problem> {
    match text {
        Some(text) if text.len() > TEXT_MAX => {
            let detail = format!("`{name}` may have {TEXT_MAX} bytes and has {}", text.len());
            Err(Problem::bad("text-too-long", detail))
        }
        Some(text) => {
            storable(format_args!("`{name}`"), text)?;
            Ok(Some(text).filter(|text| !text.is_empty()))
        }
        None => Ok(None),
    }
}

fn missing(code: &'static str, detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, code, detail)
}

impl From<RecordsError> for Problem {
    fn from(error: RecordsError) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "records-failed", error.to_string())
    }
}
