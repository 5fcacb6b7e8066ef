//! Counts the kinds of replies in a trace, to check that it reaches all of them.

use std::collections::BTreeMap;

use catraca_core::batch::{CheckReply, CreditReply, Reply, RowSettlement, SettleReply};

/// The number of replies by kind.
#[derive(Debug, Default)]
pub struct Coverage(pub BTreeMap<String, usize>);

impl Coverage {
    pub fn count(&mut self, reply: &Reply) {
        match reply {
            Reply::Check(reply) => self.check(reply),
            Reply::Settle(reply) => self.settle(reply),
            Reply::Recall(recalled) => {
                self.add("recall", recalled.as_ref().map(|recalled| recalled.settled.is_some()));
                let many = recalled.as_ref().is_some_and(|recalled| recalled.credited.len() > 1);
                self.when("recall of several events", many);
            }
            Reply::Credit(CreditReply::Applied(given)) => {
                self.when("credit that gives", given.iter().any(|given| *given > 0));
            }
            Reply::Credit(reply) => self.add("credit", reply),
            Reply::Block(rows) => rows
                .iter()
                .for_each(|row| self.add("block moved", row.as_ref().map(|row| row.changed))),
            Reply::Unblock(rows) => {
                rows.iter().for_each(|blocked| self.add("unblock of a block", blocked))
            }
            Reply::Reset(_) => self.add("reset", ""),
            Reply::Reconcile(rows) => {
                rows.iter().for_each(|row| self.add("reconcile", row.after.cmp(&row.before)));
            }
        }
    }

    /// The rarest kind and its count.
    pub fn rarest(&self) -> Option<(&String, &usize)> {
        self.0.iter().min_by_key(|(_, count)| **count)
    }

    fn check(&mut self, reply: &CheckReply) {
        self.add("check passed", reply.passed);
        self.when("remembered", reply.remembered);
        for row in &reply.rows {
            self.add("verdict", row.verdict);
            self.when("charged", row.charged > 0);
            self.when("started", row.started);
            self.when("a later instant than now", row.at > reply.now);
        }
    }

    fn settle(&mut self, reply: &SettleReply) {
        match reply {
            SettleReply::Settled { already_settled: false, rows, .. } => {
                rows.iter().for_each(|row| self.settled(row));
            }
            SettleReply::Settled { .. } => self.add("settle", "again"),
            other => self.when("settle expired", matches!(other, SettleReply::Expired { .. })),
        }
    }

    fn settled(&mut self, row: &RowSettlement) {
        self.add("settle started", row.started);
        self.when("settle below zero", row.free < Some(0));
        self.when("settle by a rule", row.rule.is_some());
        self.when("settle in a blocked row", row.blocked_until.is_some());
    }

    fn when(&mut self, name: &str, happened: bool) {
        if happened {
            self.add(name, "");
        }
    }

    fn add(&mut self, name: &str, what: impl std::fmt::Debug) {
        *self.0.entry(format!("{name} {what:?}")).or_default() += 1;
    }
}
