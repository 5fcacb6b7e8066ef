//! `[settle]`: how much of an outcome the ban rules can read.

use super::bounds::BODY_BYTES_MAX;
use super::section::Sections;
use crate::catalog::SettleTerms;
use crate::located::{
    DefaultValue, FieldSchema, Node, Report, TableFields, TableSchema, ValueSchema,
};

/// The fields of `[settle]`.
pub(super) static SETTLE: TableSchema = TableSchema {
    name: "settle section",
    fields: &[FieldSchema::new(
        "body_bytes_max",
        ValueSchema::Integer { least: 0, most: BODY_BYTES_MAX as i64 },
        "the largest body that ban rules read, in bytes",
    )
    .or(DefaultValue::Integer(65_536))],
};

/// Reads `[settle]`.
pub(super) fn read(report: &mut Report, sections: &Sections<'_>) -> SettleTerms {
    let mut terms = SettleTerms::default();
    let Some((key, node)) = sections.single(report, "settle") else { return terms };
    let Some(fields) = TableFields::read(report, key.location, node, &SETTLE) else {
        return terms;
    };
    if let Some(bytes) = fields.get("body_bytes_max").and_then(|node| size(report, node)) {
        terms.body_bytes_max = bytes;
    }
    terms
}

fn size(report: &mut Report, node: Node<'_>) -> Option<usize> {
    let bytes = node.integer(report, "a number of bytes such as 65536")?;
    let size = usize::try_from(bytes).ok().filter(|bytes| *bytes <= BODY_BYTES_MAX);
    if size.is_none() {
        let message = format!("`{bytes}` is out of range for the body that ban rules read");
        let fix = format!("write a number of bytes from 0 to {BODY_BYTES_MAX}");
        report.error("bad-body-size", node.location, message, fix);
    }
    size
}
