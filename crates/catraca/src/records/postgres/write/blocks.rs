//! Writes blocks, their history and debts, by statements that need no answer, so that many of them
//! are one round trip.
//!
//! Only a release or a reset shortens a block, and every step is in the history.

use serde_json::{Value as Json, json};

use super::{
    PostgresAuditLink, PostgresFailure, PostgresRecordWriter, PostgresWriteResult, Value, rfc3339,
    values,
};
use crate::event::{BlockEvent, DebtEvent, SubjectKey};
use crate::records::display::{audit_target, identifier};
use crate::records::postgres::value::replace_nul;
use crate::records::record::origin_name;

const SUBJECT: &str = "WITH new AS (
        INSERT INTO catraca.subjects (key, namespace, policy, identifier, parts)
        SELECT $1, $2, $3, $4, $5
        WHERE NOT EXISTS (SELECT 1 FROM catraca.subjects WHERE key = $1)
        RETURNING id)
    INSERT INTO catraca.parts (attribute, value, subject)
    SELECT DISTINCT part ->> 0, part ->> 1, new.id
    FROM new, json_array_elements($5::text::json) AS part";

/// Extends an active block; starts one that ended, or that was only in shadow mode.
const BLOCK_STEP: &str = "INSERT INTO catraca.history
        (subject, at, act, until, shadow, origin, reason, by)
    SELECT s.id, $2, CASE WHEN b.subject IS NULL THEN 'started' ELSE 'extended' END,
           greatest(b.until, $3), $4, $5, $6, $7
    FROM catraca.subjects AS s LEFT JOIN catraca.blocks AS b
        ON b.subject = s.id AND b.until > $2 AND (NOT b.shadow OR $4)
    WHERE s.key = $1";

const BLOCK: &str = "INSERT INTO catraca.blocks AS b
        (subject, key, since, until, touched, shadow, origin, reason, by, status, message,
         epoch, level, forget)
    SELECT s.id, s.key, $2, $3, $2, $4, $5, $6, $7, $8, $9, $10, $11, $12
    FROM catraca.subjects AS s LEFT JOIN catraca.resets AS r
        ON r.policy = s.policy AND r.epoch > $10
    WHERE s.key = $1 AND r.epoch IS NULL
    ON CONFLICT (subject) DO UPDATE SET
        since = CASE WHEN b.until > $2 AND (NOT b.shadow OR $4) THEN b.since
                     ELSE excluded.since END,
        until = excluded.until, touched = excluded.touched, shadow = excluded.shadow,
        origin = excluded.origin, reason = excluded.reason, by = excluded.by,
        status = excluded.status, message = excluded.message, epoch = excluded.epoch,
        level = excluded.level, forget = excluded.forget
    WHERE b.touched <= $2
        AND (b.until <= $2 OR (b.shadow AND NOT $4) OR excluded.until > b.until)";

const RELEASE_STEP: &str = "INSERT INTO catraca.history
        (subject, at, act, until, shadow, origin, reason, by)
    SELECT s.id, $2, $3, least(b.until, $2), false, 'operator', $4, $5
    FROM catraca.subjects AS s LEFT JOIN catraca.blocks AS b ON b.subject = s.id
    WHERE s.key = $1";

/// The row stays, even for a block that was never written, because a snapshot may have the block. A
/// block that was started after the release stays active.
const END_BLOCK: &str = "INSERT INTO catraca.blocks AS b
        (subject, key, since, until, touched, freed, origin)
    SELECT id, key, $2, $2, $2, $2, 'operator' FROM catraca.subjects WHERE key = $1
    ON CONFLICT (subject) DO UPDATE SET
        until = CASE WHEN b.touched > $2 THEN b.until ELSE least(b.until, $2) END,
        touched = greatest(b.touched, $2), freed = greatest(b.freed, $2)";

/// A block from after the reset has its own level.
const RESET_LEVEL: &str = "UPDATE catraca.blocks AS b SET reset = greatest(b.reset, $2),
        level = CASE WHEN b.touched > $2 THEN b.level ELSE 0 END
    WHERE b.key = $1";

const DELETE_OLD_DEBT: &str = "DELETE FROM catraca.debts AS d USING catraca.subjects AS s
    WHERE s.id = d.subject AND s.key = $1 AND d.at <= $2";

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
const DELETE_DEBT: &str = "DELETE FROM catraca.debts AS d USING catraca.subjects AS s
    WHERE s.id = d.subject AND s.key = $1
        AND NOT EXISTS (SELECT 1 FROM catraca.resets WHERE policy = s.policy AND epoch > $2)";

