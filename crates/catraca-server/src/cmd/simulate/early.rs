//! What is wrong with a line, before anything that is due at its instant runs.
//!
//! A refused line must not move the time, and to run what is due would. So each is asked first,
//! while the clock still shows the instant of the line before. Must not change anything.

use catraca::{Engine, Error};
use catraca_core::request::DEFAULT_NAMESPACE;

use super::event::Kind;

/// Refuses what the engine would.
pub fn refuse(engine: &Engine, kind: &Kind<'_>) -> Result<(), Error> {
    match kind {
        Kind::Check(check) => engine.peek(&check.check()).map(drop),
        Kind::Credit(credit) => {
            let (reference, event) = (&credit.reference, &credit.event);
            engine.peek_credit(DEFAULT_NAMESPACE, reference, event, &credit.subject())
        }
        Kind::Block(block) => engine.peek_block(&block.order()),
        Kind::Unblock(target) | Kind::Reset(target) => {
            engine.peek_act(&target.policy, &target.subject())
        }
    }
}
