//! An upstream that reads the target again finds the path that was matched.

use catraca::core::catalog::Network;
use catraca::core::route::CanonicalPath;

/// The input is the target of a request.
pub fn check(data: &[u8], forwarded: impl Fn(&CanonicalPath, &str) -> String) {
    let Ok(target) = std::str::from_utf8(data) else { return };
    let network = Network::default();
    let Ok(path) = CanonicalPath::canonical(target, &network) else { return };
    let sent = forwarded(&path, target);
    let again = CanonicalPath::canonical(&sent, &network);
    let again = again.unwrap_or_else(|error| panic!("{target:?} as {sent:?}: {error}"));
    assert_eq!(again.segments, path.segments, "{target:?} as {sent:?}");
    assert_eq!(forwarded(&again, &sent), sent, "{target:?}");
}
