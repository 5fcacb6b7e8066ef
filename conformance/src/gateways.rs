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
mod haproxy;
mod latency;
mod message;
mod nginx;
mod own_proxy;
mod process;
mod reading;
mod site;
mod snippets;
mod table;
mod traefik;
mod traefik_replay;
mod upstream;

use anyhow::{Context, Result, ensure};

use attacks::Attack;
use gateway::Gateway;
use site::Site;
use table::Column;

use crate::{Scratch, TestContext, binary};

/// Installs what the part needs.
pub fn set_up(context: &TestContext) -> Result<()> {
    find_gateways(context).map(drop)
}

/// Traefik takes minutes to build, so only a deep run has it.
fn find_gateways(context: &TestContext) -> Result<Vec<Gateway>> {
    let mut gateways = Vec::from(nginx::both(context)?);
    gateways.push(caddy::caddy(context)?);
    gateways.push(envoy::envoy(context)?);
    gateways.push(haproxy::haproxy(context)?);
    if context.factor > 1 {
        gateways.push(traefik::traefik(context)?);
    }
    Ok(gateways)
}

/// The part `gateways`.
pub fn run(context: &TestContext) -> Result<()> {
    let gateways = find_gateways(context)?;
    let binary = binary::build(context)?;
    let scratch = Scratch::new("gateways")?;
    let attacks = attacks::all();
    let start = |name: &str| Site::start(context, &binary, scratch.path(), name);
    let mut columns = Vec::new();
    for gateway in &gateways {
        let found = start(gateway.name)?.check(gateway, &attacks);
        columns.extend(found.with_context(|| gateway.name.to_owned())?);
    }
    let broken = haproxy::with_broken_script(context)?;
    start(broken.name)?.check_refusal(&broken).context(broken.name)?;
    let replay = start("replay")?.check_replay(&attacks).context(traefik_replay::NAME)?;
    columns.push(replay);
    columns.push(start("own")?.check_proxy(&attacks).context(own_proxy::NAME)?);
    println!("\n{}", table::table(&attacks, &columns));
    check_replay(&attacks, &columns)?;
    let outcomes = columns.iter().flat_map(|column| &column.outcomes);
    let bad = outcomes.filter(|outcome| !outcome.is_good()).count();
    ensure!(bad == 0, "{bad} attacks passed or failed, see the table");
    println!("{} attacks, {} configurations: none passed", attacks.len(), columns.len());
    Ok(())
}

/// A replay with another outcome than Traefik's could hide an attack that passes.
fn check_replay(attacks: &[Attack], columns: &[Column]) -> Result<()> {
    let column = |name| columns.iter().find(|column| column.name == name);
    let Some(real) = column(traefik::NAME) else { return Ok(()) };
    let replay = column(traefik_replay::NAME).context("no column of the replay")?;
    for ((attack, real), replay) in attacks.iter().zip(&real.outcomes).zip(&replay.outcomes) {
        ensure!(real == replay, "{}: Traefik {real:?}, its replay {replay:?}", attack.name);
    }
    Ok(())
}
