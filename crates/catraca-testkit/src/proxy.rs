//! A wire that can be made to fail: a proxy on loopback between a program and its server.
//!
//! What is under way when a fault begins feels it too. Must not lose or reorder bytes by itself: a
//! wire that is whole again delivers what it held.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch::{self, Receiver, Sender};
use tokio::time::sleep;

/// Bytes that travel together.
const CHUNK: usize = 16 * 1024;

/// What is wrong with the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// Connections are closed, and new ones as soon as they are made.
    Cut,
    /// Connections stand, are even made, and nothing arrives.
    Silent,
    /// Everything arrives this much later.
    Delay(Duration),
    /// One byte arrives each time.
    Trickle(Duration),
}

/// A wire on loopback.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    fault: Sender<Fault>,
    open: Arc<AtomicUsize>,
    made: Arc<AtomicUsize>,
    /// Its threads end with it.
    runtime: Option<Runtime>,
}

impl Proxy {
    /// A whole wire to a server.
    pub fn start(server: SocketAddr) -> io::Result<Self> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
        let address = listener.local_addr()?;
        let (fault, faults) = watch::channel(Fault::None);
        let (open, made) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let line = Line { server, faults, open: Arc::clone(&open), made: Arc::clone(&made) };
        runtime.spawn(line.listen(listener));
        Ok(Self { address, fault, open, made, runtime: Some(runtime) })
    }

    /// Where to connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Breaks the wire, or mends it.
    pub fn set(&self, fault: Fault) {
        self.fault.send_replace(fault);
    }

    /// Connections that stand now.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// Connections that were ever made.
    pub fn made(&self) -> usize {
        self.made.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

#[derive(Clone)]
struct Line {
    server: SocketAddr,
    faults: Receiver<Fault>,
    open: Arc<AtomicUsize>,
    made: Arc<AtomicUsize>,
}

impl Line {
    async fn listen(self, listener: TcpListener) {
        while let Ok((caller, _)) = listener.accept().await {
            self.made.fetch_add(1, Ordering::SeqCst);
            if *self.faults.borrow() != Fault::Cut {
                tokio::spawn(self.clone().join(caller));
            }
        }
    }

    async fn join(self, caller: TcpStream) {
        let Ok(server) = TcpStream::connect(self.server).await else { return };
        // A wire has no habits of its own.
        let _ = (caller.set_nodelay(true), server.set_nodelay(true));
        self.open.fetch_add(1, Ordering::SeqCst);
        let ((from_caller, to_caller), (from_server, to_server)) =
            (caller.into_split(), server.into_split());
        let there = pump(from_caller, to_server, self.faults.clone());
        let back = pump(from_server, to_caller, self.faults.clone());
        // Either end closes both.
        tokio::select! {
            _ = there => {}
            _ = back => {}
        }
        self.open.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Carries bytes one way until an end closes or the wire is cut.
async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut faults: Receiver<Fault>) {
    let mut bytes = vec![0; CHUNK];
    let mut cuts = faults.clone();
    let carrying = async {
        while let Ok(count @ 1..) = from.read(&mut bytes).await {
            carry(&bytes[..count], &mut to, &mut faults).await?;
        }
        Ok::<(), io::Error>(())
    };
    tokio::select! {
        _ = carrying => {}
        () = cut(&mut cuts) => {}
    }
}

/// Delivers bytes as the wire is at the moment; a silent one delivers them when it speaks again.
async fn carry(
    mut bytes: &[u8],
    to: &mut OwnedWriteHalf,
    faults: &mut Receiver<Fault>,
) -> io::Result<()> {
    while !bytes.is_empty() {
        let fault = *faults.borrow_and_update();
        let (wait, count) = match fault {
            Fault::None | Fault::Cut => (Duration::ZERO, bytes.len()),
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

async fn cut(faults: &mut Receiver<Fault>) {
    // The sender's end is the proxy's end.
    let _ = faults.wait_for(|fault| *fault == Fault::Cut).await;
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::Instant;

    use super::*;

    /// A server that sends back what it hears, a proxy to it, and a caller of that.
    fn echo() -> (Proxy, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Proxy::start(listener.local_addr().unwrap()).unwrap();
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

    fn said(caller: &mut TcpStream, text: &str) -> io::Result<String> {
        caller.write_all(text.as_bytes())?;
        heard(caller, text.len())
    }

    fn heard(caller: &mut TcpStream, count: usize) -> io::Result<String> {
        let mut back = vec![0; count];
        caller.read_exact(&mut back)?;
        Ok(String::from_utf8_lossy(&back).into_owned())
    }

    #[test]
    fn a_silent_wire_keeps_what_it_holds_and_delivers_it() {
        let (proxy, mut caller) = echo();
        assert_eq!(said(&mut caller, "one").unwrap(), "one");
        proxy.set(Fault::Silent);
        let kind = said(&mut caller, "two").unwrap_err().kind();
        assert!(matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut), "{kind:?}");
        proxy.set(Fault::None);
        assert_eq!(heard(&mut caller, 3).unwrap(), "two");
        assert_eq!((proxy.open(), proxy.made()), (1, 1));
    }

    #[test]
    fn a_cut_wire_closes_what_stands_and_what_comes() {
        let (proxy, mut caller) = echo();
        assert_eq!(said(&mut caller, "one").unwrap(), "one");
        proxy.set(Fault::Cut);
        assert!(said(&mut caller, "two").is_err());
        let mut next = TcpStream::connect(proxy.address()).unwrap();
        assert!(said(&mut next, "three").is_err());
        proxy.set(Fault::None);
        let mut next = TcpStream::connect(proxy.address()).unwrap();
        assert_eq!(said(&mut next, "four").unwrap(), "four");
    }

    #[test]
    fn a_slow_wire_takes_its_time() {
        let (proxy, mut caller) = echo();
        caller.set_read_timeout(None).unwrap();
        proxy.set(Fault::Delay(Duration::from_millis(20)));
        let begun = Instant::now();
        assert_eq!(said(&mut caller, "one").unwrap(), "one");
        assert!(begun.elapsed() >= Duration::from_millis(40), "there and back");
        proxy.set(Fault::Trickle(Duration::from_millis(5)));
        let begun = Instant::now();
        assert_eq!(said(&mut caller, "four").unwrap(), "four");
        assert!(begun.elapsed() >= Duration::from_millis(20), "a byte at a time");
    }
}
