//! Operations while a captured graph replays: what a base that never moves, and streams of our own, are for.
//!
//! An operation counts only where the graph is known to have run all the while: it had begun to write before, and was not
//! over after.

use crate::graph::{Captured, LAST, MARK};
use crate::hosts::Settings;
use crate::operation::{Operation, Stage};
use crate::sys::Flavour;
use crate::table::{Table, Trouble, spread};
use std::time::{Duration, Instant};

/// Steps of an operation, each while the graph replays, unless the size has fewer granules.
const STEPS: u64 = 64;

/// What came of some steps beside a graph.
#[derive(Debug, Default)]
struct Steps {
    /// How long each took that the graph ran beside from its beginning to its end.
    beside: Vec<Duration>,
    /// How long the others took.
    others: Vec<Duration>,
    /// How long the graph takes with nothing beside it.
    alone: Duration,
}

pub(crate) fn measure(settings: &Settings, table: &mut Table) {
    for operation in Operation::ALL {
        for flavour in [Flavour::NonBlocking, Flavour::Blocking] {
            let figure = under_replay(settings, operation, flavour).and_then(Steps::figure);
            table.add(format!("while a captured graph replays, {flavour:?} stream: {operation}"), figure);
        }
    }
}

impl Steps {
    fn figure(self) -> Result<String, Trouble> {
        let Self { beside, others, alone } = self;
        let (ran, all) = (beside.len(), beside.len() + others.len());
        if ran == 0 {
            return Err(Trouble::Lacking(format!(
                "the graph, which takes {alone:.2?} alone, did not run on through any of {all} steps: they wait for it, or \
                 take as long; a step: {}",
                spread(others)
            )));
        }
        Ok(format!(
            "the graph, which takes {alone:.2?} alone, wrote where it was captured for, and ran on through {ran} of {all} \
             steps; such a step: {}",
            spread(beside)
        ))
    }
}

fn under_replay(settings: &Settings, operation: Operation, flavour: Flavour) -> Result<Steps, Trouble> {
    let _bound = settings.device.bind()?;
    let times = settings.sizes.granules(STEPS);
    let mut stage = Stage::new(settings, operation, times)?;
    let mut captured = Captured::new(settings.driver.as_deref(), flavour)?;
    captured.capture(stage.base(), stage.granule(), || Ok(()))?;
    let mut steps = Steps { alone: alone(&captured)?, ..Steps::default() };
    for step in 1..=times {
        stage.clear()?;
        captured.launch()?;
        let has_begun = begins(&captured, &stage)?;
        let took = stage.act()?;
        let runs_on = captured.is_running()?;
        captured.wait()?;
        let seen = stage.shows()?;
        if seen != [LAST; 8] {
            return Err(Trouble::wrong(format!("after step {step} the graph's memory shows {seen:?}")));
        }
        stage.check()?;
        let these = if has_begun && runs_on { &mut steps.beside } else { &mut steps.others };
        these.push(took);
    }
    Ok(steps)
}

/// How long the graph takes. The first time is not like the others.
fn alone(captured: &Captured) -> Result<Duration, Trouble> {
    let replay = || -> Result<Duration, Trouble> {
        let begin = Instant::now();
        captured.launch()?;
        captured.wait()?;
        Ok(begin.elapsed())
    };
    replay()?;
    replay()
}

/// Waits until the graph has written something and is not over, or is over.
fn begins(captured: &Captured, stage: &Stage) -> Result<bool, Trouble> {
    while captured.is_running()? {
        if stage.shows()? == [MARK; 8] {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_micros(20);

    #[test]
    fn only_steps_that_the_graph_ran_through_are_told() {
        let steps = Steps { beside: vec![STEP; 3], others: vec![10 * STEP], alone: 100 * STEP };
        let figure = steps.figure().unwrap();
        assert!(figure.contains("takes 2.00ms alone") && figure.contains("through 3 of 4 steps"), "{figure}");
        assert!(figure.ends_with("such a step: median 20.00µs, p99 20.00µs, 3 calls"), "{figure}");
    }

    #[test]
    fn a_graph_that_ran_through_no_step_is_no_figure() {
        let steps = Steps { beside: Vec::new(), others: vec![STEP; 4], alone: STEP };
        let Err(Trouble::Lacking(why)) = steps.figure() else { panic!("that was beside nothing") };
        assert!(why.contains("takes 20.00µs alone") && why.contains("any of 4 steps"), "{why}");
    }
}
