//! How long each class of records is kept, and how often the rest is deleted.
//!
//! Every mistake is named with its field and a fix. Must not delete anything.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use catraca::Span;
use catraca::core::time::parse_span;
use catraca::records::Retention;

use super::keep::text;

const PURGE: Duration = Duration::from_secs(3_600);
/// The bounds that make sense.
const PURGES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(86_400));
const KEPT_MIN: Span = Span::from_secs(3_600);

/// How long each class is kept: what the section says, else the defaults.
pub fn retention(records: &toml::Table) -> Result<Retention> {
    let usual = Retention::default();
    Ok(Retention {
        history: kept(records, "keep_history", usual.history)?,
        audit: kept(records, "keep_audit", usual.audit)?,
        counts: kept(records, "keep_counts", usual.counts)?,
    })
}

fn kept(records: &toml::Table, field: &str, usual: Span) -> Result<Span> {
    let Some(text) = text("records", records, field)? else { return Ok(usual) };
    let fix = || {
        format!(
            "[records] {field} = {text:?}: write a time from 1h, such as \"90d\" or \"forever\""
        )
    };
    let span = parse_span(text).with_context(fix)?;
    ensure!(span >= KEPT_MIN, "{}", fix());
    Ok(span)
}

/// How often what is over its time is deleted.
pub fn purge_interval(records: &toml::Table) -> Result<Duration> {
    let field = "purge_interval";
    let Some(text) = text("records", records, field)? else { return Ok(PURGE) };
    let fix = || format!("[records] {field} = {text:?}: write a time from 1s to 1d");
    let span = parse_span(text).with_context(fix)?;
    let interval = Duration::from_micros(u64::try_from(span.micros()).unwrap_or_default());
    ensure!((PURGES.0..=PURGES.1).contains(&interval), "{}", fix());
    Ok(interval)
}
