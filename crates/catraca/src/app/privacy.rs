//! Privacy: export and erase what the records contain about one identifier.
//!
//! The identifier itself is written nowhere: the audit names only its attribute.

use catraca_core::time::Time;

use super::operator::OwnedOperator;
use super::{App, AppError};
use crate::records::{
    AttributeValue, AuditNote, ErasureCounts, Operator, RecordKind, SubjectExport,
};

/// Everything that the records contain about an identifier.
#[derive(Clone, Debug)]
pub struct ExportedSubject {
    /// The rows.
    pub rows: SubjectExport,
    /// Whether the audit of the export is on disk.
    pub durable: bool,
}

/// What was erased about an identifier, and what was retained.
#[derive(Clone, Copy, Debug)]
pub struct ErasedSubject {
    /// Numbers of rows.
    pub counts: ErasureCounts,
    /// Whether the erasure and its audit are on disk; with records of each node, whether the store
    /// has the order to erase for every other node.
    pub durable: bool,
}

impl App {
    /// Exports everything that the records contain about a value; with `within`, in that namespace.
    pub async fn export(
        &self,
        by: &Operator<'_>,
        within: Option<&str>,
        attribute: &str,
        value: &str,
    ) -> Result<ExportedSubject, AppError> {
        let about = self.values_to_find(attribute, value).await?;
        let by = OwnedOperator::new(by)?;
        self.required_records()?;
        // Audited first, so that an export that fails is in the audit too.
        let durable =
            self.audit_note(&by.borrow(), "export", one_value_of(within, attribute)).await?;
        let within = within.map(str::to_owned);
        let export = self.read_records(move |records| records.export(&about, within.as_deref()));
        let mut rows = export.await?;
        let blocks = rows.blocks.into_iter();
        rows.blocks = blocks.map(|(row, history)| (self.shown_block(row), history)).collect();
        rows.audit = rows.audit.into_iter().map(|row| self.shown_act(row)).collect();
        Ok(ExportedSubject { rows, durable })
    }

    /// Erases what the records contain about a value, except what is still in effect to protect
    /// others; with `within`, only in that namespace.
    pub async fn erase(
        &self,
        by: &Operator<'_>,
        within: Option<&str>,
        attribute: &str,
        value: &str,
    ) -> Result<ErasedSubject, AppError> {
        let about = self.values_to_find(attribute, value).await?;
        // Before the erasure: a call that is refused must not have erased anything.
        let by = OwnedOperator::new(by)?;
        self.required_records()?;
        let app = self.clone();
        let within = within.map(str::to_owned);
        let attribute = attribute.to_owned();
        let value = value.to_owned();
        self.run_to_end(async move {
            // A fact that is set meanwhile must be in the engine and in the records, or in neither.
            let change_order = app.parts.change_lock.lock().await;
            let now = app.now();
            let namespace = within.clone();
            let is_ordered = app.erase_elsewhere(&about, within.as_deref(), now).await;
            let erased =
                app.change_records(move |records| records.erase(&about, namespace.as_deref(), now));
            let counts = erased.await?;
            // Facts are also in the memory of the engine.
            match &within {
                None => app.engine().forget_facts_everywhere(&attribute, &value)?,
                Some(within) => {
                    app.engine().forget_facts(Some(within), &attribute, &value)?;
                }
            }
            let target = one_value_of(within.as_deref(), &attribute);
            let note = RecordKind::Note(AuditNote { act: "erase".to_owned(), target });
            let recorded = app.record_change(&change_order, &by, vec![note]).await?;
            Ok(ErasedSubject { counts, durable: is_ordered && recorded })
        })
        .await
    }
}

impl App {
    /// With records of each node: the other nodes erase it too, and the facts in the store. Returns
    /// whether the store has both.
    async fn erase_elsewhere(
        &self,
        about: &[AttributeValue],
        within: Option<&str>,
        now: Time,
    ) -> bool {
        let Some(shared) = self.node_scope() else { return true };
        let is_published = shared.publish_erasure(about, within, now).await;
        let is_forgotten = shared.forget_shared_facts(about, within).await;
        is_published && is_forgotten
    }
}

/// The target of an act on an identifier, which does not name its value.
fn one_value_of(within: Option<&str>, attribute: &str) -> String {
    let name = format!("one value of {attribute}");
    match within {
        None => name,
        // The audit finds the acts of a namespace by this form.
        Some(namespace) => format!("records/{namespace} {name}"),
    }
}
