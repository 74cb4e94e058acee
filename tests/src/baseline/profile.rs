//! Reads the file that callgrind writes: what one function costs with all that it calls.
//!
//! The form is that of valgrind's manual, "Callgrind Format Specification": a function's name stands where its number is
//! first used, as `fn=(12) name` or `cfn=(12) name`, and the line after `calls=` has what these calls cost, including
//! their callees.

use std::collections::HashMap;

/// What a function costs, over all its calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Instructions in user space.
    pub instructions: u64,
    /// System calls.
    pub system_calls: u64,
}

/// Sums what calls cost to functions whose name, as the linker sees it, is wanted. A function that is called by another
/// wanted one counts twice.
///
/// # Errors
///
/// The text lacks what this reads.
pub fn cost_of_calls(text: &str, is_wanted: impl Fn(&str) -> bool) -> Result<Cost, String> {
    let events = text.lines().find_map(|line| line.strip_prefix("events:")).ok_or("it names no events")?;
    let place = |event: &str| {
        let place = events.split_whitespace().position(|name| name == event);
        place.ok_or_else(|| format!("it has no {event}, only{events}"))
    };
    let (instructions, system_calls) = (place("Ir")?, place("sysCount")?);
    let (mut names, mut callee, mut cost) = (HashMap::new(), "", Cost::default());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("fn=") {
            name_of(name, &mut names)?;
        } else if let Some(name) = line.strip_prefix("cfn=") {
            callee = name_of(name, &mut names)?;
        } else if line.starts_with("calls=") && is_wanted(callee) {
            let figures: Vec<_> = lines.next().unwrap_or_default().split_whitespace().skip(1).collect();
            cost.instructions += figure(&figures, instructions)?;
            cost.system_calls += figure(&figures, system_calls)?;
        }
    }
    Ok(cost)
}

/// The name of a function that is written as `(number) name`, or as `(number)` where it was named before.
fn name_of<'t>(written: &'t str, names: &mut HashMap<&'t str, &'t str>) -> Result<&'t str, String> {
    let (number, name) = written.split_once(' ').unwrap_or((written, ""));
    if !name.is_empty() {
        names.insert(number, name);
    }
    names.get(number).copied().ok_or_else(|| format!("it does not name function {number}"))
}

/// Figures that are zero at the end of a line are left out.
fn figure(figures: &[&str], place: usize) -> Result<u64, String> {
    figures.get(place).map_or(Ok(0), |text| text.parse().map_err(|_| format!("{text:?} is no count")))
}
