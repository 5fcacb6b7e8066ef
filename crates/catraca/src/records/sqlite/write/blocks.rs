//! Writes blocks, their history and debts.
//!
//! Only a release or a reset shortens a block, and every step is in the history.

use catraca_core::cell::block::Origin;
use catraca_core::time::Time;
use rusqlite::{OptionalExtension, params};
use serde_json::json;

use super::{SqliteAuditLink, SqliteRecordWriter, SqliteWriteResult, rfc3339};
use crate::event::{BlockEvent, DebtEvent, SubjectKey};
use crate::records::display::{audit_target, identifier};
use crate::records::record::origin_name;

/// The stored row of a block.
struct SqliteBlockState {
    until: i64,
    touched: i64,
    shadow: bool,
}

/// One step in the history of a block.
struct SqliteHistoryEntry<'a> {
    act: &'a str,
    until: i64,
    origin: Origin,
    reason: Option<&'a str>,
    shadow: bool,
}

/// A block from after the reset has its own level.
const RESET_LEVEL: &str = "UPDATE blocks
    SET reset = max(coalesce(reset, 0), ?2), level = iif(touched > ?2, level, 0)
    WHERE subject = ?1";

impl SqliteRecordWriter<'_> {
    pub(super) fn write_block(&self, event: &BlockEvent) -> SqliteWriteResult {
        let record = &event.block;
        let subject = self.subject_id(&event.subject)?;
        let stored = self.stored_block(subject)?;
        let active = stored
            .as_ref()
            .filter(|stored| stored.until > self.at() && (!stored.shadow || record.shadow));
        let act = if active.is_some() { "extended" } else { "started" };
        let until = active.map_or(0, |stored| stored.until).max(record.until.micros());
        let reason = record.note.reason.as_deref();
        let origin = record.origin;
        let shadow = record.shadow;
        self.history(subject, &SqliteHistoryEntry { act, until, origin, reason, shadow })?;
        // The history gets every step, but a late record does not replace a newer state.
        let is_outdated = stored.as_ref().is_some_and(|stored| stored.touched > self.at());
        let extends = active.is_none_or(|stored| record.until.micros() > stored.until);
        if !is_outdated && extends && !self.was_reset_since(&event.subject, event.epoch)? {
            self.put_block(subject, event, active.is_some())?;
        }
        if self.by().is_some() {
            let before = active.map(|stored| json!({ "until": rfc3339(stored.until) }));
            let after = json!({ "until": rfc3339(until), "reason": reason });
            let target = audit_target(&event.subject);
            self.audit("block", &target, before, Some(after), SqliteAuditLink::Subject(subject))?;
        }
        Ok(())
    }

    fn put_block(&self, subject: i64, event: &BlockEvent, extends: bool) -> SqliteWriteResult {
        let record = &event.block;
        let note = &record.note;
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
                event.subject.key.to_bytes(),
                self.at(),
                record.until.micros(),
                record.shadow,
                origin_name(record.origin),
                note.reason.as_deref(),
                note.status,
                note.message.as_deref(),
                self.by(),
                extends,
                event.epoch.micros(),
                record.level,
                record.forget.micros(),
            ],
        )?;
        Ok(())
    }

    pub(super) fn release(&self, subject_key: &SubjectKey, act: &str) -> SqliteWriteResult {
        let subject = self.subject_id(subject_key)?;
        let stored = self.stored_block(subject)?;
        let active = stored.as_ref().filter(|stored| stored.until > self.at());
        let ended = stored.as_ref().map_or(self.at(), |stored| stored.until.min(self.at()));
        let reason = self.record.why.as_deref();
        let origin = Origin::Operator;
        self.history(
            subject,
            &SqliteHistoryEntry { act, until: ended, origin, reason, shadow: false },
        )?;
        self.end_block(subject, subject_key)?;
        if act == "reset" {
            self.run(RESET_LEVEL, [subject, self.at()])?;
            self.run("DELETE FROM debts WHERE subject = ?1 AND at <= ?2", [subject, self.at()])?;
        }
        if self.by().is_some() {
            let before = active.map(|stored| json!({ "until": rfc3339(stored.until) }));
            let word = if act == "reset" { "reset" } else { "release" };
            self.audit(
                word,
                &audit_target(subject_key),
                before,
                None,
                SqliteAuditLink::Subject(subject),
            )?;
        }
        Ok(())
    }

    /// The row stays, even for a block that was never written, because a snapshot may have the
    /// block. A block that was started after the release stays active.
    fn end_block(&self, subject: i64, subject_key: &SubjectKey) -> SqliteWriteResult {
        self.run(
            "INSERT INTO blocks (subject, key, since, until, touched, freed, origin)
             VALUES (?1, ?2, ?3, ?3, ?3, ?3, 'operator')
             ON CONFLICT (subject) DO UPDATE SET
                 until = iif(touched > excluded.touched, until, min(until, excluded.until)),
                 touched = max(touched, excluded.touched),
                 freed = max(coalesce(freed, 0), excluded.freed)",
            params![subject, subject_key.key.to_bytes(), self.at()],
        )?;
        Ok(())
    }

    pub(super) fn write_debt(&self, debt: &DebtEvent) -> SqliteWriteResult {
        if self.was_reset_since(&debt.subject, debt.epoch)? {
            return Ok(());
        }
        let subject = self.subject_id(&debt.subject)?;
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

    /// Whether the policy was reset after the decision that this record comes from.
    fn was_reset_since(&self, subject_key: &SubjectKey, epoch: Time) -> rusqlite::Result<bool> {
        let sql = "SELECT 1 FROM resets WHERE policy = ?1 AND epoch > ?2";
        let mut statement = self.transaction.prepare_cached(sql)?;
        statement.exists(params![subject_key.policy, epoch.micros()])
    }

    fn history(&self, subject: i64, step: &SqliteHistoryEntry<'_>) -> SqliteWriteResult {
        let origin = origin_name(step.origin);
        let by = self.by();
        self.run(
            "INSERT INTO history (subject, at, act, until, shadow, origin, reason, by)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![subject, self.at(), step.act, step.until, step.shadow, origin, step.reason, by],
        )?;
        Ok(())
    }

    fn stored_block(&self, subject: i64) -> rusqlite::Result<Option<SqliteBlockState>> {
        let sql = "SELECT until, touched, shadow FROM blocks WHERE subject = ?1";
        let mut statement = self.transaction.prepare_cached(sql)?;
        let stored = statement.query_row([subject], |row| {
            let until = row.get(0)?;
            let touched = row.get(1)?;
            let shadow = row.get(2)?;
            Ok(SqliteBlockState { until, touched, shadow })
        });
        stored.optional()
    }

    fn subject_id(&self, subject_key: &SubjectKey) -> rusqlite::Result<i64> {
        let sql = "SELECT id FROM subjects WHERE key = ?1";
        let mut statement = self.transaction.prepare_cached(sql)?;
        let found =
            statement.query_row([subject_key.key.to_bytes()], |row| row.get(0)).optional()?;
        found.map_or_else(|| self.new_subject(subject_key), Ok)
    }

    fn new_subject(&self, subject_key: &SubjectKey) -> rusqlite::Result<i64> {
        let parts = json!(subject_key.parts).to_string();
        self.run(
            "INSERT INTO subjects (key, namespace, policy, identifier, parts)
             VALUES (?1, ?2, ?3, ?4, ?5)",
            params![
                subject_key.key.to_bytes(),
                subject_key.namespace,
                subject_key.policy,
                identifier(&subject_key.parts),
                parts
            ],
        )?;
        let subject = self.transaction.last_insert_rowid();
        for (attribute, value) in &subject_key.parts {
            let sql = "INSERT OR IGNORE INTO parts (attribute, value, subject) VALUES (?1, ?2, ?3)";
            self.run(sql, params![attribute, value, subject])?;
        }
        Ok(subject)
    }
}
