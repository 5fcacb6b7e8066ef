//! Gathers the files of a catalog: the root and what it includes, through the caller's loader.
//!
//! A file's own content comes before what it includes, so that a root's routes win over shared
//! ones. Must not do I/O or read anything but `include`.

use std::borrow::Cow;

use toml::de::DeTable;

use super::Source;
use super::bounds::{CATALOG_BYTES_MAX, FILES_MAX, INCLUDE_DEPTH_MAX};
use super::damage;
use super::node::{Node, entries};
use super::report::{Place, Report};

/// What a loader makes of the name of an included file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// Its text.
    Text(String),
    /// The file was read before, under the name given here: names may be spelt in many ways.
    Again(String),
}

/// Gives an included file, or says why it cannot.
pub(super) type Load<'a> = &'a mut dyn FnMut(&str) -> Result<Loaded, String>;

/// A file's name and text; one that was refused has no text.
pub(super) struct File<'a> {
    pub name: Cow<'a, str>,
    pub text: Cow<'a, str>,
}

impl File<'_> {
    pub fn source(&self) -> Source<'_> {
        Source { name: &self.name, text: &self.text }
    }
}

/// All files of a catalog, the root first.
pub(super) fn gather<'a>(
    root: (&'a str, &'a str),
    load: Load<'_>,
    report: &mut Report,
) -> Vec<File<'a>> {
    let mut gathering = Gathering { files: Vec::new(), bytes: 0, load };
    gathering.add(root.0.into(), root.1.into(), &mut Vec::new(), report);
    gathering.files
}

struct Gathering<'a, 'l> {
    files: Vec<File<'a>>,
    bytes: usize,
    load: Load<'l>,
}

impl<'a> Gathering<'a, '_> {
    /// Adds a file and then what it includes; `above` names the files that led here.
    fn add(
        &mut self,
        name: Cow<'a, str>,
        text: Cow<'a, str>,
        above: &mut Vec<String>,
        report: &mut Report,
    ) {
        let at = self.files.len();
        self.bytes = self.bytes.saturating_add(text.len());
        let text = if self.bytes > CATALOG_BYTES_MAX { too_large(report, at) } else { text };
        let wanted = included(report, at, &text);
        above.push(name.clone().into_owned());
        self.files.push(File { name, text });
        for (place, wanted) in wanted {
            self.include(place, wanted, above, report);
        }
        above.pop();
    }

    fn include(
        &mut self,
        place: Place,
        name: String,
        above: &mut Vec<String>,
        report: &mut Report,
    ) {
        if let Some((code, message, fix)) = self.refusal(&name, above) {
            report.lose_names();
            return report.error(code, place, message, fix);
        }
        // What was read once stands once, however many files ask for it.
        if self.files.iter().any(|file| *file.name == *name) {
            return;
        }
        match (self.load)(&name) {
            Ok(Loaded::Text(text)) => self.add(name.into(), text.into(), above, report),
            Ok(Loaded::Again(known)) if above.contains(&known) => {
                report.lose_names();
                let (code, message, fix) = cycle(&name, above);
                report.error(code, place, message, fix);
            }
            Ok(Loaded::Again(_)) => {}
            Err(why) => {
                let message = format!("`{name}` cannot be read: {why}");
                let fix = "check the name, which counts from where the catalog is";
                report.error("include-unreadable", place, message, fix);
                report.lose_names();
            }
        }
    }

    /// Why a file may not be included here, if so.
    fn refusal(&self, name: &str, above: &[String]) -> Option<Refused> {
        if above.iter().any(|open| *open == *name) {
            return Some(cycle(name, above));
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

/// A code, what is wrong, and what to do.
type Refused = (&'static str, String, String);

fn cycle(name: &str, above: &[String]) -> Refused {
    let message = format!("`{name}` includes itself: {} → {name}", above.join(" → "));
    ("include-cycle", message, "remove this include".to_owned())
}

fn too_large<'a>(report: &mut Report, file: usize) -> Cow<'a, str> {
    let message = format!("the catalog is larger than {CATALOG_BYTES_MAX} bytes");
    let fix = "keep standing entries and facts out of the file: they can be set while running";
    report.error("too-large", Place::start_of(file), message, fix);
    report.lose_names();
    Cow::Borrowed("")
}

/// The files that a file includes, with the places that name them.
fn included(report: &mut Report, file: usize, text: &str) -> Vec<(Place, String)> {
    // Damage is reported later, with the rest of the text.
    let tree = DeTable::parse(text);
    let tree = tree.unwrap_or_else(|_| DeTable::parse_recoverable(damage::head(text)).0);
    let named = entries(file, tree.get_ref());
    let Some((_, node)) = named.into_iter().find(|(key, _)| key.text == "include") else {
        return Vec::new();
    };
    read(report, node).unwrap_or_default()
}

fn read(report: &mut Report, node: Node<'_>) -> Option<Vec<(Place, String)>> {
    let texts = node.texts(report, "a list of files such as [\"shared.toml\"]")?;
    Some(texts.into_iter().map(|(item, name)| (item.place, name.to_owned())).collect())
}
