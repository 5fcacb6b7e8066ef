//! `POST /v1/check` and `/v1/peek`: one check. `POST /v1/check/batch`: a list of them.
//!
//! The check is the hot path: it allocates its body, its response and the future of its handler.

use catraca::json::DecisionBody;
use catraca::{Check, CheckMode, Decision};
use hyper::http::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::Serialize;

use crate::auth::Caller;
use crate::http::bodies::decision_writer;
use crate::http::bodies::problem::{Problem, ProblemBody, json_response, respond_json};
use crate::http::bodies::wire::{WireCheck, is_list, read, read_list};
use crate::http::endpoint::ApiResult;
use crate::http::request::ApiRequest;

/// The header in which a program states its name and version.
const CALLER: HeaderName = HeaderName::from_static("catraca-caller");

/// `POST /v1/check`.
pub async fn check(request: &ApiRequest) -> ApiResult {
    decide(request, CheckMode::Check).await
}

/// `POST /v1/peek`.
pub async fn peek(request: &ApiRequest) -> ApiResult {
    decide(request, CheckMode::Peek).await
}

/// `POST /v1/check/batch`. The checks are independent: each is decided, or is a problem, in its own
/// position.
pub async fn check_batch(request: &ApiRequest) -> ApiResult {
    let bodies: Vec<WireCheck<'_>> = read_list(&request.body)?;
    // A check with a refused attribute is a problem in its position, and is not decided.
    let parsed = bodies.iter().map(|body| to_check(&request.caller, body));
    let parsed: Vec<Result<Check<'_>, Problem>> = parsed.collect();
    let valid = parsed.iter().filter_map(|check| check.as_ref().ok());
    let valid: Vec<Check<'_>> = valid.cloned().collect();
    let mut decided = request.context().check_batch(&valid).await?.into_iter();
    let results = parsed.into_iter().filter_map(|check| match check {
        Ok(_) => decided.next().map(|decision| decision.map_err(Problem::from)),
        Err(problem) => Some(Err(problem)),
    });
    let results: Vec<Result<Decision, Problem>> = results.collect();
    for (body, decision) in bodies.iter().zip(&results) {
        let decision = decision.as_ref().ok();
        decision.into_iter().for_each(|decision| count_caller(request, &body.gate, decision));
    }
    let denied = results.iter().flatten().filter(|decision| !decision.allowed).count();
    request.span.set_list_decisions(results.len(), denied);
    let answers: Vec<DecisionOrProblem<'_>> = results.iter().map(DecisionOrProblem::from).collect();
    respond_json(&answers)
}

/// A decision, or the error in its check.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum DecisionOrProblem<'a> {
    /// Decided.
    Decision(DecisionBody<'a>),
    /// Refused.
    Problem(ProblemBody<'a>),
}

impl<'a> From<&'a Result<Decision, Problem>> for DecisionOrProblem<'a> {
    fn from(result: &'a Result<Decision, Problem>) -> Self {
        match result {
            Ok(decision) => Self::Decision(decision.into()),
            Err(problem) => Self::Problem(problem.body()),
        }
    }
}

async fn decide(request: &ApiRequest, mode: CheckMode) -> ApiResult {
    if is_list(&request.body) {
        let detail = match mode {
            CheckMode::Check => {
                "the body is a list; send one check, or the list to /v1/check/batch"
            }
            // A batch would charge.
            CheckMode::Peek => "the body is a list; send one check at a time",
        };
        return Err(Problem::bad("bad-field", detail));
    }
    let body: WireCheck<'_> = read(&request.body)?;
    let namespace = match mode {
        CheckMode::Check => None,
        CheckMode::Peek => {
            let [stated] = request.query_params(["namespace"])?;
            Some(request.shown_namespace(stated).await?)
        }
    };
    let mut check = to_check(&request.caller, &body)?;
    check.namespace = namespace.as_deref().unwrap_or(check.namespace);
    let decision = request.context().decide(&check, mode).await?;
    request.span.set_decision(&body.gate, &decision);
    if mode == CheckMode::Check {
        count_caller(request, &body.gate, &decision);
    }
    let mut out = Vec::with_capacity(decision_writer::TYPICAL_BYTES);
    decision_writer::write(&decision, &mut out);
    Ok(json_response(out))
}

/// Counts the check under the name that the program sends. Authorize calls are not counted: their
/// headers may be those of a proxy's client.
fn count_caller(request: &ApiRequest, gate: &str, decision: &Decision) {
    let header = request.headers().get(CALLER).map(HeaderValue::as_bytes);
    request.context().callers.count(request.namespace(), header, gate, decision.allowed);
}

fn to_check<'b>(caller: &'b Caller, body: &'b WireCheck<'_>) -> Result<Check<'b>, Problem> {
    let mut check = Check::new(&body.gate, caller.with_fixed_attributes(body.subject.subject())?);
    check.namespace = caller.namespace();
    check.cost = body.cost;
    check.reference = body.r#ref.as_deref();
    check.lists = body.lists.unwrap_or(true);
    Ok(check)
}
