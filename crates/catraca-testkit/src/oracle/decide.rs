//! Section 3: the decision, from all rows, or from a list before any row is evaluated.

use super::answer::{Decision, Reason, Row, to_ms};
use super::catalog::{Catalog, ListEntry, Mode};
use super::ratio::Ratio;
use super::select::{CheckRequest, value};
use super::{FOREVER, Micros};

/// The decision by a list, if an entry matches. The allowlist comes first.
pub fn decide_by_list(catalog: &Catalog, request: &CheckRequest, now: Micros) -> Option<Decision> {
    let matches = |entry: &&ListEntry| {
        now < entry.until && value(&request.subject, &entry.attribute) == Some(&entry.value)
    };
    if !request.lists {
        return None;
    }
    if catalog.allowlist.iter().any(|entry| matches(&entry)) {
        return Some(Decision { allowed: true, ..bare(Reason::Allowlisted) });
    }
    // With several matching entries, the denial ends when the last one ends.
    let end = catalog.blocklist.iter().filter(matches).map(|entry| entry.until).max()?;
    let retry_at = (end != FOREVER).then_some(end);
    let retry_ms = retry_at.map(|end| to_ms(end - now));
    Some(Decision { retry_at, retry_ms, blocked_until: retry_at, ..bare(Reason::Blocklisted) })
}

/// The decision of all rows.
pub fn conclude(rows: Vec<Row>, ticket: Option<usize>) -> Decision {
    let denying: Vec<&Row> =
        rows.iter().filter(|row| row.mode.enforces() && !row.allowed).collect();
    let mut decision = match denying.first() {
        None => Decision { allowed: true, ..about(tightest(&rows), Reason::Ok) },
        Some(&first) => Decision {
            retry_at: latest(&denying, |row| row.retry_at),
            retry_ms: latest(&denying, |row| row.retry_ms),
            blocked_until: latest_block(&denying),
            ..about(Some(first), first.reason)
        },
    };
    decision.ticket = ticket;
    decision.rows = rows;
    decision
}

/// The enforcing row with the smallest share of its limit left; the first on a tie.
fn tightest(rows: &[Row]) -> Option<&Row> {
    let share = |row: &&Row| {
        let (remaining, limit) = row.remaining.zip(row.limit)?;
        Some(Ratio::new(i128::from(remaining), i128::from(limit)))
    };
    rows.iter().filter(|row| row.mode.enforces() && row.limit.is_some()).min_by_key(share)
}

/// The longest wait; none if waiting does not help one of the rows.
fn latest(denying: &[&Row], wait: fn(&Row) -> Option<i64>) -> Option<i64> {
    let waits: Option<Vec<i64>> = denying.iter().map(|row| wait(row)).collect();
    waits?.into_iter().max()
}

/// The latest end of the blocks; none if one of them has no end.
fn latest_block(denying: &[&Row]) -> Option<Micros> {
    if denying.iter().any(|row| row.endless) {
        return None;
    }
    denying.iter().filter_map(|row| row.blocked_until).max()
}

/// A decision with the figures of one row.
fn about(row: Option<&Row>, reason: Reason) -> Decision {
    Decision {
        policy: row.map(|row| row.policy.clone()),
        limit: row.and_then(|row| row.limit),
        remaining: row.and_then(|row| row.remaining),
        reset_at: row.and_then(|row| row.reset_at),
        reset_ms: row.and_then(|row| row.reset_ms),
        mode: row.map_or(Mode::Enforce, |row| row.mode),
        ..bare(reason)
    }
}

/// A denial without figures.
fn bare(reason: Reason) -> Decision {
    Decision {
        allowed: false,
        reason,
        policy: None,
        limit: None,
        remaining: None,
        retry_at: None,
        retry_ms: None,
        reset_at: None,
        reset_ms: None,
        blocked_until: None,
        mode: Mode::Enforce,
        ticket: None,
        rows: Vec::new(),
    }
}
