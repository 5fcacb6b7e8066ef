//! Writes lists, facts, modes, policy resets, revisions and counts.
//!
//! Every change by an operator gets an audit row with the state before and after.

use catraca_core::lists::{AccessListEntry, ListTarget};
use catraca_core::time::Time;
use serde_json::{Map, Value as Json, json};
use tokio_postgres::{Error, Row};

use super::{
    PostgresAuditLink, PostgresFailure, PostgresRecordWriter, PostgresWriteResult, Value, rfc3339,
    values,
};
use crate::records::display::{entry_columns, entry_name};
use crate::records::record::{AttributeValue, ListName, MinuteCount, PolicyReset, Revision};

impl PostgresRecordWriter<'_, '_> {
    pub(super) fn list(&mut self, list: ListName, entry: &AccessListEntry) -> PostgresWriteResult {
        let before = self.list_entry(list, &entry.target)?;
        let (attribute, value) = entry_columns(&entry.target);
        let until = entry.until.map(Time::micros);
        let reason = entry.reason.as_deref();
        let at = self.at();
        let by = self.by();
        let after = json!({ "reason": reason, "until": until.map(rfc3339) });
        let values = values![list.as_str(), &attribute, &value, at, until, reason, by];
        self.statements.add(
            "INSERT INTO catraca.lists (list, attribute, value, at, until, reason, by)
             VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (list, attribute, value) DO UPDATE SET
                 at = excluded.at, until = excluded.until, reason = excluded.reason,
                 by = excluded.by",
            values,
        );
        self.audit_list("list", list, &entry.target, before, Some(after));
        Ok(())
    }

    pub(super) fn unlist(&mut self, list: ListName, what: &ListTarget) -> PostgresWriteResult {
        let before = self.list_entry(list, what)?;
        let (attribute, value) = entry_columns(what);
        self.statements.add(
            "DELETE FROM catraca.lists WHERE list = $1 AND attribute = $2 AND value = $3",
            values![list.as_str(), &attribute, &value],
        );
        self.audit_list("unlist", list, what, before, None);
        Ok(())
    }

    fn list_entry(&mut self, list: ListName, what: &ListTarget) -> PostgresPriorValue {
        let (attribute, value) = entry_columns(what);
        self.prior_value(
            "SELECT reason, until FROM catraca.lists
             WHERE list = $1 AND attribute = $2 AND value = $3",
            values![list.as_str(), &attribute, &value],
            |row| {
                let reason: Option<String> = row.try_get(0)?;
                let until: Option<i64> = row.try_get(1)?;
                Ok(json!({ "reason": reason, "until": until.map(rfc3339) }))
            },
        )
    }

    fn audit_list(
        &mut self,
        act: &str,
        list: ListName,
        what: &ListTarget,
        before: Option<Json>,
        after: Option<Json>,
    ) {
        let target = format!("{} {}", list.as_str(), entry_name(what));
        self.audit(act, &target, before, after, PostgresAuditLink::About(&entry_name(what)));
    }

    pub(super) fn set_facts(
        &mut self,
        about: &AttributeValue,
        facts: &[(String, String)],
    ) -> PostgresWriteResult {
        let before = self.facts(about)?;
        let at = self.at();
        let by = self.by().map(str::to_owned);
        for (name, fact) in facts {
            let values = values![&about.attribute, &about.value, name, fact, at, by.as_deref()];
            self.statements.add(
                "INSERT INTO catraca.facts (attribute, value, name, fact, at, by)
                 VALUES ($1, $2, $3, $4, $5, $6)
                 ON CONFLICT (attribute, value, name) DO UPDATE SET
                     fact = excluded.fact, at = excluded.at, by = excluded.by",
                values,
            );
        }
        let after = self.facts(about)?;
        self.audit_facts("state", about, before, after);
        Ok(())
    }

    pub(super) fn forget_facts(&mut self, about: &AttributeValue) -> PostgresWriteResult {
        let before = self.facts(about)?;
        let sql = "DELETE FROM catraca.facts WHERE attribute = $1 AND value = $2";
        self.statements.add(sql, values![&about.attribute, &about.value]);
        self.audit_facts("forget", about, before, None);
        Ok(())
    }

    fn facts(&mut self, about: &AttributeValue) -> PostgresPriorValue {
        self.statements.flush()?;
        let sql = "SELECT name, fact FROM catraca.facts WHERE attribute = $1 AND value = $2";
        let rows = self.statements.session.query(sql, &values![&about.attribute, &about.value])?;
        let pair = |row: &Row| Ok((row.try_get(0)?, Json::String(row.try_get(1)?)));
        let facts: Result<Map<String, Json>, Error> = rows.iter().map(pair).collect();
        let facts = facts.map_err(PostgresFailure::Server)?;
        Ok((!facts.is_empty()).then_some(Json::Object(facts)))
    }

    fn audit_facts(
        &mut self,
        act: &str,
        about: &AttributeValue,
        before: Option<Json>,
        after: Option<Json>,
    ) {
        let name = format!("{}={}", about.attribute, about.value);
        self.audit(act, &format!("facts {name}"), before, after, PostgresAuditLink::About(&name));
    }

