//! All sections about the process together: their reader, and what differs between two of them.

use std::time::{SystemTime, UNIX_EPOCH};

use catraca::core::catalog::read::{AttributeTable, ProcessSections, Sections, ended_entries};
use catraca::core::located::{FieldSchema, Report, ValueSchema};
use catraca::core::request::DEFAULT_NAMESPACE;
use catraca::core::time::Time;

use super::auth_keys::key_changes;
use super::cross_checks::{self, ProcessReading};
use super::section::{Section, SectionReading};
use super::setting_kind::SettingContext;
use super::{
    AuthSection, DictSection, JwtSection, PROCESS_CODES, ProxySection, RecordsSection,
    ServerSection, StoreSection,
};

/// The sections that this server reads, as fields of the catalog.
pub const PROCESS_SECTIONS: [FieldSchema; 7] = [
    section_field::<ServerSection>("how `catraca serve` listens, logs and answers"),
    section_field::<ProxySection>("how requests are proxied to the upstreams of routes"),
    section_field::<AuthSection>("API keys, and the secret"),
    section_field::<JwtSection>("how the tokens of clients are verified, for `jwt:CLAIM`"),
    section_field::<RecordsSection>("what is stored, where, and for how long"),
    section_field::<StoreSection>("where counters and locks are"),
    section_field::<DictSection>("how balances are taken over from the DICT"),
];

/// Sections with names that a later version will use.
const UNSUPPORTED: [&str; 2] = ["rls", "resp"];

const fn section_field<S: Section>(about: &'static str) -> FieldSchema {
    FieldSchema::new(S::NAME, ValueSchema::Table(S::SCHEMA), about)
}

/// The configuration of the process.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessConfig {
    /// `[server]`
    pub server: ServerSection,
    /// `[proxy]`
    pub proxy: ProxySection,
    /// `[auth]`
    pub auth: AuthSection,
    /// `[jwt]`
    pub jwt: JwtSection,
    /// `[records]`
    pub records: RecordsSection,
    /// `[store]`
    pub store: StoreSection,
    /// `[dict]`
    pub dict: DictSection,
    /// The names of the sections that the catalog has, sorted.
    pub present: Vec<&'static str>,
}

/// Reads the sections while a catalog is read.
#[derive(Debug, Default)]
pub struct ProcessReader {
    /// `None` if a field is invalid; then the catalog is refused.
    pub(crate) config: Option<ProcessConfig>,
}

impl ProcessSections for ProcessReader {
    fn codes(&self) -> &'static [(&'static str, &'static str)] {
        &PROCESS_CODES
    }

    fn read(&mut self, report: &mut Report, sections: &Sections<'_>, attributes: &AttributeTable) {
        for name in UNSUPPORTED {
            let Some((key, _)) = sections.single(report, name) else { continue };
            let message = format!("[{name}] is not implemented in this version");
            let fix = "remove it: its settings would have no effect";
            report.error("unused-section", key.location, message, fix);
        }
        let context = SettingContext { attributes };
        let reading = ProcessReading {
            server: SectionReading::read(&context, report, sections),
            proxy: SectionReading::read(&context, report, sections),
            auth: SectionReading::read(&context, report, sections),
            jwt: SectionReading::read(&context, report, sections),
            records: SectionReading::read(&context, report, sections),
            store: SectionReading::read(&context, report, sections),
            dict: SectionReading::read(&context, report, sections),
        };
        cross_checks::check(report, &reading, sections);
        warn_of_ended_entries(report, sections);
        self.config = into_config(reading, sections);
    }
}

/// Warns of list entries that have no effect any more. Here and not in core, which has no clock.
fn warn_of_ended_entries(report: &mut Report, sections: &Sections<'_>) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = Time::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX));
    for (location, until) in ended_entries(sections, now) {
        let message = format!("this entry ended at {until} and has no effect");
        report.warn("ended-entry", location, message, "remove the entry, or write a later end");
    }
}

/// The configuration, if every section is valid.
fn into_config(reading: ProcessReading<'_>, sections: &Sections<'_>) -> Option<ProcessConfig> {
    let names = PROCESS_SECTIONS.iter().map(|section| section.name);
    let mut present: Vec<_> = names.filter(|name| !sections.all(name).is_empty()).collect();
    present.sort_unstable();
    Some(ProcessConfig {
        server: reading.server.section?,
        proxy: reading.proxy.section?,
        auth: reading.auth.section?,
        jwt: reading.jwt.section?,
        records: reading.records.section?,
        store: reading.store.section?,
        dict: reading.dict.section?,
        present,
    })
}

