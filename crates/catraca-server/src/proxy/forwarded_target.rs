//! The target that an upstream gets, as text. Apart from `forwarded_path`, because a fuzz target
//! includes this file alone.

use catraca::core::route::CanonicalPath;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The characters that need no escape in a segment (RFC 3986, `pchar`), without `;`, after which
/// some servers read parameters.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b'=')
    .remove(b':')
    .remove(b'@');

/// The canonical path with the query of the client, and with a slash at its end if it had one.
pub fn forwarded_target(path: &CanonicalPath, target: &str) -> String {
    let (sent_path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let mut forwarded = String::with_capacity(target.len() + 1);
    for segment in &path.segments {
        forwarded.push('/');
        forwarded.extend(utf8_percent_encode(segment, SEGMENT));
    }
    if path.segments.is_empty() || sent_path.ends_with('/') {
        forwarded.push('/');
    }
    if let Some(query) = query {
        forwarded.push('?');
        forwarded.push_str(query);
    }
    forwarded
}

#[cfg(test)]
#[path = "../../../../fuzz/checks/forwarded_target.rs"]
mod forwarded_target_check;

#[cfg(test)]
mod tests {
    use catraca::core::catalog::Network;

    use super::*;

    #[test]
    fn the_upstream_gets_the_path_that_was_matched() {
        for (sent, forwarded) in [
            ("/api/login", "/api/login"),
            ("/", "/"),
            ("/api//./login/?next=/a/../b", "/api/login/?next=/a/../b"),
            ("/%61pi/%6cogin;x=1?a=%2f", "/api/login?a=%2f"),
            ("/caf%c3%a9/100%25/a%3fb", "/caf%C3%A9/100%25/a%3Fb"),
        ] {
            let path = CanonicalPath::canonical(sent, &Network::default()).unwrap();
            assert_eq!(forwarded_target(&path, sent), forwarded, "{sent}");
        }
    }

    /// Runs the check of the fuzz target with the inputs in `fuzz/corpus`.
    #[test]
    fn inputs_of_forwarded_target() {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");
        for folder in ["canonical_path", "forwarded_target"] {
            let mut count = 0;
            for entry in std::fs::read_dir(format!("{corpus}/{folder}")).unwrap() {
                let input = std::fs::read(entry.unwrap().path()).unwrap();
                forwarded_target_check::check(&input, forwarded_target);
                count += 1;
            }
            assert!(count > 5, "{folder}: {count}");
        }
    }
}
