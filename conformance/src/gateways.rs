//! Real gateways in front of an application, configured with the text of the guide, and attacked.
//!
//! A client uses up its logins and then tries to choose its gate, to come from another address and
//! to spell the guarded path in other ways. No such request may reach the application. Everything
//! listens on loopback, on free ports, and ends with the part. Must not change a configuration of
//! the guide except for ports and paths.

mod attacks;
mod caddy;
mod client;
mod envoy;
mod gateway;
mod latency;
mod message;
mod nginx;
mod process;
mod reading;
mod snippets;
mod table;
mod traefik;
mod upstream;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use attacks::Attack;
use client::{ATTACKER, BYSTANDER, Route};
use gateway::{Backends, Gateway};
use message::Request;
use process::Process;
use snippets::{Guide, Variant, free_port};
use table::{AttackOutcome, Column};
use traefik::Traefik;
use upstream::Upstream;

use crate::{Scratch, TestContext, binary};

/// As in the guide's catalog.
const LOGINS: usize = 3;

/// The part `gateways`.
pub fn run(context: &TestContext) -> Result<()> {
    let [nginx, nginx_answer] = nginx::both(context)?;
    let gateways = [nginx, nginx_answer, caddy::caddy(context)?, envoy::envoy(context)?];
    let binary = binary::build(context)?;
    let scratch = Scratch::new("gateways")?;
    let attacks = attacks::all();
    let mut columns = Vec::new();
    for gateway in &gateways {
        let site = Site::start(context, &binary, scratch.path(), gateway.name)?;
        let found = site.check(context, gateway, &attacks);
        columns.extend(found.with_context(|| gateway.name.to_owned())?);
    }
    let site = Site::start(context, &binary, scratch.path(), "traefik")?;
    columns.push(site.check_traefik(context, &attacks).context("traefik")?);
    println!("\n{}", table::table(&attacks, &columns));
    let outcomes = columns.iter().flat_map(|column| &column.outcomes);
    let bad = outcomes.filter(|outcome| !outcome.is_good()).count();
    ensure!(bad == 0, "{bad} attacks passed or failed, see the table");
    println!("{} attacks, {} configurations: none passed", attacks.len(), columns.len());
    Ok(())
}

/// An application and a Catraca, for one gateway.
struct Site {
    upstream: Upstream,
    catraca: Process,
    catraca_port: u16,
    folder: PathBuf,
}

impl Site {
    fn start(context: &TestContext, binary: &Path, desk: &Path, name: &str) -> Result<Self> {
        let folder = desk.join(name);
        fs::create_dir(&folder)?;
        let catalog = folder.join("site.toml");
        fs::write(&catalog, Guide::new(context.repo).catalog()?)?;
        let catraca_port = free_port()?;
        let mut serve = context.repo.command(&binary.display().to_string());
        serve.args(["serve", "--listen", &format!("127.0.0.1:{catraca_port}"), "--config"]);
        serve.arg(&catalog);
        let catraca = Process::start(context, &mut serve, &folder, catraca_port)?;
        Ok(Self { upstream: Upstream::start()?, catraca, catraca_port, folder })
    }

    /// Everything about one gateway: attacks, denials, times, and a Catraca that is stopped.
    fn check(
        self,
        context: &TestContext,
        gateway: &Gateway,
        attacks: &[Attack],
    ) -> Result<Vec<Column>> {
        let backends = Backends { app: self.upstream.port, catraca: self.catraca_port };
        let start = |variant| gateway.start(context, &self.folder, variant, backends);
        let guarded = start(Variant::Routes)?;
        self.use_up_logins(&guarded, gateway.has_body)?;
        let routes = self.attack(gateway.name, &guarded, attacks)?;
        self.check_others_pass(&guarded)?;
        self.check_headers(&guarded)?;

        // The attacker is out of logins, and with one gate every page is a login.
        let name = format!("{}+gate", gateway.name);
        let one_gate = self.attack(&name, &start(Variant::OneGate)?, attacks)?;
        ensure!(!one_gate.outcomes.contains(&AttackOutcome::Harmless), "{name} let a request pass");

        let times = latency::measure(&guarded, &start(Variant::Plain)?)?;
        println!("{}: {times}", gateway.name);

        let open = start(Variant::Open)?;
        let denied = open.send(ATTACKER, &Request::get("/login"))?;
        ensure!(denied.status == 429, "the open variant answered /login with {}", denied.status);
        drop(self.catraca);
        self.upstream.take_notes();
        let closed = guarded.send(BYSTANDER, &Request::get("/free"))?.status;
        let reached = self.upstream.take_notes().len();
        let is_closed = closed >= 500 && reached == 0;
        ensure!(is_closed, "without Catraca: {closed}, {reached} reached the application");
        let passed = open.send(BYSTANDER, &Request::get("/free"))?;
        let is_open = passed.status == 200 && passed.body.contains("app");
        ensure!(is_open, "without Catraca the open variant answered {}", passed.status);
        println!("{}: without Catraca {closed}, open variant {}", gateway.name, passed.status);
        Ok(vec![routes, one_gate])
    }

    fn check_traefik(&self, context: &TestContext, attacks: &[Attack]) -> Result<Column> {
        let traefik = Traefik::new(&Guide::new(context.repo), self.catraca_port, &self.upstream)?;
        self.use_up_logins(&traefik, true)?;
        let column = self.attack("traefik (replay)", &traefik, attacks)?;
        self.check_others_pass(&traefik)?;
        Ok(column)
    }

    /// The logins that the catalog allows reach the application whole, the next one is denied.
    fn use_up_logins(&self, route: &dyn Route, has_body: bool) -> Result<()> {
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

    /// The response to an allowed request contains the client's quota; the application gets no
    /// ticket from a client.
    fn check_headers(&self, route: &dyn Route) -> Result<()> {
        self.upstream.take_notes();
        let request = Request::get("/free").header("Catraca-Ticket", "forged");
        let answer = route.send(BYSTANDER, &request)?;
        for name in ["RateLimit", "RateLimit-Policy"] {
            let is_told = answer.header(name).is_some_and(|value| value.starts_with('"'));
            ensure!(is_told, "an allowed request has no {name}: {answer:?}");
        }
        let notes = self.upstream.take_notes();
        let mut tickets = notes.iter().flat_map(|note| note.values("Catraca-Ticket"));
        ensure!(tickets.next().is_none(), "a ticket that Catraca did not issue: {notes:?}");
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
