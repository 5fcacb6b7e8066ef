//! Locks and slots over HTTP: leases, ranges of time, and what operators do about them.
//!
//! `wire` holds what is read, `shown` what is sent, `lease` and `slot` are the callers' calls,
//! `admin` the operators', `selftest` tries all of it in a namespace of its own. A conflict is an
//! answer of its own shape with status 409; errors are problems. Must not decide who gets what.

pub mod admin;
pub mod lease;
pub mod selftest;
pub mod shown;
pub mod slot;
pub mod wire;

use std::pin::Pin;
use std::sync::Arc;

use axum::body::{Body, HttpBody};
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{MatchedPath, RawPathParams, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, Response, StatusCode, header};
use axum::routing::{delete, get, post};
use axum::{Extension, Router};
use bytes::Bytes;
use catraca::LockError;
use catraca::core::lock::LockRefusal;
use catraca::core::lock::op::Proof;
use catraca::core::lock::reply::View;
use catraca::core::lock::{LeaseId, LockTerms};
use catraca::core::request::storable;
use catraca::records::{Deed, Noted, Record};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tracing::{Level, enabled};

use super::auth::Caller;
use super::problem::{Answer, Problem, json};
use super::router::bad_path;
use super::visit::Visit;
use super::{Front, body, debug};
use crate::locks::Keeper;
use shown::millis;

/// What a call comes to.
type Told = Result<Answer, Problem>;
type Telling<'a> = Pin<Box<dyn Future<Output = Told> + Send + 'a>>;
/// A call.
type Verb = for<'a> fn(&'a Call) -> Telling<'a>;

/// A call as it came.
pub struct Call {
    pub front: Front,
    pub visit: Arc<Visit>,
    pub by: Arc<Caller>,
    /// The path with the names of its parts.
    route: Arc<str>,
    path: Vec<String>,
    query: Vec<(String, String)>,
    body: Bytes,
}

/// Every call about locks and slots.
pub fn routes() -> Router<Front> {
    Router::new()
        .route("/v1/locks/acquire", post(on(|call| Box::pin(lease::acquire(call)))))
        .route("/v1/locks/renew", post(on(|call| Box::pin(lease::renew(call)))))
        .route("/v1/locks/release", post(on(|call| Box::pin(lease::release(call)))))
        .route(
            "/v1/locks",
            get(on(|call| Box::pin(admin::list(call))))
                .delete(on(|call| Box::pin(admin::clear(call)))),
        )
        .route("/v1/locks/{fence}", delete(on(|call| Box::pin(admin::force(call)))))
        .route("/v1/slots/hold", post(on(|call| Box::pin(slot::hold(call)))))
        .route("/v1/slots/confirm", post(on(|call| Box::pin(slot::confirm(call)))))
        .route("/v1/slots/cancel", post(on(|call| Box::pin(slot::cancel(call)))))
        .route("/v1/slots/move", post(on(|call| Box::pin(slot::relocate(call)))))
        .route("/v1/slots", get(on(|call| Box::pin(slot::look(call)))))
        .route("/v1/stats/locks", get(on(|call| Box::pin(admin::stats(call)))))
        .route(
            "/v1/selftest",
            get(on(|call| Box::pin(selftest::report(call))))
                .post(on(|call| Box::pin(selftest::run(call)))),
        )
}

type On = Extension<Arc<Visit>>;
type By = Extension<Arc<Caller>>;
type Pieces = Result<RawPathParams, RawPathParamsRejection>;
type Answering = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

fn on(
    verb: Verb,
) -> impl Fn(State<Front>, On, By, Pieces, Request) -> Answering + Clone + Send + Sync + 'static {
    move |State(front), Extension(visit), Extension(by), path, request| {
        Box::pin(async move {
            let told = match path {
                Ok(path) => match Call::read(front, visit, by, &path, request).await {
                    Ok(call) => Ok(call.answer(verb).await),
                    Err(problem) => Err(problem),
                },
                Err(_) => Err(bad_path()),
            };
            told.unwrap_or_else(|problem| problem.answer()).map(Body::new)
        })
    }
}

