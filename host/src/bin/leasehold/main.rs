//! Placeholder.
mod replay;
fn main() {}
