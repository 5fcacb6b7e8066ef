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
    /// action. A peek does not count.
    pub async fn totals(
        &self,
        from: impl Into<SystemTime>,
        to: impl Into<SystemTime>,
    ) -> Result<PeriodTotals, AppError> {
        let from = Time::from(from.into());
        let to = Time::from(to.into());
        self.read_records(move |records| {
            // Writes the counts that are still in memory.
            records.flush()?;
            let policies = records.policies(from, to)?;
            let actions = records.actions(from, to)?;
            Ok(PeriodTotals { policies, actions })
        })
        .await
    }

    /// Subjects by number of blocks since `from`, most first.
    pub async fn top_blocked(
        &self,
        from: impl Into<SystemTime>,
        limit: u32,
    ) -> Result<Vec<TopBlocked>, AppError> {
        let from = Time::from(from.into());
        check_page_size(limit)?;
        self.read_records(move |records| {
            records.flush()?;
            records.top_blocked(from, limit)
        })
        .await
    }

    /// Audited acts, newest first.
    pub async fn audit(&self, query: AuditQuery) -> Result<Page<AuditRow, i64>, AppError> {
        check_page_size(query.limit)?;
        let incomplete = self.await_queued_records().await?;
        let mut page = self.read_records(move |records| records.audit(&query)).await?;
        page.incomplete = incomplete;
        for row in &mut page.rows {
            self.hide_private_act(row);
        }
        Ok(page)
    }

    /// Hides the value in the target of an act on lists or facts, such as `blocklist customer=ana`
    /// or `blocklist/shop customer=ana`,
    /// if its attribute has become private and the records do not hide it yet.
    fn hide_private_act(&self, row: &mut AuditRow) {
        if !["list", "unlist", "state", "forget"].contains(&&*row.act) {
            return;
        }
        let Some((name, pair)) = row.target.split_once(' ') else { return };
        let Some((attribute, value)) = pair.split_once('=') else { return };
        let mut shown = value.to_owned();
        self.engine().hide_private_value(attribute, &mut shown);
        row.target = format!("{name} {attribute}={shown}");
    }
}
