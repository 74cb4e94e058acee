//! What only a real device can tell, in one table: both CUDA backings' conformance, what each call of the driver costs, a
//! long growth, a pool beside none, a mapped prefix beside a copy, and operations while a graph replays or is captured.
//!
//! Every row is measured on the spot. Where the driver lacks something, or memory is short, the row says so. Exits with 1
//! where anything is wrong: a backing does not conform, a call fails, bytes differ, or a graph wrote to another place than
//! it was captured for. The table is printed all the same. Exits with 2 where there is nothing to check: no device, too little
//! memory, or arguments that make no sense.

mod calls;
mod capture;
mod conformance;
mod graph;
mod growth;
mod hosts;
mod operation;
mod prefix;
mod replay;
mod sizes;
mod sys;
mod table;

use clap::Parser;
use hosts::Settings;
use sizes::Asked;
use std::path::PathBuf;
use std::process::ExitCode;
use table::Table;

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
}

fn main() -> ExitCode {
    let Arguments { driver, device, asked } = Arguments::parse();
    let driver = driver.map(|path| std::path::absolute(&path).unwrap_or(path));
    let settings = match Settings::find(driver, device, asked) {
        Ok(settings) => settings,
        Err(why) => {
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
    println!("{table}");
    ExitCode::from(u8::from(!table.is_right()))
}
