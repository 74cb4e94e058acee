//! Placeholder.

#[cfg_attr(not(test), expect(dead_code, reason = "the stages that consume it are not here yet"))]
mod machine;
#[cfg_attr(not(test), expect(dead_code, reason = "the stages that consume it are not here yet"))]
mod registry;

pub use registry::{Selection, SelectionError};
