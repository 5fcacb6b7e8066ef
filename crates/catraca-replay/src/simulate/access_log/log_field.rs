//! `--field NAME=PATH`: where a JSON access log has a field of the request.

/// A field and its path, from `--field`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The field.
    pub log_field: LogField,
    /// The names from the root of the line to its value.
    pub path: Vec<String>,
}

/// A field of a request that a log line may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogField {
    /// The instant.
    Time,
    /// The address of the client.
    Ip,
    /// The method.
    Method,
    /// Path and query.
    Target,
    /// The request line: method, target and version.
    Request,
    /// The status of the response.
    Status,
    /// A request header, by its name in lower case.
    Header(String),
}

impl Field {
    /// Parses `NAME=PATH`; the path is names with dots, or a JSON pointer.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, path) = text.split_once('=').ok_or("write NAME=PATH, such as ip=client.addr")?;
        let log_field = LogField::parse(name)?;
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
        Ok(Self { log_field, path })
    }
}

impl LogField {
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
                        "`{name}` is not one of time, ip, method, uri, request, status, header:NAME"
                    ));
                }
            },
        })
    }
}
