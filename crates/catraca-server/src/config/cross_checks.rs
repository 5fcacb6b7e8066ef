//! Checks across fields and sections: settings that do not fit the store, the records or each
//! other.

use catraca::core::catalog::read::Sections;
use catraca::core::located::{Node, Report, SourceLocation, TableFields};
use catraca::shared::RecordsScope;
use catraca::store::StoreKind;

use super::dict_section::DICT_POLL_GATE;
use super::hold_check;
use super::section::SectionReading;
use super::{
    AuthSection, DictSection, JwtSection, ProxySection, RecordsSection, ServerSection, StoreSection,
};

/// The URL scheme of a Redis Cluster.
const CLUSTER: &str = "redis+cluster://";
/// Fields that only the store in memory has. `snapshot_interval` is not one of them: a catalog may
/// take its URL from a variable, and a shared store then ignores the interval.
const MEMORY_ONLY_FIELDS: [&str; 1] = ["snapshot"];
/// Fields that only a shared store has.
const SHARED_ONLY_FIELDS: [&str; 7] = [
    "nodes",
    "deny_cache",
    "deadline",
    "password_file",
    "sentinel_password_file",
    "ca_file",
    "shard_by",
];

/// All sections as read, with the locations of their fields.
pub struct ProcessReading<'t> {
    pub server: SectionReading<'t, ServerSection>,
    pub proxy: SectionReading<'t, ProxySection>,
    pub auth: SectionReading<'t, AuthSection>,
    pub jwt: SectionReading<'t, JwtSection>,
    pub records: SectionReading<'t, RecordsSection>,
    pub store: SectionReading<'t, StoreSection>,
    pub dict: SectionReading<'t, DictSection>,
}

/// Reports every setting that does not fit another one.
pub fn check(report: &mut Report, reading: &ProcessReading<'_>, sections: &Sections<'_>) {
    check_certificate(report, &reading.server.fields);
    check_certificate(report, &reading.proxy.fields);
    check_client_ca(report, &reading.proxy, sections);
    check_jwt(report, &reading.jwt, sections);
    check_dict(report, &reading.dict, sections);
    if let Some(proxy) = &reading.proxy.section {
        hold_check::check(report, proxy, sections);
    }
    let Some(store) = &reading.store.section else { return };
    check_store(report, store, &reading.store.fields);
    check_locks(report, store, sections);
    if let Some(records) = &reading.records.section {
        check_records(report, records, store, reading);
    }
}

/// A poll needs to know whom to ask, and for whom, and a gate that limits it.
fn check_dict(
    report: &mut Report,
    dict: &SectionReading<'_, DictSection>,
    sections: &Sections<'_>,
) {
    let Some(section) = dict.section.as_ref().filter(|section| section.poll.is_some()) else {
        return;
    };
    let location = dict.fields.key("poll").unwrap_or(dict.fields.location);
    let mut tables = ["gate", "policy"].into_iter().flat_map(|name| sections.all(name));
    if !tables.any(|(_, table)| find_field(*table, DICT_POLL_GATE).is_some()) {
        let message = format!("poll needs the gate {DICT_POLL_GATE}, and the catalog has none");
        report_misplaced(report, location, message, "add the gate, or write poll = \"off\"");
    }
    let missing = match (&section.upstream, &section.participant) {
        (None, _) => "upstream",
        (_, None) => "participant",
        (Some(_), Some(_)) => return,
    };
    let message = format!("poll needs {missing} beside it");
    let fix = format!("write {missing}, or poll = \"off\"");
    report_misplaced(report, location, &message, &fix);
}

fn check_certificate(report: &mut Report, section: &TableFields<'_>) {
    let (location, message) = match (section.key("tls_cert"), section.key("tls_key")) {
        (Some(cert), None) => (cert, "tls_cert needs tls_key beside it: the private key"),
        (None, Some(key)) => (key, "tls_key needs tls_cert beside it: the certificate"),
        _ => return,
    };
    report_misplaced(report, location, message, "write both, or none");
}