impl ProcessConfig {
    /// The namespaces to which API keys are bound, and that of the proxy if it is not the default,
    /// each once.
    pub fn namespaces(&self) -> Vec<String> {
        let mut names = self.auth.namespaces();
        let own = &*self.proxy.namespace;
        if own != DEFAULT_NAMESPACE && names.iter().all(|name| name != own) {
            names.push(own.to_owned());
        }
        names
    }

    /// The settings that differ from those of the start and take effect after a restart.
    pub fn settings_awaiting_restart(&self, started: &Self) -> Vec<String> {
        let mut settings = Vec::new();
        add_awaiting(&mut settings, &started.server, &self.server);
        add_awaiting(&mut settings, &started.proxy, &self.proxy);
        add_awaiting(&mut settings, &started.auth, &self.auth);
        add_awaiting(&mut settings, &started.jwt, &self.jwt);
        add_awaiting(&mut settings, &started.records, &self.records);
        add_awaiting(&mut settings, &started.store, &self.store);
        add_awaiting(&mut settings, &started.dict, &self.dict);
        settings
    }

    /// The fields that differ, without their values, which may be secrets; of the API keys, which
    /// of them and how.
    pub fn changes(&self, before: &Self) -> Vec<String> {
        let mut changes = key_changes(&before.auth.key, &self.auth.key);
        add_changed(&mut changes, &before.auth, &self.auth);
        add_changed(&mut changes, &before.jwt, &self.jwt);
        add_changed(&mut changes, &before.proxy, &self.proxy);
        add_changed(&mut changes, &before.records, &self.records);
        add_changed(&mut changes, &before.server, &self.server);
        add_changed(&mut changes, &before.store, &self.store);
        add_changed(&mut changes, &before.dict, &self.dict);
        changes
    }
}

fn add_changed<S: Section>(changes: &mut Vec<String>, before: &S, now: &S) {
    let fields = now.changed_fields(before).into_iter();
    // API keys are compared one by one.
    let others = fields.filter(|field| (S::NAME, *field) != (AuthSection::NAME, "key"));
    changes.extend(others.map(|field| format!("[{}] {field} changed", S::NAME)));
}

fn add_awaiting<S: Section>(settings: &mut Vec<String>, started: &S, now: &S) {
    let fields = now.fields_awaiting_restart(started);
    settings.extend(fields.iter().map(|field| format!("[{}] {field}", S::NAME)));
}

#[cfg(test)]
mod tests {
    use crate::config::parse;

    #[test]
    fn only_settings_that_are_read_once_need_a_restart() {
        let process = |text: &str| parse(text).unwrap().process;
        let before = process("[server]\nlisten = '127.0.0.1:1'\nhosts = ['a.example']\n");
        let after = "[server]\nlisten = '127.0.0.1:2'\nhosts = ['b.example']\nx_ratelimit = true\n\
                     traces = 'http://a:4317'\ntrace_share = '5%'\n\
                     [records]\nurl = 'sqlite:x.db'\n[store]\nsnapshot_interval = '10s'\n\
                     [auth]\nsecret_file = 'x'\nmetrics = 'open'\n";
        let expected = [
            "[server] listen",
            "[server] traces",
            "[server] trace_share",
            "[auth] secret_file",
            "[records] url",
        ];
        assert_eq!(process(after).settings_awaiting_restart(&before), expected);
        assert!(before.settings_awaiting_restart(&before).is_empty());
    }

    /// A reload can replace a certificate, but not turn TLS on or off.
    #[test]
    fn another_certificate_needs_no_restart_and_the_first_one_does() {
        let with = |cert: &str| {
            let text = format!("[server]\ntls_cert = '{cert}'\ntls_key = 'key.pem'\n");
            parse(&text).unwrap().process
        };
        let none = parse("").unwrap().process;
        assert!(with("b.pem").settings_awaiting_restart(&with("a.pem")).is_empty());
        assert_eq!(with("a.pem").settings_awaiting_restart(&none), ["[server] tls_cert"]);
    }
}
