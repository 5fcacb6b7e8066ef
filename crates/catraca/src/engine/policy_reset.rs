//! Reset of a policy for all keys: the epoch becomes part of its keys, so all old keys are
//! abandoned.
//!
//! Nothing searches for the old keys: a key is a digest and does not say which policy it belongs
//! to.

use std::time::SystemTime;

use catraca_core::batch::Batch;
use catraca_core::digest::Key;
use catraca_core::policy_epochs::PolicyEpochs;
use catraca_core::refusal::Refusal;

use super::{Engine, find_policy};
use crate::error::Error;
use crate::event::Event;
use crate::store::{Store, When};

/// Keys that one batch of [`Engine::sweep`] resets.
pub(crate) const SWEEP_BATCH: usize = 256;

impl<S> Engine<S> {
    /// Clears counters, blocks, levels and ban counts of all keys of one policy, in every
    /// namespace, from the next decision on. Returns the new epoch.
    ///
    /// The epoch is stored only in the records. Without records, a restart from a snapshot finds
    /// the state under the old keys again.
    pub fn reset_policy(&self, policy: &str) -> Result<SystemTime, Refusal> {
        let reset = self.advance_epoch(policy)?;
        self.emit(&reset);
        Ok(self.rules.load().epoch(policy).into())
    }

    /// Starts a new epoch of a policy. Returns the event, which the caller must report.
    pub(crate) fn advance_epoch(&self, policy: &str) -> Result<Event<'static>, Refusal> {
        let at = self.clock.now();
        let mut epoch = at;
        self.update_rules(|rules| {
            find_policy(rules, policy)?;
            epoch = rules.epochs.next_epoch(policy, at);
            let mut reset = PolicyEpochs::default();
            reset.advance(policy, epoch);
            Ok::<_, Refusal>(rules.with_epochs(&reset))
        })?;
        Ok(Event::PolicyReset { at, policy: policy.into(), epoch })
    }
}

impl<S: Store> Engine<S> {
    /// Frees the memory of blocks from before a policy reset. They have no effect, but one without
    /// an end would never expire.
    pub fn sweep(&self, keys: &[Key]) -> Result<(), Error> {
        for chunk in keys.chunks(SWEEP_BATCH) {
            self.store.apply(&Batch::Reset(chunk.to_vec()), When::Store)?;
        }
        Ok(())
    }
}
