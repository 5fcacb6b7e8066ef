//! catraca
