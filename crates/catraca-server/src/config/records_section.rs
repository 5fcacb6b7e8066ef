//! `[records]`: where blocks, lists, facts and the audit log are stored, and for how long.

use catraca::core::located::{DefaultValue, Node, Report, ValueSchema, scalar};
use catraca::core::time::Span;
use catraca::records::Retention;
use catraca::shared::RecordsScope;

use super::section::section;
use super::setting_kind::{
    FileName, Keyword, Millis, Optional, SettingContext, SettingKind, WholeNumber, Word,
};
use super::urls::RecordsUrl;

section! {
    /// The fields of `[records]`.
    "records" => RecordsSection {
        /// the [records](records.md): blocks, lists, facts, modes, audit, debts; also
        /// `"postgres://USER@HOST/DATABASE"`; `"none"` keeps nothing at all
        url: RecordsUrl = DefaultValue::Text("sqlite:catraca.db"), Restart;
        /// with a [shared store](shared.md): `shared` if all nodes use the same records, `node` if
        /// each node has its own and [Redis alone](shared.md#redis-alone) is shared
        scope: Word<RecordsScope> = DefaultValue::Text("shared"), Restart;
        /// a file with the password for a `postgres:` URL, so that the catalog need not contain it
        password_file: Optional<FileName> = DefaultValue::Absent(""), Restart;
        /// how long ended blocks, their history and ended list entries are kept
        keep_history: KeepTime = DefaultValue::Text("180d"), Restart;
        /// the same for operators' actions and catalog revisions; the revision in force always
        /// stays
        keep_audit: KeepTime = DefaultValue::Text("730d"), Restart;
        /// the same for decision counts per minute
        keep_counts: KeepTime = DefaultValue::Text("90d"), Restart;
        /// how many keys have [their attempts](records.md#attempts-of-single-callers) counted one
        /// by one in a minute; 0 counts none
        keys_per_minute: WholeNumber<0, 100_000> = DefaultValue::Integer(0), Restart;
        /// how often expired records are deleted; this also happens soon after a start
        purge_interval: Millis<1_000, 86_400_000> = DefaultValue::Text("1h"), Restart;
    }
}

impl RecordsSection {
    /// How long each class of records is kept.
    pub fn retention(&self) -> Retention {
        Retention {
            history: self.keep_history.into(),
            audit: self.keep_audit.into(),
            counts: self.keep_counts.into(),
        }
    }
}

impl Keyword for RecordsScope {
    const WORDS: &'static [(&'static str, Self)] =
        &[("shared", Self::Shared), ("node", Self::Node)];
}

/// How long records are kept: at least an hour, or `forever`.
pub struct KeepTime;

const LEAST: Span = Span::from_secs(3_600);

impl SettingKind for KeepTime {
    type Value = Span;
    const SCHEMA: ValueSchema = ValueSchema::Duration { least: LEAST, most: Span::FOREVER };

    fn read(_: &SettingContext<'_>, report: &mut Report, node: Node<'_>) -> Option<Span> {
        let span = scalar::duration_or_forever(report, node)?;
        if span < LEAST {
            let message = format!("`{span}` is out of range");
            let fix = "write a duration from \"1h\", such as \"90d\", or \"forever\"";
            report.error("bad-duration", node.location, message, fix);
            return None;
        }
        Some(span)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_declared_times_are_the_defaults_of_the_library() {
        let records = crate::config::parse("").unwrap().process.records;
        assert_eq!(records.retention(), Retention::default());
        let forever = crate::config::parse("[records]\nkeep_audit = 'forever'\n").unwrap();
        assert_eq!(forever.process.records.retention().audit, Duration::MAX);
    }
}
