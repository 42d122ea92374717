//! Trace events in the JSON format of Chrome's tracing, which Perfetto opens: both schedules whole,
//! a process each, a track per thread, a slice per event, and an arrow for each data-flow between
//! threads.
//!
//! A schedule has no times, only an order: each event takes one step of ten microseconds.

use crate::Solution;
use crate::held::held;
use crate::lanes::{describe, place};
use crate::solution::Event;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Microseconds from one event to the next.
const STEP: u64 = 10;
/// Microseconds of an event's slice.
const LENGTH: u64 = 8;

/// The JSON object, with a final newline.
///
/// # Errors
/// When serialisation fails, which for this type means out of memory.
pub fn to_perfetto(solution: &Solution) -> Result<String, serde_json::Error> {
    let mut writer = Writer { solution, events: Vec::new(), flows: 0 };
    writer.schedule(1, "failing schedule", &solution.schedule, Side::Failing);
    if let Some(alternate) = solution.alternates.first() {
        let title = if alternate.same_path { "alternate schedule" } else { "passing run" };
        writer.schedule(2, title, &alternate.schedule, Side::Alternate);
    }
    let cause = solution.cause.as_ref().map(|cause| cause.sentence.as_str());
    let document = json!({
        "displayTimeUnit": "ns",
        "otherData": { "cause": cause, "replay": solution.replay.words() },
        "traceEvents": writer.events,
    });
    let mut text = serde_json::to_string(&document)?;
    text.push('\n');
    Ok(text)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Failing,
    Alternate,
}

struct Writer<'s> {
    solution: &'s Solution,
    events: Vec<Value>,
    /// Arrows so far: each has a number of its own.
    flows: u64,
}

