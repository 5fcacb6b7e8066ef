//! `[server] denial`: the format of the body of a denial, for front ends that answer with one.

/// The format of a denial's body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DenialFormat {
    /// problem+json, with the problem types of the rate-limit headers draft.
    #[default]
    Problem,
    /// problem+xml, as the DICT sends it.
    ProblemXml,
    /// A JSON object with a message for people.
    Message,
    /// A JSON object with a fixed error and the wait.
    Error,
    /// As `Error`, with `conflict: true`.
    Conflict,
    /// No body.
    Empty,
}

/// Every format by its name in the catalog.
pub const DENIAL_FORMATS: [(&str, DenialFormat); 6] = [
    ("problem", DenialFormat::Problem),
    ("problem_xml", DenialFormat::ProblemXml),
    ("message", DenialFormat::Message),
    ("error", DenialFormat::Error),
    ("conflict", DenialFormat::Conflict),
    ("empty", DenialFormat::Empty),
];

#[cfg(test)]
mod tests {
    use catraca::Catalog;

    use super::*;

    #[test]
    fn the_catalog_accepts_the_name_of_every_format_and_no_other() {
        let catalog = |word: &str| Catalog::parse(&format!("[server]\ndenial = \"{word}\"\n"));
        for (word, _) in DENIAL_FORMATS {
            assert!(catalog(word).is_ok(), "{word}");
        }
        let error = catalog("json").unwrap_err().to_string();
        assert!(DENIAL_FORMATS.iter().all(|(word, _)| error.contains(word)), "{error}");
    }
}
