//! Placeholder.

#[path = "../../machine/privilege.rs"]
mod privilege;
#[cfg_attr(not(test), expect(dead_code, reason = "the commands are not here yet"))]
mod registry_choice;

fn main() {}
