//! What only a real device can tell, in one table: both CUDA backings' conformance, what each call of the driver costs, a
//! long growth, a pool beside none, a mapped prefix beside a copy, operations while a graph replays or is captured, and
//! stores into what is sealed.
//!
//! Every row is measured on the spot. Where the driver lacks something, or memory is short, the row says so. Exits with 1
//! where anything is wrong: a backing does not conform, a call fails, bytes differ, a graph wrote to another place than it
//! was captured for, or what is sealed could be written. The table is printed all the same. Exits with 2 where there is
//! nothing to check: no device, too little memory, or arguments that make no sense.

mod calls;
mod capture;
mod conformance;
mod graph;
mod growth;
mod hosts;
mod operation;
mod prefix;
mod replay;
mod sealed;
mod sizes;
mod store;
mod sys;
mod table;

use clap::Parser;
use hosts::Settings;
use sizes::Asked;
use std::path::PathBuf;
use std::process::ExitCode;
use store::Store;
use table::{Table, Trouble};

#[derive(Debug, Parser)]
#[command(about = "What only a real CUDA device can tell: prints one table within three minutes")]
struct Arguments {
    /// The driver's library, where it is not the system's
    #[arg(long)]
    driver: Option<PathBuf>,
    /// The device's ordinal
    #[arg(long, default_value_t = 0)]
    device: u32,
    #[command(flatten)]
    asked: Asked,
    /// Only stores where nothing may be written, as a child of the check
    #[arg(long, hide = true)]
    store: Option<Store>,
}

fn main() -> ExitCode {
    let Arguments { driver, device, asked, store } = Arguments::parse();
    let driver = driver.map(|path| std::path::absolute(&path).unwrap_or(path));
    let settings = match (Settings::find(driver, device, asked), store) {
        (Ok(settings), None) => settings,
        (Ok(settings), Some(store)) => store::run(&settings, store),
        (Err(why), Some(_)) => store::tell(Err(Trouble::Lacking(why))),
        (Err(why), None) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    let mut table = Table::new(&settings);
    conformance::measure(&settings, &mut table);
    calls::measure(&settings, &mut table);
    growth::measure(&settings, &mut table);
    prefix::measure(&settings, &mut table);
    replay::measure(&settings, &mut table);
    capture::measure(&settings, &mut table);
    sealed::measure(&settings, &mut table);
    println!("{table}");
    ExitCode::from(u8::from(!table.is_right()))
}
