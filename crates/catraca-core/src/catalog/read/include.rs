//! `include`: loads the root file of a catalog and the files that it includes, with the caller's
//! loader.
//!
//! A file comes before the files that it includes, so that the root's routes win over shared ones.

use std::borrow::Cow;

use toml::de::DeTable;

use super::SourceFile;
use super::bounds::{CATALOG_BYTES_MAX, FILES_MAX, INCLUDE_DEPTH_MAX};
use crate::located::syntax_recovery;
use crate::located::{Report, SourceLocation, entries};

/// An included file, as the caller's loader returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IncludedFile {
    /// The text of the file.
    Text(String),
    /// The file was already read under this name: one file may be included under several paths.
    AlreadyRead(String),
}

/// Loads an included file by its name; the error is the reason why it cannot be read.
pub(super) type IncludeLoader<'a> = &'a mut dyn FnMut(&str) -> Result<IncludedFile, String>;

/// A file's name and text; the text is empty if the catalog is too large.
pub(super) struct File<'a> {
    pub name: Cow<'a, str>,
    pub text: Cow<'a, str>,
}

impl File<'_> {
    pub fn source(&self) -> SourceFile<'_> {
        SourceFile { name: &self.name, text: &self.text }
    }
}

/// All files of a catalog, the root first.
pub(super) fn load_files<'a>(
    root_name: &'a str,
    root_text: &'a str,
    load: IncludeLoader<'_>,
    report: &mut Report,
) -> Vec<File<'a>> {
    let mut walk = IncludeWalk { files: Vec::new(), bytes: 0, load };
    walk.add(root_name.into(), root_text.into(), &mut Vec::new(), report);
    walk.files
}

struct IncludeWalk<'a, 'l> {
    files: Vec<File<'a>>,
    /// The size of all files so far.
    bytes: usize,
    load: IncludeLoader<'l>,
}

impl<'a> IncludeWalk<'a, '_> {
    /// Adds a file and then the files that it includes; `above` is the chain of files that include
    /// this one, from the root.
    fn add(
        &mut self,
        name: Cow<'a, str>,
        text: Cow<'a, str>,
        above: &mut Vec<String>,
        report: &mut Report,
    ) {
        let at = self.files.len();
        self.bytes = self.bytes.saturating_add(text.len());
        let text = if self.bytes > CATALOG_BYTES_MAX { report_too_large(report, at) } else { text };
        let includes = read_includes(report, at, &text);
        above.push(name.clone().into_owned());
        self.files.push(File { name, text });
        for (location, included) in includes {
            self.include(location, included, above, report);
        }
        above.pop();
    }

    fn include(
        &mut self,
        location: SourceLocation,
        name: String,
        above: &mut Vec<String>,
        report: &mut Report,
    ) {
        if let Some((code, message, fix)) = self.include_error(&name, above) {
            report.mark_names_incomplete();
            return report.error(code, location, message, fix);
        }
        // Two files may include the same one; its content is used once.
        if self.files.iter().any(|file| *file.name == *name) {
            return;
        }
        match (self.load)(&name) {
            Ok(IncludedFile::Text(text)) => self.add(name.into(), text.into(), above, report),
            Ok(IncludedFile::AlreadyRead(earlier)) if above.contains(&earlier) => {
                report.mark_names_incomplete();
                let (code, message, fix) = cycle_error(&name, above);
                report.error(code, location, message, fix);
            }
            Ok(IncludedFile::AlreadyRead(_)) => {}
            Err(why) => {
                let message = format!("`{name}` cannot be read: {why}");
                let fix = "check the path, which is relative to the catalog's folder";
                report.error("include-unreadable", location, message, fix);
                report.mark_names_incomplete();
            }
        }
    }

    /// The error if a file may not be included here.
    fn include_error(&self, name: &str, above: &[String]) -> Option<IncludeError> {
        if above.iter().any(|open| *open == *name) {
            return Some(cycle_error(name, above));
        }
        if above.len() > INCLUDE_DEPTH_MAX {
            let message = format!("`{name}` is included {} files deep", above.len());
            let fix = format!("include it from a file at most {INCLUDE_DEPTH_MAX} deep");
            return Some(("include-too-deep", message, fix));
        }
        if self.files.len() >= FILES_MAX {
            let message = format!("`{name}` is one file too many");
            return Some(("too-many-files", message, format!("join files: at most {FILES_MAX}")));
        }
        None
    }
}

/// A diagnostic's code, message and fix.
type IncludeError = (&'static str, String, String);

fn cycle_error(name: &str, above: &[String]) -> IncludeError {
    let message = format!("`{name}` includes itself: {} → {name}", above.join(" → "));
    ("include-cycle", message, "remove this include".to_owned())
}

/// Reports a catalog that is too large; returns an empty text to go on with.
fn report_too_large<'a>(report: &mut Report, file: usize) -> Cow<'a, str> {
    let message = format!("the catalog is larger than {CATALOG_BYTES_MAX} bytes");
    let fix = "keep list entries and facts out of the file: they can be set at run time";
    report.error("too-large", SourceLocation::start_of(file), message, fix);
    report.mark_names_incomplete();
    Cow::Borrowed("")
}

/// The names in a file's `include`, with their locations.
fn read_includes(report: &mut Report, file: usize, text: &str) -> Vec<(SourceLocation, String)> {
    // Syntax errors are reported later. `include` is before the first header, so it can often be
    // read although the rest of the file is damaged.
    let tree = DeTable::parse(text);
    let tree = tree.unwrap_or_else(|_| DeTable::parse_recoverable(syntax_recovery::head(text)).0);
    let sections = entries(file, tree.get_ref());
    let Some((_, node)) = sections.into_iter().find(|(key, _)| key.text == "include") else {
        return Vec::new();
    };
    let names = node.texts(report, "a list of files such as [\"shared.toml\"]").unwrap_or_default();
    names.into_iter().map(|(item, name)| (item.location, name.to_owned())).collect()
}
