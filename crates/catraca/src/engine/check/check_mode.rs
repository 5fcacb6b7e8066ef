//! The mode of a check, for callers that decide it at run time.

/// Whether a check charges.
///
/// ```
/// # #[cfg(not(feature = "shared"))]
/// # fn main() {}
/// # #[cfg(feature = "shared")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use catraca::{App, Catalog, Check, CheckMode, Engine};
///
/// let catalog = Catalog::parse("[policy.api]\n by = ['ip']\n window = '9 per 1m'")?;
/// let app = App::local(Engine::new(catalog)).build();
/// let check = Check::new("api", [("ip", "198.51.100.7")]);
/// assert_eq!(app.decide(&check, CheckMode::Peek).await?.remaining, Some(9));
/// assert_eq!(app.decide(&check, CheckMode::Check).await?.remaining, Some(8));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckMode {
    /// Decides and charges.
    Check,
    /// Decides and changes nothing.
    Peek,
}
