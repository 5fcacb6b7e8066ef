//! Writing blocks, their history and debts.
//!
//! Must not shorten a block but by a release, nor leave an act out of the history.

use catraca_core::cell::block::Origin;
use catraca_core::time::Time;
use rusqlite::{OptionalExtension, params};
use serde_json::json;

use super::{Done, Scribe, Trail, shown};
use crate::records::record::{Blocking, Debt, Who, origin_word};
use crate::records::words::{identifier, target};

/// What is known of a block.
struct Known {
    until: i64,
    touched: i64,
    shadow: bool,
    level: i64,
    forget: i64,
}

/// One line of a block's history.
struct Step<'a> {
    act: &'a str,
    until: i64,
    origin: Origin,
    reason: Option<&'a str>,
    shadow: bool,
}

/// What was blocked again since the reset has offended once.
const FORGOTTEN: &str = "UPDATE blocks
    SET reset = max(coalesce(reset, 0), ?2), level = iif(touched > ?2, min(level, 1), 0)
    WHERE subject = ?1";

impl Known {
    /// Level and `forget` that an act at this instant finds, by the rules of a block's cell.
    fn past(&self, at: i64, shadow: bool) -> Option<(i64, i64)> {
        let known = at < self.until + self.forget && (!self.shadow || shadow);
        known.then_some((self.level, self.forget))
    }
}

