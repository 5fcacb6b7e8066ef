//! `[auth]`: API keys, the secret, and who may read the metrics.

use std::collections::BTreeSet;

use catraca::core::located::DefaultValue;

use super::auth_keys::ApiKeys;
use super::section::section;
use super::setting_kind::{FileName, Keyword, Optional, Word};
use crate::auth::MetricsAccess;

section! {
    /// The fields of `[auth]`.
    "auth" => AuthSection {
        /// `[[auth.key]]`: an API key, see [auth](auth.md)
        key: ApiKeys = DefaultValue::EmptyList, Live;
        /// a file with the secret with which stored keys, pseudonyms and tickets are made, 64
        /// hexadecimal digits; created at the first start, readable only by its owner
        secret_file: Optional<FileName> =
            DefaultValue::Absent("`catraca.secret`, beside the records"), Restart;
        /// who may read [`/metrics`](observe.md): `read`, keys with that role; `open`, any client
        metrics: Word<MetricsAccess> = DefaultValue::Text("read"), Live;
    }
}

impl AuthSection {
    /// The namespaces that keys are bound to, each once.
    pub fn namespaces(&self) -> Vec<String> {
        let names = self.key.iter().filter_map(|key| key.namespace.clone());
        names.collect::<BTreeSet<String>>().into_iter().collect()
    }
}

impl Keyword for MetricsAccess {
    const WORDS: &'static [(&'static str, Self)] = &[("read", Self::Read), ("open", Self::Open)];
}
