//! Resetting a policy for everybody: its keys are others from now on.
//!
//! Must not look for the keys of before: a key does not tell its policy.

use catraca_core::batch::Batch;
use catraca_core::digest::Key;
use catraca_core::refusal::Refusal;
use catraca_core::resets::Resets;
use catraca_core::time::Time;

use super::{Engine, find};
use crate::error::Error;
use crate::event::Event;
use crate::store::{Store, When};

/// Keys that are swept at once.
pub(crate) const SWEPT: usize = 256;

impl<S> Engine<S> {
    /// Forgets counters, blocks, levels and ban counts of everybody under one policy, in every
    /// namespace, from the next decision on; says since when the policy counts now.
    ///
    /// The instant is kept by the records, and nowhere else: without them, what a snapshot brings
    /// back is found again under the keys of before.
    pub fn reset_policy(&self, policy: &str) -> Result<Time, Refusal> {
        let at = self.clock.now();
        let mut epoch = at;
        self.change(|world| {
            find(world, policy)?;
            epoch = world.resets.next(policy, at);
            let mut reset = Resets::default();
            reset.note(policy, epoch);
            Ok::<_, Refusal>(world.with_resets(&reset))
        })?;
        self.record(&Event::PolicyReset { at, policy, epoch });
        Ok(epoch)
    }
}

impl<S: Store> Engine<S> {
    /// Gives back the room that blocks from before a whole reset still take. They deny nobody,
    /// but one without an end would never go by itself.
    pub fn sweep(&self, keys: &[Key]) -> Result<(), Error> {
        for some in keys.chunks(SWEPT) {
            self.store.apply(&Batch::Reset(some.to_vec()), When::Store)?;
        }
        Ok(())
    }
}
