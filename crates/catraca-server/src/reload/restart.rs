//! The settings that count from the next start on: what a listener, a log and open files are made
//! with.
//!
//! `docs/guide/serve.md` lists the same. Must not look at what a reload does change.

use catraca::Catalog;

/// Fields of `[server]` that are obeyed once.
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
/// Sections that are obeyed once, as a whole.
const SECTIONS: [&str; 2] = ["records", "store"];

/// The settings that differ and wait for the next start.
pub fn waiting(before: &Catalog, after: &Catalog) -> Vec<String> {
    let field = |catalog: &Catalog, section: &str, field: &str| {
        let section = catalog.settings.sections.get(section)?;
        section.get(field).cloned()
    };
    let fields = SERVER.iter().map(|name| ("server", *name)).chain([("auth", "secret_file")]);
    let secure = |catalog: &Catalog| field(catalog, "server", "tls_cert").is_some();
    let turned = (secure(before) != secure(after)).then(|| "[server] tls_cert".to_owned());
    let fields = fields
        .filter(|(section, name)| field(before, section, name) != field(after, section, name))
        .map(|(section, name)| format!("[{section}] {name}"));
    let whole = |catalog: &Catalog, name: &str| catalog.settings.sections.get(name).cloned();
    let sections = SECTIONS.iter().filter(|name| whole(before, name) != whole(after, name));
    let replicas = before.locks.replicas != after.locks.replicas;
    let replicas = replicas.then(|| "[locks] replicas".to_owned());
    let sections = sections.map(|name| format!("[{name}]"));
    fields.chain(turned).chain(sections).chain(replicas).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_made_at_the_start_waits_for_the_next() {
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
        assert_eq!(waiting(&before, &catalog(after)), expected);
        assert!(waiting(&before, &before).is_empty());
    }
}
