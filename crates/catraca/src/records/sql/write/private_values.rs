//! Replaces values in clear by pseudonyms when their attributes have become private, and moves all
//! facts about a value to one form of it.
//!
//! Blocks are not changed here: their rows show what the caller's attributes were at that time.

use catraca_core::catalog::Catalog;
use catraca_core::digest::Digester;
use catraca_core::select::normalise_stored;
use serde_json::json;

use super::{AuditEntry, AuditLink, RecordWriter, values};
use crate::records::database::{DatabaseResult, rows};
use crate::records::record::AttributeValue;

/// `ltrim` leaves nothing of hexadecimal digits, so this finds what is not in the form of a
/// pseudonym.
const EXPOSED_ENTRIES: &str = "SELECT DISTINCT value FROM catraca.lists WHERE attribute = $1
    AND NOT (length(value) = 27 AND strpos(value, '~') = 1
        AND ltrim(substr(value, 2), '0123456789abcdef') = '')";
const EXPOSED_FACTS: &str = "SELECT DISTINCT value FROM catraca.facts WHERE attribute = $1
    AND NOT (length(value) = 27 AND strpos(value, '~') = 1
        AND ltrim(substr(value, 2), '0123456789abcdef') = '')";
/// The text before the first `=` is the attribute's name; `$1` has it with the `=`.
const EXPOSED_AUDIT: &str = "SELECT about FROM (SELECT DISTINCT about,
        substr(about, strpos(about, '=') + 1) AS value
        FROM catraca.audit WHERE about IS NOT NULL AND strpos(about, $1) = 1) AS audited
    WHERE NOT (length(value) = 27 AND strpos(value, '~') = 1
        AND ltrim(substr(value, 2), '0123456789abcdef') = '')";
/// Of two entries about one value in one namespace, the one that ends last stays.
const EXTEND_ENTRY: &str = "UPDATE catraca.lists AS l
    SET at = o.at, until = o.until, reason = o.reason, by = o.by FROM catraca.lists AS o
    WHERE l.attribute = $1 AND l.value = $3 AND o.attribute = $1 AND o.value = $2
      AND o.list = l.list AND o.namespace = l.namespace
      AND l.until IS NOT NULL AND (o.until IS NULL OR o.until > l.until)";
const DELETE_SECOND_ENTRY: &str = "DELETE FROM catraca.lists WHERE attribute = $1 AND value = $2
    AND (list, namespace) IN
        (SELECT list, namespace FROM catraca.lists WHERE attribute = $1 AND value = $3)";
const RENAME_ENTRY: &str =
    "UPDATE catraca.lists SET value = $3 WHERE attribute = $1 AND value = $2";
const COPY_FACTS: &str = "INSERT INTO catraca.facts
        (namespace, attribute, value, name, fact, at, by)
    SELECT namespace, attribute, CAST($3 AS text), name, fact, at, by FROM catraca.facts
    WHERE attribute = $1 AND value = $2
    ON CONFLICT (attribute, value, name, namespace) DO NOTHING";
const DELETE_FACTS: &str = "DELETE FROM catraca.facts WHERE attribute = $1 AND value = $2";
/// The target of such an action ends with the text that it is about.
const RENAME_AUDITED: &str = "UPDATE catraca.audit
    SET target = substr(target, 1, length(target) - length(about)) || $2, about = $2
    WHERE about = $1";

/// The pseudonym of a value in clear.
type Hide<'h> = &'h dyn Fn(&str) -> String;

impl RecordWriter<'_> {
    pub(super) fn merge_facts(
        &mut self,
        into: &AttributeValue,
        from: &[AttributeValue],
    ) -> DatabaseResult<()> {
        from.iter().try_for_each(|from| self.move_facts(&from.attribute, &from.value, &into.value))
    }

    pub(super) fn hide_values(
        &mut self,
        catalog: &Catalog,
        digester: &Digester,
    ) -> DatabaseResult<()> {
        let private = catalog.attributes.iter().filter(|(_, attribute)| attribute.private);
        for (attribute, _) in private {
            // The value may be stored in the normal form of an earlier catalog.
            let hide = |clear: &str| {
                let normal = normalise_stored(catalog, attribute, clear);
                digester.pseudonym(attribute, normal.as_deref().unwrap_or(clear))
            };
            let entries = self.hide_entries(attribute, &hide)?;
            let facts = self.hide_facts(attribute, &hide)?;
            let audited = self.hide_audited(attribute, &hide)?;
            if entries + facts + audited > 0 {
                let target = format!("values of {attribute}");
                let after = json!({ "entries": entries, "facts": facts, "audit": audited });
                let after = Some(after);
                let link = AuditLink::None;
                self.audit(AuditEntry { act: "hide", target: &target, before: None, after, link })?;
            }
        }
        Ok(())
    }

    /// Returns how many values were in clear.
    fn hide_entries(&mut self, attribute: &str, hide: Hide<'_>) -> DatabaseResult<usize> {
        let exposed = self.texts(EXPOSED_ENTRIES, attribute)?;
        for clear in &exposed {
            let hidden = hide(clear);
            for sql in [EXTEND_ENTRY, DELETE_SECOND_ENTRY, RENAME_ENTRY] {
                self.add(sql, &values![attribute, clear, &hidden])?;
            }
        }
        Ok(exposed.len())
    }

    fn hide_facts(&mut self, attribute: &str, hide: Hide<'_>) -> DatabaseResult<usize> {
        let exposed = self.texts(EXPOSED_FACTS, attribute)?;
        for clear in &exposed {
            self.move_facts(attribute, clear, &hide(clear))?;
        }
        Ok(exposed.len())
    }

    fn hide_audited(&mut self, attribute: &str, hide: Hide<'_>) -> DatabaseResult<usize> {
        let prefix = format!("{attribute}=");
        let exposed = self.texts(EXPOSED_AUDIT, &prefix)?;
        for about in &exposed {
            let clear = about.strip_prefix(&prefix).unwrap_or(about);
            let hidden = format!("{prefix}{}", hide(clear));
            self.add(RENAME_AUDITED, &values![about, &hidden])?;
        }
        Ok(exposed.len())
    }

    fn texts(&mut self, sql: &str, about: &str) -> DatabaseResult<Vec<String>> {
        rows(self.database, sql, &values![about], |row| row.get(0))
    }

    fn move_facts(&mut self, attribute: &str, from: &str, into: &str) -> DatabaseResult<()> {
        self.add(COPY_FACTS, &values![attribute, from, into])?;
        self.add(DELETE_FACTS, &values![attribute, from])
    }
}
