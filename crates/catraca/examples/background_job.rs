//! A background job that sends no more than an API accepts: it waits for its turn, and gives up if
//! its turn comes too late.
//!
//! `cargo run -p catraca --features shared --example background_job`

use std::time::{Duration, Instant};

use catraca::limiter::check_until_ready;
use catraca::{Catalog, Check, Engine, Error, Limiter};

const CATALOG: &str = r#"
[policy.mail]
by     = ["provider"]
window = "2 per 1s"
"#;

/// Sends as many messages as possible before the deadline.
async fn send_messages(
    limiter: &impl Limiter,
    count: usize,
    deadline: Instant,
) -> Result<usize, Error> {
    let check = Check::new("mail", [("provider", "example.org")]);
    for sent in 0..count {
        if !check_until_ready(limiter, &check, deadline).await?.allowed {
            return Ok(sent);
        }
        // Send the message here.
    }
    Ok(count)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let engine = Engine::new(Catalog::parse(CATALOG)?);
    let start = Instant::now();
    let sent = send_messages(&engine, 6, start + Duration::from_secs(10)).await?;
    println!("{sent} messages in {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use catraca::Clock;
    use tokio::time::Instant;

    use super::*;

    /// Follows the runtime's clock, which is virtual in these tests.
    struct RuntimeClock(Instant);

    impl Clock for RuntimeClock {
        fn system_time(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH + self.0.elapsed()
        }
    }

    fn engine() -> Result<Engine, Box<dyn std::error::Error>> {
        let clock = RuntimeClock(Instant::now());
        Ok(Engine::builder(Catalog::parse(CATALOG)?).clock(clock).build())
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_waits_exactly_as_long_as_announced() -> Result<(), Box<dyn std::error::Error>> {
        let start = Instant::now();
        let sent = send_messages(&engine()?, 6, (start + Duration::from_secs(10)).into()).await?;
        assert_eq!((sent, start.elapsed()), (6, Duration::from_secs(2)));
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_gives_up_without_waiting_for_the_deadline()
    -> Result<(), Box<dyn std::error::Error>> {
        let start = Instant::now();
        let sent =
            send_messages(&engine()?, 6, (start + Duration::from_millis(1_999)).into()).await?;
        assert_eq!((sent, start.elapsed()), (4, Duration::from_secs(1)));
        Ok(())
    }
}
