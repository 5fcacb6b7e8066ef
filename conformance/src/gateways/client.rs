//! Clients: they write raw bytes to a gateway, each from an address of its own.
//!
//! All of 127.0.0.0/8 is loopback. Gateways connect to Catraca from 127.0.0.1, which is trusted;
//! clients have other addresses, which are not.

use std::io::{BufReader, ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result};
use socket2::{Domain, Socket, Type};

use super::message::{Request, Response};

/// The client whose logins are used up.
pub(crate) const ATTACKER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 9);
/// A client that did nothing.
pub(crate) const BYSTANDER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 10);
/// A client that only finds out whether the gateway has started.
pub(crate) const VISITOR: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 11);

const TIMEOUT: Duration = Duration::from_secs(10);

/// Sends requests to the application through the gateway under test.
pub(crate) trait Route {
    /// One request of a client, and its answer.
    fn send(&self, from: Ipv4Addr, request: &Request) -> Result<Response>;
}

/// Sends a request to a port, on a connection of its own.
pub(crate) fn exchange(from: Ipv4Addr, port: u16, request: &Request) -> Result<Response> {
    let mut stream = connect(from, port)?;
    // A server that refuses early may close before it has read everything.
    let _ = stream.write_all(&request.bytes());
    match Response::read(&mut BufReader::new(stream)) {
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {
            Response::read(&mut &b""[..]).context("cannot read nothing")
        }
        answer => answer.with_context(|| format!("no answer to {}", request.target)),
    }
}

fn connect(from: Ipv4Addr, port: u16) -> Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((from, 0)).into())?;
    let gateway = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    socket.connect_timeout(&gateway.into(), TIMEOUT).context("cannot connect to the gateway")?;
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
