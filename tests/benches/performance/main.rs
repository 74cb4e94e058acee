//! What Leasehold costs, beside what it could be replaced by: one table, from one run.
//!
//! `cargo bench -p leasehold-tests --bench performance`, and `-- crossing leases` for some themes only. Nothing here
//! fails on a time; docs/performance.md says how each row is measured.
//!
//! ```text
//!   main ──┬─► growth, crossing, reallocation, leases, loading, sharing ──► table ─► standard output
//!          │        each uses: harness (samples side by side), hosts (a host for each door)
//!          └─► child: one variant in a process of its own, for peaks and for first loads
//! ```

mod bare;
mod child;
mod counts;
mod crossing;
mod growth;
mod harness;
mod hosts;
mod leases;
mod loading;
mod machine;
mod reallocation;
mod sharing;
mod table;

use table::Table;

/// Adds its rows to the table.
type Measure = fn(&mut Table);

/// What is measured, by the name that picks it.
const THEMES: [(&str, Measure); 8] = [
    ("committed", growth::within_the_committed_part),
    ("crossing", crossing::measure),
    ("steps", growth::in_large_steps),
    ("tokens", growth::token_by_token),
    ("reallocation", reallocation::measure),
    ("leases", leases::measure),
    ("loading", loading::measure),
    ("sharing", sharing::measure),
];

fn main() {
    if let Some(variant) = child::requested() {
        return child::run(&variant);
    }
    println!("{}\n", machine::describe());
    let mut table = Table::new();
    picked().for_each(|measure| measure(&mut table));
    println!("{table}");
    println!("{}", counts::describe());
}

/// The themes that are named on the command line; all of them when none is.
fn picked() -> impl Iterator<Item = Measure> {
    let named: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let wanted = move |name: &str| named.is_empty() || named.iter().any(|argument| argument == name);
    THEMES.into_iter().filter(move |(name, _)| wanted(name)).map(|(_, measure)| measure)
}
