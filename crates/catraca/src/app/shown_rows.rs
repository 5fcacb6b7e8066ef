//! Rows of the records as operators may see them: values in clear of attributes that have become
//! private since are hidden.
//!
//! The rows of blocks stay as they were written, because their keys are digests of the values.

use catraca_core::select::orphan::orphan_reason;

use super::App;
use crate::records::{AuditRow, BlockRow, pairs};

impl App {
    /// A block as operators may see it, and whether it is orphaned: that is judged by the values
    /// that are hidden then.
    pub(super) fn shown_block(&self, mut row: BlockRow) -> BlockRow {
        row.orphaned = orphan_reason(&self.catalog(), &row.subject.policy, &row.subject.parts);
        self.hide_private_parts(&mut row.subject.parts);
        row
    }

    /// As [`Self::shown_block`], of several blocks.
    pub(super) fn shown_blocks(&self, rows: Vec<BlockRow>) -> Vec<BlockRow> {
        rows.into_iter().map(|row| self.shown_block(row)).collect()
    }

    /// Replaces values in clear of private attributes by their pseudonyms.
    pub(super) fn hide_private_parts(&self, parts: &mut [(String, String)]) {
        for (attribute, value) in parts {
            self.engine().hide_private_value(attribute, value);
        }
    }

    /// An act as operators may see it.
    pub(super) fn shown_act(&self, mut row: AuditRow) -> AuditRow {
        if ["list", "unlist", "state", "forget"].contains(&&*row.act) {
            self.hide_listed_value(&mut row);
        }
        // The target of an act on a key ends with the key's parts.
        let stored = pairs(&row.parts);
        self.hide_private_parts(&mut row.parts);
        if let Some(start) = row.target.strip_suffix(&stored) {
            row.target = format!("{start}{}", pairs(&row.parts));
        }
        row
    }

    /// Hides the value in the target of an act on lists or facts, such as `blocklist customer=ana`
    /// or `blocklist/shop customer=ana`, if the records do not hide it yet.
    fn hide_listed_value(&self, row: &mut AuditRow) {
        let Some((name, pair)) = row.target.split_once(' ') else { return };
        let Some((attribute, value)) = pair.split_once('=') else { return };
        let mut shown = value.to_owned();
        self.engine().hide_private_value(attribute, &mut shown);
        row.target = format!("{name} {attribute}={shown}");
    }
}
