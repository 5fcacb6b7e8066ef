//! Writing blocks, their history and debts: statements that need no answer, so that many of them
//! are one round trip.
//!
//! Must not shorten a block but by a release, nor leave an act out of the history.

use serde_json::{Value as Json, json};

use super::{Act, Done, Trail, Trouble, Value, shown, values};
use crate::records::postgres::value::clean;
use crate::records::record::{Blocking, Debt, Who, origin_word};
use crate::records::words::{identifier, target};

const SUBJECT: &str = "WITH new AS (
        INSERT INTO catraca.subjects (key, namespace, policy, identifier, parts)
        SELECT $1, $2, $3, $4, $5
        WHERE NOT EXISTS (SELECT 1 FROM catraca.subjects WHERE key = $1)
        RETURNING id)
    INSERT INTO catraca.parts (attribute, value, subject)
    SELECT DISTINCT part ->> 0, part ->> 1, new.id
    FROM new, json_array_elements($5::text::json) AS part";

/// What stands is lengthened; what ended, or stood only in shadow, is started.
const STEP: &str = "INSERT INTO catraca.history
        (subject, at, act, until, shadow, origin, reason, by)
    SELECT s.id, $2, CASE WHEN b.subject IS NULL THEN 'started' ELSE 'extended' END,
           greatest(b.until, $3), $4, $5, $6, $7
    FROM catraca.subjects AS s LEFT JOIN catraca.blocks AS b
        ON b.subject = s.id AND b.until > $2 AND (NOT b.shadow OR $4)
    WHERE s.key = $1";

const BLOCK: &str = "INSERT INTO catraca.blocks AS b
        (subject, key, since, until, touched, shadow, origin, reason, by, status, message,
         epoch, level, forget)
    SELECT s.id, s.key, $2, $3, $2, $4, $5, $6, $7, $8, $9, $10, sign($11::bigint)::bigint, $11
    FROM catraca.subjects AS s LEFT JOIN catraca.resets AS r
        ON r.policy = s.policy AND r.epoch > $10
    WHERE s.key = $1 AND r.epoch IS NULL
    ON CONFLICT (subject) DO UPDATE SET
        since = CASE WHEN b.until > $2 AND (NOT b.shadow OR $4) THEN b.since
                     ELSE excluded.since END,
        until = excluded.until, touched = excluded.touched, shadow = excluded.shadow,
        origin = excluded.origin, reason = excluded.reason, by = excluded.by,
        status = excluded.status, message = excluded.message, epoch = excluded.epoch,
        level = excluded.level + CASE WHEN b.until + b.forget > $2 AND (NOT b.shadow OR $4)
                                      THEN b.level ELSE 0 END,
        forget = CASE WHEN excluded.forget > 0 THEN excluded.forget
                      WHEN b.until + b.forget > $2 AND (NOT b.shadow OR $4) THEN b.forget
                      ELSE 0 END
    WHERE b.touched <= $2
        AND (b.until <= $2 OR (b.shadow AND NOT $4) OR excluded.until > b.until)";

const FREED: &str = "INSERT INTO catraca.history
        (subject, at, act, until, shadow, origin, reason, by)
    SELECT s.id, $2, $3, least(b.until, $2), false, 'operator', $4, $5
    FROM catraca.subjects AS s LEFT JOIN catraca.blocks AS b ON b.subject = s.id
    WHERE s.key = $1";

/// The row stays, even for a block that was never written: a snapshot may hold it. What was
/// blocked again since stays so.
const END: &str = "INSERT INTO catraca.blocks AS b
        (subject, key, since, until, touched, freed, origin)
    SELECT id, key, $2, $2, $2, $2, 'operator' FROM catraca.subjects WHERE key = $1
    ON CONFLICT (subject) DO UPDATE SET
        until = CASE WHEN b.touched > $2 THEN b.until ELSE least(b.until, $2) END,
        touched = greatest(b.touched, $2), freed = greatest(b.freed, $2)";

/// What was blocked again since the reset has offended once.
const FORGOTTEN: &str = "UPDATE catraca.blocks AS b SET reset = greatest(b.reset, $2),
        level = CASE WHEN b.touched > $2 THEN least(b.level, 1) ELSE 0 END
    WHERE b.key = $1";

const FORGIVEN: &str = "DELETE FROM catraca.debts AS d USING catraca.subjects AS s
    WHERE s.id = d.subject AND s.key = $1 AND d.at <= $2";

