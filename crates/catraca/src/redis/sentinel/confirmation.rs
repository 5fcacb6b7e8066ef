//! Whether the server of a connection is still the primary, by the last word of a majority.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// How long a majority's word holds for a lock of a kind with `failover_grace`: no such lock is
/// granted, renewed or moved later. After a failover those kinds wait longer by
/// [`GRACE_MARGIN`], so that a grant on the old primary has run out before one on the new.
const GRANTS_FOR: Duration = Duration::from_secs(1);
/// Covers [`GRANTS_FOR`], and the way of a response to its caller.
pub(in crate::redis) const GRACE_MARGIN: Duration = Duration::from_secs(2);
/// After this time without a majority, two heartbeats, decisions say that they are degraded.
const DOUBTED_AFTER: Duration = Duration::from_millis(500);

/// What is known about the server of one connection under Sentinels.
pub(in crate::redis) struct PrimaryConfirmation {
    /// The configuration epoch in which it became the primary.
    pub epoch: u64,
    state: Mutex<ConfirmationState>,
}

struct ConfirmationState {
    /// When the server was last asked for its role, and said that it is a primary.
    role_asked: Instant,
    /// When the Sentinels were asked whose majority named this server; nothing while one of them
    /// reports a failover.
    votes_asked: Option<Instant>,
}

/// Whether a promise can be made on a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::redis) enum PrimaryStanding {
    /// No Sentinel can replace it.
    Fixed,
    /// A majority has confirmed it; promises may be made until this instant.
    Confirmed(Instant),
    /// It may have been replaced.
    Unconfirmed,
}

impl PrimaryConfirmation {
    /// `role_asked` is when the handshake asked the server.
    pub fn new(epoch: u64, role_asked: Instant) -> Self {
        Self { epoch, state: Mutex::new(ConfirmationState { role_asked, votes_asked: None }) }
    }

    pub fn set_votes(&self, asked: Option<Instant>) {
        self.state.lock().votes_asked = asked;
    }

    pub fn set_role(&self, asked: Instant) {
        self.state.lock().role_asked = asked;
    }

    pub fn standing(&self, now: Instant) -> PrimaryStanding {
        match self.confirmed_at().map(|at| at + GRANTS_FOR) {
            Some(until) if now < until => PrimaryStanding::Confirmed(until),
            _ => PrimaryStanding::Unconfirmed,
        }
    }

    /// Whether decisions of this server may differ from those of other nodes.
    pub fn is_doubtful(&self, now: Instant) -> bool {
        let age = self.confirmed_at().map(|at| now.saturating_duration_since(at));
        age.is_none_or(|age| age > DOUBTED_AFTER)
    }

    fn confirmed_at(&self) -> Option<Instant> {
        let state = self.state.lock();
        state.votes_asked.map(|asked| asked.min(state.role_asked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confirmation_is_as_old_as_its_oldest_part() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let confirmation = PrimaryConfirmation::new(7, start);
        assert_eq!(confirmation.standing(start), PrimaryStanding::Unconfirmed);
        assert!(confirmation.is_doubtful(start));
        confirmation.set_votes(Some(at(300)));
        assert_eq!(confirmation.standing(at(999)), PrimaryStanding::Confirmed(at(1_000)));
        assert!(!confirmation.is_doubtful(at(500)));
        assert!(confirmation.is_doubtful(at(501)), "the role is two heartbeats old");
        confirmation.set_role(at(400));
        assert!(!confirmation.is_doubtful(at(800)));
        assert!(confirmation.is_doubtful(at(801)), "the votes are two heartbeats old");
        assert_eq!(confirmation.standing(at(1_300)), PrimaryStanding::Unconfirmed);
        confirmation.set_votes(None);
        assert!(confirmation.is_doubtful(at(400)), "a failover is doubted at once");
    }
}