/// Keys that exclude each other, and routes that read claims without any.
fn check_jwt(report: &mut Report, jwt: &SectionReading<'_, JwtSection>, sections: &Sections<'_>) {
    let Some(section) = &jwt.section else { return };
    if let (Some(_), Some(location)) = (&section.jwks_file, jwt.fields.key("secret_file")) {
        let message = "`jwks_file` and `secret_file` are two ways to verify tokens";
        report_misplaced(report, location, message, "keep one of them");
    }
    let has_keys = section.jwks_file.is_some() || section.secret_file.is_some();
    if let Some(location) = jwt.fields.key("unverified").filter(|_| section.unverified && has_keys)
    {
        let message = "tokens are either verified with these keys, or not at all";
        report_misplaced(report, location, message, "remove it, or the keys");
    }
    if section.is_configured() {
        return;
    }
    for location in source_locations(sections, "jwt:") {
        let message = "the route reads a claim, and [jwt] has no keys to verify tokens";
        let fix = "add [jwt] with jwks_file or secret_file";
        report_misplaced(report, location, message, fix);
    }
}

/// Settings of client certificates without TLS, and routes that read certificates of clients that
/// have none.
fn check_client_ca(
    report: &mut Report,
    proxy: &SectionReading<'_, ProxySection>,
    sections: &Sections<'_>,
) {
    let ca = proxy.fields.key("client_ca");
    if let Some(location) = ca.filter(|_| proxy.fields.key("tls_cert").is_none()) {
        let message = "client_ca needs tls_cert: clients have certificates only with TLS";
        report_misplaced(report, location, message, "add tls_cert and tls_key, or remove it");
    }
    if let Some(location) = proxy.fields.key("client_auth").filter(|_| ca.is_none()) {
        let message = "client_auth needs client_ca: the certificates that sign those of clients";
        report_misplaced(report, location, message, "add client_ca, or remove it");
    }
    if ca.is_some() {
        return;
    }
    for location in source_locations(sections, "certificate:") {
        let message = "the route reads the certificate of a client, and [proxy] has no client_ca \
                       to verify it";
        report_misplaced(report, location, message, "add client_ca to [proxy]");
    }
}

/// The places of routes that read this kind of source: values of their fields, and of `set`.
fn source_locations(sections: &Sections<'_>, kind: &str) -> Vec<SourceLocation> {
    let routes = sections.all("route").iter().filter_map(|(_, node)| node.as_items()).flatten();
    routes.flat_map(|route| locations_within(route, kind, 0)).collect()
}

fn locations_within(node: Node<'_>, kind: &str, depth: usize) -> Vec<SourceLocation> {
    if node.value.as_str().is_some_and(|text| text.starts_with(kind)) {
        return vec![node.location];
    }
    let entries = node.as_entries().filter(|_| depth < 2).unwrap_or_default();
    entries.into_iter().flat_map(|(_, value)| locations_within(value, kind, depth + 1)).collect()
}

fn check_store(report: &mut Report, store: &StoreSection, fields: &TableFields<'_>) {
    let kind = store.kind();
    let misfits = match kind {
        StoreKind::Memory => &SHARED_ONLY_FIELDS[..],
        _ => &MEMORY_ONLY_FIELDS[..],
    };
    for (field, location) in misfits.iter().filter_map(|field| Some((field, fields.key(field)?))) {
        let (message, fix) = match kind {
            StoreKind::Memory => (
                format!("`{field}` is for shared stores, and this one is in memory"),
                "set `url`, or leave it out",
            ),
            _ => (
                format!("`{field}` is for counters in memory"),
                "leave it out, or write url = \"memory:\"",
            ),
        };
        report_misplaced(report, location, message, fix);
    }
    if kind == StoreKind::Memory {
        return;
    }
    if let Some(location) = fields.key("ca_file").filter(|_| kind != StoreKind::Redis) {
        let fix = "for PostgreSQL, write `sslrootcert` into the URL";
        report_misplaced(report, location, "`ca_file` is for Redis", fix);
    }
    if let Some(location) = fields.key("shard_by").filter(|_| !store.url.starts_with(CLUSTER)) {
        let message = format!("`shard_by` is for {CLUSTER}");
        report_misplaced(
            report,
            location,
            message,
            "leave it out, because this server has all keys",
        );
    }
    let scheme = store.url.split("://").next().unwrap_or_default();
    let sentinel = fields.key("sentinel_password_file");
    if let Some(location) = sentinel.filter(|_| !scheme.ends_with("+sentinel")) {
        let message = "`sentinel_password_file` is for redis+sentinel://";
        report_misplaced(report, location, message, "leave it out, or change the URL");
    }
}

