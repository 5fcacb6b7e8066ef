//! Operators' acts on locks, which are audited.

use std::time::Duration;

use catraca_core::lock::reply::{Lease, LeaseTarget};

use super::operator::OwnedOperator;
use super::{App, AppError};
use crate::records::Operator;

impl App {
    /// Ends a lease by its fence; its names stay taken for `cool_down`. Returns the lease and
    /// whether the audit is on disk, or nothing if no active lease has this fence.
    pub async fn force_release_lock(
        &self,
        by: &Operator<'_>,
        namespace: &str,
        fence: i64,
        tenant: Option<&str>,
        cool_down: impl Into<Duration>,
    ) -> Result<Option<(Lease, bool)>, AppError> {
        let by = OwnedOperator::new(by)?;
        let cool_down: Duration = cool_down.into();
        let app = self.clone();
        let namespace = namespace.to_owned();
        let tenant = tenant.map(str::to_owned);
        self.run_to_end(async move {
            let locks = app.locks();
            let ended = locks.force(&namespace, fence, tenant.as_deref(), cool_down).await?;
            let Some(lease) = ended else { return Ok(None) };
            let target = format!("{namespace} {fence} {}", kind_and_names(&lease));
            let durable = app.audit_note(&by.borrow(), "force-lock", target).await?;
            Ok(Some((lease, durable)))
        })
        .await
    }

    /// Ends all unconfirmed leases of a tenant. Returns how many, and whether the audit is on disk.
    pub async fn clear_locks(
        &self,
        by: &Operator<'_>,
        namespace: &str,
        tenant: &str,
    ) -> Result<(usize, bool), AppError> {
        let by = OwnedOperator::new(by)?;
        let app = self.clone();
        let namespace = namespace.to_owned();
        let tenant = tenant.to_owned();
        self.run_to_end(async move {
            let cleared = app.locks().clear(&namespace, Some(&tenant)).await?;
            let target = format!("{namespace} {tenant}: {cleared}");
            let durable = app.audit_note(&by.borrow(), "clear-locks", target).await?;
            Ok((cleared, durable))
        })
        .await
    }
}

/// The kind and the names of a lease, for the audit.
fn kind_and_names(lease: &Lease) -> String {
    let names: Vec<&str> = match &lease.target {
        LeaseTarget::Names(names) => names.iter().map(|name| &*name.key).collect(),
        LeaseTarget::Slot(names, _) => names.iter().map(|name| &*name.calendar).collect(),
    };
    format!("{}:{}", lease.kind, names.join(","))
}
