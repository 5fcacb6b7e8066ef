//! Watches the hosts of the records' URL on a thread of its own: sessions run only during a call,
//! and must leave a primary that another host has replaced.

use std::thread;

use tokio::runtime::Builder;
use tokio::sync::oneshot;

use super::session::CONNECT_TIMEOUT;
use crate::postgres::connection::watch_hosts;
use crate::postgres::database_url::DatabaseUrl;
use crate::postgres::failure::PostgresFailure;

/// The thread ends when this is dropped.
pub(super) struct HostWatch {
    _stop: oneshot::Sender<()>,
}

impl HostWatch {
    /// None for a URL with one host.
    pub(super) fn start(url: &DatabaseUrl) -> Result<Option<Self>, PostgresFailure> {
        if !url.has_several_hosts() {
            return Ok(None);
        }
        let failed = |error: std::io::Error| PostgresFailure::ConnectionLost(error.to_string());
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (stop, stopped) = oneshot::channel::<()>();
        let url = url.clone();
        let run = move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = watch_hosts(url, CONNECT_TIMEOUT) => {}
                }
            });
            runtime.shutdown_background();
        };
        thread::Builder::new().name("catraca-pg-hosts".to_owned()).spawn(run).map_err(failed)?;
        Ok(Some(Self { _stop: stop }))
    }
}
