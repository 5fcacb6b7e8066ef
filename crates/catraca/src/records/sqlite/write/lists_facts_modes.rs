//! Writes lists, facts, modes, policy resets, revisions and counts.
//!
//! Every change by an operator gets an audit row with the state before and after.

use catraca_core::lists::{AccessListEntry, ListTarget};
use catraca_core::time::Time;
use rusqlite::{OptionalExtension, Row, params};
use serde_json::{Map, Value, json};

use super::{SqliteAuditLink, SqliteRecordWriter, SqliteWriteResult, rfc3339};
use crate::records::display::{entry_columns, entry_name};
use crate::records::record::{AttributeValue, ListName, MinuteCount, PolicyReset, Revision};

impl SqliteRecordWriter<'_> {
    pub(super) fn list(&self, list: ListName, entry: &AccessListEntry) -> SqliteWriteResult {
        let (attribute, value) = entry_columns(&entry.target);
        let before = self.list_entry(list, &attribute, &value)?;
        let until = entry.until.map(Time::micros);
        let reason = entry.reason.as_deref();
        self.run(
            "INSERT INTO lists (list, attribute, value, at, until, reason, by)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (list, attribute, value) DO UPDATE SET
                 at = excluded.at, until = excluded.until, reason = excluded.reason,
                 by = excluded.by",
            params![list.as_str(), attribute, value, self.at(), until, reason, self.by()],
        )?;
        let after = json!({ "reason": reason, "until": until.map(rfc3339) });
        self.audit_list("list", list, &entry.target, before, Some(after))
    }

    pub(super) fn unlist(&self, list: ListName, what: &ListTarget) -> SqliteWriteResult {
        let (attribute, value) = entry_columns(what);
        let before = self.list_entry(list, &attribute, &value)?;
        self.run(
            "DELETE FROM lists WHERE list = ?1 AND attribute = ?2 AND value = ?3",
            params![list.as_str(), attribute, value],
        )?;
        self.audit_list("unlist", list, what, before, None)
    }

    fn list_entry(&self, list: ListName, attribute: &str, value: &str) -> SqlitePriorValue {
        self.prior_value(
            "SELECT reason, until FROM lists WHERE list = ?1 AND attribute = ?2 AND value = ?3",
            params![list.as_str(), attribute, value],
            |row| {
                let reason: Option<String> = row.get(0)?;
                let until: Option<i64> = row.get(1)?;
                Ok(json!({ "reason": reason, "until": until.map(rfc3339) }))
            },
        )
    }

    fn audit_list(
        &self,
        act: &str,
        list: ListName,
        what: &ListTarget,
        before: Option<Value>,
        after: Option<Value>,
    ) -> SqliteWriteResult {
        let target = format!("{} {}", list.as_str(), entry_name(what));
        self.audit(act, &target, before, after, SqliteAuditLink::About(&entry_name(what)))
    }

    pub(super) fn set_facts(
        &self,
        about: &AttributeValue,
        facts: &[(String, String)],
    ) -> SqliteWriteResult {
        let before = self.facts(about)?;
        for (name, fact) in facts {
            self.run(
                "INSERT INTO facts (attribute, value, name, fact, at, by)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT (attribute, value, name) DO UPDATE SET
                     fact = excluded.fact, at = excluded.at, by = excluded.by",
                params![about.attribute, about.value, name, fact, self.at(), self.by()],
            )?;
        }
        let after = self.facts(about)?;
        self.audit_facts("state", about, before, after)
    }

    pub(super) fn forget_facts(&self, about: &AttributeValue) -> SqliteWriteResult {
        let before = self.facts(about)?;
        let sql = "DELETE FROM facts WHERE attribute = ?1 AND value = ?2";
        self.run(sql, params![about.attribute, about.value])?;
        self.audit_facts("forget", about, before, None)
    }

    fn facts(&self, about: &AttributeValue) -> SqlitePriorValue {
        let sql = "SELECT name, fact FROM facts WHERE attribute = ?1 AND value = ?2";
        let mut statement = self.transaction.prepare_cached(sql)?;
        let pairs = statement.query_map(params![about.attribute, about.value], |row| {
            Ok((row.get(0)?, Value::String(row.get(1)?)))
        })?;
        let facts: Map<String, Value> = pairs.collect::<rusqlite::Result<_>>()?;
        Ok((!facts.is_empty()).then_some(Value::Object(facts)))
    }

    fn audit_facts(
        &self,
        act: &str,
        about: &AttributeValue,
        before: Option<Value>,
        after: Option<Value>,
    ) -> SqliteWriteResult {
        let name = format!("{}={}", about.attribute, about.value);
        self.audit(act, &format!("facts {name}"), before, after, SqliteAuditLink::About(&name))
    }

    pub(super) fn set_mode(&self, policy: &str, mode: Option<&str>) -> SqliteWriteResult {
        let sql = "SELECT mode FROM modes WHERE policy = ?1";
        let before = self.prior_value(sql, [policy], |row| Ok(Value::String(row.get(0)?)))?;
        match mode {
            Some(mode) => self.run(
                "INSERT INTO modes (policy, mode, at, by) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (policy) DO UPDATE SET
                     mode = excluded.mode, at = excluded.at, by = excluded.by",
                params![policy, mode, self.at(), self.by()],
            )?,
            None => self.run("DELETE FROM modes WHERE policy = ?1", [policy])?,
        };
        self.audit("mode", policy, before, mode.map(Value::from), SqliteAuditLink::None)
    }

    pub(super) fn reset_policy(&self, reset: &PolicyReset) -> SqliteWriteResult {
        let PolicyReset { policy, epoch } = reset;
        let since = |epoch: i64| json!({ "since": rfc3339(epoch) });
        let sql = "SELECT epoch FROM resets WHERE policy = ?1";
        let before = self.prior_value(sql, [policy], |row| Ok(since(row.get(0)?)))?;
        self.run(
            "INSERT INTO resets (policy, epoch, at, by, why, swept)
             VALUES (?1, ?2, ?3, ?4, ?5, 0)
             ON CONFLICT (policy) DO UPDATE SET
                 epoch = max(epoch, excluded.epoch), at = excluded.at, by = excluded.by,
                 why = excluded.why, swept = 0",
            params![policy, epoch.micros(), self.at(), self.by(), self.record.why],
        )?;
        self.audit("reset", policy, before, Some(since(epoch.micros())), SqliteAuditLink::None)
    }

    pub(super) fn write_revision(&self, revision: &Revision) -> SqliteWriteResult {
        let sql = "SELECT revision, policies FROM revisions ORDER BY id DESC LIMIT 1";
        let before = self.prior_value(sql, [], |row| {
            let revision: String = row.get(0)?;
            let policies: Option<u32> = row.get(1)?;
            Ok(json!({ "revision": revision, "policies": policies }))
        })?;
        let after = json!({ "revision": revision.revision, "policies": revision.policies });
        if before.as_ref() == Some(&after) {
            return Ok(());
        }
        self.run(
            "INSERT INTO revisions (at, revision, policies, by) VALUES (?1, ?2, ?3, ?4)",
            params![self.at(), revision.revision, revision.policies, self.by()],
        )?;
        self.audit("catalog", &revision.revision, before, Some(after), SqliteAuditLink::None)
    }

    pub(super) fn require_keys(&self, required: bool) -> SqliteWriteResult {
        let sql = "SELECT keys_required FROM auth";
        let before = self.prior_value(sql, [], |row| Ok(Value::Bool(row.get(0)?)))?;
        if before.as_ref().map_or(!required, |before| *before == required) {
            return Ok(());
        }
        self.run(
            "INSERT INTO auth (one, keys_required, at) VALUES (1, ?1, ?2)
             ON CONFLICT (one) DO UPDATE SET
                 keys_required = excluded.keys_required, at = excluded.at",
            params![required, self.at()],
        )?;
        self.audit(
            "auth",
            "keys required",
            before,
            Some(Value::Bool(required)),
            SqliteAuditLink::None,
        )
    }

    pub(super) fn add_count(&self, count: &MinuteCount) -> SqliteWriteResult {
        self.run(
            "INSERT INTO counts (minute, namespace, action, policy, allowed, denied, blocked)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (minute, namespace, action, policy) DO UPDATE SET
                 allowed = allowed + excluded.allowed, denied = denied + excluded.denied,
                 blocked = blocked + excluded.blocked",
            params![
                count.minute,
                count.namespace,
                count.action,
                count.policy,
                count.allowed as i64,
                count.denied as i64,
                count.blocked as i64,
            ],
        )?;
        Ok(())
    }

    fn prior_value(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<Value>,
    ) -> SqlitePriorValue {
        self.transaction.prepare_cached(sql)?.query_row(values, read).optional()
    }
}

/// The state before a change, if there was one.
type SqlitePriorValue = rusqlite::Result<Option<Value>>;
