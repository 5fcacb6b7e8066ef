//! The paths of the fields in a JSON log: those of `--field`, else those of Caddy, nginx and
//! Traefik.
//!
//! All paths are merged into one tree, so that a line is traversed once.

use super::log_field::{Field, LogField};

/// A node of the tree of paths.
#[derive(Debug, Default)]
pub struct PathTree {
    children: Vec<(String, Self)>,
    /// The field whose value is here, and its rank: of several paths of a field, the lowest rank
    /// wins.
    pub field: Option<(LogField, u8)>,
}

/// The default paths of each field, best first: Caddy, nginx, Traefik, and common names.
const DEFAULT_PATHS: [(LogField, &[&str]); 6] = [
    (
        LogField::Time,
        &[
            "ts",
            "time_iso8601",
            "msec",
            "time_local",
            "StartUTC",
            "time",
            "timestamp",
            "@timestamp",
        ],
    ),
    (
        LogField::Ip,
        &["request.client_ip", "request.remote_ip", "remote_addr", "ClientHost", "client_ip", "ip"],
    ),
    (LogField::Method, &["request.method", "request_method", "RequestMethod", "method"]),
    (LogField::Target, &["request.uri", "request_uri", "RequestPath", "uri", "path"]),
    (LogField::Request, &["request"]),
    (LogField::Status, &["status", "DownstreamStatus", "status_code"]),
];

/// The tree of all paths. A field with a `--field` has no default paths.
pub fn tree(fields: &[Field], headers: &[String]) -> PathTree {
    let mut tree = PathTree::default();
    for (log_field, paths) in DEFAULT_PATHS {
        if fields.iter().all(|field| field.log_field != log_field) {
            for (rank, path) in (0..).zip(paths) {
                tree.add(&path.split('.').collect::<Vec<_>>(), log_field.clone(), rank);
            }
        }
    }
    for header in headers {
        let log_field = LogField::Header(header.clone());
        if fields.iter().all(|field| field.log_field != log_field) {
            let nginx = format!("http_{}", header.replace('-', "_"));
            tree.add(&["request", "headers", header], log_field.clone(), 0);
            tree.add(&[&nginx], log_field.clone(), 0);
            tree.add(&[&format!("request_{header}")], log_field, 0);
        }
    }
    for field in fields {
        let path: Vec<&str> = field.path.iter().map(String::as_str).collect();
        tree.add(&path, field.log_field.clone(), 0);
    }
    tree
}

impl PathTree {
    /// The child of a name, ignoring case: header names are case-insensitive, and other names of
    /// known layouts do not differ by case alone.
    pub fn child(&self, name: &str) -> Option<&Self> {
        let found = self.children.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, child)| child)
    }

    fn add(&mut self, path: &[&str], log_field: LogField, rank: u8) {
        let Some((first, rest)) = path.split_first() else {
            self.field = Some((log_field, rank));
            return;
        };
        if self.child(first).is_none() {
            self.children.push(((*first).to_owned(), Self::default()));
        }
        let mut children = self.children.iter_mut();
        if let Some((_, child)) = children.find(|(own, _)| own.eq_ignore_ascii_case(first)) {
            child.add(rest, log_field, rank);
        }
    }
}