/// The last write of each cell: where it stands in the schedule, and the event.
type LastWrites<'s> = BTreeMap<&'s str, (u64, &'s Event)>;

impl<'s> Writer<'s> {
    fn schedule(&mut self, process: u64, title: &str, schedule: &'s [String], side: Side) {
        let solution = self.solution;
        let threads: BTreeMap<&str, usize> = (1..)
            .zip(solution.all_threads())
            .map(|(number, thread)| (thread.id.as_str(), number))
            .collect();
        self.metadata(process, 0, "process_name", json!({ "name": title }));
        self.metadata(process, 0, "process_sort_index", json!({ "sort_index": process }));
        for (number, thread) in (1..).zip(solution.all_threads()) {
            let name = format!("{} {}", thread.id, thread.entry);
            self.metadata(process, number, "thread_name", json!({ "name": name }));
            self.metadata(process, number, "thread_sort_index", json!({ "sort_index": number }));
        }
        let locks = held(solution, schedule);
        let changed = changed(solution, side);
        let named: BTreeSet<&str> = solution
            .cause
            .iter()
            .flat_map(|cause| cause.events.iter().map(String::as_str))
            .collect();
        let values: BTreeMap<&str, Option<&str>> = match side {
            Side::Failing => BTreeMap::new(),
            Side::Alternate => other_values(solution),
        };
        let mut last: LastWrites<'s> = BTreeMap::new();
        for (position, id) in (0u64..).zip(schedule) {
            let Some(event) = solution.event(id) else { continue };
            let value = match values.get(id.as_str()) {
                Some(value) => *value,
                None => event.value.as_deref(),
            };
            let thread = threads.get(event.thread.as_str()).copied().unwrap_or(0);
            self.events.push(json!({
                "ph": "X", "pid": process, "tid": thread, "ts": position * STEP, "dur": LENGTH,
                "name": describe(event, value),
                "cat": if named.contains(id.as_str()) { "cause" } else { event.kind.as_str() },
                "args": {
                    "event": id, "place": place(&event.location),
                    "function": event.location.function,
                    "callers": event.callers.iter().map(place).collect::<Vec<_>>(),
                    "holds": locks.get(id.as_str()),
                },
            }));
            if matches!(event.kind.as_str(), "read" | "read-modify-write") {
                self.arrows(process, (position, event), &last, &threads, &changed);
            }
            if matches!(event.kind.as_str(), "write" | "read-modify-write") {
                last.extend(event.targets.iter().map(|cell| (cell.as_str(), (position, event))));
            }
        }
    }

    /// From the writes that an event of another thread reads.
    fn arrows(
        &mut self,
        process: u64,
        (position, event): (u64, &Event),
        last: &LastWrites<'_>,
        threads: &BTreeMap<&str, usize>,
        changed: &BTreeSet<(&str, &str)>,
    ) {
        let mut sources: Vec<(u64, &Event)> =
            event.targets.iter().filter_map(|cell| last.get(cell.as_str()).copied()).collect();
        sources.sort_by_key(|source| source.0);
        sources.dedup_by_key(|source| source.0);
        for (from, write) in sources.into_iter().filter(|source| source.1.thread != event.thread) {
            self.flows += 1;
            let differs = changed.contains(&(write.id.as_str(), event.id.as_str()));
            let category = if differs { "data-flow,changed" } else { "data-flow" };
            let name = event.object.as_deref().unwrap_or("data-flow");
            let number = |thread: &str| threads.get(thread).copied().unwrap_or(0);
            let id = self.flows;
            self.events.push(json!({
                "ph": "s", "id": id, "name": name, "cat": category, "pid": process,
                "tid": number(&write.thread), "ts": from * STEP + LENGTH / 2,
            }));
            self.events.push(json!({
                "ph": "f", "bp": "e", "id": id, "name": name, "cat": category, "pid": process,
                "tid": number(&event.thread), "ts": position * STEP + LENGTH / 2,
            }));
        }
    }

    fn metadata(&mut self, process: u64, thread: usize, name: &str, args: Value) {
        self.events.push(json!({
            "ph": "M", "pid": process, "tid": thread, "name": name, "args": args,
        }));
    }
}

/// The data-flows of one side that the other one does not have.
fn changed(solution: &Solution, side: Side) -> BTreeSet<(&str, &str)> {
    let flows = solution.dsp.iter().flat_map(|dsp| match side {
        Side::Failing => &dsp.data_flows.failing_only,
        Side::Alternate => &dsp.data_flows.alternate_only,
    });
    flows.map(|flow| (flow.write.as_str(), flow.read.as_str())).collect()
}

/// The values that events have in the first alternate, where they are others.
fn other_values(solution: &Solution) -> BTreeMap<&str, Option<&str>> {
    let mut values: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    let changed = solution.alternates.first().into_iter().flat_map(|other| &other.values);
    values.extend(changed.map(|value| (value.event.as_str(), value.value.as_deref())));
    let shown = solution.dsp.iter().flat_map(|dsp| &dsp.values);
    values.extend(shown.map(|pair| (pair.event.as_str(), pair.alternate.as_deref())));
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{lost_update, other_path};

    fn events(solution: &Solution) -> Vec<Value> {
        let text = to_perfetto(solution).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        document["traceEvents"].as_array().unwrap().clone()
    }

    fn of<'e>(events: &'e [Value], phase: &str) -> Vec<&'e Value> {
        events.iter().filter(|event| event["ph"] == phase).collect()
    }

    #[test]
    fn both_schedules_are_whole_and_in_order() {
        let solution = lost_update();
        let events = events(&solution);
        let slices = of(&events, "X");
        let both = solution.schedule.len() + solution.alternates[0].schedule.len();
        assert_eq!(slices.len(), both);
        let failing: Vec<&str> = slices
            .iter()
            .filter(|slice| slice["pid"] == 1)
            .map(|slice| slice["args"]["event"].as_str().unwrap())
            .collect();
        assert_eq!(failing, solution.schedule);
        // What e2 reads is another value in the alternate.
        let names: Vec<&Value> = slices
            .iter()
            .filter(|slice| slice["args"]["event"] == "e2")
            .map(|slice| &slice["name"])
            .collect();
        assert_eq!(names, ["read bank->total = 0", "read bank->total = 1"]);
    }

    #[test]
    fn arrows_lead_from_writes_to_reads_of_other_threads() {
        let events = events(&lost_update());
        let (starts, ends) = (of(&events, "s"), of(&events, "f"));
        assert_eq!(starts.len(), ends.len());
        for (start, end) in starts.iter().zip(&ends) {
            assert_eq!((&start["id"], &start["pid"]), (&end["id"], &end["pid"]));
            assert_ne!(start["tid"], end["tid"]);
            assert!(start["ts"].as_u64() < end["ts"].as_u64());
        }
        // Failing: e3 to e4. Alternate: e1 to e2, which differs, and e3 to e4.
        let changed = starts.iter().filter(|s| s["cat"] == "data-flow,changed").count();
        assert_eq!((starts.len(), changed), (3, 1));
    }

    #[test]
    fn a_passing_run_has_its_own_events() {
        let events = events(&other_path());
        let alone = |event: &&&Value| event["args"]["event"] == "a0" && event["pid"] == 2;
        assert_eq!(of(&events, "X").iter().filter(alone).count(), 1);
    }

    #[test]
    fn a_thread_of_the_passing_run_alone_has_a_track() {
        let mut solution = other_path();
        let alternate = &mut solution.alternates[0];
        alternate.events[0].thread = "t0.9".to_owned();
        alternate.threads.push(crate::solution::Thread {
            id: "t0.9".to_owned(),
            parent: Some("t0".to_owned()),
            entry: "audit".to_owned(),
        });
        let events = events(&solution);
        let slices = of(&events, "X");
        let slice = slices.iter().find(|slice| slice["args"]["event"] == "a0").unwrap();
        let named = of(&events, "M").into_iter().find(|event| {
            event["name"] == "thread_name"
                && (&event["pid"], &event["tid"]) == (&slice["pid"], &slice["tid"])
        });
        assert_eq!(named.unwrap()["args"]["name"], "t0.9 audit");
    }
}
