//! A canonical path has no segment that another server could read as a step.

use catraca_core::catalog::Network;
use catraca_core::route::CanonicalPath;

/// The input is the target of a request.
pub fn check(data: &[u8]) {
    let Ok(target) = std::str::from_utf8(data) else { return };
    let Ok(path) = CanonicalPath::canonical(target, &Network::default()) else { return };
    for segment in &path.segments {
        assert!(!matches!(segment.as_str(), "" | "." | ".."), "{target:?}: {path:?}");
        assert!(!segment.contains(['/', '\\', '\0']), "{target:?}: {path:?}");
    }
}
