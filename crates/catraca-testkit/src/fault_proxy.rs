//! A TCP proxy on loopback that simulates network faults between a program and its server.
//!
//! A fault also applies to bytes already in the proxy. Except for a cut, no bytes are lost or
//! reordered: when the fault ends, the proxy delivers what it holds.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch::{self, Receiver, Sender};
use tokio::time::sleep;

/// A free port of loopback.
const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// Bytes read at once.
const CHUNK: usize = 16 * 1024;

/// A network fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// No fault.
    #[default]
    None,
    /// Connections are closed, new ones at once.
    Cut,
    /// Connections stay open, new ones are accepted, and no bytes are delivered.
    Silent,
    /// Every chunk is delivered this much later.
    Delay(Duration),
    /// One byte is delivered per interval.
    Trickle(Duration),
}

/// A proxy with a fault that tests set.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    fault: Sender<Fault>,
    open: Arc<AtomicUsize>,
    accepted: Arc<AtomicUsize>,
    /// `Some` until drop, which stops its threads.
    runtime: Option<Runtime>,
}

impl FaultProxy {
    /// Starts a proxy to a server, without a fault.
    pub fn start(server: SocketAddr) -> io::Result<Self> {
        Self::launch(LOOPBACK, server, None)
    }

    /// As `start`, at this address.
    pub fn start_at(address: SocketAddr, server: SocketAddr) -> io::Result<Self> {
        Self::launch(address, server, None)
    }

    /// As `start`; in what the server sends, the first port is replaced by the second: the program
    /// reaches a server that this one names through another proxy. Both have five digits.
    ///
    /// # Panics
    ///
    /// If they have not.
    pub fn start_with_ports(server: SocketAddr, ports: [u16; 2]) -> io::Result<Self> {
        assert!(ports.iter().all(|port| *port >= 10_000), "five digits: {ports:?}");
        Self::launch(LOOPBACK, server, Some(ports))
    }

