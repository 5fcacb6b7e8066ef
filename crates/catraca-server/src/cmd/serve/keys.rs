//! Whether a start without keys is meant: the records remember that callers needed one.
//!
//! Must not let an emptied key file turn authentication off.

use anyhow::{Result, ensure};
use catraca::Time;
use catraca::records::{Deed, Record, Records};
use tracing::warn;

/// How to start without keys on purpose.
const FLAG: &str = "catraca serve --allow-no-keys";

/// The keys of a start.
#[derive(Clone, Copy, Debug)]
pub struct StartKeys {
    /// Whether the catalog has any.
    pub present: bool,
    /// Whether the command line allows it to have none.
    pub allow_none: bool,
}

impl StartKeys {
    /// Refuses a start without keys if the records remember that there were some.
    pub fn check(self, records: &Records) -> Result<()> {
        if self.present && self.allow_none {
            warn!("--allow-no-keys is set and the catalog has keys: leave it out from now on");
        }
        ensure!(
            self.present || self.allow_none || !records.keys_required()?,
            "the catalog has no keys, and the records say that callers needed one: bring \
             [[auth.key]] back (an included file may be empty), or start once with `{FLAG}` to \
             let every program on this machine do everything"
        );
        Ok(())
    }

    /// Remembers for the next start whether callers need a key.
    pub fn remember(self, records: &Records, now: Time) {
        let deed = Deed::RequireKeys(self.present);
        let why = (!self.present && self.allow_none).then(|| FLAG.to_owned());
        let receipt = records.record(vec![Record { at: now, by: None, why, deed }]);
        if !receipt.wait().is_durable() {
            warn!("whether callers need a key is not on disk yet; it is tried again");
        }
    }
}
