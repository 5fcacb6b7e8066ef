//! An application and a Catraca behind a gateway, and what must be true of them.
//!
//! Must not know which gateway it is.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::attacks::Attack;
use super::client::{ATTACKER, BYSTANDER, Route};
use super::gateway::{Backends, Gateway, RunningGateway};
use super::latency;
use super::message::Request;
use super::own_proxy::{self, OwnProxy};
use super::process::Process;
use super::reading;
use super::snippets::{Guide, Variant, free_port};
use super::table::{AttackOutcome, Column};
use super::traefik_replay::{self, TraefikReplay};
use super::upstream::Upstream;
use crate::TestContext;

/// As in the guide's catalog.
const LOGINS: usize = 3;

/// Added to the guide's catalog: a gate whose checks have tickets, because their cost is known only
/// from the answer of the application.
const SALE: &str = "
[policy.sale]
by    = [\"ip\"]
fixed = \"1000 per 1m\"
cost  = { \"5xx\" = 0, default = 1 }

[[route]]
match = \"/sale/**\"
gate  = \"sale\"
";

/// An application and a Catraca, for one gateway.
pub(crate) struct Site<'a> {
    context: &'a TestContext<'a>,
    binary: &'a Path,
    upstream: Upstream,
    catraca: Process,
    catraca_port: u16,
    folder: PathBuf,
}

impl<'a> Site<'a> {
    pub(crate) fn start(
        context: &'a TestContext<'a>,
        binary: &'a Path,
        desk: &Path,
        name: &str,
    ) -> Result<Self> {
        let folder = desk.join(name);
        fs::create_dir(&folder)?;
        let catalog = Guide::new(context.repo).catalog()?;
        fs::write(folder.join("site.toml"), format!("{catalog}{SALE}"))?;
        let catraca_port = free_port()?;
        let catraca = start_catraca(context, binary, &folder, catraca_port)?;
        let upstream = Upstream::start()?;
        Ok(Self { context, binary, upstream, catraca, catraca_port, folder })
    }

    /// Everything about one gateway: attacks, denials, times, and a Catraca that is stopped.
    pub(crate) fn check(mut self, gateway: &Gateway, attacks: &[Attack]) -> Result<Vec<Column>> {
        let guarded = self.start_gateway(gateway, Variant::Routes)?;
        self.use_up_logins(&guarded, gateway.has_body)?;
        let routes = self.attack(gateway.name, &guarded, attacks)?;
        self.check_others_pass(&guarded)?;
        self.check_tickets(&guarded)?;
        if gateway.has_quota {
            check_quota(&guarded)?;
        }

        // The attacker is out of logins, and with one gate every page is a login.
        let name = format!("{}+gate", gateway.name);
        let one_gate = self.start_gateway(gateway, Variant::OneGate)?;
        let one_gate = self.attack(&name, &one_gate, attacks)?;
        ensure!(!one_gate.outcomes.contains(&AttackOutcome::Harmless), "{name} let a request pass");

        let plain = self.start_gateway(gateway, Variant::Plain)?;
        println!("{}: {}", gateway.name, latency::measure(&guarded, &plain)?);
        self.check_outage(gateway, &guarded)?;
        Ok(vec![routes, one_gate])
    }

    /// The same of Traefik's requests, without Traefik.
    pub(crate) fn check_replay(&self, attacks: &[Attack]) -> Result<Column> {
        let guide = Guide::new(self.context.repo);
        let replay = TraefikReplay::new(&guide, self.catraca_port, &self.upstream)?;
        self.use_up_logins(&replay, true)?;
        let column = self.attack(traefik_replay::NAME, &replay, attacks)?;
        self.check_others_pass(&replay)?;
        Ok(column)
    }

    /// The same of Catraca's own reverse proxy, which needs no gateway.
    pub(crate) fn check_proxy(&self, attacks: &[Attack]) -> Result<Column> {
        let app = self.upstream.port;
        let proxy = OwnProxy::start(self.context, self.binary, &self.folder, app)?;
        self.use_up_logins(&proxy, true)?;
        let column = self.attack(own_proxy::NAME, &proxy, attacks)?;
        self.check_others_pass(&proxy)?;
        check_quota(&proxy)?;
        Ok(column)
    }

    /// A gateway that is not able to call Catraca refuses every request, also in the open variant.
    pub(crate) fn check_refusal(&self, gateway: &Gateway) -> Result<()> {
        for variant in [Variant::Routes, Variant::Open] {
            self.expect_refusal(&self.start_gateway(gateway, variant)?)?;
        }
        Ok(())
    }

    fn start_gateway(&self, gateway: &Gateway, variant: Variant) -> Result<RunningGateway> {
        let backends = Backends { app: self.upstream.port, catraca: self.catraca_port };
        gateway.start(self.context, &self.folder, variant, backends)
    }

    /// Without Catraca every request is refused, or passes in the open variant; the gateway
    /// calls Catraca again when it is back, and Catraca still knows the block.
    fn check_outage(&mut self, gateway: &Gateway, guarded: &dyn Route) -> Result<()> {
        let open = gateway.has_open.then(|| self.start_gateway(gateway, Variant::Open));
        let open = open.transpose()?;
        for route in open.iter() {
            let status = route.send(ATTACKER, &Request::get("/login"))?.status;
            ensure!(status == 429, "the open variant answered /login with {status}");
        }
        self.catraca.stop();
        let closed = self.expect_refusal(guarded)?;
        println!("{}: without Catraca {closed}", gateway.name);
        for route in open.iter() {
            let passed = route.send(BYSTANDER, &Request::get("/free"))?;
            let is_open = passed.status == 200 && passed.body.contains("app");
            ensure!(is_open, "without Catraca the open variant answered {}", passed.status);
        }
        self.catraca = start_catraca(self.context, self.binary, &self.folder, self.catraca_port)?;
        self.check_others_pass(guarded).context("after the outage")?;
        let denied = guarded.send(ATTACKER, &Request::get("/login"))?.status;
        ensure!(denied == 429, "after the outage /login was answered {denied}");
        Ok(())
    }

    fn expect_refusal(&self, route: &dyn Route) -> Result<u16> {
        self.upstream.take_notes();
        let status = route.send(BYSTANDER, &Request::get("/free"))?.status;
        let reached = self.upstream.take_notes().len();
        let is_refused = status >= 500 && reached == 0;
        ensure!(is_refused, "without Catraca: {status}, {reached} reached the application");
        Ok(status)
    }

    /// The logins that the catalog allows reach the application whole, the next one is denied.
    fn use_up_logins(&self, route: &dyn Route, has_body: bool) -> Result<()> {
        self.upstream.take_notes();
        let login = Request::post("/login", "user=ana");
        for _ in 0..LOGINS {
            let answer = route.send(ATTACKER, &login)?;
            ensure!(answer.status == 200, "a login was answered {}", answer.status);
        }
        let notes = self.upstream.take_notes();
        let is_whole = |note: &Request| (&*note.method, &*note.body) == ("POST", "user=ana");
        ensure!(notes.len() == LOGINS && notes.iter().all(is_whole), "not as sent: {notes:?}");
        let denied = route.send(ATTACKER, &login)?;
        ensure!(denied.status == 429, "one login too many was answered {}", denied.status);
        for name in ["Retry-After", "RateLimit", "RateLimit-Policy"] {
            ensure!(denied.header(name).is_some(), "the denial has no {name}: {denied:?}");
        }
        let problem = Some("application/problem+json");
        ensure!(denied.header("Content-Type") == problem, "the denial is no problem: {denied:?}");
        let is_own = denied.body.contains("\"policy\":\"login\"");
        ensure!(is_own || !has_body, "the denial has not Catraca's body: {denied:?}");
        Ok(())
    }

    /// A gateway that refuses everything would refuse attacks too.
    fn check_others_pass(&self, route: &dyn Route) -> Result<()> {
        for (from, target) in [(ATTACKER, "/free"), (BYSTANDER, "/login")] {
            let answer = route.send(from, &Request::get(target))?;
            ensure!(answer.status == 200, "{target} from {from} was answered {}", answer.status);
        }
        Ok(())
    }

    /// The application gets the ticket of Catraca, and no ticket of a client.
    fn check_tickets(&self, route: &dyn Route) -> Result<()> {
        for (target, count) in [("/free", 0), ("/sale", 1)] {
            self.upstream.take_notes();
            route.send(BYSTANDER, &Request::get(target).header("Catraca-Ticket", "forged"))?;
            let notes = self.upstream.take_notes();
            let tickets = notes.iter().flat_map(|note| note.values("Catraca-Ticket"));
            let tickets: Vec<&str> = tickets.collect();
            let is_right = tickets.len() == count && !tickets.contains(&"forged");
            ensure!(is_right, "{target}: {count} tickets of Catraca expected: {notes:?}");
        }
        Ok(())
    }

    fn attack(&self, name: &str, route: &dyn Route, attacks: &[Attack]) -> Result<Column> {
        self.upstream.take_notes();
        let mut outcomes = Vec::new();
        for attack in attacks {
            let answer = route.send(ATTACKER, &attack.request);
            let status = answer.with_context(|| attack.name.clone())?.status;
            let notes = self.upstream.take_notes();
            let outcome = match status {
                _ if notes.iter().any(reading::is_guarded) => AttackOutcome::Passed,
                0 | 400..=499 if notes.is_empty() => AttackOutcome::Refused(status),
                200 => AttackOutcome::Harmless,
                _ => AttackOutcome::Failed(status),
            };
            if !outcome.is_good() {
                println!("{name}: {}: {status}, reached the application: {notes:?}", attack.name);
            }
            outcomes.push(outcome);
        }
        Ok(Column { name: name.to_owned(), outcomes })
    }
}

fn start_catraca(
    context: &TestContext,
    binary: &Path,
    folder: &Path,
    port: u16,
) -> Result<Process> {
    let mut serve = context.repo.command(&binary.display().to_string());
    serve.args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--config"]);
    serve.arg(folder.join("site.toml"));
    Process::start(context, &mut serve, folder, port)
}

/// The response to an allowed request contains the client's quota.
fn check_quota(route: &dyn Route) -> Result<()> {
    let answer = route.send(BYSTANDER, &Request::get("/free"))?;
    for name in ["RateLimit", "RateLimit-Policy"] {
        let is_told = answer.header(name).is_some_and(|value| value.starts_with('"'));
        ensure!(is_told, "an allowed request has no {name}: {answer:?}");
    }
    Ok(())
}
