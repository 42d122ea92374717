//! What the page should show, from the JSON answer alone and by the plainest way to find it.

use render::Solution;
use render::lanes::{describe, place};
use render::solution::Event;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// One schedule of a solution.
pub struct Expected<'a> {
    solution: &'a Solution,
    lane: usize,
    /// The events, first to last.
    pub order: Vec<&'a Event>,
    values: BTreeMap<&'a str, Option<&'a str>>,
}

impl<'a> Expected<'a> {
    /// The failing schedule is number 0, the first alternate number 1.
    pub fn of(solution: &'a Solution, lane: usize) -> Self {
        let alternate = lane.checked_sub(1).map(|number| &solution.alternates[number]);
        let order = alternate.map_or(&solution.schedule, |alternate| &alternate.schedule);
        let changed = alternate.map(|alternate| alternate.values.as_slice()).unwrap_or_default();
        Self {
            solution,
            lane,
            order: order.iter().map(|id| solution.event(id).expect("an event")).collect(),
            values: changed
                .iter()
                .map(|pair| (pair.event.as_str(), pair.value.as_deref()))
                .collect(),
        }
    }

    fn value(&self, event: &'a Event) -> Option<&'a str> {
        self.values.get(event.id.as_str()).copied().unwrap_or(event.value.as_deref())
    }

    /// The events that are shown at first: the DSP, the cause, the failure.
    pub fn shown(&self) -> Vec<String> {
        let solution = self.solution;
        let dsp = solution.dsp.as_ref().expect("a DSP");
        let mut ids: BTreeSet<&String> =
            if self.lane == 0 { &dsp.failing } else { &dsp.alternate }.iter().collect();
        ids.extend(solution.root_cause.iter().flat_map(|cause| cause.orders.iter().flatten()));
        ids.extend(solution.cause.iter().flat_map(|cause| &cause.events));
        ids.extend(
            solution.failure.iter().map(|failure| &failure.event).filter(|_| self.lane == 0),
        );
        ids.extend(solution.alternates[0].flipped.iter().filter(|_| self.lane == 1));
        let order = self.order.iter().map(|event| event.id.clone());
        order.filter(|id| ids.contains(id)).collect()
    }

    /// A row: identifier, what it says, where.
    pub fn compare_row(&self, row: &Value) {
        let event = self.solution.event(row[0].as_str().expect("an identifier")).expect("an event");
        assert_eq!(row[1], describe(event, self.value(event)), "{row}");
        assert_eq!(row[2], place(&event.location), "{row}");
    }

    /// All that the page shows of a step.
    pub fn compare(&self, step: usize, state: &Value) {
        self.compare_event(step, state);
        let locks: BTreeSet<(String, String)> =
            serde_json::from_value(state["locks"].clone()).expect("pairs");
        assert_eq!(locks, self.locks(step), "locks at step {step}: {state}");
        let variables: Vec<(String, String)> =
            serde_json::from_value(state["variables"].clone()).expect("pairs");
        for (key, value) in &variables {
            assert_eq!(*value, self.variable(key, step), "{key} at step {step}: {state}");
        }
        let event = self.order[step];
        let shown = |key: &str| variables.iter().any(|(shown, _)| shown == key);
        assert!(!is_access(event) || shown(&key(event)), "{} at {step}", event.id);
        for id in self.shown() {
            let event = self.solution.event(&id).expect("an event");
            assert!(!is_access(event) || shown(&key(event)), "{id} matters, and its variable");
        }
    }

    /// The same, but of the variables only that which the event is about.
    pub fn compare_last(&self, step: usize, state: &Value) {
        self.compare_event(step, state);
        let event = self.order[step];
        if is_access(event) {
            let variables = state["variables"].as_array().expect("pairs");
            let own = variables.iter().find(|pair| pair[0] == key(event)).expect("its variable");
            assert_eq!(own[1], self.variable(&key(event), step), "{state}");
        }
    }

    fn compare_event(&self, step: usize, state: &Value) {
        let event = self.order[step];
        assert_eq!(state["step"], format!("{} / {}", step + 1, self.order.len()));
        assert_eq!(state["event"], event.id, "at step {step}");
        assert_eq!(state["what"], describe(event, self.value(event)), "at step {step}");
        if let Some(line) = super::line_of(&event.location) {
            assert_eq!(state["line"], event.location.line, "at step {step}: {state}");
            let shown = state["source"].as_str().expect("a line").trim_end().to_owned();
            assert_eq!(shown, line.trim_end(), "at step {step}: {state}");
        }
    }

    /// What a variable holds at a step.
    fn variable(&self, wanted: &str, step: usize) -> String {
        let parts: BTreeSet<&str> = wanted.split('+').collect();
        let touches =
            |event: &Event| event.targets.iter().any(|part| parts.contains(part.as_str()));
        for event in self.order[..=step].iter().rev().filter(|event| is_access(event)) {
            if key(event) == wanted {
                let value = self.value(event).expect("an access has a value");
                return value.rsplit(" -> ").next().unwrap_or(value).to_owned();
            }
            if event.kind != "read" && touches(event) {
                return "(changed in part)".to_owned();
            }
        }
        let own = |event: &&&'a Event| is_access(event) && key(event) == wanted;
        match self.order.iter().find(own) {
            Some(event) if event.kind != "write" => {
                let value = self.value(event).expect("an access has a value");
                value.split(" -> ").next().unwrap_or(value).to_owned()
            }
            _ => "not used yet".to_owned(),
        }
    }

    /// Which locks are held, and by which thread.
    fn locks(&self, step: usize) -> BTreeSet<(String, String)> {
        let mut held = BTreeMap::new();
        for event in &self.order[..=step] {
            let holding = (key(event), event.thread.clone());
            match event.kind.as_str() {
                "lock" | "lock-shared" => {
                    held.insert(holding, event.object.clone().unwrap_or_default());
                }
                "unlock" | "unlock-shared" => drop(held.remove(&holding)),
                _ => {}
            }
        }
        held.into_iter().map(|((_, thread), name)| (name, thread)).collect()
    }
}

fn is_access(event: &Event) -> bool {
    matches!(event.kind.as_str(), "read" | "write" | "read-modify-write")
}

fn key(event: &Event) -> String {
    event.targets.join("+")
}