impl Call {
    async fn read(
        front: Front,
        visit: Arc<Visit>,
        by: Arc<Caller>,
        path: &RawPathParams,
        request: Request,
    ) -> Result<Self, Problem> {
        let path = path.iter().map(|(_, value)| value.to_owned()).collect();
        let query = request.uri().query().unwrap_or_default().as_bytes();
        let query = form_urlencoded::parse(query).into_owned().collect();
        let takes_body = match *request.method() {
            Method::POST => true,
            Method::DELETE => request.body().size_hint().upper() != Some(0),
            _ => false,
        };
        let (head, body) = request.into_parts();
        let body = match takes_body {
            true => body::read(&head.headers, body, &visit).await?,
            false => Bytes::new(),
        };
        let route = head.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str).into();
        Ok(Self { front, visit, by, route, path, query, body })
    }

    async fn answer(&self, verb: Verb) -> Answer {
        let answer = verb(self).await.unwrap_or_else(|problem| refused(&problem));
        if enabled!(Level::DEBUG) {
            let place = (self.namespace(), &*self.route);
            debug::locked(&self.front, place, &self.body, &answer);
        }
        answer
    }

    fn wire<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        super::wire::read(&self.body)
    }

    fn part(&self, place: usize) -> &str {
        self.path.get(place).map_or("", String::as_str)
    }

    /// What the query asks for; anything that nobody knows is refused.
    fn asked<const N: usize>(&self, known: [&str; N]) -> Result<[Option<&str>; N], Problem> {
        let mut found = [None; N];
        for (name, value) in &self.query {
            let place = known.iter().position(|one| one == name);
            let twice = place.is_some_and(|place| found[place].is_some());
            match place {
                Some(place) if !twice => {
                    storable(format_args!("`{name}` in the query"), value)?;
                    found[place] = Some(value.as_str());
                }
                _ => {
                    let detail =
                        format!("the query takes each of these once: {}", known.join(", "));
                    return Err(Problem::bad("bad-query", detail));
                }
            }
        }
        Ok(found)
    }

    fn locks(&self) -> &Arc<Keeper> {
        &self.front.locks
    }

    fn terms(&self) -> LockTerms {
        self.front.engine.catalog().locks.clone()
    }

    fn namespace(&self) -> &str {
        self.by.namespace()
    }

    /// The proof that a body shows.
    fn proof(&self, lease_id: &str) -> Result<Proof, Problem> {
        let tenant = self.by.tenant(None)?.map(Into::into);
        let detail = "`lease_id` is not one: send the 32 characters that the grant gave you";
        let id = LeaseId::parse(lease_id).ok_or_else(|| Problem::bad("bad-lock", detail))?;
        Ok(Proof { key: id.key(), tenant })
    }

    /// Puts an operator's act into the audit; says whether it is on disk.
    async fn audited(&self, act: &str, target: String, why: Option<&str>) -> bool {
        let Some(records) = &self.front.records else { return false };
        let deed = Deed::Note(Noted { act: act.to_owned(), target });
        let at = self.front.engine.now();
        let receipt = records.record(vec![Record::operator(at, self.by.name(), why, deed)]);
        receipt.await.is_durable()
    }
}

/// An answer as JSON.
fn told<T: Serialize>(answer: &T) -> Told {
    super::calls::encode(answer).map(json)
}

/// The same with another status.
fn told_as<T: Serialize>(status: StatusCode, answer: &T) -> Told {
    let mut told = told(answer)?;
    *told.status_mut() = status;
    Ok(told)
}

/// An answer with the headers of a lease.
fn with_lease(mut answer: Answer, view: &View) -> Answer {
    let mut add = |name: &'static str, number: i64| {
        answer.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from(number));
    };
    add("x-lock-version", view.version);
    add("x-lock-fence", view.fence);
    if !view.expires_at.is_forever() {
        add("x-lock-expires", millis(view.expires_at));
    }
    answer
}

/// A store that is away may be back soon, whatever it was asked.
fn refused(problem: &Problem) -> Answer {
    match problem.code {
        "lock-store-unavailable" => retry_after(problem.answer(), AWAY_SECS),
        _ => problem.answer(),
    }
}

fn retry_after(mut answer: Answer, seconds: i64) -> Answer {
    answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
    answer
}

/// When to ask a store again that did not answer.
const AWAY_SECS: i64 = 1;

/// A problem that is over after a while.
fn later(error: LockError) -> Told {
    let LockError::Starting { wait } = &error else { return Err(error.into()) };
    let seconds = wait.ceil_secs();
    Ok(retry_after(Problem::from(error).answer(), seconds))
}

impl From<LockRefusal> for Problem {
    fn from(refusal: LockRefusal) -> Self {
        let detail = refusal.to_string();
        match refusal {
            LockRefusal::OtherRequest => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "request-id-reused", detail)
            }
            LockRefusal::RequestOver => Self::new(StatusCode::GONE, "request-expired", detail),
            LockRefusal::Full { .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "locks-full", detail)
            }
            _ => Self::bad("bad-lock", detail),
        }
    }
}

impl From<LockError> for Problem {
    fn from(error: LockError) -> Self {
        let detail = error.to_string();
        match error {
            LockError::Refused(refusal) => refusal.into(),
            LockError::Starting { .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "locks-starting", detail)
            }
            LockError::Away { .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "lock-store-unavailable", detail)
            }
            LockError::TooManyWaiters => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "too-many-waiters", detail)
            }
            LockError::Unkept { .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "lock-write-failed", detail)
            }
            _ => Self::new(StatusCode::SERVICE_UNAVAILABLE, "locks-stopping", detail),
        }
    }
}
