//! `[jwt]`: how the tokens of clients are verified, whose claims routes read.

use std::path::Path;

use anyhow::{Context, Result};
use catraca::core::located::{DefaultValue, Node, Report, ValueSchema, scalar, schema};

use super::section::section;
use super::setting_kind::{FileName, Flag, Millis, Optional, SettingContext, SettingKind};
use crate::jwt::{Algorithm, JwtVerifier, KeySet};

section! {
    /// The fields of `[jwt]`.
    "jwt" => JwtSection {
        /// a file with the public keys of the issuer, a JSON Web Key Set: RSA, P-256, P-384 or
        /// Ed25519
        jwks_file: Optional<FileName> = DefaultValue::Absent("none"), Live;
        /// a file with the secret that the issuer signs with, at least 32 bytes; instead of
        /// `jwks_file`
        secret_file: Optional<FileName> = DefaultValue::Absent("none"), Live;
        /// the algorithms that are accepted; `none` never is
        algorithms: Algorithms = DefaultValue::Absent("all that fit the keys"), Live;
        /// the only `iss` that is accepted
        issuer: Optional<PlainText> = DefaultValue::Absent("any"), Live;
        /// the values of `aud` of which a token must have one
        audience: PlainTexts = DefaultValue::Absent("any"), Live;
        /// how far the clock of the issuer may differ, for `exp` and `nbf`
        leeway: Millis<0, 300_000> = DefaultValue::Text("30s"), Live;
        /// reads claims without verifying anything; only behind a gateway that has verified every
        /// token
        unverified: Flag = DefaultValue::Flag(false), Live;
    }
}

impl JwtSection {
    /// Whether the section says how tokens are verified, or that they are not.
    pub const fn is_configured(&self) -> bool {
        self.jwks_file.is_some() || self.secret_file.is_some() || self.unverified
    }

    /// The files with keys.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        [&self.jwks_file, &self.secret_file].into_iter().filter_map(|file| file.as_deref())
    }

    /// The verifier with the keys as they are on disk now, if the section configures one. Files
    /// are relative to `folder`.
    pub fn verifier(&self, folder: &Path) -> Result<Option<JwtVerifier>> {
        let keys = match (&self.jwks_file, &self.secret_file) {
            (Some(file), _) => {
                let keys = KeySet::read_jwks(&folder.join(file));
                Some(keys.context("[jwt] jwks_file")?)
            }
            (None, Some(file)) => {
                let keys = KeySet::read_secret(&folder.join(file));
                Some(keys.context("[jwt] secret_file")?)
            }
            (None, None) => None,
        };
        Ok(self.is_configured().then(|| JwtVerifier {
            keys,
            algorithms: self.algorithms.clone(),
            issuer: self.issuer.clone(),
            audiences: self.audience.clone(),
            leeway: self.leeway,
        }))
    }
}

/// One algorithm or a list of them.
pub struct Algorithms;

impl SettingKind for Algorithms {
    type Value = Vec<Algorithm>;
    const SCHEMA: ValueSchema = ValueSchema::AnyOf(&[
        ALGORITHM,
        ValueSchema::List { of: &ALGORITHM, most: Algorithm::WORDS.len() },
    ]);

    fn read(_: &SettingContext<'_>, report: &mut Report, node: Node<'_>) -> Option<Vec<Algorithm>> {
        let texts = node.texts(report, "a list of algorithms such as [\"RS256\"]")?;
        require_items(report, node, texts.len())?;
        let items = texts.into_iter();
        let read: Vec<_> =
            items.map(|(item, _)| scalar::keyword(report, item, Algorithm::WORDS)).collect();
        read.into_iter().collect()
    }

    fn absent() -> Option<Vec<Algorithm>> {
        Some(Vec::new())
    }
}

const ALGORITHM: ValueSchema = ValueSchema::Word(|| schema::words(Algorithm::WORDS));

/// A text that is not empty.
pub struct PlainText;

impl SettingKind for PlainText {
    type Value = String;
    const SCHEMA: ValueSchema = ValueSchema::Text;

    fn read(_: &SettingContext<'_>, report: &mut Report, node: Node<'_>) -> Option<String> {
        plain_text(report, node)
    }
}

/// One text or a list of them.
pub struct PlainTexts;

impl SettingKind for PlainTexts {
    type Value = Vec<String>;
    const SCHEMA: ValueSchema = ValueSchema::AnyOf(&[
        ValueSchema::Text,
        ValueSchema::List { of: &ValueSchema::Text, most: usize::MAX },
    ]);

    fn read(_: &SettingContext<'_>, report: &mut Report, node: Node<'_>) -> Option<Vec<String>> {
        let texts = node.texts(report, "a list of texts such as [\"https://api.example.org\"]")?;
        require_items(report, node, texts.len())?;
        let read: Vec<_> = texts.into_iter().map(|(item, _)| plain_text(report, item)).collect();
        read.into_iter().collect()
    }

    fn absent() -> Option<Vec<String>> {
        Some(Vec::new())
    }
}

/// Refuses an empty list: without the field every value is accepted, and `[]` looks like none.
fn require_items(report: &mut Report, node: Node<'_>, count: usize) -> Option<()> {
    if count > 0 {
        return Some(());
    }
    let fix = "name at least one, or remove the field to accept all";
    report.error("bad-value", node.location, "the list is empty", fix);
    None
}

fn plain_text(report: &mut Report, node: Node<'_>) -> Option<String> {
    let text = node.text(report, "a text in quotes")?;
    if text.is_empty() {
        let message = "the text is empty, and no token has it";
        report.error("bad-value", node.location, message, "write a text, or remove the field");
        return None;
    }
    Some(text.to_owned())
}
