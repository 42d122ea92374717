//! The table of docs/families.md.

use crate::annotations::Annotations;
use render::Solution;
use std::collections::BTreeMap;
use std::fmt::Write;

/// One program at one optimisation level.
pub struct Row {
    family: String,
    name: String,
    level: String,
    failure: String,
    events: u64,
    orders: usize,
    shown: u64,
    same_path: bool,
    replays: String,
}

impl Row {
    /// The row of a program whose failing schedule and alternate were replayed so many times.
    pub fn new(
        name: &str,
        level: &str,
        annotations: &Annotations,
        solution: &Solution,
        replays: &str,
    ) -> Self {
        Self {
            family: annotations.family.clone().unwrap_or_else(|| name.replace('_', " ")),
            name: name.to_owned(),
            level: level.to_owned(),
            failure: solution.failure.as_ref().map_or_else(String::new, |f| f.kind.clone()),
            events: solution.stats.events,
            orders: solution.root_cause.as_ref().map_or(0, |cause| cause.orders.len()),
            shown: solution.stats.dsp_events,
            same_path: solution.alternates.first().is_some_and(|first| first.same_path),
            replays: replays.to_owned(),
        }
    }
}

/// The rows, in the order of family, name and level.
#[derive(Default)]
pub struct Report {
    rows: BTreeMap<(String, String, String), Row>,
}

impl Report {
    pub fn add(&mut self, row: Row) {
        self.rows.insert((row.family.clone(), row.name.clone(), row.level.clone()), row);
    }

    /// In Markdown.
    pub fn table(&self) -> String {
        let mut text = String::from(
            "# Families of synchronisation and kinds of failure\n\n\
             Written by `tests/families.rs` (`SYMBIOSIS_FAMILY_TABLE=docs/families.md`), from live \
             runs of the\nprograms in `fixtures/families`: one row per program and level that was \
             recorded, solved, and whose\nfailing schedule and first alternate were replayed; each \
             replay reproduced the failure or avoided it.\n\n\
             | family | program | level | failure | events | orderings in the cause | events shown \
             | alternate | replays of each |\n\
             | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        );
        for row in self.rows.values() {
            let path = if row.same_path { "same paths" } else { "other paths" };
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "| {} | `{}` | `{}` | {} | {} | {} | {} | {path} | {} |",
                row.family,
                row.name,
                row.level,
                row.failure,
                row.events,
                row.orders,
                row.shown,
                row.replays
            );
        }
        text
    }
}
