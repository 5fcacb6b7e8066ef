//! `POST /v1/config/reload`: reads the catalog's files again.
//!
//! An invalid catalog is refused with all of its errors, and the old one stays in use.

use catraca::Time;
use catraca::app::OrphanedBlocks;
use catraca::core::select::orphan::OrphanReason;
use catraca::records::BlockRow;
use hyper::http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::{ApiRequest, ApiResult, Problem, to_json};
use crate::http::bodies::record_bodies::{SubjectParts, subject_parts};
use crate::http::bodies::schema_values;

/// The result of a reload; the catalog may be unchanged.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ReloadResult")]
pub struct ReloadBody {
    /// The revision before.
    #[schemars(example = &schema_values::REVISION)]
    before: String,
    /// The revision in use now.
    #[schemars(example = &schema_values::REVISION)]
    revision: String,
    /// A description of every change.
    changes: Vec<String>,
    /// Settings that changed since the server started, and take effect at its next start.
    after_restart: Vec<String>,
    /// Since when the revision is in force, if it was in force before this call, such as because
    /// the server saw the changed files first; null if this call applied it. The call is in the
    /// audit in both cases.
    #[schemars(extend("format" = "date-time"), example = schema_values::NOON)]
    in_force_since: Option<String>,
    /// Whether this was a dry run, which changes nothing.
    dry_run: bool,
    /// The number of blocks in force that deny no request any more, because the catalog makes
    /// other keys; null if the records cannot be read.
    #[schemars(example = 0)]
    orphaned: Option<u64>,
    /// The first of them.
    orphaned_blocks: Vec<OrphanedBlock>,
    /// The number of list entries that match no caller any more, or may not: their values are
    /// normalised differently, and are known only as pseudonyms, or no caller can have them.
    #[schemars(example = 0)]
    orphaned_entries: Option<u64>,
    /// The number of facts of which the same is true.
    #[schemars(example = 0)]
    orphaned_facts: Option<u64>,
    /// Whether it is on disk.
    durable: bool,
}

/// A block that denies no request any more.
#[derive(Serialize, JsonSchema)]
pub struct OrphanedBlock {
    #[schemars(example = schema_values::BLOCK_ID)]
    id: String,
    #[schemars(example = &"default")]
    namespace: String,
    #[schemars(example = &"login")]
    policy: String,
    #[schemars(example = schema_values::example_subject())]
    subject: SubjectParts,
    /// Why.
    #[schemars(example = &"the policy counts by other attributes")]
    why: String,
}

/// `POST /v1/config/reload`.
pub async fn reload(request: &ApiRequest) -> ApiResult {
    let [dry_run] = request.query_params(["dry_run"])?;
    let dry_run = match dry_run {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(Problem::bad("bad-query", "`dry_run` is true or false")),
    };
    let reason = request.audit_reason()?;
    let reloader = &request.context().reloader;
    if !reloader.has_file() {
        let detail = "the built-in demo has no file; start with `catraca serve -c FILE`";
        return Err(Problem::new(StatusCode::CONFLICT, "no-catalog-file", detail));
    }
    let by = request.caller.name().to_owned();
    let done = match dry_run {
        true => reloader.preview_by_operator().await?,
        false => reloader.reload_by_operator(by, reason.why).await?,
    };
    match done {
        Ok(done) => to_json(&ReloadBody {
            dry_run,
            orphaned: done.orphaned.as_ref().map(|orphaned| orphaned.count),
            orphaned_blocks: done.orphaned.as_ref().map(orphaned_blocks).unwrap_or_default(),
            orphaned_entries: done.orphaned.as_ref().map(|orphaned| orphaned.entries),
            orphaned_facts: done.orphaned.as_ref().map(|orphaned| orphaned.facts),
            before: done.before,
            revision: done.revision,
            changes: done.changes,
            after_restart: done.after_restart,
            in_force_since: done.in_force_since.map(Time::to_rfc3339),
            durable: done.durable,
        }),
        Err(error) => {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            Err(Problem::new(status, "bad-catalog", error.why.clone()))
        }
    }
}

fn orphaned_blocks(orphaned: &OrphanedBlocks) -> Vec<OrphanedBlock> {
    let block = |(row, why): &(BlockRow, OrphanReason)| OrphanedBlock {
        id: row.id.to_string(),
        namespace: row.subject.namespace.clone(),
        policy: row.subject.policy.clone(),
        subject: subject_parts(&row.subject.parts),
        why: why.to_string(),
    };
    orphaned.first.iter().map(block).collect()
}
