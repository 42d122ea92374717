//! From a solver's places of events to a [`Model`].

use crate::session::{Model, Outcome, UnknownReason};
use model::{CellId, ReadRef};
use model::{EventId, EventTrace, Schedule, VarId, VariableOrigin, WriteSource};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What a back end reads from its solver.
#[derive(Clone, Debug, Default)]
pub(crate) struct Assignment {
    /// The place of every event, by event.
    pub(crate) places: Vec<i64>,
    /// The values of the variables that the formula declares.
    pub(crate) values: BTreeMap<VarId, u128>,
}

/// Where events lie in the order that an assignment stands for. Equal places stand for decreasing identifiers, as the
/// formula's documentation says.
fn place(assignment: &Assignment, id: EventId) -> (i64, Reverse<EventId>) {
    (assignment.places.get(id.index()).copied().unwrap_or(0), Reverse(id))
}

/// Has every thread its events in program order, which any formula asks for? A solver that is interrupted may answer with
/// places that it has not decided on.
fn is_in_program_order(trace: &EventTrace, assignment: &Assignment) -> bool {
    let place = |id: &EventId| place(assignment, *id);
    trace.threads.iter().all(|thread| thread.events.is_sorted_by(|a, b| place(a) < place(b)))
}

/// The answer that a solver's assignment stands for: unknown where it is none of the formula's. Z3 4.8.12 gave such a one now
/// and then, some seconds into a question of several thousand events.
pub(crate) fn outcome(trace: &EventTrace, assignment: &Assignment) -> Outcome {
    match is_in_program_order(trace, assignment) {
        true => Outcome::Sat(model(trace, assignment)),
        false => {
            let reason = "its model has no order of the events".to_owned();
            Outcome::Unknown(UnknownReason::GaveUp(reason))
        }
    }
}

/// The model of an assignment. Reads that the formula leaves open, since nothing depends on
/// them, get their source and value from the schedule as all others do.
pub(crate) fn model(trace: &EventTrace, assignment: &Assignment) -> Model {
    let mut order: Vec<EventId> = trace.events.iter().map(|event| event.id).collect();
    order.sort_by_key(|&id| place(assignment, id));
    let mut run = Run::start(trace, assignment);
    order.iter().for_each(|&event| run.step(trace, event));
    Model { schedule: Schedule { order }, reads_from: run.reads_from, values: run.values }
}

/// The memory along a schedule.
struct Run {
    sources: Vec<WriteSource>,
    cells: Vec<Option<u128>>,
    values: BTreeMap<VarId, u128>,
    reads_from: BTreeMap<ReadRef, WriteSource>,
}

impl Run {
    fn start(trace: &EventTrace, assignment: &Assignment) -> Self {
        let mut values = BTreeMap::new();
        for variable in &trace.variables {
            if matches!(variable.origin, VariableOrigin::Read { .. }) {
                continue;
            }
            let solved = assignment.values.get(&variable.id).copied();
            // Nothing depends on a variable that the formula does not mention.
            let value = solved.or(variable.recorded).unwrap_or(0);
            values.insert(variable.id, value);
        }
        let value_of = |var: VarId| values.get(&var).copied();
        let cells =
            trace.cells.iter().map(|cell| trace.exprs.evaluate(cell.init, &value_of)).collect();
        let sources = vec![WriteSource::Init; trace.cells.len()];
        Self { sources, cells, values, reads_from: BTreeMap::new() }
    }

    fn step(&mut self, trace: &EventTrace, id: EventId) {
        let kind = &trace.event(id).kind;
        for (index, part) in kind.reads().iter().enumerate() {
            let read = ReadRef { event: id, part: index as u32 };
            self.reads_from.insert(read, self.sources[part.cell.index()]);
            if let Some(value) = self.cells[part.cell.index()] {
                self.values.insert(part.var, value);
            }
        }
        let written: Vec<(CellId, Option<u128>)> = kind
            .writes()
            .iter()
            .map(|part| {
                let value_of = |var: VarId| self.values.get(&var).copied();
                (part.cell, trace.exprs.evaluate(part.value, &value_of))
            })
            .collect();
        for (cell, value) in written {
            self.sources[cell.index()] = WriteSource::Write(id);
            self.cells[cell.index()] = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;

    #[test]
    fn places_that_nobody_decided_on_are_no_schedule() {
        let trace = parse("a: W x 1\n a: W x 2\n b: R x -> p").expect("the text is a trace").trace;
        let ordered = |places: &[i64]| {
            let assignment = Assignment { places: places.to_vec(), ..Assignment::default() };
            matches!(outcome(&trace, &assignment), Outcome::Sat(_))
        };
        let ascending: Vec<i64> = (0..trace.events.len() as i64).collect();
        assert!(ordered(&ascending));
        // Equal places stand for decreasing identifiers.
        assert!(!ordered(&vec![0; ascending.len()]));
        let descending: Vec<i64> = ascending.into_iter().rev().collect();
        assert!(!ordered(&descending));
    }
}
