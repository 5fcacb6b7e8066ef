//! Writes blocks, their history and debts, by statements that need no answer.
//!
//! The end and the level of a block are those of the record. A record that is older than the stored
//! state is only added to the history. Only a release or a reset shortens a block.

use serde_json::{Value as Json, json};

use super::{AuditEntry, AuditLink, RecordWriter, rfc3339, values};
use crate::event::{BlockEvent, DebtEvent, SubjectKey};
use crate::records::block_id::BlockId;
use crate::records::database::{DatabaseResult, row};
use crate::records::display::{audit_target, identifier};
use crate::records::record::origin_name;

const SUBJECT: &str = "INSERT INTO catraca.subjects (key, namespace, policy, identifier, parts)
    VALUES ($1, $2, $3, $4, $5) ON CONFLICT (key) DO NOTHING";

const PART: &str = "INSERT INTO catraca.parts (attribute, value, subject)
    VALUES ($2, $3, (SELECT id FROM catraca.subjects WHERE key = $1)) ON CONFLICT DO NOTHING";

/// Extends an active block; starts one that ended, or that was only in shadow mode.
const BLOCK_STEP: &str = "INSERT INTO catraca.history
        (subject, at, act, until, shadow, origin, reason, by, level, act_id)
    SELECT s.id, $2, CASE WHEN b.subject IS NULL THEN 'started' ELSE 'extended' END,
           greatest(coalesce(b.until, 0), $3), $4, $5, $6, $7, $8, $9
    FROM catraca.subjects AS s LEFT JOIN catraca.blocks AS b
        ON b.subject = s.id AND b.until > $2 AND (NOT b.shadow OR $4)
    WHERE s.key = $1";

/// A block from before a reset of its policy is not stored.
const BLOCK: &str = "INSERT INTO catraca.blocks AS b
        (subject, key, since, until, touched, shadow, origin, reason, by, status, message,
         epoch, level, forget, act_id)
    SELECT s.id, s.key, $2, $3, $2, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13
    FROM catraca.subjects AS s LEFT JOIN catraca.resets AS r
        ON r.policy = s.policy AND r.epoch > $10
    WHERE s.key = $1 AND r.epoch IS NULL
    ON CONFLICT (subject) DO UPDATE SET
        since = CASE WHEN b.until > $2 AND (NOT b.shadow OR $4) THEN b.since
                     ELSE excluded.since END,
        until = excluded.until, touched = excluded.touched, shadow = excluded.shadow,
        origin = excluded.origin, reason = excluded.reason, by = excluded.by,
        status = excluded.status, message = excluded.message, epoch = excluded.epoch,
        level = excluded.level, forget = excluded.forget, act_id = excluded.act_id
    WHERE b.touched <= $2
        AND (b.until <= $2 OR (b.shadow AND NOT $4) OR excluded.until > b.until)";

const RELEASE_STEP: &str = "INSERT INTO catraca.history
        (subject, at, act, until, shadow, origin, reason, by, level)
    SELECT s.id, $2, $3, least(coalesce(b.until, $2), $2), false, 'operator', $4, $5,
           CASE WHEN $3 = 'reset' THEN 0 ELSE coalesce(b.level, 0) END
    FROM catraca.subjects AS s LEFT JOIN catraca.blocks AS b ON b.subject = s.id
    WHERE s.key = $1";

/// The row stays, even for a block that was never written, because a snapshot may have the block. A
/// block that was started after the release stays active.
const END_BLOCK: &str = "INSERT INTO catraca.blocks AS b
        (subject, key, since, until, touched, freed, origin)
    SELECT id, key, $2, $2, $2, $2, 'operator' FROM catraca.subjects WHERE key = $1
    ON CONFLICT (subject) DO UPDATE SET
        until = CASE WHEN b.touched > $2 THEN b.until ELSE least(b.until, $2) END,
        touched = greatest(b.touched, $2), freed = greatest(coalesce(b.freed, 0), $2)";

/// After [`END_BLOCK`]. A block from after the reset stays as it is.
const RESET_LEVEL: &str = "UPDATE catraca.blocks
    SET reset = greatest(coalesce(reset, 0), $2),
        level = CASE WHEN touched > $2 THEN level ELSE 0 END
    WHERE subject = (SELECT id FROM catraca.subjects WHERE key = $1)";

/// The debts of all counters of a key. Counters of tiers have keys of their own in the range of its
/// siblings, from `$3` to `$4`.
const DELETE_OLD_DEBTS: &str = "DELETE FROM catraca.debts
    WHERE at <= $2 AND subject IN (
        SELECT counter.id FROM catraca.subjects AS counter JOIN catraca.subjects AS s
            ON s.policy = counter.policy AND s.identifier = counter.identifier
        WHERE s.key = $1 AND counter.key BETWEEN $3 AND $4)";

const UPSERT_DEBT: &str =
    "INSERT INTO catraca.debts (subject, at, balance, size, tokens, period, epoch)
    SELECT s.id, $2, $3, $4, $5, $6, $7
    FROM catraca.subjects AS s LEFT JOIN catraca.resets AS r
        ON r.policy = s.policy AND r.epoch > $7
    WHERE s.key = $1 AND r.epoch IS NULL
    ON CONFLICT (subject) DO UPDATE SET
        at = excluded.at, balance = excluded.balance, size = excluded.size,
        tokens = excluded.tokens, period = excluded.period, epoch = excluded.epoch";

