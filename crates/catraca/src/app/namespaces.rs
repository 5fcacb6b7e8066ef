//! The namespaces that exist, and the one that an operator's act is about.
//!
//! A front end knows the namespaces of its keys, and the records know those in which something
//! happened. An act in a namespace that the operator did not mean would succeed and change nothing
//! for the caller, so with several namespaces an operator must name one.

use std::collections::BTreeSet;
use std::time::Duration;

use catraca_core::located::names::{NAME_MAX, is_name};
use catraca_core::request::DEFAULT_NAMESPACE;

use super::{App, AppError};

/// The longest time for which an act waits for the namespaces in the records.
const READ_WAIT_MAX: Duration = Duration::from_secs(1);

/// Refuses a namespace that no key can have. The audit relies on it: its targets contain the name.
pub(super) fn check_namespace(namespace: Option<&str>) -> Result<(), AppError> {
    if namespace.is_none_or(is_name) {
        return Ok(());
    }
    let detail = format!("a namespace has 1 to {NAME_MAX} letters, digits, `_`, `.` or `-`");
    Err(AppError::invalid("unknown-namespace", detail))
}

impl App {
    /// The namespaces that exist: `default`, those of keys, and those in the records.
    pub async fn namespaces(&self, of_keys: Vec<String>) -> Result<BTreeSet<String>, AppError> {
        let mut all: BTreeSet<String> = of_keys.into_iter().collect();
        all.insert(DEFAULT_NAMESPACE.to_owned());
        if self.parts.records.is_some() {
            let recorded = self.read_records(|records| records.namespaces()).await?;
            self.parts.recorded_namespaces.lock().replace(recorded.iter().cloned().collect());
            all.extend(recorded);
        }
        Ok(all)
    }

    /// The namespace of an act of an operator whose key is bound to none: the stated one, which
    /// must exist, or `default` if there is no other.
    pub async fn act_namespace(
        &self,
        stated: Option<&str>,
        of_keys: Vec<String>,
    ) -> Result<String, AppError> {
        // An act must not fail because the records do: it then takes effect, and is recorded later.
        let read = self.namespaces(of_keys.clone());
        let all = match tokio::time::timeout(READ_WAIT_MAX, read).await {
            Ok(Ok(all)) => all,
            _ => self.known_namespaces(of_keys, stated)?,
        };
        let names = all.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        match stated {
            Some(stated) if all.contains(stated) => Ok(stated.to_owned()),
            Some(_) => {
                let detail = format!("there is no such namespace; there are {names}");
                Err(AppError::invalid("unknown-namespace", detail))
            }
            None if all.len() == 1 => Ok(DEFAULT_NAMESPACE.to_owned()),
            None => {
                let detail = format!("name the namespace in `namespace`; there are {names}");
                Err(AppError::invalid("namespace-required", detail))
            }
        }
    }
    /// The namespaces as far as they are known without the records: those that were read last, and
    /// those of keys. If the records were never read, `default` is not known to be the only one, so
    /// an act that states none is refused.
    fn known_namespaces(
        &self,
        of_keys: Vec<String>,
        stated: Option<&str>,
    ) -> Result<BTreeSet<String>, AppError> {
        let read = self.parts.recorded_namespaces.lock().clone();
        let is_read = read.is_some();
        let mut all = read.unwrap_or_default();
        all.extend(of_keys.into_iter().chain(stated.map(str::to_owned)));
        all.insert(DEFAULT_NAMESPACE.to_owned());
        if !is_read && all.len() == 1 && stated.is_none() {
            return Err(AppError::UnknownNamespaces);
        }
        Ok(all)
    }
}
