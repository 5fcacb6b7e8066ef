//! Leases for operators: list them, end one, end all of a tenant, and count them.
//!
//! Every act is logged and audited. Responses never contain a `lease_id`, which would let its
//! reader renew or release the lease.

use catraca::Span;
use catraca::app::TEXT_MAX;
use catraca::core::request::validate_storable;
use catraca::locks::LeaseFilter;
use hyper::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing::warn;

use super::{ApiRequest, ApiResult, respond_json};
use crate::http::bodies::lock_responses::{ListedLease, LockCounts};
use crate::http::bodies::problem::Problem;
use crate::http::endpoints::admin::parse_limit;

/// By default, how long the names of a lease that was ended stay taken.
const COOL_DOWN_DEFAULT_MS: i64 = 5_000;
/// Default number of leases in a page.
const PAGE_DEFAULT: u32 = 50;

/// A page of active leases.
#[derive(Serialize, JsonSchema)]
pub struct LockPage {
    locks: Vec<ListedLease>,
    /// The `after` of the next page; null on the last. A page before the last may be short.
    next: Option<String>,
}

/// `GET /v1/locks`.
pub async fn list(request: &ApiRequest) -> ApiResult {
    let names = ["namespace", "tenant", "kind", "prefix", "after", "limit"];
    let [namespace, tenant, kind, prefix, after, limit] = request.query_params(names)?;
    let tenant = request.caller.allowed_tenant(tenant)?;
    let filter = LeaseFilter { tenant: tenant.as_deref(), kind, prefix };
    let limit = parse_limit(limit, PAGE_DEFAULT)? as usize;
    let namespaces = request.lock_namespaces(namespace).await?;
    let (first, mut fence) = parse_cursor(after, &namespaces)?;
    let mut locks = Vec::new();
    for namespace in namespaces.iter().filter(|namespace| ***namespace >= *first) {
        let room = limit - locks.len();
        if room == 0 {
            return respond_json(&LockPage { locks, next: Some(format!("{namespace}:0")) });
        }
        let page = request.locks().list(namespace, &filter, fence, room).await?;
        locks.extend(page.leases.iter().map(|lease| ListedLease::new(namespace, lease)));
        if let Some(next) = page.next {
            return respond_json(&LockPage { locks, next: Some(format!("{namespace}:{next}")) });
        }
        fence = 0;
    }
    respond_json(&LockPage { locks, next: None })
}

/// The namespace and the fence after which a page begins: `after` is the `next` of another page.
fn parse_cursor<'a>(
    after: Option<&'a str>,
    namespaces: &'a [String],
) -> Result<(&'a str, i64), Problem> {
    let Some(after) = after else { return Ok(("", 0)) };
    let invalid = || Problem::bad("bad-query", "`after` must be the `next` of the previous page");
    let (namespace, fence) = after.rsplit_once(':').ok_or_else(invalid)?;
    let is_listed = namespaces.iter().any(|known| known == namespace);
    let fence = fence.parse().ok().filter(|fence: &i64| *fence >= 0 && is_listed);
    Ok((namespace, fence.ok_or_else(invalid)?))
}

/// How to end a lease, and why.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForceLock {
    /// For the audit; required.
    #[schemars(length(min = 1, max = TEXT_MAX), example = &"its holder is gone")]
    reason: String,
    /// How long its names stay taken, but not longer than the lease would have. Default: 5,000.
    #[schemars(range(min = 0, max = 60_000))]
    cool_down_ms: Option<i64>,
}

/// A lease that an operator ended.
#[derive(Serialize, JsonSchema)]
pub struct ForcedLock {
    /// Always true.
    forced: bool,
    #[serde(flatten)]
    lease: ListedLease,
    /// Whether the audit is on disk.
    durable: bool,
}

