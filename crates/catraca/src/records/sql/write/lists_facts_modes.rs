//! Writes lists, facts, modes, policy resets, revisions and counts.
//!
//! Every change by an operator gets an audit row with the state before and after.

use catraca_core::lists::AccessListEntry;
use catraca_core::time::Time;
use serde_json::{Map, Value as Json, json};

use super::{AuditEntry, AuditLink, RecordWriter, rfc3339, values};
use crate::records::database::{DatabaseResult, rows};
use crate::records::display::{entry_columns, entry_name, namespace_column, namespaced_target};
use crate::records::record::{AttributeValue, ListName, MinuteCount, PolicyReset, Revision};

const UPSERT_ENTRY: &str = "INSERT INTO catraca.lists
        (list, attribute, value, namespace, at, until, reason, by)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT (list, attribute, value, namespace) DO UPDATE SET
        at = excluded.at, until = excluded.until, reason = excluded.reason, by = excluded.by";
const DELETE_ENTRY: &str = "DELETE FROM catraca.lists
    WHERE list = $1 AND attribute = $2 AND value = $3 AND namespace = $4";
const ENTRY: &str = "SELECT reason, until FROM catraca.lists
    WHERE list = $1 AND attribute = $2 AND value = $3 AND namespace = $4";
const UPSERT_FACT: &str = "INSERT INTO catraca.facts
        (namespace, attribute, value, name, fact, at, by)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (attribute, value, name, namespace) DO UPDATE SET
        fact = excluded.fact, at = excluded.at, by = excluded.by";
const DELETE_FACTS: &str =
    "DELETE FROM catraca.facts WHERE namespace = $1 AND attribute = $2 AND value = $3";
const FACTS: &str =
    "SELECT name, fact FROM catraca.facts WHERE namespace = $1 AND attribute = $2 AND value = $3";
const UPSERT_MODE: &str = "INSERT INTO catraca.modes (policy, mode, at, by)
    VALUES ($1, $2, $3, $4)
    ON CONFLICT (policy) DO UPDATE SET
        mode = excluded.mode, at = excluded.at, by = excluded.by";
const UPSERT_RESET: &str = "INSERT INTO catraca.resets AS r (policy, epoch, at, by, why, swept)
    VALUES ($1, $2, $3, $4, $5, 0)
    ON CONFLICT (policy) DO UPDATE SET
        epoch = greatest(r.epoch, excluded.epoch), at = excluded.at, by = excluded.by,
        why = excluded.why, swept = 0";
const LAST_REVISION: &str =
    "SELECT revision, policies FROM catraca.revisions ORDER BY id DESC LIMIT 1";
const REVISION: &str = "INSERT INTO catraca.revisions (at, revision, policies, by)
    VALUES ($1, $2, $3, $4)";
const UPSERT_AUTH: &str = "INSERT INTO catraca.auth (one, keys_required, at)
    VALUES (true, $1, $2)
    ON CONFLICT (one) DO UPDATE SET keys_required = excluded.keys_required, at = excluded.at";
const ADD_COUNT: &str = "INSERT INTO catraca.counts AS c
        (minute, namespace, action, policy, allowed, denied, blocked)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (minute, namespace, action, policy) DO UPDATE SET
        allowed = c.allowed + excluded.allowed, denied = c.denied + excluded.denied,
        blocked = c.blocked + excluded.blocked";