impl Scribe<'_> {
    pub(super) fn block(&self, blocking: &Blocking) -> Done {
        let subject = self.subject(&blocking.who)?;
        let known = self.known(subject)?;
        let stands = known
            .as_ref()
            .filter(|known| known.until > self.at() && (!known.shadow || blocking.shadow));
        let act = if stands.is_some() { "extended" } else { "started" };
        let until = stands.map_or(0, |known| known.until).max(blocking.until.micros());
        let reason = blocking.note.reason.as_deref();
        let (origin, shadow) = (blocking.origin, blocking.shadow);
        self.history(subject, &Step { act, until, origin, reason, shadow })?;
        let overtaken = known.as_ref().is_some_and(|known| known.touched > self.at());
        let longer = stands.is_none_or(|known| blocking.until.micros() > known.until);
        if !overtaken && longer && !self.is_over(&blocking.who, blocking.epoch)? {
            let past = known.as_ref().and_then(|known| known.past(self.at(), blocking.shadow));
            self.put_block(subject, blocking, stands.is_some(), past)?;
        }
        if self.by().is_some() {
            let before = stands.map(|known| json!({ "until": shown(known.until) }));
            let after = json!({ "until": shown(until), "reason": reason });
            let target = target(&blocking.who);
            self.audit("block", &target, before, Some(after), Trail::Subject(subject))?;
        }
        Ok(())
    }

    fn put_block(
        &self,
        subject: i64,
        blocking: &Blocking,
        extends: bool,
        past: Option<(i64, i64)>,
    ) -> Done {
        let note = &blocking.note;
        let (level, forget) = match (past.unwrap_or_default(), blocking.forget.micros()) {
            (past, 0) => past,
            ((level, _), forget) => (level + 1, forget),
        };
        self.run(
            "INSERT INTO blocks (subject, key, since, until, touched, shadow, origin,
                                 reason, status, message, by, epoch, level, forget)
             VALUES (?1, ?2, ?3, ?4, ?3, ?5, ?6, ?7, ?8, ?9, ?10, ?12, ?13, ?14)
             ON CONFLICT (subject) DO UPDATE SET
                 since = iif(?11, since, excluded.since), until = excluded.until,
                 touched = excluded.touched, shadow = excluded.shadow,
                 origin = excluded.origin, reason = excluded.reason, status = excluded.status,
                 message = excluded.message, by = excluded.by, epoch = excluded.epoch,
                 level = excluded.level, forget = excluded.forget",
            params![
                subject,
                blocking.who.key.to_bytes(),
                self.at(),
                blocking.until.micros(),
                blocking.shadow,
                origin_word(blocking.origin),
                note.reason.as_deref(),
                note.status,
                note.message.as_deref(),
                self.by(),
                extends,
                blocking.epoch.micros(),
                level,
                forget,
            ],
        )?;
        Ok(())
    }

    pub(super) fn free(&self, who: &Who, act: &str) -> Done {
        let subject = self.subject(who)?;
        let known = self.known(subject)?;
        let stood = known.as_ref().filter(|known| known.until > self.at());
        let ended = known.as_ref().map_or(self.at(), |known| known.until.min(self.at()));
        let (reason, origin) = (self.record.why.as_deref(), Origin::Operator);
        self.history(subject, &Step { act, until: ended, origin, reason, shadow: false })?;
        self.end_block(subject, who)?;
        if act == "reset" {
            self.run(FORGOTTEN, [subject, self.at()])?;
            self.run("DELETE FROM debts WHERE subject = ?1 AND at <= ?2", [subject, self.at()])?;
        }
        if self.by().is_some() {
            let before = stood.map(|known| json!({ "until": shown(known.until) }));
            let word = if act == "reset" { "reset" } else { "release" };
            self.audit(word, &target(who), before, None, Trail::Subject(subject))?;
        }
        Ok(())
    }

    /// The row stays, even for a block that was never written: a snapshot may hold it. What was
    /// blocked again since stays so.
    fn end_block(&self, subject: i64, who: &Who) -> Done {
        self.run(
            "INSERT INTO blocks (subject, key, since, until, touched, freed, origin)
             VALUES (?1, ?2, ?3, ?3, ?3, ?3, 'operator')
             ON CONFLICT (subject) DO UPDATE SET
                 until = iif(touched > excluded.touched, until, min(until, excluded.until)),
                 touched = max(touched, excluded.touched),
                 freed = max(coalesce(freed, 0), excluded.freed)",
            params![subject, who.key.to_bytes(), self.at()],
        )?;
        Ok(())
    }

    pub(super) fn owe(&self, debt: &Debt) -> Done {
        if self.is_over(&debt.who, debt.epoch)? {
            return Ok(());
        }
        let subject = self.subject(&debt.who)?;
        if debt.balance >= 0 {
            self.run("DELETE FROM debts WHERE subject = ?1", [subject])?;
            return Ok(());
        }
        let terms = debt.terms;
        self.run(
            "INSERT INTO debts (subject, at, balance, size, tokens, period, epoch)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (subject) DO UPDATE SET
                 at = excluded.at, balance = excluded.balance, size = excluded.size,
                 tokens = excluded.tokens, period = excluded.period, epoch = excluded.epoch",
            params![
                subject,
                self.at(),
                debt.balance,
                terms.size,
                terms.tokens,
                terms.period,
                debt.epoch.micros(),
            ],
        )?;
        Ok(())
    }

    /// Whether the policy was reset for everybody after what this was decided by.
    fn is_over(&self, who: &Who, epoch: Time) -> rusqlite::Result<bool> {
        let sql = "SELECT 1 FROM resets WHERE policy = ?1 AND epoch > ?2";
        let mut statement = self.transaction.prepare_cached(sql)?;
        statement.exists(params![who.policy, epoch.micros()])
    }

    fn history(&self, subject: i64, step: &Step<'_>) -> Done {
        let (origin, by) = (origin_word(step.origin), self.by());
        self.run(
            "INSERT INTO history (subject, at, act, until, shadow, origin, reason, by)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![subject, self.at(), step.act, step.until, step.shadow, origin, step.reason, by],
        )?;
        Ok(())
    }

    fn known(&self, subject: i64) -> rusqlite::Result<Option<Known>> {
        let sql = "SELECT until, touched, shadow, level, forget FROM blocks WHERE subject = ?1";
        let mut statement = self.transaction.prepare_cached(sql)?;
        let known = statement.query_row([subject], |row| {
            let (until, touched, shadow) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(Known { until, touched, shadow, level: row.get(3)?, forget: row.get(4)? })
        });
        known.optional()
    }

    fn subject(&self, who: &Who) -> rusqlite::Result<i64> {
        let sql = "SELECT id FROM subjects WHERE key = ?1";
        let mut statement = self.transaction.prepare_cached(sql)?;
        let found = statement.query_row([who.key.to_bytes()], |row| row.get(0)).optional()?;
        found.map_or_else(|| self.new_subject(who), Ok)
    }

    fn new_subject(&self, who: &Who) -> rusqlite::Result<i64> {
        let parts = json!(who.parts).to_string();
        self.run(
            "INSERT INTO subjects (key, namespace, policy, identifier, parts)
             VALUES (?1, ?2, ?3, ?4, ?5)",
            params![who.key.to_bytes(), who.namespace, who.policy, identifier(&who.parts), parts],
        )?;
        let subject = self.transaction.last_insert_rowid();
        for (attribute, value) in &who.parts {
            let sql = "INSERT OR IGNORE INTO parts (attribute, value, subject) VALUES (?1, ?2, ?3)";
            self.run(sql, params![attribute, value, subject])?;
        }
        Ok(subject)
    }
}