/// `DELETE /v1/locks/{fence}`.
pub async fn force(request: &ApiRequest) -> ApiResult {
    let unknown = || {
        let detail = "no active lease has this fence; GET /v1/locks lists them";
        Problem::new(StatusCode::NOT_FOUND, "unknown-lease", detail)
    };
    let fence: i64 = request.path_param(0).parse().map_err(|_| unknown())?;
    let body: ForceLock = request.json_body()?;
    let why = check_reason(&body.reason)?;
    let cool_down = body.cool_down_ms.unwrap_or(COOL_DOWN_DEFAULT_MS);
    if !(0..=60_000).contains(&cool_down) {
        let detail = "`cool_down_ms` must be a whole number from 0 to 60000";
        return Err(Problem::bad("bad-lock", detail));
    }
    // A key that fixes a tenant can end only the leases of that tenant.
    let tenant = request.caller.allowed_tenant(None)?;
    let cool_down = Span::from_millis(cool_down);
    let [namespace] = request.query_params(["namespace"])?;
    let namespace = request.lock_act_namespace(namespace).await?;
    let operator = request.operator(Some(why));
    let app = &request.app();
    let forced =
        app.force_release_lock(&operator, &namespace, fence, tenant.as_deref(), cool_down).await?;
    let (lease, durable) = forced.ok_or_else(unknown)?;
    let kind = &*lease.kind;
    let by = operator.name;
    warn!(namespace, kind, fence, by, why, "an operator ended a lease");
    respond_json(&ForcedLock { forced: true, lease: ListedLease::new(&namespace, &lease), durable })
}

/// How many leases of a tenant were ended.
#[derive(Serialize, JsonSchema)]
pub struct ClearedLocks {
    /// How many leases ended; confirmed slots stay.
    cleared: usize,
    /// Whether the audit is on disk.
    durable: bool,
}

/// Why the leases of a tenant are ended.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClearLocks {
    /// For the audit.
    #[schemars(length(max = TEXT_MAX), example = &"the tenant operation for it")]
    reason: Option<String>,
}

/// `DELETE /v1/locks?tenant=`.
pub async fn clear(request: &ApiRequest) -> ApiResult {
    let [namespace, tenant] = request.query_params(["namespace", "tenant"])?;
    let tenant = request.caller.allowed_tenant(tenant)?.filter(|tenant| !tenant.is_empty());
    // Without a tenant this would end the leases of all tenants.
    let tenant = tenant.ok_or_else(|| {
        Problem::bad("bad-query", "`tenant` is missing: send the one whose leases are to be ended")
    })?;
    let body = if request.body.is_empty() { ClearLocks::default() } else { request.json_body()? };
    let why = body.reason.as_deref().map(check_reason).transpose()?;
    let operator = request.operator(why);
    let namespace = request.lock_act_namespace(namespace).await?;
    let app = &request.app();
    let (cleared, durable) = app.clear_locks(&operator, &namespace, &tenant).await?;
    let by = operator.name;
    let logged_why = why.unwrap_or_default();
    warn!(namespace, tenant, cleared, by, why = logged_why, "an operator ended a tenant's leases");
    respond_json(&ClearedLocks { cleared, durable })
}

/// `GET /v1/stats/locks`.
pub async fn stats(request: &ApiRequest) -> ApiResult {
    let [namespace, tenant] = request.query_params(["namespace", "tenant"])?;
    let tenant = request.caller.allowed_tenant(tenant)?;
    let mut all = Vec::new();
    for namespace in request.lock_namespaces(namespace).await? {
        let stats = request.locks().stats_of(&namespace, tenant.as_deref()).await?;
        all.push((namespace, stats));
    }
    respond_json(&LockCounts::new(&all))
}

/// Checks the length and the characters of a reason.
fn check_reason(text: &str) -> Result<&str, Problem> {
    if text.trim().is_empty() {
        return Err(Problem::bad("reason-required", "`reason` is empty: send one for the audit"));
    }
    let characters = text.chars().count();
    if characters > TEXT_MAX {
        let detail = format!("`reason` may have {TEXT_MAX} characters and has {characters}");
        return Err(Problem::bad("text-too-long", detail));
    }
    validate_storable("`reason`", text)?;
    Ok(text)
}
