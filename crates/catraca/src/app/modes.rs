//! Modes: overrides the mode of a policy, which is the kill switch.

use catraca_core::policy::{Mode, Policy};
use catraca_core::refusal::Refusal;

use super::operator::OwnedOperator;
use super::{App, AppError};
use crate::records::{Operator, RecordKind};

/// The mode of a policy before and after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangedMode {
    /// The mode in effect before.
    pub before: Mode,
    /// The mode in effect now.
    pub after: Mode,
    /// Whether the change is on disk.
    pub durable: bool,
}

impl App {
    /// The mode of a policy: the one that an operator set, or else the catalog's.
    pub fn effective_mode(&self, policy: &Policy) -> Mode {
        self.engine().mode_override(&policy.name).unwrap_or(policy.mode)
    }

    /// Overrides the mode of a policy, or returns it to the catalog's. Takes effect at once, and
    /// within a second on other nodes.
    pub async fn set_mode(
        &self,
        by: &Operator<'_>,
        policy: &str,
        mode: Option<Mode>,
    ) -> Result<ChangedMode, AppError> {
        let by = OwnedOperator::new(by)?;
        self.required_records()?;
        let catalog = self.catalog();
        let Some((id, _)) = catalog.find(policy) else {
            return Err(Refusal::UnknownPolicy(policy.to_owned()).into());
        };
        let app = self.clone();
        self.run_to_end(async move {
            let policy = catalog.policy(id);
            let change_order = app.parts.change_lock.lock().await;
            let before = app.effective_mode(policy);
            app.engine().set_mode(&policy.name, mode)?;
            let change = RecordKind::Mode(policy.name.to_string(), mode);
            let durable = app.record_change(&change_order, &by, vec![change]).await?;
            Ok(ChangedMode { before, after: app.effective_mode(policy), durable })
        })
        .await
    }
}
