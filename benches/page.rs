//! How long the HTML page of a solution takes to make, and how large it is, by the number of events.
//!
//! `cargo bench -p render --bench page -- [EVENTS ...]` prints a Markdown table. With
//! `SYMBIOSIS_PAGE` in the environment the last page is written to that file, to be looked at in a
//! browser; `cargo test --test main page -- --nocapture` says how long a step takes there.

#[path = "../tests/page/large.rs"]
mod large;

use render::html::{Sources, to_html};
use std::time::Instant;

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];
const ROUNDS: usize = 5;

fn main() {
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let sizes = if sizes.is_empty() { SIZES.to_vec() } else { sizes };
    let mut last = String::new();
    println!("| events | median | page |");
    println!("| --- | --- | --- |");
    for size in sizes {
        let solution = large::large(size, "counters");
        let mut times: Vec<_> = (0..ROUNDS)
            .map(|_| {
                let start = Instant::now();
                let sources = Sources::gather(&solution, |_| Err("it is not there".to_owned()));
                last = to_html(&solution, &sources).unwrap_or_default();
                start.elapsed()
            })
            .collect();
        times.sort();
        let megabytes = last.len() as f64 / 1e6;
        println!("| {} | {:.1?} | {megabytes:.1} MB |", solution.events.len(), times[ROUNDS / 2]);
    }
    if let Some(path) = std::env::var_os("SYMBIOSIS_PAGE")
        && let Err(error) = std::fs::write(&path, &last)
    {
        eprintln!("{}: {error}", path.display());
    }
}
