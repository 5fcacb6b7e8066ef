//! The sections that configure a process, such as `[server]`: read by the program that owns them.

use super::attribute::AttributeTable;
use super::section::Sections;
use crate::located::Report;

/// The owner of the sections that configure a process.
pub trait ProcessSections {
    /// The codes of its diagnostics with their meanings, besides those of the catalog.
    fn codes(&self) -> &'static [(&'static str, &'static str)];

    /// Reads its sections, and keeps what it read. `attributes` normalises values of attributes.
    fn read(&mut self, report: &mut Report, sections: &Sections<'_>, attributes: &AttributeTable);
}

/// Accepts every process section unread. For programs that only decide.
#[derive(Clone, Copy, Debug, Default)]
pub struct IgnoreProcessSections;

impl ProcessSections for IgnoreProcessSections {
    fn codes(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    fn read(&mut self, _: &mut Report, _: &Sections<'_>, _: &AttributeTable) {}
}
