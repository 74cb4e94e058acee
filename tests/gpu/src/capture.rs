//! Operations of one thread while another captures a graph in the global mode, in which the driver ends a capture over many
//! a call of any thread that does not ask it to be relaxed.
//!
//! Sealing a prefix is not among them: it waits for all work, so a capture is in its way, and it in the capture's.

use crate::graph::{Captured, LAST};
use crate::hosts::Settings;
use crate::operation::{Operation, Stage};
use crate::sys::Flavour;
use crate::table::{Table, Trouble};
use std::time::Duration;

pub(crate) fn measure(settings: &Settings, table: &mut Table) {
    for operation in Operation::ALL {
        table.add(format!("while another thread captures a graph: {operation}"), on_both(settings, operation));
    }
}

fn on_both(settings: &Settings, operation: Operation) -> Result<String, Trouble> {
    let beside = |flavour| beside_capture(settings, operation, flavour);
    let (apart, ordered) = (beside(Flavour::NonBlocking)?, beside(Flavour::Blocking)?);
    Ok(format!("{apart:.2?}, of a Blocking stream {ordered:.2?}; each capture ended well, and its graph replays"))
}

/// How long the operation took.
fn beside_capture(settings: &Settings, operation: Operation, flavour: Flavour) -> Result<Duration, Trouble> {
    let _bound = settings.device.bind()?;
    let mut stage = Stage::new(settings, operation, 1)?;
    let mut captured = Captured::new(settings.driver.as_deref(), flavour)?;
    let mut took = Duration::ZERO;
    captured.capture(stage.base(), stage.granule(), || {
        took = stage.act_elsewhere()?;
        Ok(())
    })?;
    stage.check()?;
    stage.clear()?;
    captured.launch()?;
    captured.wait()?;
    let seen = stage.shows()?;
    if seen != [LAST; 8] {
        return Err(Trouble::wrong(format!("the graph captured beside it leaves {seen:?}")));
    }
    Ok(took)
}