/// A debt that was paid back before a reset of its policy says nothing about one from after it.
const DELETE_DEBT: &str = "DELETE FROM catraca.debts WHERE subject = (
    SELECT s.id FROM catraca.subjects AS s LEFT JOIN catraca.resets AS r
        ON r.policy = s.policy AND r.epoch > $2
    WHERE s.key = $1 AND r.epoch IS NULL)";

const ACTIVE_UNTIL: &str = "SELECT b.until
    FROM catraca.blocks AS b JOIN catraca.subjects AS s ON s.id = b.subject
    WHERE s.key = $1 AND b.until > $2 AND (NOT b.shadow OR $3)";

impl RecordWriter<'_> {
    pub(super) fn write_block(&mut self, event: &BlockEvent) -> DatabaseResult<()> {
        let BlockEvent { subject, epoch, first_of_act, block } = event;
        self.ensure_subject(subject)?;
        let key = subject.key;
        let at = self.record.at;
        let by = self.record.by.as_deref();
        let reason = block.note.reason.as_deref();
        if by.is_some() {
            // Before the statements below, because it reads the state before this record.
            self.audit_block(event)?;
        }
        let origin = origin_name(block.origin);
        // Named as a block would be: by a key and an instant.
        let act_id = first_of_act.map(|first| BlockId::new(first, at).to_string());
        let act_id = act_id.as_deref();
        let level = i64::from(block.level);
        let step = values![key, at, block.until, block.shadow, origin, reason, by, level, act_id];
        self.add(BLOCK_STEP, &step)?;
        let state = values![
            key,
            at,
            block.until,
            block.shadow,
            origin,
            reason,
            by,
            block.note.status.map(i64::from),
            block.note.message.as_deref(),
            *epoch,
            level,
            block.forget,
            act_id,
        ];
        self.add(BLOCK, &state)
    }

    fn audit_block(&mut self, event: &BlockEvent) -> DatabaseResult<()> {
        let BlockEvent { subject, block, .. } = event;
        let active_until = self.active_until(subject, block.shadow)?;
        let until = active_until.unwrap_or_default().max(block.until.micros());
        let reason = block.note.reason.as_deref();
        self.audit(AuditEntry {
            act: "block",
            target: &audit_target(subject),
            before: active_until.map(until_json),
            after: Some(json!({ "until": rfc3339(until), "reason": reason })),
            link: AuditLink::Subject(subject.key),
        })
    }

    pub(super) fn write_release(&mut self, subject: &SubjectKey) -> DatabaseResult<()> {
        self.end_block(subject, "release", "released")
    }

    pub(super) fn write_reset(&mut self, subject: &SubjectKey) -> DatabaseResult<()> {
        self.end_block(subject, "reset", "reset")?;
        self.add(RESET_LEVEL, &values![subject.key, self.record.at])?;
        let siblings = subject.key.siblings();
        let values = values![subject.key, self.record.at, *siblings.start(), *siblings.end()];
        self.add(DELETE_OLD_DEBTS, &values)
    }

    /// Ends a block. `act` is the name in the audit, `step` that in the history.
    fn end_block(&mut self, subject: &SubjectKey, act: &str, step: &str) -> DatabaseResult<()> {
        self.ensure_subject(subject)?;
        let by = self.record.by.as_deref();
        if by.is_some() {
            let before = self.active_until(subject, true)?.map(until_json);
            let target = audit_target(subject);
            let link = AuditLink::Subject(subject.key);
            self.audit(AuditEntry { act, target: &target, before, after: None, link })?;
        }
        let at = self.record.at;
        let why = self.record.why.as_deref();
        self.add(RELEASE_STEP, &values![subject.key, at, step, why, by])?;
        self.add(END_BLOCK, &values![subject.key, at])
    }

    pub(super) fn write_debt(&mut self, debt: &DebtEvent) -> DatabaseResult<()> {
        let key = debt.subject.key;
        if debt.balance >= 0 {
            return self.add(DELETE_DEBT, &values![key, debt.epoch]);
        }
        self.ensure_subject(&debt.subject)?;
        let at = self.record.at;
        let terms = debt.terms;
        let values =
            values![key, at, debt.balance, terms.size, terms.tokens, terms.period, debt.epoch];
        self.add(UPSERT_DEBT, &values)
    }

    /// The end of the active block; with `shadow`, also of one in shadow mode.
    fn active_until(&mut self, subject: &SubjectKey, shadow: bool) -> DatabaseResult<Option<i64>> {
        let values = values![subject.key, self.record.at, shadow];
        row(self.database, ACTIVE_UNTIL, &values, |row| row.get(0))
    }

    pub(super) fn ensure_subject(&mut self, subject: &SubjectKey) -> DatabaseResult<()> {
        let SubjectKey { key, namespace, policy, parts } = subject;
        let json = json!(parts).to_string();
        let identifier = identifier(parts);
        let values = values![*key, namespace, policy, &identifier, &json];
        if self.database.add(SUBJECT, &values)? {
            for (attribute, value) in parts {
                self.add(PART, &values![*key, attribute, value])?;
            }
        }
        Ok(())
    }
}

fn until_json(until: i64) -> Json {
    json!({ "until": rfc3339(until) })
}
