//! Writing lists, facts, modes, revisions and counts, each change with what was there before.
//!
//! Must not change anything of an operator's without a line in the audit.

use catraca_core::lists::{Entry, What};
use catraca_core::time::Time;
use serde_json::{Map, Value as Json, json};
use tokio_postgres::{Error, Row};

use super::{Act, Done, Trail, Trouble, Value, shown, values};
use crate::records::record::{About, Count, ListName, PolicyReset, Revision};
use crate::records::words::{columns, named};

impl Act<'_, '_> {
    pub(super) fn list(&mut self, list: ListName, entry: &Entry) -> Done {
        let before = self.listed(list, &entry.what)?;
        let (attribute, value) = columns(&entry.what);
        let (until, reason) = (entry.until.map(Time::micros), entry.reason.as_deref());
        let (at, by) = (self.at(), self.by());
        let after = json!({ "reason": reason, "until": until.map(shown) });
        let values = values![list.as_str(), &attribute, &value, at, until, reason, by];
        self.scribe.add(
            "INSERT INTO catraca.lists (list, attribute, value, at, until, reason, by)
             VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (list, attribute, value) DO UPDATE SET
                 at = excluded.at, until = excluded.until, reason = excluded.reason,
                 by = excluded.by",
            values,
        );
        self.audit_list("list", list, &entry.what, (before, Some(after)));
        Ok(())
    }

    pub(super) fn unlist(&mut self, list: ListName, what: &What) -> Done {
        let before = self.listed(list, what)?;
        let (attribute, value) = columns(what);
        self.scribe.add(
            "DELETE FROM catraca.lists WHERE list = $1 AND attribute = $2 AND value = $3",
            values![list.as_str(), &attribute, &value],
        );
        self.audit_list("unlist", list, what, (before, None));
        Ok(())
    }

    fn listed(&mut self, list: ListName, what: &What) -> Before {
        let (attribute, value) = columns(what);
        self.before(
            "SELECT reason, until FROM catraca.lists
             WHERE list = $1 AND attribute = $2 AND value = $3",
            values![list.as_str(), &attribute, &value],
            |row| {
                let (reason, until): (Option<String>, Option<i64>) =
                    (row.try_get(0)?, row.try_get(1)?);
                Ok(json!({ "reason": reason, "until": until.map(shown) }))
            },
        )
    }

    fn audit_list(
        &mut self,
        act: &str,
        list: ListName,
        what: &What,
        change: (Option<Json>, Option<Json>),
    ) {
        let target = format!("{} {}", list.as_str(), named(what));
        self.audit(act, &target, change, Trail::About(&named(what)));
    }

    pub(super) fn state(&mut self, about: &About, facts: &[(String, String)]) -> Done {
        let before = self.facts(about)?;
        let (at, by) = (self.at(), self.by().map(str::to_owned));
        for (name, fact) in facts {
            let values = values![&about.attribute, &about.value, name, fact, at, by.as_deref()];
            self.scribe.add(
                "INSERT INTO catraca.facts (attribute, value, name, fact, at, by)
                 VALUES ($1, $2, $3, $4, $5, $6)
                 ON CONFLICT (attribute, value, name) DO UPDATE SET
                     fact = excluded.fact, at = excluded.at, by = excluded.by",
                values,
            );
        }
        let after = self.facts(about)?;
        self.audit_facts("state", about, (before, after));
        Ok(())
    }

    pub(super) fn forget(&mut self, about: &About) -> Done {
        let before = self.facts(about)?;
        let sql = "DELETE FROM catraca.facts WHERE attribute = $1 AND value = $2";
        self.scribe.add(sql, values![&about.attribute, &about.value]);
        self.audit_facts("forget", about, (before, None));
        Ok(())
    }

    fn facts(&mut self, about: &About) -> Before {
        self.scribe.flush()?;
        let sql = "SELECT name, fact FROM catraca.facts WHERE attribute = $1 AND value = $2";
        let rows = self.scribe.session.ask(sql, &values![&about.attribute, &about.value])?;
        let pair = |row: &Row| Ok((row.try_get(0)?, Json::String(row.try_get(1)?)));
        let known: Result<Map<String, Json>, Error> = rows.iter().map(pair).collect();
        let known = known.map_err(Trouble::Said)?;
        Ok((!known.is_empty()).then_some(Json::Object(known)))
    }

