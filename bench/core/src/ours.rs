//! Catraca itself, measured beside the others.