    fn launch(
        address: SocketAddr,
        server: SocketAddr,
        ports: Option<[u16; 2]>,
    ) -> io::Result<Self> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind(address))?;
        let address = listener.local_addr()?;
        let (fault, faults) = watch::channel(Fault::None);
        let open = Arc::new(AtomicUsize::new(0));
        let accepted = Arc::new(AtomicUsize::new(0));
        let connection = ProxiedConnection {
            server,
            ports,
            faults,
            open: Arc::clone(&open),
            accepted: Arc::clone(&accepted),
        };
        runtime.spawn(connection.listen(listener));
        Ok(Self { address, fault, open, accepted, runtime: Some(runtime) })
    }

    /// The address of the proxy.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts or ends a fault.
    pub fn set(&self, fault: Fault) {
        self.fault.send_replace(fault);
    }

    /// The number of open connections.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// The number of connections accepted so far.
    pub fn connection_count(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

#[derive(Clone)]
struct ProxiedConnection {
    server: SocketAddr,
    /// A port that replies name, and the one that replaces it.
    ports: Option<[u16; 2]>,
    faults: Receiver<Fault>,
    open: Arc<AtomicUsize>,
    accepted: Arc<AtomicUsize>,
}

impl ProxiedConnection {
    async fn listen(self, listener: TcpListener) {
        while let Ok((caller, _)) = listener.accept().await {
            self.accepted.fetch_add(1, Ordering::SeqCst);
            if *self.faults.borrow() != Fault::Cut {
                tokio::spawn(self.clone().forward(caller));
            }
        }
    }

    async fn forward(self, caller: TcpStream) {
        let Ok(server) = TcpStream::connect(self.server).await else { return };
        // Without Nagle's algorithm, so that the proxy adds no delay of its own.
        let _ = (caller.set_nodelay(true), server.set_nodelay(true));
        self.open.fetch_add(1, Ordering::SeqCst);
        let (from_caller, to_caller) = caller.into_split();
        let (from_server, to_server) = server.into_split();
        let requests = pump(from_caller, to_server, self.faults.clone(), None);
        let replies = pump(from_server, to_caller, self.faults.clone(), self.ports);
        // When one direction ends, both connections are closed.
        tokio::select! {
            _ = requests => {}
            _ = replies => {}
        }
        self.open.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Forwards bytes in one direction until a connection closes or is cut.
async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut faults: Receiver<Fault>,
    ports: Option<[u16; 2]>,
) {
    let mut bytes = vec![0; CHUNK];
    // A receiver of its own, because `deliver` consumes the changes of the other one.
    let mut cuts = faults.clone();
    let forwarding = async {
        let mut kept = Vec::new();
        while let Ok(count @ 1..) = from.read(&mut bytes).await {
            let Some(ports) = ports else {
                deliver(&bytes[..count], &mut to, &mut faults).await?;
                continue;
            };
            kept.extend_from_slice(&bytes[..count]);
            let replaced = replace_port(&mut kept, ports);
            deliver(&replaced, &mut to, &mut faults).await?;
        }
        Ok::<(), io::Error>(())
    };
    tokio::select! {
        _ = forwarding => {}
        () = wait_for_cut(&mut cuts) => {}
    }
}

/// Takes the bytes but for digits at the end, which may be the beginning of a port, and replaces
/// the port in them. A message does not end with a digit.
fn replace_port(bytes: &mut Vec<u8>, [from, to]: [u16; 2]) -> Vec<u8> {
    let end = bytes.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |last| last + 1);
    let mut taken: Vec<u8> = bytes.drain(..end).collect();
    let from = from.to_string();
    let to = to.to_string();
    let mut at = 0;
    while at + from.len() <= taken.len() {
        if taken[at..].starts_with(from.as_bytes()) {
            taken[at..at + to.len()].copy_from_slice(to.as_bytes());
        }
        at += 1;
    }
    taken
}

/// Delivers bytes under the present fault; a silent proxy keeps them until the fault changes.
async fn deliver(
    mut bytes: &[u8],
    to: &mut OwnedWriteHalf,
    faults: &mut Receiver<Fault>,
) -> io::Result<()> {
    while !bytes.is_empty() {
        let fault = *faults.borrow_and_update();
        let (wait, count) = match fault {
            Fault::None => (Duration::ZERO, bytes.len()),
            // Bytes that a silent proxy has kept are lost. `pump` may notice the cut later.
            Fault::Cut => return Err(io::ErrorKind::ConnectionAborted.into()),
            Fault::Delay(wait) => (wait, bytes.len()),
            Fault::Trickle(wait) => (wait, 1),
            Fault::Silent => {
                faults.changed().await.map_err(io::Error::other)?;
                continue;
            }
        };
        if !wait.is_zero() {
            sleep(wait).await;
        }
        to.write_all(&bytes[..count]).await?;
        bytes = &bytes[count..];
    }
    Ok(())
}

async fn wait_for_cut(faults: &mut Receiver<Fault>) {
    // An error means that the proxy was dropped, which also ends the connection.
    let _ = faults.wait_for(|fault| *fault == Fault::Cut).await;
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::Instant;

    use super::*;

    /// Starts an echo server and a proxy to it, and connects to the proxy.
    fn echo() -> (FaultProxy, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = FaultProxy::start(listener.local_addr().unwrap()).unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                std::thread::spawn(move || {
                    let mut back = stream.try_clone().unwrap();
                    let _ = io::copy(&mut stream, &mut back);
                });
            }
        });
        let caller = TcpStream::connect(proxy.address()).unwrap();
        caller.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        (proxy, caller)
    }

    fn send_and_receive(caller: &mut TcpStream, text: &str) -> io::Result<String> {
        caller.write_all(text.as_bytes())?;
        receive(caller, text.len())
    }

    fn receive(caller: &mut TcpStream, count: usize) -> io::Result<String> {
        let mut back = vec![0; count];
        caller.read_exact(&mut back)?;
        Ok(String::from_utf8_lossy(&back).into_owned())
    }

    #[test]
    fn a_silent_wire_keeps_what_it_holds_and_delivers_it() {
        let (proxy, mut caller) = echo();
        assert_eq!(send_and_receive(&mut caller, "one").unwrap(), "one");
        proxy.set(Fault::Silent);
        let kind = send_and_receive(&mut caller, "two").unwrap_err().kind();
        assert!(matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut), "{kind:?}");
        proxy.set(Fault::None);
        assert_eq!(receive(&mut caller, 3).unwrap(), "two");
        assert_eq!((proxy.open(), proxy.connection_count()), (1, 1));
    }

    #[test]
    fn a_port_is_replaced_also_when_it_arrives_in_two_pieces() {
        let mut bytes = b"$5\r\n41234\r\n:412".to_vec();
        assert_eq!(replace_port(&mut bytes, [41_234, 51_235]), b"$5\r\n51235\r\n:");
        bytes.extend(b"34\r\n");
        assert_eq!(replace_port(&mut bytes, [41_234, 51_235]), b"51235\r\n");
        assert!(bytes.is_empty());
    }

    #[test]
    fn a_cut_wire_closes_what_stands_and_what_comes() {
        let (proxy, mut caller) = echo();
        assert_eq!(send_and_receive(&mut caller, "one").unwrap(), "one");
        proxy.set(Fault::Cut);
        assert!(send_and_receive(&mut caller, "two").is_err());
        let mut next = TcpStream::connect(proxy.address()).unwrap();
        assert!(send_and_receive(&mut next, "three").is_err());
        proxy.set(Fault::None);
        let mut next = TcpStream::connect(proxy.address()).unwrap();
        assert_eq!(send_and_receive(&mut next, "four").unwrap(), "four");
    }

    #[test]
    fn a_slow_wire_takes_its_time() {
        let (proxy, mut caller) = echo();
        caller.set_read_timeout(None).unwrap();
        proxy.set(Fault::Delay(Duration::from_millis(20)));
        let start = Instant::now();
        assert_eq!(send_and_receive(&mut caller, "one").unwrap(), "one");
        assert!(start.elapsed() >= Duration::from_millis(40), "delayed in both directions");
        proxy.set(Fault::Trickle(Duration::from_millis(5)));
        let start = Instant::now();
        assert_eq!(send_and_receive(&mut caller, "four").unwrap(), "four");
        assert!(start.elapsed() >= Duration::from_millis(20), "a byte at a time");
    }
}
