//! Whether sealed memory can't be written: tried, each time in a child, whose context may not outlive it.
//!
//! They are the last rows: where processes share the device by MPS, a fault of one may be everybody's.

use crate::hosts::Settings;
use crate::store::Store;
use crate::table::{Table, Trouble};
use clap::ValueEnum;
use std::io;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a child may take.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn measure(settings: &Settings, table: &mut Table) {
    for store in Store::value_variants() {
        table.add(store.to_string(), in_child(settings, *store));
    }
}

fn in_child(settings: &Settings, store: Store) -> Result<String, Trouble> {
    let output = begin(settings, store).and_then(wait);
    match output.map_err(|error| Trouble::wrong(format!("the child can't be run: {error}")))? {
        Some((code, said)) => verdict(code, &said),
        None => Err(Trouble::wrong(format!("the child did not end within {PATIENCE:?}"))),
    }
}

/// This very program, told to store.
fn begin(settings: &Settings, store: Store) -> io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--store").arg(store.word());
    command.arg("--device").arg(settings.device.ordinal().to_string());
    if let Some(driver) = &settings.driver {
        command.arg("--driver").arg(driver);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()
}

/// Its status, where it had one, and what it printed: a line, for which the pipe has room. `None` where it had to be ended.
fn wait(mut child: Child) -> io::Result<Option<(Option<i32>, String)>> {
    let deadline = Instant::now() + PATIENCE;
    while child.try_wait()?.is_none() {
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output()?;
    Ok(Some((output.status.code(), String::from_utf8_lossy(&output.stdout).trim().to_owned())))
}

/// What the child's status and words come to.
fn verdict(code: Option<i32>, said: &str) -> Result<String, Trouble> {
    match code {
        Some(0) if !said.is_empty() => Ok(said.to_owned()),
        Some(1) if !said.is_empty() => Err(Trouble::wrong(said)),
        Some(2) if !said.is_empty() => Err(Trouble::Lacking(said.to_owned())),
        Some(code) => Err(Trouble::wrong(format!("the child ended with {code}, and said {said:?}"))),
        None => Err(Trouble::wrong(format!("the child was ended by a signal, and said {said:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_speaks_by_its_status_and_its_words() {
        assert!(matches!(verdict(Some(0), "refused"), Ok(figure) if figure == "refused"));
        assert!(matches!(verdict(Some(1), "another byte"), Err(Trouble::Wrong(why)) if why == "another byte"));
        assert!(matches!(verdict(Some(2), "no kernel"), Err(Trouble::Lacking(why)) if why == "no kernel"));
    }

    #[test]
    fn a_child_that_ends_otherwise_is_wrong() {
        for (code, said) in [(Some(0), ""), (Some(2), ""), (Some(101), "panicked"), (None, "")] {
            assert!(matches!(verdict(code, said), Err(Trouble::Wrong(_))), "{code:?}");
        }
    }
}
