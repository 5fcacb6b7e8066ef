//! Buckets of an upstream for which the catalog has none: they are neither counted nor corrected
//! here, so the upstream may refuse requests of which this server knows nothing.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use tracing::warn;

/// Their names, as the last poll found them.
#[derive(Debug, Default)]
pub struct UnmirroredBuckets {
    names: Mutex<BTreeSet<String>>,
}

impl UnmirroredBuckets {
    /// Takes over what a poll found, and logs each name when it appears.
    pub fn note(&self, found: BTreeSet<String>) {
        let mut names = self.names.lock();
        for policy in found.difference(&names) {
            warn!(
                policy,
                "the upstream has a bucket for which the catalog has none: it is not counted and \
                 not corrected; add a policy of this name with a bucket"
            );
        }
        *names = found;
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.names.lock().len()
    }

    /// What an operator should know about them, if there are any.
    pub fn limitation(&self) -> Option<String> {
        let names = self.names.lock();
        if names.is_empty() {
            return None;
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Some(format!(
            "the upstream has buckets for which the catalog has none, so they are not counted and \
             not corrected: {}; add policies of these names with buckets",
            names.join(", ")
        ))
    }
}