impl PostgresRecordWriter<'_, '_> {
    pub(super) fn write_block(&mut self, event: &BlockEvent) -> PostgresWriteResult {
        let record = &event.block;
        self.ensure_subject(&event.subject);
        let key = event.subject.key.to_bytes();
        let until = record.until.micros();
        let shadow = record.shadow;
        let origin = origin_name(record.origin);
        let reason = record.note.reason.as_deref();
        if self.by().is_some() {
            // Before the statements below, because it reads the state before this record.
            self.audit_block(event)?;
        }
        let step = values![key, self.at(), until, shadow, origin, reason, self.by()];
        let mut block = step.clone();
        self.statements.add(BLOCK_STEP, step);
        block.push(record.note.status.map(i64::from).into());
        block.push(record.note.message.as_deref().into());
        block.push(event.epoch.micros().into());
        block.push(i64::from(record.level).into());
        block.push(record.forget.micros().into());
        self.statements.add(BLOCK, block);
        Ok(())
    }

    fn audit_block(&mut self, event: &BlockEvent) -> PostgresWriteResult {
        let record = &event.block;
        let active_until = self.active_until(&event.subject, record.shadow)?;
        let until = active_until.unwrap_or_default().max(record.until.micros());
        let after = json!({ "until": rfc3339(until), "reason": record.note.reason.as_deref() });
        let before = active_until.map(until_json);
        let link = PostgresAuditLink::Subject(event.subject.key);
        self.audit("block", &audit_target(&event.subject), before, Some(after), link);
        Ok(())
    }

    pub(super) fn release(
        &mut self,
        subject: &SubjectKey,
        act: &'static str,
    ) -> PostgresWriteResult {
        self.ensure_subject(subject);
        if self.by().is_some() {
            let active_until = self.active_until(subject, true)?;
            let word = if act == "reset" { "reset" } else { "release" };
            let before = active_until.map(until_json);
            let link = PostgresAuditLink::Subject(subject.key);
            self.audit(word, &audit_target(subject), before, None, link);
        }
        let key = subject.key.to_bytes();
        let step = values![key, self.at(), act, self.why(), self.by()];
        self.statements.add(RELEASE_STEP, step);
        let end = values![key, self.at()];
        self.statements.add(END_BLOCK, end);
        if act == "reset" {
            let reset = values![key, self.at()];
            self.statements.add(RESET_LEVEL, reset.clone());
            self.statements.add(DELETE_OLD_DEBT, reset);
        }
        Ok(())
    }

    pub(super) fn write_debt(&mut self, debt: &DebtEvent) {
        self.ensure_subject(&debt.subject);
        let key = debt.subject.key.to_bytes();
        let terms = debt.terms;
        if debt.balance >= 0 {
            return self.statements.add(DELETE_DEBT, values![key, debt.epoch.micros()]);
        }
        let mut values =
            values![key, self.at(), debt.balance, terms.size, terms.tokens, terms.period];
        values.push(debt.epoch.micros().into());
        self.statements.add(UPSERT_DEBT, values);
    }

    /// The end of the active block; with `shadow`, also of one in shadow mode.
    fn active_until(
        &mut self,
        subject: &SubjectKey,
        shadow: bool,
    ) -> Result<Option<i64>, PostgresFailure> {
        let sql = "SELECT until FROM catraca.blocks
                   WHERE key = $1 AND until > $2 AND (NOT shadow OR $3)";
        let at = self.at();
        let row = self.statements.query(sql, &values![subject.key.to_bytes(), at, shadow])?;
        row.map(|row| row.try_get(0).map_err(PostgresFailure::Server)).transpose()
    }

    fn ensure_subject(&mut self, subject: &SubjectKey) {
        let clean_parts: Vec<(String, String)> = subject
            .parts
            .iter()
            .map(|(name, value)| (replace_nul(name), replace_nul(value)))
            .collect();
        let parts = json!(clean_parts).to_string();
        let values: Vec<Value> = values![
            subject.key.to_bytes(),
            &subject.namespace,
            &subject.policy,
            &identifier(&clean_parts),
            &parts,
        ];
        self.statements.add(SUBJECT, values);
    }
}

fn until_json(until: i64) -> Json {
    json!({ "until": rfc3339(until) })
}
