//! A switch in copied sources: the copy has many changes, and a process enables one of them.
//!
//! So all changes are built once. Must not know what a change is.

/// The environment variable with the number of the enabled change.
pub(crate) const SWITCH: &str = "CATRACA_ENABLED_CHANGE";
const CORE: &str = "crates/catraca-core/src/lib.rs";

/// The expression that says whether a change is enabled, for every crate that uses core.
pub(crate) fn condition(change: usize) -> String {
    format!("::catraca_core::is_change_enabled({change})")
}

/// The text of a file. Core gets the function that the conditions call.
pub(crate) fn add_to(file: &str, text: String) -> String {
    if file != CORE {
        return text;
    }
    // The process reads the variable once: some changes are in the hottest lines.
    format!(
        "#![allow(warnings)]\n{text}
extern crate self as catraca_core;
pub fn is_change_enabled(change: usize) -> bool {{
    static ENABLED: std::sync::LazyLock<Option<usize>> =
        std::sync::LazyLock::new(|| std::env::var(\"{SWITCH}\").ok()?.parse().ok());
    *ENABLED == Some(change)
}}\n"
    )
}