    fn audit_facts(&mut self, act: &str, about: &About, change: (Option<Json>, Option<Json>)) {
        let name = format!("{}={}", about.attribute, about.value);
        self.audit(act, &format!("facts {name}"), change, Trail::About(&name));
    }

    pub(super) fn mode(&mut self, policy: &str, mode: Option<&str>) -> Done {
        let sql = "SELECT mode FROM catraca.modes WHERE policy = $1";
        let before = self.before(sql, values![policy], |row| Ok(Json::String(row.try_get(0)?)))?;
        match mode {
            Some(mode) => {
                let values = values![policy, mode, self.at(), self.by()];
                self.scribe.add(
                    "INSERT INTO catraca.modes (policy, mode, at, by) VALUES ($1, $2, $3, $4)
                     ON CONFLICT (policy) DO UPDATE SET
                         mode = excluded.mode, at = excluded.at, by = excluded.by",
                    values,
                );
            }
            None => {
                self.scribe.add("DELETE FROM catraca.modes WHERE policy = $1", values![policy]);
            }
        }
        self.audit("mode", policy, (before, mode.map(Json::from)), Trail::None);
        Ok(())
    }

    pub(super) fn reset_policy(&mut self, reset: &PolicyReset) -> Done {
        let PolicyReset { policy, epoch } = reset;
        let since = |epoch: i64| json!({ "since": shown(epoch) });
        let sql = "SELECT epoch FROM catraca.resets WHERE policy = $1";
        let before = self.before(sql, values![policy], |row| Ok(since(row.try_get(0)?)))?;
        let values = values![policy, epoch.micros(), self.at(), self.by(), self.why()];
        self.scribe.add(
            "INSERT INTO catraca.resets AS r (policy, epoch, at, by, why, swept)
             VALUES ($1, $2, $3, $4, $5, 0)
             ON CONFLICT (policy) DO UPDATE SET
                 epoch = greatest(r.epoch, excluded.epoch), at = excluded.at,
                 by = excluded.by, why = excluded.why, swept = 0",
            values,
        );
        self.audit("reset", policy, (before, Some(since(epoch.micros()))), Trail::None);
        Ok(())
    }

    pub(super) fn revise(&mut self, revision: &Revision) -> Done {
        let sql = "SELECT revision, policies FROM catraca.revisions ORDER BY id DESC LIMIT 1";
        let before = self.before(sql, Vec::new(), |row| {
            let (revision, policies): (String, Option<i64>) = (row.try_get(0)?, row.try_get(1)?);
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
        self.scribe.add(sql, values);
        self.audit("catalog", &revision.revision, (before, Some(after)), Trail::None);
        Ok(())
    }

    pub(super) fn require_keys(&mut self, required: bool) -> Done {
        let sql = "SELECT keys_required FROM catraca.auth";
        let before = self.before(sql, Vec::new(), |row| Ok(Json::Bool(row.try_get(0)?)))?;
        if before.as_ref().map_or(!required, |before| *before == required) {
            return Ok(());
        }
        self.scribe.add(
            "INSERT INTO catraca.auth (keys_required, at) VALUES ($1, $2)
             ON CONFLICT (one) DO UPDATE SET
                 keys_required = excluded.keys_required, at = excluded.at",
            values![required, self.at()],
        );
        let change = (before, Some(Json::Bool(required)));
        self.audit("auth", "keys required", change, Trail::None);
        Ok(())
    }

    pub(super) fn count(&mut self, count: &Count) {
        let [allowed, denied, blocked] =
            [count.allowed, count.denied, count.blocked].map(|number| number as i64);
        let (namespace, action, policy) = (&count.namespace, &count.action, &count.policy);
        self.scribe.add(
            "INSERT INTO catraca.counts AS c
                 (minute, namespace, action, policy, allowed, denied, blocked)
             VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (minute, namespace, action, policy) DO UPDATE SET
                 allowed = c.allowed + excluded.allowed, denied = c.denied + excluded.denied,
                 blocked = c.blocked + excluded.blocked",
            values![count.minute, namespace, action, policy, allowed, denied, blocked],
        );
    }

    fn before(
        &mut self,
        sql: &str,
        values: Vec<Value>,
        read: impl FnOnce(&Row) -> Result<Json, Error>,
    ) -> Before {
        let row = self.scribe.ask(sql, &values)?;
        row.map(|row| read(&row).map_err(Trouble::Said)).transpose()
    }
}

/// What was there, if anything.
type Before = Result<Option<Json>, Trouble>;
