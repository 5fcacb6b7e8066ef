//! What can go wrong with a call, told as what, where and how to fix it.
//!
//! Must not show a key, nor trust a stranger's text with the terminal.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use axum::http::StatusCode;
use serde::Deserialize;

use super::Call;
use crate::exit::Exit;
use crate::render::plain;

/// The most of a foreign answer that is worth showing.
const SHOWN_CHARS: usize = 2_000;

/// Why a call failed.
#[derive(Debug)]
pub struct Trouble {
    exit: Exit,
    what: String,
    place: String,
    fix: Option<String>,
    /// The code of a server's problem.
    pub code: Option<String>,
    /// Which entries of a list are wrong, counted from one, and why.
    pub entries: Vec<(usize, String)>,
}

/// The parts of a problem+json that we show.
#[derive(Deserialize)]
struct Problem {
    code: String,
    detail: String,
    line: Option<usize>,
    column: Option<usize>,
    #[serde(default)]
    errors: Vec<Wrong>,
}

/// What is said when somebody else has something, or it is over.
#[derive(Deserialize)]
struct Taken {
    error: String,
}

#[derive(Deserialize)]
struct Wrong {
    entry: usize,
    detail: String,
}

impl Trouble {
    /// The exit code that says so.
    pub fn exit(&self) -> Exit {
        self.exit
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  where: {}", self.what, self.place)?;
        match &self.fix {
            Some(fix) => write!(f, "\n  fix:   {fix}"),
            None => Ok(()),
        }
    }
}

impl Error for Trouble {}

impl Call<'_> {
    /// Nobody is there.
    pub fn unreachable(&self, error: &io::Error) -> Trouble {
        let what = format!("{} cannot be reached: {error}", self.at.shown());
        // What https finds wrong comes as an error of the connection, too.
        let talked = error.kind() == io::ErrorKind::InvalidData;
        self.gone(what, if talked { TRUST } else { START })
    }

    /// Somebody is there, and did not answer in time.
    pub fn late(&self, patience: Duration) -> Trouble {
        let what = format!("{} did not answer within {patience:?}", self.at.shown());
        self.gone(what, "try again, or wait longer with --timeout; an act may have been done")
    }

    /// Somebody is there, and does not speak as we do.
    pub fn broken(&self, error: &(impl Error + ?Sized)) -> Trouble {
        let mut what = format!("the talk with {} broke off: {error}", self.at.shown());
        if let Some(cause) = error.source() {
            what.push_str(&format!(": {cause}"));
        }
        self.gone(what, "is it Catraca that listens there, and is it http or https?")
    }

    /// A feed came to its end.
    pub fn ended(&self) -> Trouble {
        self.gone(format!("{} ended the feed", self.at.shown()), "listen again when it is back")
    }

    /// It answered something that is no JSON.
    pub fn garbled(&self, error: &impl Error) -> Trouble {
        let what = format!("{} answered something else than JSON: {error}", self.at.shown());
        self.gone(what, "is it Catraca that listens there?")
    }

    fn taken(&self, status: StatusCode, taken: &Taken) -> Trouble {
        Trouble {
            exit: Exit::No,
            what: plain(&taken.error).chars().take(SHOWN_CHARS).collect(),
            place: format!("{}: {}", self.place(), status.as_u16()),
            fix: None,
            code: None,
            entries: Vec::new(),
        }
    }

    /// It said no, and usually why.
    pub fn refused(&self, status: StatusCode, body: &[u8]) -> Trouble {
        let Ok(problem) = serde_json::from_slice::<Problem>(body) else {
            let taken = serde_json::from_slice::<Taken>(body);
            return taken.map_or_else(|_| self.foreign(status), |taken| self.taken(status, &taken));
        };
        let code = plain(&problem.code);
        // A catalog's mistakes come a line each.
        let lines: Vec<String> = problem.detail.lines().map(plain).collect();
        let what: String = lines.join("\n").chars().take(SHOWN_CHARS).collect();
        let at = match (problem.line, problem.column) {
            (Some(line), Some(column)) => format!(" at line {line}, column {column} of the body"),
            _ => String::new(),
        };
        Trouble {
            exit: exit(status, &code),
            what,
            place: format!("{}: {} {code}{at}", self.place(), status.as_u16()),
            fix: fix(&code).map(str::to_owned),
            entries: problem
                .errors
                .into_iter()
                .map(|one| (one.entry, plain(&one.detail)))
                .collect(),
            code: Some(code),
        }
    }

    fn foreign(&self, status: StatusCode) -> Trouble {
        let what = format!("{} answered {status}, and not why", self.at.shown());
        let fix = "is it Catraca that listens there, and no proxy in between that refuses?";
        let exit = if status.is_server_error() { Exit::Unreachable } else { Exit::Wrong };
        Trouble { exit, ..self.gone(what, fix) }
    }

    fn gone(&self, what: String, fix: &str) -> Trouble {
        Trouble {
            exit: Exit::Unreachable,
            what,
            place: self.place(),
            fix: Some(fix.to_owned()),
            code: None,
            entries: Vec::new(),
        }
    }

    fn place(&self) -> String {
        // What stands behind the question mark may be somebody's name.
        let path = self.path.split('?').next().unwrap_or_default();
        let path = if path.starts_with("/v1/facts/") { "/v1/facts" } else { path };
        format!("{} {}{path}", self.method, self.at.shown())
    }
}

const START: &str = "start it with `catraca serve --config FILE`, or say where it is with --server \
                     or CATRACA_URL";

const TRUST: &str = "if the certificate is your own, name it with --ca FILE or CATRACA_CA; it must \
                     be for the name in the URL, and made with CA:FALSE if it vouches for itself";

fn exit(status: StatusCode, code: &str) -> Exit {
    match code {
        "unknown-block" | "not-blocked" | "unknown-entry" | "unknown-value" => Exit::No,
        "unknown-lease" | "not-holder" | "lease-expired" | "lease-forced" => Exit::No,
        _ if status.is_server_error() => Exit::Unreachable,
        _ => Exit::Wrong,
    }
}

/// What helps at the command line; most problems say themselves how to fix them.
fn fix(code: &str) -> Option<&'static str> {
    Some(match code {
        "no-key" => "put the key into a file and name it with --key-file, or set CATRACA_KEY",
        "unknown-key" => {
            "look at the file of --key-file, or at CATRACA_KEY: the key must be one of this server"
        }
        "role-too-low" | "namespace-bound-key" => {
            "use another key: `catraca whoami` says whose this one is, `catraca keygen` makes one"
        }
        "host-not-allowed" => {
            "call it by a loopback address, or add the name in --server to `[server] hosts`"
        }
        "unknown-gate" | "unknown-policy" => "`catraca config show` lists gates and policies",
        "unknown-block" | "not-blocked" => "`catraca blocks list` shows those that stand",
        "unknown-call" | "method-not-allowed" => {
            "the server is older than this program: use its own program"
        }
        _ => return None,
    })
}
