//! How long a server itself says that its calls took: from a read head to an answer that is ready.
//!
//! The clock of callers also counts the wait of both ends for a core; this one does not. Must not
//! be asked while anything else is.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};

use super::load::HttpConnection;

const SERIES: &str = "catraca_call_seconds_bucket{le=\"";

/// Calls so far that took no longer than each bound, in microseconds.
pub(super) struct HolderCounts(BTreeMap<u64, u64>);

impl HolderCounts {
    pub(super) fn of(talk: &mut HttpConnection) -> Result<Self> {
        let (status, text) = talk.get("/metrics")?;
        ensure!(status == 200, "/metrics: {status}");
        let rows = text.lines().filter_map(|line| line.strip_prefix(SERIES));
        let rows = rows.map(|row| {
            let (bound, rest) = row.split_once('"').context(SERIES)?;
            let count = rest.split_whitespace().nth(1).context(SERIES)?;
            let bound: f64 = if bound == "+Inf" { f64::MAX } else { bound.parse()? };
            Ok(((bound * 1e6).round() as u64, count.parse::<f64>()? as u64))
        });
        let rows: BTreeMap<u64, u64> = rows.collect::<Result<_>>()?;
        ensure!(!rows.is_empty(), "/metrics has no {SERIES}");
        Ok(Self(rows))
    }

    /// The bound within which 99 of 100 calls were since then.
    pub(super) fn since(&self, before: &Self) -> String {
        let since = |bound: &u64| self.0[bound] - before.0.get(bound).copied().unwrap_or_default();
        let all = self.0.keys().next_back().map(since).unwrap_or_default();
        let wanted = (all * 99).div_ceil(100);
        let found = self.0.keys().find(|bound| since(bound) >= wanted);
        found.map_or("nothing".to_owned(), |bound| format!("{:?}", micros(*bound)))
    }
}

fn micros(bound: u64) -> std::time::Duration {
    std::time::Duration::from_micros(bound)
}
