//! Acts on keys without an audit, for programs that have no records and no operators.

use catraca_core::cell::block::BlockProposal;
use catraca_core::subject::Subject;

use super::App;
use crate::error::Error;
use crate::settlement::BlockResult;

impl App {
    /// Blocks a subject under one policy. For an `each` policy, blocks every key of the subject.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use catraca::{App, BlockProposal, Catalog, Check, Engine, Subject};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let catalog = Catalog::parse("[policy.api]\n by = ['ip']\n window = '9 per 1m'")?;
    /// let app = App::local(Engine::new(catalog)).build();
    /// let subject = Subject::from([("ip", "198.51.100.7")]);
    /// let proposal = BlockProposal::by_operator(Duration::from_secs(3_600), Some("abuse"));
    /// app.block_unaudited("default", "api", &subject, proposal).await?;
    /// assert!(!app.check(&Check::new("api", subject.clone())).await?.allowed);
    /// assert!(app.unblock_unaudited("default", "api", &subject).await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn block_unaudited(
        &self,
        namespace: &str,
        policy: &str,
        subject: &Subject<'_>,
        proposal: BlockProposal,
    ) -> Result<BlockResult, Error> {
        let rules = self.rules();
        let exchange =
            self.engine().block_exchange(&rules, namespace, policy, subject, proposal)?;
        self.run(exchange).await
    }

    /// Ends the blocks of a subject under one policy. Returns whether any was active.
    pub async fn unblock_unaudited(
        &self,
        namespace: &str,
        policy: &str,
        subject: &Subject<'_>,
    ) -> Result<bool, Error> {
        let keys = self.engine().resolve_keys(&self.rules(), namespace, policy, subject)?;
        let rows = keys.into_iter().map(|key| (key, None)).collect();
        let released = self.run(self.engine().unblock_exchange(rows)).await?;
        self.publish_change().await;
        Ok(released.contains(&true))
    }

    /// Clears counters, block, level and ban counts of a subject under one policy.
    pub async fn reset_unaudited(
        &self,
        namespace: &str,
        policy: &str,
        subject: &Subject<'_>,
    ) -> Result<(), Error> {
        let keys = self.engine().resolve_keys(&self.rules(), namespace, policy, subject)?;
        self.run(self.engine().reset_exchange(keys)).await?;
        self.publish_change().await;
        Ok(())
    }
}
