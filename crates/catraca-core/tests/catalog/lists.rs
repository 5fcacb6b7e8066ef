//! Entries of the allowlist and the blocklist.

use crate::helpers::{codes, must_read};

#[test]
fn an_entry_may_name_its_namespace() {
    let text = "[[blocklist]]\nrange = '203.0.113.0/24'\nnamespace = 'shop'\n\
                [[blocklist]]\nrange = '203.0.113.0/24'\n";
    let catalog = must_read(text).catalog;
    let namespaces: Vec<_> =
        catalog.blocklist.iter().map(|entry| entry.namespace.as_deref()).collect();
    assert_eq!(namespaces, [Some("shop"), None]);
    assert!(!catalog.lists.is_empty_in("shop"));
    // No key can have this one.
    assert_eq!(codes("[[blocklist]]\nrange = '::1'\nnamespace = 'a b'\n"), ["bad-name"]);
}
