//! The codes of diagnostics about the process sections; those of the catalog are in core.

/// Every code with its meaning, in alphabetical order.
pub const PROCESS_CODES: [(&str, &str); 8] = [
    ("bad-hash", "A text that is not the hash of an API key."),
    ("bad-url", "An invalid URL of a store, of records or of a collector."),
    ("ended-entry", "An entry of a list whose end has passed."),
    ("locks-elsewhere", "A setting of locks that the store does not support."),
    ("misplaced-setting", "A setting that does not fit another one, such as the URL of the store."),
    ("short-hold", "A `hold` that ends before the response of an upstream may begin."),
    ("too-many-keys", "More API keys than a catalog may have."),
    ("unused-section", "A section that this version does not implement."),
];
