//! DEBUG log lines: one for every check, with `[server] log_level = "debug"`.
//!
//! A line never holds a private value, nor an unlisted gate's name, which a caller may choose
//! freely; and it holds an address only with `[server] log_subjects = "clear"`.

use catraca::core::catalog::AttributeKind;
use catraca::{Check, Decision, Error};
use tracing::debug;

use super::ServerContext;
use crate::observe::log::LogSubjects;

/// Logs a check and its decision.
pub fn log_decision(context: &ServerContext, check: &Check<'_>, result: &Result<Decision, Error>) {
    if !context.observer.logs.try_reserve_call_line(context.app.now()) {
        return;
    }
    let namespace = check.namespace;
    let caller = caller(context, check);
    match result {
        Ok(decision) => {
            let gate = if decision.unlisted { "(unlisted)" } else { check.gate };
            let allowed = decision.allowed;
            let reason = decision.reason.as_str();
            let policy = decision.policy.as_deref();
            debug!(namespace, gate, caller, allowed, reason, policy, "check decided");
        }
        // The error itself is not logged: it may quote any input, and the caller gets it in the
        // response.
        Err(_) => debug!(namespace, caller, "check not decided: the call or the store failed"),
    }
}

/// The attributes of the caller that the catalog reads. Those that it describes and does not mark
/// private are shown in clear, all others as pseudonyms; values of invalid form are left out. With
/// [`LogSubjects::Clear`], all that are not private are shown in clear.
fn caller(context: &ServerContext, check: &Check<'_>) -> String {
    let catalog = context.app.catalog();
    let read = check.subject.pairs().filter(|(name, _)| catalog.is_caller_attribute(name));
    let texts = read.filter_map(|(name, value)| {
        let attribute = catalog.attributes.get(name);
        let clear = match context.observer.log_subjects {
            LogSubjects::Clear => !catalog.is_private(name),
            LogSubjects::Pseudonym => {
                attribute.is_some_and(|own| !own.private && own.kind != AttributeKind::Ip)
            }
        };
        let pseudonym = context.app.engine().pseudonym(name, &value).ok()?;
        // Quoted, so that a value cannot look like another attribute.
        Some(if clear { format!("{name}={value:?}") } else { format!("{name}={pseudonym}") })
    });
    texts.collect::<Vec<_>>().join(" ")
}