/// `[records] url = "none"` beside settings that need records.
fn check_records(
    report: &mut Report,
    records: &RecordsSection,
    store: &StoreSection,
    reading: &ProcessReading<'_>,
) {
    check_records_scope(report, records, store, &reading.records.fields);
    if records.url != "none" {
        return;
    }
    let location = reading.records.fields.get("url").map(|node| node.location);
    let location = location.unwrap_or(reading.records.fields.location);
    if store.kind() != StoreKind::Memory {
        let message = "\"none\" stores nothing, and nodes with a shared store must share their \
                       records too";
        let fix = "write \"postgres://USER@HOST/DATABASE\", or \"sqlite:catraca.db\" for one node \
                   or with scope = \"node\"";
        report_misplaced(report, location, message, fix);
    }
    for key in [reading.auth.fields.key("secret_file"), reading.store.fields.key("snapshot")] {
        let Some(location) = key else { continue };
        let message = "[records] url = \"none\" stores nothing";
        report_misplaced(
            report,
            location,
            message,
            "leave it out, or write url = \"sqlite:catraca.db\"",
        );
    }
}

/// `[records] scope = "node"` over PostgreSQL, or with records that are not a file. In memory the
/// records belong to one node anyway, so that a catalog may name its Redis by a variable.
fn check_records_scope(
    report: &mut Report,
    records: &RecordsSection,
    store: &StoreSection,
    fields: &TableFields<'_>,
) {
    let kind = store.kind();
    let is_file = records.url.starts_with("sqlite:");
    let Some(location) = fields.key("scope").filter(|_| records.scope == RecordsScope::Node) else {
        return;
    };
    let (message, fix) = match kind {
        StoreKind::Postgres => (
            "scope = \"node\" needs Redis: nodes over PostgreSQL can share their records",
            "leave it out, and write [store] url as the url of [records] too",
        ),
        StoreKind::Redis if !is_file => (
            "scope = \"node\" is for records in a file of each node",
            "write url = \"sqlite:catraca.db\", or leave `scope` out",
        ),
        StoreKind::Redis | StoreKind::Memory => return,
    };
    report_misplaced(report, location, message, fix);
}

/// Settings of `[locks]` that the store does not support.
fn check_locks(report: &mut Report, store: &StoreSection, sections: &Sections<'_>) {
    let Some((_, locks)) = sections.all("locks").first() else { return };
    let field = |name: &str| find_field(*locks, name);
    let in_redis = store.kind() == StoreKind::Redis;
    if let Some(node) = field("durability").filter(|node| node.value.as_str() == Some("fsync"))
        && in_redis
    {
        let message = "locks are in Redis, whose own settings define durability";
        let fix = "remove it: `durability` applies only to locks in this process";
        report.error("locks-elsewhere", node.location, message, fix);
    }
    let is_zero = |node: &Node<'_>| node.value.as_integer().is_some_and(|n| n.as_str() == "0");
    if let Some(node) = field("replicas").filter(|node| !is_zero(node))
        && !in_redis
    {
        let message = "`replicas` needs locks in Redis";
        let fix = "remove it, or set [store] url to a Redis server";
        report.error("locks-elsewhere", node.location, message, fix);
    }
}

fn find_field<'t>(table: Node<'t>, name: &str) -> Option<Node<'t>> {
    let mut entries = table.as_entries()?.into_iter();
    entries.find(|(key, _)| key.text == name).map(|(_, node)| node)
}

fn report_misplaced(
    report: &mut Report,
    location: SourceLocation,
    message: impl Into<String>,
    fix: &str,
) {
    report.error("misplaced-setting", location, message, fix);
}
