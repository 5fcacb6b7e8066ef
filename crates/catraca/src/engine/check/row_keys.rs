//! The keys of a decision's rows, for the events that name them.

use catraca_core::batch::Batch;
use catraca_core::digest::Key;
use catraca_core::plan::display_parts;
use catraca_core::select::SelectedPolicy;

use super::CheckExchange;
use crate::event::SubjectKey;

impl<S> CheckExchange<'_, '_, '_, S> {
    /// The key of each row of the decision; a row that is not in the batch has none.
    pub(super) fn row_keys(&self) -> Vec<Option<SubjectKey>> {
        let plan = &self.planned.plan;
        let Batch::Check(batch) = &plan.batch else { return Vec::new() };
        let mut batch_rows = batch.rows.iter();
        let key_of = |row: &SelectedPolicy<'_, '_>| {
            let check_row = row.terms.as_ref().and_then(|_| batch_rows.next())?;
            Some(self.subject_key(check_row.key, row))
        };
        plan.rows.iter().map(key_of).collect()
    }

    pub(super) fn subject_key(&self, key: Key, row: &SelectedPolicy<'_, '_>) -> SubjectKey {
        SubjectKey {
            key,
            namespace: self.check.namespace.to_owned(),
            policy: self.rules.catalog.policy(row.policy).name.to_string(),
            parts: display_parts(&self.rules.catalog, &self.engine.digester, &row.parts),
        }
    }
}
