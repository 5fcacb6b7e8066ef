//! What operators see and do: list, end one, clear a tenant, counts.
//!
//! Every act has a reason and a line in the audit. Must not show a proof.

use axum::http::StatusCode;
use catraca::Span;
use catraca::core::lock::reply::View;
use catraca::core::request::storable;
use catraca::locks::Filter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing::warn;

use super::super::problem::Problem;
use super::shown::{Listed, LockCounts};
use super::{Call, Told, told};

/// The most bytes of a reason.
const REASON_MAX: usize = 500;
/// How long the names of an ended lease stay taken, unless it is said.
const COOL_DOWN_MS: i64 = 5_000;
/// How many leases a page has, unless it is said.
const PAGE: usize = 50;

/// Some leases in force.
#[derive(Serialize, JsonSchema)]
pub struct LockPageShown {
    locks: Vec<Listed>,
    /// The `after` of the next page; null on the last. A page may be short and not the last.
    next: Option<String>,
}

/// `GET /v1/locks`.
pub async fn list(call: &Call) -> Told {
    let names = ["tenant", "kind", "prefix", "after", "limit"];
    let [tenant, kind, prefix, after, limit] = call.asked(names)?;
    let tenant = call.by.tenant(tenant)?;
    let filter = Filter { tenant: tenant.as_deref(), kind, prefix };
    let after = number("after", after)?.unwrap_or(0);
    let limit = number("limit", limit)?.and_then(|limit| usize::try_from(limit).ok());
    let page = (after, limit.unwrap_or(PAGE));
    let page = call.locks().list(call.namespace(), &filter, page).await?;
    let locks = page.leases.iter().map(Listed::from).collect();
    told(&LockPageShown { locks, next: page.next.map(|next| next.to_string()) })
}

/// Why, and how carefully.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EndLock {
    /// For the audit; it must be given.
    #[schemars(length(min = 1, max = REASON_MAX), example = &"its holder is gone")]
    reason: String,
    /// How long its names stay taken, at most as long as it would have lasted: 5,000 unless given.
    #[schemars(range(min = 0, max = 60_000))]
    cool_down_ms: Option<i64>,
}

/// A lease that an operator ended.
#[derive(Serialize, JsonSchema)]
pub struct ForcedLock {
    /// Always true.
    forced: bool,
    #[serde(flatten)]
    lease: Listed,
    /// Whether the audit is on disk.
    durable: bool,
}

/// `DELETE /v1/locks/{fence}`.
pub async fn force(call: &Call) -> Told {
    let unknown = || {
        let detail = "no lease in force has this number; GET /v1/locks lists them";
        Problem::new(StatusCode::NOT_FOUND, "unknown-lease", detail)
    };
    let fence: i64 = call.part(0).parse().map_err(|_| unknown())?;
    let wire: EndLock = call.wire()?;
    let why = reason(&wire.reason)?;
    let cool_down = wire.cool_down_ms.unwrap_or(COOL_DOWN_MS);
    if !(0..=60_000).contains(&cool_down) {
        let detail = "`cool_down_ms` must be a whole number from 0 to 60000";
        return Err(Problem::bad("bad-lock", detail));
    }
    let tenant = call.by.tenant(None)?;
    let cool_down = Span::from_millis(cool_down);
    let (locks, tenant) = (call.locks(), tenant.as_deref());
    let forced = locks.force(call.namespace(), fence, tenant, cool_down).await?;
    let view = forced.ok_or_else(unknown)?;
    let (namespace, kind, by) = (call.namespace(), &*view.kind, call.by.name());
    warn!(namespace, kind, fence, by, why, "an operator ended a lease");
    let target = format!("{namespace} {fence} {}", named(&view));
    let durable = call.audited("force-lock", target, Some(why)).await;
    told(&ForcedLock { forced: true, lease: Listed::from(&view), durable })
}

/// What was cleared.
#[derive(Serialize, JsonSchema)]
pub struct ClearedLocks {
    /// How many leases ended; confirmed slots stay.
    cleared: usize,
    /// Whether the audit is on disk.
    durable: bool,
}

/// Why.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClearLocks {
    /// For the audit.
    #[schemars(length(max = REASON_MAX), example = &"the tenant asked for it")]
    reason: Option<String>,
}

/// `DELETE /v1/locks?tenant=`.
pub async fn clear(call: &Call) -> Told {
    let [tenant] = call.asked(["tenant"])?;
    let tenant = call.by.tenant(tenant)?.filter(|tenant| !tenant.is_empty());
    let tenant = tenant.ok_or_else(|| {
        Problem::bad("bad-query", "`tenant` is missing: name whose locks are to be cleared")
    })?;
    let wire = if call.body.is_empty() { ClearLocks::default() } else { call.wire()? };
    let why = wire.reason.as_deref().map(reason).transpose()?;
    let cleared = call.locks().clear(call.namespace(), Some(&tenant)).await?;
    let (namespace, by, why_said) = (call.namespace(), call.by.name(), why.unwrap_or_default());
    warn!(namespace, tenant, cleared, by, why = why_said, "an operator cleared a tenant's locks");
    let target = format!("{namespace} {tenant}: {cleared}");
    let durable = call.audited("clear-locks", target, why).await;
    told(&ClearedLocks { cleared, durable })
}

/// `GET /v1/stats/locks`.
pub async fn stats(call: &Call) -> Told {
    let [tenant] = call.asked(["tenant"])?;
    let tenant = call.by.tenant(tenant)?;
    let stats = call.locks().stats_of(call.namespace(), tenant.as_deref()).await?;
    told(&LockCounts::from(&stats))
}

fn named(view: &View) -> String {
    use catraca::core::lock::reply::What;
    let names: Vec<&str> = match &view.what {
        What::Names(names) => names.iter().map(|name| &*name.key).collect(),
        What::Slot(names, _) => names.iter().map(|name| &*name.calendar).collect(),
    };
    format!("{}:{}", view.kind, names.join(","))
}

fn reason(text: &str) -> Result<&str, Problem> {
    if text.trim().is_empty() {
        return Err(Problem::bad("reason-required", "`reason` is empty: say why, for the audit"));
    }
    if text.len() > REASON_MAX {
        let detail = format!("`reason` may have {REASON_MAX} bytes and has {}", text.len());
        return Err(Problem::bad("text-too-long", detail));
    }
    storable("`reason`", text)?;
    Ok(text)
}

fn number(name: &str, text: Option<&str>) -> Result<Option<i64>, Problem> {
    let bad = || Problem::bad("bad-query", format!("`{name}` must be a whole number of 0 or more"));
    let read = |text: &str| text.parse().ok().filter(|number: &i64| *number >= 0);
    text.map(|text| read(text).ok_or_else(bad)).transpose()
}
