//! `GET /healthz`, `/readyz` and `/metrics`.
//!
//! Nothing about a caller is shown. Without a key `/readyz` says where a catalog is wrong, but not
//! its text.

use std::time::Duration;

use catraca::Span;
use catraca::memory::MemoryPool;
use catraca::supervise::{TaskPanics, task_panics};
use hyper::http::request::Parts;
use hyper::http::{HeaderValue, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::{RECORDS_NOT_MAINTAINED, ROWS_MISSING, ServerContext};
use crate::http::auth::may_see_details;
use crate::http::bodies::accept_header::lists_html;
use crate::http::bodies::problem::{HttpResponse, typed_response};
use crate::http::bodies::schema_values;
use crate::http::endpoint::ApiResult;
use crate::http::request::ApiRequest;
use crate::reload::FACTS_IGNORED;
use crate::scrape;

/// How long a panic in the background is a problem: each task was started again.
const PANIC_SHOWN: Duration = Duration::from_secs(600);

const PLAIN_TEXT: &str = "text/plain; charset=utf-8";
/// OpenMetrics, which Prometheus reads.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The readiness of the server.
#[derive(Serialize, JsonSchema)]
pub struct Readiness {
    /// False while the server stops.
    ready: bool,
    /// The revision of the current catalog.
    #[schemars(example = &schema_values::REVISION)]
    revision: String,
    /// The number of policies.
    #[schemars(example = 12)]
    policies: usize,
    /// What an operator should look at.
    problems: Vec<ReadinessProblem>,
    /// What works, but slower or of less use than it could; absent if there is nothing to say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<ReadinessNote>,
}

/// A limitation of the deployment that needs no action, with its remedy.
#[derive(Serialize, JsonSchema)]
pub struct ReadinessNote {
    /// `locks`: callers that wait for a lock poll. `dict`: the DICT has buckets that the catalog
    /// does not have.
    #[schemars(example = &"locks")]
    what: &'static str,
    /// The reason; in detail only for requests with a key.
    #[schemars(example = &"ask with a key, or read the log")]
    why: String,
}

/// A problem of the server, with its remedy.
#[derive(Serialize, JsonSchema)]
pub struct ReadinessProblem {
    /// `stopping`, `catalog`, `restart`, `records`, `clock`, `facts`, `lists`, `blocks`, `nodes`,
    /// `locks`, `store`, `background`, `upstream`, or a pool of memory that has no room:
    /// `counters`, `blocks`, `references` or `settled-markers`.
    #[schemars(example = &"catalog")]
    what: &'static str,
    /// The location in the catalog's files.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"shop.toml:7:10")]
    place: Option<String>,
    /// The reason; in detail only for requests with a key.
    #[schemars(example = &"ask with a key, or read the log")]
    why: String,
}

/// `GET /healthz`: the process answers.
pub async fn healthy(_request: &ApiRequest) -> ApiResult {
    Ok(text(PLAIN_TEXT, "ok\n".to_owned()))
}

/// `GET /readyz`: the catalog and all problems; 503 only while the server stops.
pub async fn ready(request: &ApiRequest) -> ApiResult {
    let context = request.context();
    let draining = context.connections.is_draining();
    let catalog = context.app.catalog();
    let body = Readiness {
        ready: !draining,
        revision: catalog.revision.to_string(),
        policies: catalog.policies.len(),
        problems: problems(context, draining, &request.head),
        notes: notes(context, &request.head),
    };
    let body = serde_json::to_value(&body).unwrap_or_default();
    let mut response = text("application/json", body.to_string());
    if draining {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    Ok(response)
}

/// `GET /metrics`. A browser would save OpenMetrics to a file, so it gets the same as plain text.
pub async fn metrics(request: &ApiRequest) -> ApiResult {
    let media_type = if lists_html(request.headers()) { PLAIN_TEXT } else { OPEN_METRICS };
    Ok(text(media_type, scrape::text(request.context())))
}

/// The text, or for callers without a key where to find it.
fn redact(context: &ServerContext, head: &Parts) -> impl Fn(String) -> String + use<> {
    let may_see_details = may_see_details(&context.reloadable.load(), head);
    move |why| if may_see_details { why } else { "ask with a key, or read the log".to_owned() }
}

/// What works, but slower or of less use than it could.
fn notes(context: &ServerContext, head: &Parts) -> Vec<ReadinessNote> {
    let redact = redact(context, head);
    let locks = context.app.locks().limitation().map(|why| ("locks", why));
    let dict = context.observer.unmirrored.limitation().map(|why| ("dict", why));
    let found = locks.into_iter().chain(dict);
    found.map(|(what, why)| ReadinessNote { what, why: redact(why) }).collect()
}

/// All current problems. Details are shown only to callers with a key.
fn problems(context: &ServerContext, draining: bool, head: &Parts) -> Vec<ReadinessProblem> {
    let redact = redact(context, head);
    let mut found = Vec::new();
    if draining {
        let why = "the server is stopping".to_owned();
        found.push(ReadinessProblem { what: "stopping", place: None, why });
    }
    if let Some(error) = context.reloader.error() {
        let place = Some(error.location.clone());
        let why = redact(error.why.clone());
        found.push(ReadinessProblem { what: "catalog", place, why });
    }
    let waiting = context.reloader.after_restart();
    if !waiting.is_empty() {
        let why = format!("these settings take effect after a restart: {}", waiting.join(", "));
        found.push(ReadinessProblem { what: "restart", place: None, why: redact(why) });
    }
    for why in record_problems(context) {
        found.push(ReadinessProblem { what: "records", place: None, why: redact(why) });
    }
    if let Some(why) = context.observer.wall_clock.problem() {
        found.push(ReadinessProblem { what: "clock", place: None, why });
    }
    let ignored = context.app.engine().ignored_facts();
    if ignored > 0 {
        let why = format!("{ignored} {FACTS_IGNORED}");
        found.push(ReadinessProblem { what: "facts", place: None, why });
    }
    let (entries, facts) = context.app.engine().orphaned_entries_and_facts();
    if entries + facts > 0 {
        let why = format!(
            "{entries} list entries and {facts} facts are about values that no caller can have \
             under this catalog; lists mark them as orphaned: remove them, or set the former \
             `kind` or `ipv6_prefix`"
        );
        found.push(ReadinessProblem { what: "lists", place: None, why });
    }
    let not_restored = context.blocks_not_restored();
    if not_restored > 0 {
        let why = format!(
            "{not_restored} blocks were not restored at the start because their memory pool was \
             full, and do not deny; raise `[store] block_mib` and restart"
        );
        found.push(ReadinessProblem { what: "blocks", place: None, why });
    }
    let full = context.app.engine().store().full_pools();
    found.extend(full.into_iter().map(|pool| ReadinessProblem {
        what: pool.as_str(),
        place: None,
        why: full_pool(pool).to_owned(),
    }));
    found.extend(starting_locks(context));
    for why in background_problems(context) {
        found.push(ReadinessProblem { what: "background", place: None, why: redact(why) });
    }
    for why in shared_store_errors(context) {
        found.push(ReadinessProblem { what: "store", place: None, why: redact(why) });
    }
    let nodes = context.app.shared_stats().into_iter();
    for why in nodes.filter_map(|stats| stats.revision_problem) {
        found.push(ReadinessProblem { what: "nodes", place: None, why });
    }
    for (url, why) in context.proxy_metrics.unusable() {
        let why = redact(format!("{url} gets no requests: {why}"));
        found.push(ReadinessProblem { what: "upstream", place: None, why });
    }
    found
}

/// Why records are not written, would not be found again, or are not complete.
fn record_problems(context: &ServerContext) -> Vec<String> {
    let health = context.app.records().map(|records| records.health()).unwrap_or_default();
    let faults = health.down.iter().chain(&health.file_fault);
    let mut problems: Vec<String> = faults.map(|why| why.to_string()).collect();
    if let Some(why) = &health.maintenance_fault {
        problems.push(format!("{RECORDS_NOT_MAINTAINED}: {why}"));
    }
    if context.restored.rows_missing > 0 {
        problems.push(format!("{} rows: {ROWS_MISSING}", context.restored.rows_missing));
    }
    problems
}

/// Work in the background that fails, and tasks that have panicked a moment ago.
fn background_problems(context: &ServerContext) -> impl Iterator<Item = String> {
    let recent = |panics: &TaskPanics| panics.at.elapsed() < PANIC_SHOWN;
    let panics = task_panics().into_iter().filter(recent).map(|panics| {
        let TaskPanics { task, count, message, .. } = panics;
        format!(
            "the task `{task}` panicked and was started again, {count} times since the start: \
             {message}; report it as a bug"
        )
    });
    context.observer.background.problems().into_iter().chain(panics)
}

/// New leases are refused while those of the previous process may be valid.
fn starting_locks(context: &ServerContext) -> Option<ReadinessProblem> {
    let wait = context.app.locks().startup_wait()?;
    let why = format!(
        "leases of the previous process may still be valid, so new ones are refused \
         (`locks-starting`) for {} s more; decisions are not affected",
        Span::from(wait).ceil_secs()
    );
    Some(ReadinessProblem { what: "locks", place: None, why })
}

fn shared_store_errors(context: &ServerContext) -> impl Iterator<Item = String> {
    let stats = context.app.shared_stats().into_iter();
    stats.flat_map(|stats| {
        let settings = [stats.doubt, stats.config_warning, stats.config_notice];
        let mut errors: Vec<String> = stats.unavailable.iter().map(ToString::to_string).collect();
        if errors.is_empty() {
            errors.extend(stats.error);
        }
        errors.into_iter().chain(stats.background_error).chain(settings.into_iter().flatten())
    })
}

/// The consequence of a full memory pool, and the setting that enlarges it.
fn full_pool(pool: MemoryPool) -> &'static str {
    match pool {
        MemoryPool::Counters => {
            "the memory for counters was full within the last minute: new keys follow the \
             `on_failure` of their policy, and their strikes and watched ratios are not counted; \
             raise `[store] counter_mib` and restart, or stop a flood of new keys"
        }
        MemoryPool::Blocks => {
            "the memory for blocks was full within the last minute: a block was not started; raise \
             `[store] block_mib` and restart, or release blocks"
        }
        MemoryPool::References => {
            "the memory for references was full within the last minute: the oldest were dropped \
             and can no longer be settled or credited; raise `[store] reference_mib` and restart, \
             or shorten `remember`"
        }
        MemoryPool::SettledMarkers => {
            "the memory for markers of settled tickets was full within the last minute: a settle \
             was refused; raise `[store] mark_mib` and restart, or shorten `hold`"
        }
    }
}

fn text(content_type: &'static str, body: String) -> HttpResponse {
    let mut response = typed_response(content_type, body);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