impl RecordWriter<'_> {
    pub(super) fn list(&mut self, list: ListName, entry: &AccessListEntry) -> DatabaseResult<()> {
        let before = self.list_entry(list, entry)?;
        let namespace = namespace_column(entry.namespace.as_deref());
        let (attribute, value) = entry_columns(entry);
        let until = entry.until.map(Time::micros);
        let reason = entry.reason.as_deref();
        let at = self.record.at;
        let by = self.record.by.as_deref();
        let values = values![list.as_str(), &attribute, &value, namespace, at, until, reason, by];
        self.add(UPSERT_ENTRY, &values)?;
        let after = entry_json(reason, until);
        self.audit_list("list", list, entry, before, Some(after))
    }

    pub(super) fn unlist(&mut self, list: ListName, entry: &AccessListEntry) -> DatabaseResult<()> {
        let before = self.list_entry(list, entry)?;
        let namespace = namespace_column(entry.namespace.as_deref());
        let (attribute, value) = entry_columns(entry);
        self.add(DELETE_ENTRY, &values![list.as_str(), &attribute, &value, namespace])?;
        self.audit_list("unlist", list, entry, before, None)
    }

    /// The stored entry about the same target and namespace.
    fn list_entry(
        &mut self,
        list: ListName,
        entry: &AccessListEntry,
    ) -> DatabaseResult<Option<Json>> {
        let namespace = namespace_column(entry.namespace.as_deref());
        let (attribute, value) = entry_columns(entry);
        let values = values![list.as_str(), &attribute, &value, namespace];
        self.prior_value(ENTRY, &values, |row| Ok(entry_json(row.get(0)?, row.get(1)?)))
    }

    fn audit_list(
        &mut self,
        act: &str,
        list: ListName,
        entry: &AccessListEntry,
        before: Option<Json>,
        after: Option<Json>,
    ) -> DatabaseResult<()> {
        let name = entry_name(&entry.target);
        let target = namespaced_target(list.as_str(), entry.namespace.as_deref(), &name);
        self.audit(AuditEntry {
            act,
            target: &target,
            before,
            after,
            link: AuditLink::About(&name),
        })
    }

    pub(super) fn set_facts(
        &mut self,
        namespace: Option<&str>,
        about: &AttributeValue,
        facts: &[(String, String)],
    ) -> DatabaseResult<()> {
        let before = self.facts(namespace, about)?;
        let column = namespace_column(namespace);
        let AttributeValue { attribute, value } = about;
        let at = self.record.at;
        let by = self.record.by.as_deref();
        for (name, fact) in facts {
            self.add(UPSERT_FACT, &values![column, attribute, value, name, fact, at, by])?;
        }
        let after = self.facts(namespace, about)?;
        self.audit_facts("state", namespace, about, before, after)
    }

    pub(super) fn forget_facts(
        &mut self,
        namespace: Option<&str>,
        about: &AttributeValue,
    ) -> DatabaseResult<()> {
        let before = self.facts(namespace, about)?;
        let column = namespace_column(namespace);
        self.add(DELETE_FACTS, &values![column, &about.attribute, &about.value])?;
        self.audit_facts("forget", namespace, about, before, None)
    }

    fn facts(
        &mut self,
        namespace: Option<&str>,
        about: &AttributeValue,
    ) -> DatabaseResult<Option<Json>> {
        let values = values![namespace_column(namespace), &about.attribute, &about.value];
        let facts = rows(self.database, FACTS, &values, |row| {
            Ok((row.get(0)?, Json::String(row.get(1)?)))
        })?;
        let facts: Map<String, Json> = facts.into_iter().collect();
        Ok((!facts.is_empty()).then_some(Json::Object(facts)))
    }

    fn audit_facts(
        &mut self,
        act: &str,
        namespace: Option<&str>,
        about: &AttributeValue,
        before: Option<Json>,
        after: Option<Json>,
    ) -> DatabaseResult<()> {
        let name = format!("{}={}", about.attribute, about.value);
        let target = namespaced_target("facts", namespace, &name);
        self.audit(AuditEntry {
            act,
            target: &target,
            before,
            after,
            link: AuditLink::About(&name),
        })
    }

    pub(super) fn set_mode(&mut self, policy: &str, mode: Option<&str>) -> DatabaseResult<()> {
        let sql = "SELECT mode FROM catraca.modes WHERE policy = $1";
        let before =
            self.prior_value(sql, &values![policy], |row| Ok(Json::String(row.get(0)?)))?;
        let at = self.record.at;
        let by = self.record.by.as_deref();
        match mode {
            Some(mode) => self.add(UPSERT_MODE, &values![policy, mode, at, by])?,
            None => {
                self.add("DELETE FROM catraca.modes WHERE policy = $1", &values![policy])?;
            }
        }
        self.audit_change("mode", policy, before, mode.map(Json::from))
    }

    pub(super) fn reset_policy(&mut self, reset: &PolicyReset) -> DatabaseResult<()> {
        let PolicyReset { policy, epoch } = reset;
        let since = |epoch: i64| json!({ "since": rfc3339(epoch) });
        let sql = "SELECT epoch FROM catraca.resets WHERE policy = $1";
        let before = self.prior_value(sql, &values![policy], |row| Ok(since(row.get(0)?)))?;
        let at = self.record.at;
        let by = self.record.by.as_deref();
        let why = self.record.why.as_deref();
        self.add(UPSERT_RESET, &values![policy, *epoch, at, by, why])?;
        self.audit_change("reset", policy, before, Some(since(epoch.micros())))
    }

    pub(super) fn write_revision(&mut self, loaded: &Revision) -> DatabaseResult<()> {
        let Revision { revision, policies } = loaded;
        let before = self.prior_value(LAST_REVISION, &[], |row| {
            let revision: &str = row.get(0)?;
            let policies: Option<i64> = row.get(1)?;
            Ok(json!({ "revision": revision, "policies": policies }))
        })?;
        let after = json!({ "revision": revision, "policies": policies });
        if before.as_ref() == Some(&after) {
            return Ok(());
        }
        let at = self.record.at;
        let by = self.record.by.as_deref();
        self.add(REVISION, &values![at, revision, policies.map(i64::from), by])?;
        self.audit_change("catalog", revision, before, Some(after))
    }

    pub(super) fn require_keys(&mut self, required: bool) -> DatabaseResult<()> {
        let sql = "SELECT keys_required FROM catraca.auth";
        let before = self.prior_value(sql, &[], |row| Ok(Json::Bool(row.get(0)?)))?;
        if before.as_ref().map_or(!required, |before| *before == required) {
            return Ok(());
        }
        self.add(UPSERT_AUTH, &values![required, self.record.at])?;
        self.audit_change("auth", "keys required", before, Some(Json::Bool(required)))
    }

    pub(super) fn add_count(&mut self, count: &MinuteCount) -> DatabaseResult<()> {
        let [allowed, denied, blocked] =
            [count.allowed, count.denied, count.blocked].map(|number| number as i64);
        let MinuteCount { minute, namespace, action, policy, .. } = count;
        let values = values![*minute, namespace, action, policy, allowed, denied, blocked];
        self.add(ADD_COUNT, &values)
    }

    /// Audits a change that is about no attribute's value and no subject.
    fn audit_change(
        &mut self,
        act: &str,
        target: &str,
        before: Option<Json>,
        after: Option<Json>,
    ) -> DatabaseResult<()> {
        self.audit(AuditEntry { act, target, before, after, link: AuditLink::None })
    }
}

fn entry_json(reason: Option<&str>, until: Option<i64>) -> Json {
    json!({ "reason": reason, "until": until.map(rfc3339) })
}
