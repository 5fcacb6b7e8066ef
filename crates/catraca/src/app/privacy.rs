//! Privacy: export and erase what the records contain about one identifier.
//!
//! The identifier itself is written nowhere: the audit names only its attribute.

use super::operator::OwnedOperator;
use super::{App, AppError};
use crate::records::{AuditNote, ErasureCounts, Operator, RecordKind, SubjectExport};

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
    /// Whether the audit of the erasure is on disk.
    pub durable: bool,
}

impl App {
    /// Exports everything that the records contain about a value.
    pub async fn export(
        &self,
        by: &Operator<'_>,
        attribute: &str,
        value: &str,
    ) -> Result<ExportedSubject, AppError> {
        let about = self.values_to_find(attribute, value).await?;
        let by = OwnedOperator::new(by)?;
        self.required_records()?;
        // Audited first, so that an export that fails is in the audit too.
        let durable = self.audit_note(&by.borrow(), "export", one_value_of(attribute)).await?;
        let rows = self.read_records(move |records| records.export(&about)).await?;
        Ok(ExportedSubject { rows, durable })
    }

    /// Erases what the records contain about a value, except what is still in effect to protect
    /// others.
    pub async fn erase(
        &self,
        by: &Operator<'_>,
        attribute: &str,
        value: &str,
    ) -> Result<ErasedSubject, AppError> {
        let about = self.values_to_find(attribute, value).await?;
        // Before the erasure: a call that is refused must not have erased anything.
        let by = OwnedOperator::new(by)?;
        self.required_records()?;
        let app = self.clone();
        let attribute = attribute.to_owned();
        let value = value.to_owned();
        self.run_to_end(async move {
            // A fact that is set meanwhile must be in the engine and in the records, or in neither.
            let change_order = app.parts.change_lock.lock().await;
            let now = app.now();
            let counts = app.change_records(move |records| records.erase(&about, now)).await?;
            // Facts are also in the memory of the engine.
            app.engine().forget_facts_everywhere(&attribute, &value)?;
            let target = one_value_of(&attribute);
            let note = RecordKind::Note(AuditNote { act: "erase".to_owned(), target });
            let durable = app.record_change(&change_order, &by, vec![note]).await?;
            Ok(ErasedSubject { counts, durable })
        })
        .await
    }
}

/// The target of an act on an identifier, which does not name its value.
fn one_value_of(attribute: &str) -> String {
    format!("one value of {attribute}")
}
