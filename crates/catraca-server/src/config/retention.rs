//! The retention of records in `[records]`: how long each class is kept, and how often expired
//! ones are deleted.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use catraca::Span;
use catraca::core::time::parse_span;
use catraca::records::Retention;

use super::section::text;

const DEFAULT_PURGE_INTERVAL: Duration = Duration::from_secs(3_600);
/// Bounds of `purge_interval`.
const PURGE_INTERVAL_BOUNDS: (Duration, Duration) =
    (Duration::from_secs(1), Duration::from_secs(86_400));
const RETENTION_MIN: Span = Span::from_secs(3_600);

/// The retention of each class, with defaults.
pub fn retention(records: &toml::Table) -> Result<Retention> {
    let defaults = Retention::default();
    Ok(Retention {
        history: class_retention(records, "keep_history", defaults.history)?,
        audit: class_retention(records, "keep_audit", defaults.audit)?,
        counts: class_retention(records, "keep_counts", defaults.counts)?,
    })
}

fn class_retention(records: &toml::Table, field: &str, default: Span) -> Result<Span> {
    let Some(text) = text("records", records, field)? else { return Ok(default) };
    let fix = || {
        format!(
            "[records] {field} = {text:?}: write a time from 1h, such as \"90d\" or \"forever\""
        )
    };
    let span = parse_span(text).with_context(fix)?;
    ensure!(span >= RETENTION_MIN, "{}", fix());
    Ok(span)
}

/// How often expired records are deleted.
pub fn purge_interval(records: &toml::Table) -> Result<Duration> {
    let field = "purge_interval";
    let Some(text) = text("records", records, field)? else { return Ok(DEFAULT_PURGE_INTERVAL) };
    let fix = || format!("[records] {field} = {text:?}: write a time from 1s to 1d");
    let span = parse_span(text).with_context(fix)?;
    let interval = Duration::from_micros(u64::try_from(span.micros()).unwrap_or_default());
    ensure!((PURGE_INTERVAL_BOUNDS.0..=PURGE_INTERVAL_BOUNDS.1).contains(&interval), "{}", fix());
    Ok(interval)
}
