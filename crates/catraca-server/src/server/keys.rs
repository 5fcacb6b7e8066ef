//! Refuses a start without API keys when the last start had some, according to the records.
//!
//! Otherwise an included file that became empty would turn authentication off.

use anyhow::{Result, ensure};
use catraca::Time;
use catraca::records::{Record, RecordKind, Records};
use tracing::warn;

/// The command that starts without keys on purpose; also the reason in the audit.
const ALLOW_NO_KEYS: &str = "catraca serve --allow-no-keys";

/// Whether this start has API keys, and whether it may have none.
#[derive(Clone, Copy, Debug)]
pub struct StartKeys {
    /// Whether the catalog has keys.
    pub present: bool,
    /// Whether `--allow-no-keys` was given.
    pub allow_none: bool,
}

impl StartKeys {
    /// Refuses a start without keys if the records say that keys were required.
    pub fn check(self, records: &Records) -> Result<()> {
        if self.present && self.allow_none {
            warn!("--allow-no-keys has no effect: the catalog has keys; remove the option");
        }
        ensure!(
            self.present || self.allow_none || !records.keys_required()?,
            "the catalog has no keys, but the last start required them: restore [[auth.key]] (an \
             included file may be empty), or start once with `{ALLOW_NO_KEYS}`, which lets every \
             program on this machine do everything"
        );
        Ok(())
    }

    /// Records for the next start whether keys are required.
    pub fn remember(self, records: &Records, now: Time) {
        let kind = RecordKind::RequireKeys(self.present);
        let why = (!self.present && self.allow_none).then(|| ALLOW_NO_KEYS.to_owned());
        let receipt = records.record(vec![Record { at: now, by: None, why, kind }]);
        if !receipt.wait().is_durable() {
            warn!("key requirement not yet written to the records; retrying");
        }
    }
}
