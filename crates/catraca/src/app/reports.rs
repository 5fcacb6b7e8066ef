//! Reports from the records: counts of decisions, the most blocked subjects, and the audit.

use std::time::SystemTime;

use catraca_core::time::Time;

use super::page_size::check_page_size;
use super::{App, AppError};
use crate::records::{AuditQuery, AuditRow, Page, TopBlocked, Totals};

/// The decisions of a period.
#[derive(Clone, Debug)]
pub struct PeriodTotals {
    /// Verdicts by policy: a request counts once in each policy that it was checked against.
    pub policies: Vec<Totals>,
    /// Requests by action, which is the gate that they name; most first. A request counts once.
    pub actions: Vec<Totals>,
}

impl App {
    /// Decisions from the minute of `from` up to the minute of `to`, exclusive, by policy and by
    /// action. A peek does not count. With `within`, only decisions in that namespace.
    pub async fn totals(
        &self,
        within: Option<&str>,
        from: impl Into<SystemTime>,
        to: impl Into<SystemTime>,
    ) -> Result<PeriodTotals, AppError> {
        let within = within.map(str::to_owned);
        let from = Time::from(from.into());
        let to = Time::from(to.into());
        self.read_records(move |records| {
            // Writes the counts that are still in memory.
            records.flush()?;
            let policies = records.policies(within.as_deref(), from, to)?;
            let actions = records.actions(within.as_deref(), from, to)?;
            Ok(PeriodTotals { policies, actions })
        })
        .await
    }

    /// Subjects by number of blocks since `from`, most first. With `within`, only those of that
    /// namespace.
    pub async fn top_blocked(
        &self,
        within: Option<&str>,
        from: impl Into<SystemTime>,
        limit: u32,
    ) -> Result<Vec<TopBlocked>, AppError> {
        let from = Time::from(from.into());
        check_page_size(limit)?;
        let within = within.map(str::to_owned);
        let found = self.read_records(move |records| {
            records.flush()?;
            records.top_blocked(within.as_deref(), from, limit)
        });
        let mut found = found.await?;
        for row in &mut found {
            self.hide_private_parts(&mut row.parts);
        }
        Ok(found)
    }

    /// Audited acts, newest first.
    pub async fn audit(&self, query: AuditQuery) -> Result<Page<AuditRow, i64>, AppError> {
        check_page_size(query.limit)?;
        let incomplete = self.await_queued_records().await?;
        let page = self.read_records(move |records| records.audit(&query)).await?;
        let rows = page.rows.into_iter().map(|row| self.shown_act(row)).collect();
        Ok(Page { rows, next: page.next, incomplete })
    }
}
