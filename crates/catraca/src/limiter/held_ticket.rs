//! The ticket of a check that the program which made it settles, as the tower layer does.
//!
//! Sealing a ticket and opening it again is most of the time of a settle, and only a ticket that
//! leaves the process needs it. A limiter of this process keeps the ticket as it is.

use catraca_core::decision::Decision;
use catraca_core::ticket::Ticket;

/// The ticket of an admitted check, for [`Limiter::settle_held`](super::Limiter::settle_held).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum HeldTicket {
    /// As text, from a limiter that may be a server.
    Sealed(String),
    /// From an engine of this process, which settles it.
    Unsealed(Box<Ticket>),
}

/// A decision, and its ticket beside it.
#[derive(Clone, Debug)]
pub struct HeldCheck {
    /// The decision, without a ticket.
    pub decision: Decision,
    /// The ticket, if the check is to be settled.
    pub ticket: Option<HeldTicket>,
}

impl HeldCheck {
    /// A decision with the ticket inside it.
    pub fn from_decision(mut decision: Decision) -> Self {
        let ticket = decision.ticket.take().map(HeldTicket::Sealed);
        Self { decision, ticket }
    }

    /// A decision of this process, and its ticket.
    pub(crate) fn with_ticket((decision, ticket): (Decision, Option<Ticket>)) -> Self {
        let ticket = ticket.map(|ticket| HeldTicket::Unsealed(Box::new(ticket)));
        Self { decision, ticket }
    }
}