    pub(super) fn set_mode(&mut self, policy: &str, mode: Option<&str>) -> PostgresWriteResult {
        let sql = "SELECT mode FROM catraca.modes WHERE policy = $1";
        let before =
            self.prior_value(sql, values![policy], |row| Ok(Json::String(row.try_get(0)?)))?;
        match mode {
            Some(mode) => {
                let values = values![policy, mode, self.at(), self.by()];
                self.statements.add(
                    "INSERT INTO catraca.modes (policy, mode, at, by) VALUES ($1, $2, $3, $4)
                     ON CONFLICT (policy) DO UPDATE SET
                         mode = excluded.mode, at = excluded.at, by = excluded.by",
                    values,
                );
            }
            None => {
                self.statements.add("DELETE FROM catraca.modes WHERE policy = $1", values![policy]);
            }
        }
        self.audit("mode", policy, before, mode.map(Json::from), PostgresAuditLink::None);
        Ok(())
    }

    pub(super) fn reset_policy(&mut self, reset: &PolicyReset) -> PostgresWriteResult {
        let PolicyReset { policy, epoch } = reset;
        let since = |epoch: i64| json!({ "since": rfc3339(epoch) });
        let sql = "SELECT epoch FROM catraca.resets WHERE policy = $1";
        let before = self.prior_value(sql, values![policy], |row| Ok(since(row.try_get(0)?)))?;
        let values = values![policy, epoch.micros(), self.at(), self.by(), self.why()];
        self.statements.add(
            "INSERT INTO catraca.resets AS r (policy, epoch, at, by, why, swept)
             VALUES ($1, $2, $3, $4, $5, 0)
             ON CONFLICT (policy) DO UPDATE SET
                 epoch = greatest(r.epoch, excluded.epoch), at = excluded.at,
                 by = excluded.by, why = excluded.why, swept = 0",
            values,
        );
        self.audit("reset", policy, before, Some(since(epoch.micros())), PostgresAuditLink::None);
        Ok(())
    }

    pub(super) fn write_revision(&mut self, revision: &Revision) -> PostgresWriteResult {
        let sql = "SELECT revision, policies FROM catraca.revisions ORDER BY id DESC LIMIT 1";
        let before = self.prior_value(sql, Vec::new(), |row| {
            let revision: String = row.try_get(0)?;
            let policies: Option<i64> = row.try_get(1)?;
            Ok(json!({ "revision": revision, "policies": policies }))
        })?;
        let after = json!({ "revision": revision.revision, "policies": revision.policies });
        if before.as_ref() == Some(&after) {
            return Ok(());
        }
        let policies = revision.policies.map(i64::from);
        let values = values![self.at(), &revision.revision, policies, self.by()];
        let sql = "INSERT INTO catraca.revisions (at, revision, policies, by)
                   VALUES ($1, $2, $3, $4)";
        self.statements.add(sql, values);
        self.audit("catalog", &revision.revision, before, Some(after), PostgresAuditLink::None);
        Ok(())
    }

    pub(super) fn require_keys(&mut self, required: bool) -> PostgresWriteResult {
        let sql = "SELECT keys_required FROM catraca.auth";
        let before = self.prior_value(sql, Vec::new(), |row| Ok(Json::Bool(row.try_get(0)?)))?;
        if before.as_ref().map_or(!required, |before| *before == required) {
            return Ok(());
        }
        self.statements.add(
            "INSERT INTO catraca.auth (keys_required, at) VALUES ($1, $2)
             ON CONFLICT (one) DO UPDATE SET
                 keys_required = excluded.keys_required, at = excluded.at",
            values![required, self.at()],
        );
        let after = Some(Json::Bool(required));
        self.audit("auth", "keys required", before, after, PostgresAuditLink::None);
        Ok(())
    }

    pub(super) fn add_count(&mut self, count: &MinuteCount) {
        let [allowed, denied, blocked] =
            [count.allowed, count.denied, count.blocked].map(|number| number as i64);
        let namespace = &count.namespace;
        let action = &count.action;
        let policy = &count.policy;
        self.statements.add(
            "INSERT INTO catraca.counts AS c
                 (minute, namespace, action, policy, allowed, denied, blocked)
             VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (minute, namespace, action, policy) DO UPDATE SET
                 allowed = c.allowed + excluded.allowed, denied = c.denied + excluded.denied,
                 blocked = c.blocked + excluded.blocked",
            values![count.minute, namespace, action, policy, allowed, denied, blocked],
        );
    }

    fn prior_value(
        &mut self,
        sql: &str,
        values: Vec<Value>,
        read: impl FnOnce(&Row) -> Result<Json, Error>,
    ) -> PostgresPriorValue {
        let row = self.statements.query(sql, &values)?;
        row.map(|row| read(&row).map_err(PostgresFailure::Server)).transpose()
    }
}

/// The state before a change, if there was one.
type PostgresPriorValue = Result<Option<Json>, PostgresFailure>;
