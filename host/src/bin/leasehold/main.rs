//! Placeholder.
mod registry_choice;
mod replay;
fn main() {}
