//! The result of a settle, from the reply of the store.

use catraca_core::batch::{RowSettlement, SettleReply};
use catraca_core::conclude::render;
use catraca_core::policy::{BanRule, Mode};
use catraca_core::ticket::{Ticket, TicketRow};
use catraca_core::time::Time;

use crate::rule_set::RuleSet;
use crate::settlement::{SettleState, SettledRow, Settlement};

/// Policies are named by the ticket, so that a second settle returns the same rows even if the
/// catalog has changed.
pub(super) fn settlement(rules: &RuleSet, ticket: &Ticket, reply: &SettleReply) -> Settlement {
    match reply {
        SettleReply::Settled { now, already_settled: again, rows, .. } => {
            let state = if *again { SettleState::Again } else { SettleState::Applied };
            let named = |result: &RowSettlement| {
                let row = ticket.body.rows.get(usize::from(result.ticket_index))?;
                let mut settled = settled_row(rules, row, result, *now);
                // A shadow block denies no request.
                settled.blocked_by = settled.blocked_by.filter(|_| !is_shadow(rules, row));
                Some(settled)
            };
            let rows = rows.iter().filter_map(named).collect();
            Settlement { state, at: *now, rows, body_truncated: false, body_invalid: false }
        }
        SettleReply::Expired { now } => expired_settlement(*now),
        // Not reached: `settle_reply` has turned it into an error.
        SettleReply::Full => expired_settlement(Time::ZERO),
    }
}

fn expired_settlement(at: Time) -> Settlement {
    let state = SettleState::Expired;
    Settlement { state, at, rows: Vec::new(), body_truncated: false, body_invalid: false }
}

/// Whether the policy did not enforce at the check, or does not enforce now.
fn is_shadow(rules: &RuleSet, row: &TicketRow) -> bool {
    let policy = rules.catalog.find(&row.policy);
    let enforces = |(id, _)| rules.mode(id) == Mode::Enforce;
    row.shadow || !policy.is_none_or(enforces)
}

fn settled_row(rules: &RuleSet, row: &TicketRow, result: &RowSettlement, now: Time) -> SettledRow {
    let policy = rules.catalog.find(&row.policy).map(|(_, policy)| policy);
    let ban = policy.zip(result.rule).and_then(|(policy, rule)| policy.bans.get(usize::from(rule)));
    let wait =
        result.blocked_until.filter(|until| !until.is_forever()).map(|until| until.since(now));
    let message = ban.and_then(|ban| ban.message_of_answer());
    SettledRow {
        policy: policy.map_or_else(|| row.policy.as_str().into(), |policy| policy.name.clone()),
        attribute: row.attribute().map(Into::into),
        charged: result.charged,
        balance: result.free,
        blocked_until: result.blocked_until.filter(|until| !until.is_forever()),
        blocked_by: result.started,
        reason: ban.map(|ban| ban.reason.clone()),
        status: ban.and_then(BanRule::status_of_answer),
        message: message.map(|text| render(text, wait, rules.catalog.language)),
    }
}