const OWE: &str = "INSERT INTO catraca.debts (subject, at, balance, size, tokens, period, epoch)
    SELECT s.id, $2, $3, $4, $5, $6, $7
    FROM catraca.subjects AS s LEFT JOIN catraca.resets AS r
        ON r.policy = s.policy AND r.epoch > $7
    WHERE s.key = $1 AND r.epoch IS NULL
    ON CONFLICT (subject) DO UPDATE SET
        at = excluded.at, balance = excluded.balance, size = excluded.size,
        tokens = excluded.tokens, period = excluded.period, epoch = excluded.epoch";

const PAID: &str = "DELETE FROM catraca.debts AS d USING catraca.subjects AS s
    WHERE s.id = d.subject AND s.key = $1";

impl Act<'_, '_> {
    pub(super) fn block(&mut self, blocking: &Blocking) -> Done {
        self.subject(&blocking.who);
        let (key, until) = (blocking.who.key.to_bytes(), blocking.until.micros());
        let (shadow, origin) = (blocking.shadow, origin_word(blocking.origin));
        let reason = blocking.note.reason.as_deref();
        if self.by().is_some() {
            self.audit_block(blocking)?;
        }
        let step = values![key, self.at(), until, shadow, origin, reason, self.by()];
        let mut block = step.clone();
        self.scribe.add(STEP, step);
        block.push(blocking.note.status.map(i64::from).into());
        block.push(blocking.note.message.as_deref().into());
        block.push(blocking.epoch.micros().into());
        block.push(blocking.forget.micros().into());
        self.scribe.add(BLOCK, block);
        Ok(())
    }

    fn audit_block(&mut self, blocking: &Blocking) -> Done {
        let stood = self.stood(&blocking.who, blocking.shadow)?;
        let until = stood.unwrap_or_default().max(blocking.until.micros());
        let after = json!({ "until": shown(until), "reason": blocking.note.reason.as_deref() });
        let change = (stood.map(ended), Some(after));
        let trail = Trail::Subject(blocking.who.key);
        self.audit("block", &target(&blocking.who), change, trail);
        Ok(())
    }

    pub(super) fn free(&mut self, who: &Who, act: &'static str) -> Done {
        self.subject(who);
        if self.by().is_some() {
            let stood = self.stood(who, true)?;
            let word = if act == "reset" { "reset" } else { "release" };
            let change = (stood.map(ended), None);
            self.audit(word, &target(who), change, Trail::Subject(who.key));
        }
        let key = who.key.to_bytes();
        let freed = values![key, self.at(), act, self.why(), self.by()];
        self.scribe.add(FREED, freed);
        let end = values![key, self.at()];
        self.scribe.add(END, end);
        if act == "reset" {
            let forgotten = values![key, self.at()];
            self.scribe.add(FORGOTTEN, forgotten.clone());
            self.scribe.add(FORGIVEN, forgotten);
        }
        Ok(())
    }

    pub(super) fn owe(&mut self, debt: &Debt) {
        self.subject(&debt.who);
        let (key, terms) = (debt.who.key.to_bytes(), debt.terms);
        if debt.balance >= 0 {
            return self.scribe.add(PAID, values![key]);
        }
        let mut values =
            values![key, self.at(), debt.balance, terms.size, terms.tokens, terms.period];
        values.push(debt.epoch.micros().into());
        self.scribe.add(OWE, values);
    }

    /// The end of the block that stands, also of one in shadow if told so.
    fn stood(&mut self, who: &Who, shadow: bool) -> Result<Option<i64>, Trouble> {
        let sql = "SELECT until FROM catraca.blocks
                   WHERE key = $1 AND until > $2 AND (NOT shadow OR $3)";
        let at = self.at();
        let row = self.scribe.ask(sql, &values![who.key.to_bytes(), at, shadow])?;
        row.map(|row| row.try_get(0).map_err(Trouble::Said)).transpose()
    }

    fn subject(&mut self, who: &Who) {
        let clean: Vec<(String, String)> =
            who.parts.iter().map(|(name, value)| (clean(name), clean(value))).collect();
        let parts = json!(clean).to_string();
        let values: Vec<Value> =
            values![who.key.to_bytes(), &who.namespace, &who.policy, &identifier(&clean), &parts,];
        self.scribe.add(SUBJECT, values);
    }
}

fn ended(until: i64) -> Json {
    json!({ "until": shown(until) })
}
