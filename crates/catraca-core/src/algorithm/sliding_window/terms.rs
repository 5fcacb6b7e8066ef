//! The windows of a policy, and how a catalog writes them: one rate, or a list of rates.

use smallvec::SmallVec;

use crate::algorithm::part_of;
use crate::catalog::read::{UNITS_MAX, WINDOWS_MAX};
use crate::located::{FieldSchema, Node, Report, ValueSchema, scalar};
use crate::rate::Rate;
use crate::time::Span;

/// At most `limit` units of age less than `span`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowTerms {
    /// Units admitted inside the span.
    pub limit: i64,
    /// The length of the window.
    pub span: Span,
}

/// The windows of a policy, which must all admit a request. Most policies have one.
pub type WindowList = SmallVec<[WindowTerms; 1]>;

impl WindowTerms {
    pub(super) fn share(&self, nodes: i64) -> Self {
        Self { limit: part_of(self.limit, nodes), ..*self }
    }
}

pub(super) const FIELD: FieldSchema = FieldSchema::new(
    "window",
    ValueSchema::AnyOf(&[
        ValueSchema::Rate,
        ValueSchema::List { of: &ValueSchema::Rate, most: WINDOWS_MAX },
    ]),
    "exact sliding window: at most N units in any span of that length. With a list, all windows \
     must have room, and all are charged; their spans differ, and each has at most 10,000 units",
);

/// Reads a rate or a list of rates.
pub(super) fn read(report: &mut Report, node: Node<'_>) -> Option<WindowList> {
    let wanted = "a rate such as \"10 per 15m\", or a list of them";
    let items: Vec<_> = node.texts(report, wanted)?.into_iter().map(|(item, _)| item).collect();
    if items.is_empty() {
        let message = "a window without a rate limits nothing";
        report.error("no-limit", node.location, message, "write a rate such as \"10 per 15m\"");
        return None;
    }
    if let Some(extra) = items.get(WINDOWS_MAX) {
        let message = format!("{} windows are too many", items.len());
        let fix = format!("keep at most {WINDOWS_MAX}");
        report.error("too-many-windows", extra.location, message, fix);
        return None;
    }
    let terms: Vec<_> = items.iter().map(|item| window(report, *item)).collect();
    report_equal_spans(report, &items, &terms);
    terms.into_iter().collect()
}

fn window(report: &mut Report, node: Node<'_>) -> Option<WindowTerms> {
    let Rate { amount, per } = scalar::rate(report, node)?;
    if amount > UNITS_MAX {
        let message =
            format!("a window of {amount} units is more than the {UNITS_MAX} that a key stores");
        let fix = format!("write bucket = {{ size = {amount}, refill = \"{amount} per {per}\" }}");
        report.error("window-too-large", node.location, message, fix);
        return None;
    }
    Some(WindowTerms { limit: amount, span: per })
}

/// Reports two windows of the same length: the one with the larger limit would have no effect.
fn report_equal_spans(report: &mut Report, items: &[Node<'_>], terms: &[Option<WindowTerms>]) {
    for (at, window) in terms.iter().enumerate() {
        let Some(window) = window else { continue };
        if terms[..at].iter().flatten().any(|earlier| earlier.span == window.span) {
            let message = format!("two windows of {}", window.span);
            let fix = "keep the one with the smaller amount";
            report.error("duplicate-span", items[at].location, message, fix);
        }
    }
}
