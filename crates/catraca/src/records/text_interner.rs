//! Texts that many rows of the records have, such as reasons of blocks.

use std::collections::HashMap;
use std::sync::Arc;

const SHARED_MAX: usize = 1_000;

/// Texts that many rows share, stored once.
#[derive(Debug, Default)]
pub(super) struct TextInterner(HashMap<Box<str>, Arc<str>>);

impl TextInterner {
    /// The shared copy of a text. At most [`SHARED_MAX`] texts are shared: reasons that differ for
    /// every block would only fill the map.
    pub(super) fn get(&mut self, text: &str) -> Arc<str> {
        if let Some(shared) = self.0.get(text) {
            return Arc::clone(shared);
        }
        let new: Arc<str> = text.into();
        if self.0.len() < SHARED_MAX {
            self.0.insert(text.into(), Arc::clone(&new));
        }
        new
    }
}
