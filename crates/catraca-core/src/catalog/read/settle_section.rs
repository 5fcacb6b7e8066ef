//! `[settle]`: how much of an outcome the ban rules can read.

use super::bounds::BODY_BYTES_MAX;
use super::node::{Node, TableFields};
use super::report::Report;
use super::section::Sections;
use crate::catalog::SettleTerms;

/// Reads `[settle]`.
pub(super) fn read(report: &mut Report, sections: &Sections<'_>) -> SettleTerms {
    let mut terms = SettleTerms::default();
    let Some((key, node)) = sections.single(report, "settle") else { return terms };
    let known = ["body_bytes_max"];
    let Some(fields) = TableFields::read(report, key.location, node, "settle section", &known)
    else {
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
