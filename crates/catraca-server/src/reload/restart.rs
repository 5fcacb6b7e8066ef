//! Settings that take effect after a restart: those that the listener, the log and open files were
//! made with.
//!
//! `docs/guide/serve.md` lists the same.

use catraca::Catalog;

/// Fields of `[server]` that are read once, at the start.
const SERVER: [&str; 11] = [
    "listen",
    "log",
    "log_level",
    "connections_max",
    "head_timeout",
    "body_timeout",
    "answer_timeout",
    "idle_timeout",
    "stop_delay",
    "traces",
    "trace_share",
];
/// Sections that are read once, at the start, as a whole.
const SECTIONS: [&str; 2] = ["records", "store"];

/// The settings that differ and take effect after a restart.
pub fn settings_awaiting_restart(before: &Catalog, after: &Catalog) -> Vec<String> {
    let field = |catalog: &Catalog, section: &str, field: &str| {
        let section = catalog.settings.sections.get(section)?;
        section.get(field).cloned()
    };
    let fields = SERVER.iter().map(|name| ("server", *name)).chain([("auth", "secret_file")]);
    // A reload can replace a certificate, but not turn TLS on or off.
    let has_tls = |catalog: &Catalog| field(catalog, "server", "tls_cert").is_some();
    let tls = (has_tls(before) != has_tls(after)).then(|| "[server] tls_cert".to_owned());
    let fields = fields
        .filter(|(section, name)| field(before, section, name) != field(after, section, name))
        .map(|(section, name)| format!("[{section}] {name}"));
    let section = |catalog: &Catalog, name: &str| catalog.settings.sections.get(name).cloned();
    let sections = SECTIONS.iter().filter(|name| section(before, name) != section(after, name));
    let sections = sections.map(|name| format!("[{name}]"));
    let replicas_changed = before.locks.replicas != after.locks.replicas;
    let replicas = replicas_changed.then(|| "[locks] replicas".to_owned());
    fields.chain(tls).chain(sections).chain(replicas).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_that_are_read_once_need_a_restart() {
        let catalog = |text: &str| Catalog::parse(text).unwrap();
        let before = catalog("[server]\nlisten = '127.0.0.1:1'\nhosts = ['a.example']\n");
        let after = "[server]\nlisten = '127.0.0.1:2'\nhosts = ['b.example']\nx_ratelimit = true\n\
                     traces = 'http://a:4317'\ntrace_share = '5%'\n\
                     [auth]\nsecret_file = 'x'\n[records]\nurl = 'none'\n";
        let expected = [
            "[server] listen",
            "[server] traces",
            "[server] trace_share",
            "[auth] secret_file",
            "[records]",
        ];
        assert_eq!(settings_awaiting_restart(&before, &catalog(after)), expected);
        assert!(settings_awaiting_restart(&before, &before).is_empty());
    }
}
