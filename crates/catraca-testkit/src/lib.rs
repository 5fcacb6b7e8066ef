//! Independent models, generators and comparisons that test catraca. Never part of a release.

pub mod compare;
pub mod contract;
pub mod generate;
pub mod oracle;
pub mod plain;
pub mod resp;
pub mod scenario;
