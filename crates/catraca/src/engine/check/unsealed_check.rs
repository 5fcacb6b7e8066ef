//! Checks whose ticket stays in this process: sealing and opening it is most of a settle.

use catraca_core::decision::Decision;
use catraca_core::request::Check;
use catraca_core::ticket::Ticket;

use super::{CheckExchange, CheckMode, TicketForm};
use crate::engine::Engine;
use crate::error::Error;
#[cfg(feature = "shared")]
use crate::rule_set::RuleSet;
use crate::store::Store;

impl<S: Store> Engine<S> {
    /// Decides as [`Self::check`] does. The ticket is beside the decision, for
    /// [`Self::settle_unsealed`].
    pub(crate) fn check_unsealed(
        &self,
        check: &Check<'_>,
    ) -> Result<(Decision, Option<Ticket>), Error> {
        let rules = self.rules.load();
        let mut exchange = CheckExchange::new(self, &rules, check, CheckMode::Check);
        exchange.ticket = TicketForm::Unsealed(None);
        exchange.plan()?;
        let decision = self.run(&mut exchange)?;
        Ok((decision, exchange.into_ticket()))
    }
}

#[cfg(feature = "shared")]
impl<S> Engine<S> {
    /// Like [`Self::check_exchange`], with the ticket beside the decision.
    pub(crate) fn unsealed_check_exchange<'e, 's>(
        &'e self,
        rules: &'e RuleSet,
        check: &'e Check<'s>,
    ) -> Result<CheckExchange<'e, 'e, 's, S>, Error> {
        let mut exchange = CheckExchange::new(self, rules, check, CheckMode::Check);
        exchange.ticket = TicketForm::Unsealed(None);
        exchange.plan()?;
        Ok(exchange)
    }
}

impl<S> CheckExchange<'_, '_, '_, S> {
    /// The ticket of an exchange that does not seal it.
    pub(crate) fn into_ticket(self) -> Option<Ticket> {
        match self.ticket {
            TicketForm::Sealed => None,
            TicketForm::Unsealed(ticket) => ticket,
        }
    }
}
