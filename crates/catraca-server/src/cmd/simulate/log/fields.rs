//! Where things are in a JSON log: what `--field` says, else where Caddy, nginx and Traefik put
//! them.
//!
//! All places are merged into one tree, so that a line is walked once. Must not read lines.

/// A thing and its place, from the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    slot: Slot,
    path: Vec<String>,
}

/// A thing that a line tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot {
    /// When.
    Time,
    /// Who, as an address.
    Ip,
    /// The method.
    Method,
    /// The path and query.
    Target,
    /// Method, target and version in one text.
    Request,
    /// The answer's status.
    Status,
    /// A request header, in lower case.
    Header(String),
}

/// A place in a line: what is taken there, and what is below.
#[derive(Debug, Default)]
pub struct Node {
    children: Vec<(String, Self)>,
    /// What is taken here; of several places for one thing, the smallest rank wins.
    pub takes: Option<(Slot, u8)>,
}

/// Places by layout, best first: Caddy, nginx, Traefik, and names that many use.
const USUAL: [(Slot, &[&str]); 6] = [
    (
        Slot::Time,
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
        Slot::Ip,
        &["request.client_ip", "request.remote_ip", "remote_addr", "ClientHost", "client_ip", "ip"],
    ),
    (Slot::Method, &["request.method", "request_method", "RequestMethod", "method"]),
    (Slot::Target, &["request.uri", "request_uri", "RequestPath", "uri", "path"]),
    (Slot::Request, &["request"]),
    (Slot::Status, &["status", "DownstreamStatus", "status_code"]),
];

impl Field {
    /// Reads `NAME=PATH`: a path of names with dots, or a JSON pointer.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, path) = text.split_once('=').ok_or("write NAME=PATH, such as ip=client.addr")?;
        let slot = Slot::parse(name)?;
        let path: Vec<String> = match path.strip_prefix('/') {
            Some(pointer) => {
                let part = |part: &str| part.replace("~1", "/").replace("~0", "~");
                pointer.split('/').map(part).collect()
            }
            None => path.split('.').map(str::to_owned).collect(),
        };
        if path.iter().any(String::is_empty) {
            return Err(
                "the path has an empty name; write NAME=PATH, such as ip=client.addr".into()
            );
        }
        Ok(Self { slot, path })
    }
}

impl Slot {
    fn parse(name: &str) -> Result<Self, String> {
        Ok(match name {
            "time" => Self::Time,
            "ip" => Self::Ip,
            "method" => Self::Method,
            "uri" => Self::Target,
            "request" => Self::Request,
            "status" => Self::Status,
            _ => match name.strip_prefix("header:").filter(|header| !header.is_empty()) {
                Some(header) => Self::Header(header.to_ascii_lowercase()),
                None => {
                    return Err(format!(
                        "`{name}` is none of time, ip, method, uri, request, status, header:NAME"
                    ));
                }
            },
        })
    }
}

/// The tree of all places; a thing that the command line names is looked for there alone.
pub fn tree(fields: &[Field], headers: &[String]) -> Node {
    let mut tree = Node::default();
    for (slot, places) in USUAL {
        if fields.iter().all(|field| field.slot != slot) {
            for (rank, place) in (0..).zip(places) {
                tree.add(&place.split('.').collect::<Vec<_>>(), slot.clone(), rank);
            }
        }
    }
    for header in headers {
        let slot = Slot::Header(header.clone());
        if fields.iter().all(|field| field.slot != slot) {
            let nginx = format!("http_{}", header.replace('-', "_"));
            tree.add(&["request", "headers", header], slot.clone(), 0);
            tree.add(&[&nginx], slot.clone(), 0);
            tree.add(&[&format!("request_{header}")], slot, 0);
        }
    }
    for field in fields {
        let path: Vec<&str> = field.path.iter().map(String::as_str).collect();
        tree.add(&path, field.slot.clone(), 0);
    }
    tree
}

impl Node {
    /// What is below, by name; header names have no case, and other names do not need theirs.
    pub fn child(&self, name: &str) -> Option<&Self> {
        let found = self.children.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, child)| child)
    }

    fn add(&mut self, path: &[&str], slot: Slot, rank: u8) {
        let Some((first, rest)) = path.split_first() else {
            self.takes = Some((slot, rank));
            return;
        };
        if self.child(first).is_none() {
            self.children.push(((*first).to_owned(), Self::default()));
        }
        let mut children = self.children.iter_mut();
        if let Some((_, child)) = children.find(|(own, _)| own.eq_ignore_ascii_case(first)) {
            child.add(rest, slot, rank);
        }
    }
}
