//! Digests of lists of texts and numbers. Every text is prefixed by its length, so two different
//! lists never give the same input.
//!
//! There is no secret in these digests, so they must not be used for anything that must not be
//! guessed.

use crate::time::Time;

/// A digest under construction.
pub(crate) struct Digest(blake3::Hasher);

impl Digest {
    pub fn new(usage: &str) -> Self {
        let mut digest = Self(blake3::Hasher::new());
        digest.text(Some(usage));
        digest
    }

    pub fn number(&mut self, number: i64) -> &mut Self {
        self.0.update(&number.to_le_bytes());
        self
    }

    pub fn time(&mut self, time: Time) -> &mut Self {
        self.number(time.micros())
    }

    /// Prefixed by its length; an absent text is -1, which no length is.
    pub fn text(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => {
                self.number(text.len() as i64);
                self.0.update(text.as_bytes());
                self
            }
            None => self.number(-1),
        }
    }

    pub fn texts(&mut self, texts: &[Box<str>]) -> &mut Self {
        self.number(texts.len() as i64);
        texts.iter().fold(self, |digest, text| digest.text(Some(text)))
    }

    pub fn finish(&self) -> [u8; 16] {
        let mut half = [0; 16];
        half.copy_from_slice(&self.0.finalize().as_bytes()[..16]);
        half
    }
}
