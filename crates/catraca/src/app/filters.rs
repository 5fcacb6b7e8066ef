//! Refuses filters that can match nothing because a name in them is misspelt: an empty answer would
//! look as if nothing had happened.

use catraca_core::located::names::nearest;

use super::{App, AppError};
use crate::records::{Records, RecordsError};

/// The acts that the audit has. Records of other versions may have more.
const ACTS: [&str; 16] = [
    "auth",
    "block",
    "catalog",
    "change",
    "clear-locks",
    "erase",
    "export",
    "force-lock",
    "forget",
    "hide",
    "list",
    "mode",
    "release",
    "reload",
    "reset",
    "unlist",
];
/// The act of setting facts, which is not named as the command is.
const STATE: &str = "state";

impl App {
    /// Refuses a policy that neither the catalog nor the records know.
    pub async fn check_policy_filter(&self, policy: &str) -> Result<(), AppError> {
        let catalog = self.catalog();
        let name = policy.to_owned();
        let is_known = catalog.find(policy).is_some()
            || self.is_in_records(move |records| records.has_policy(&name)).await?;
        if is_known {
            return Ok(());
        }
        let known: Vec<&str> = catalog.policies.iter().map(|policy| &*policy.name).collect();
        Err(unknown("policy", policy, &known))
    }

    /// Refuses an act that is neither one of this version's nor in the records.
    pub async fn check_act_filter(&self, act: &str) -> Result<(), AppError> {
        let name = act.to_owned();
        let is_known = ACTS.contains(&act)
            || act == STATE
            || self.is_in_records(move |records| records.has_act(&name)).await?;
        if is_known {
            return Ok(());
        }
        let known: Vec<&str> = ACTS.into_iter().chain([STATE]).collect();
        Err(unknown("act", act, &known))
    }

    async fn is_in_records(
        &self,
        find: impl Fn(&Records) -> Result<bool, RecordsError> + Send + Sync + 'static,
    ) -> Result<bool, AppError> {
        // The act that is searched for may be queued.
        self.await_queued_records().await?;
        self.read_records(find).await
    }
}

fn unknown(what: &str, name: &str, known: &[&str]) -> AppError {
    let meant = match nearest(name, known) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("there are {}", known.join(", ")),
    };
    let shown: String = name.chars().take(64).collect();
    let detail = format!("there is no {what} `{}`: {meant}", shown.escape_debug());
    AppError::invalid("bad-query", detail)
}
