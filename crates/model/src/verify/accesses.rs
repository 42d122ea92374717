//! Invariants of variables and of read and write parts.

use super::{Checker, Violation};
use crate::event::{Event, EventKind};
use crate::expr::MAX_WIDTH;
use crate::ids::{CellId, EventId, VarId};
use crate::trace::{Variable, VariableOrigin};
use std::collections::BTreeSet;

impl Checker<'_> {
    pub(super) fn variables(&mut self) {
        let variables = &self.trace.variables;
        self.identifiers("variable", variables.iter().map(|v| v.id), VarId::from_index);
        for variable in variables {
            if variable.width == 0 || variable.width > MAX_WIDTH {
                self.report(Violation::Width {
                    place: format!("variable {}", variable.id),
                    actual: variable.width,
                    expected: format!("1 to {MAX_WIDTH}"),
                });
            }
            self.origin(variable);
        }
    }

    fn origin(&mut self, variable: &Variable) {
        let place = format!("variable {}", variable.id);
        match variable.origin {
            VariableOrigin::Input => {}
            VariableOrigin::Init(cell) => {
                if self.exists(&place, cell, cell.index(), self.trace.cells.len()) {
                    self.width(&place, variable.width, self.trace.cells[cell.index()].width);
                }
            }
            VariableOrigin::Read { event, part } => {
                if !self.event_exists(&place, event) {
                    return;
                }
                let read = self.trace.events[event.index()].kind.reads().get(part as usize);
                if read.is_none_or(|read| read.var != variable.id) {
                    self.report(Violation::Origin { variable: variable.id });
                }
            }
        }
    }

    pub(super) fn parts(&mut self) {
        for event in &self.trace.events {
            let (reads, writes) = (event.kind.reads().len(), event.kind.writes().len());
            let complete = match event.kind {
                EventKind::Read { .. } => reads > 0,
                EventKind::Write { .. } => writes > 0,
                EventKind::ReadModifyWrite { .. } => reads > 0 && writes > 0,
                _ => true,
            };
            if !complete {
                self.report(Violation::NoParts(event.id));
            }
            self.distinct(event.id, event.kind.reads().iter().map(|part| part.cell));
            self.distinct(event.id, event.kind.writes().iter().map(|part| part.cell));
            self.read_parts(event);
            self.write_parts(event);
        }
    }

    fn distinct(&mut self, event: EventId, cells: impl Iterator<Item = CellId>) {
        let mut seen = BTreeSet::new();
        for cell in cells {
            if !seen.insert(cell) {
                self.report(Violation::CellTwice { event, cell });
            }
        }
    }

    fn read_parts(&mut self, event: &Event) {
        for (part, read) in (0u32..).zip(event.kind.reads()) {
            let place = format!("read part {part} of {}", event.id);
            let cell_exists =
                self.exists(&place, read.cell, read.cell.index(), self.trace.cells.len());
            let variables = self.trace.variables.len();
            if !self.exists(&place, read.var, read.var.index(), variables) {
                continue;
            }
            let variable = &self.trace.variables[read.var.index()];
            if variable.origin != (VariableOrigin::Read { event: event.id, part }) {
                self.report(Violation::Origin { variable: read.var });
            }
            if cell_exists {
                self.width(&place, variable.width, self.trace.cells[read.cell.index()].width);
            }
        }
    }

    fn write_parts(&mut self, event: &Event) {
        for (part, write) in event.kind.writes().iter().enumerate() {
            let place = format!("write part {part} of {}", event.id);
            if self.exists(&place, write.cell, write.cell.index(), self.trace.cells.len()) {
                let width = self.trace.cells[write.cell.index()].width;
                self.expression(&place, write.value, width);
            }
        }
    }
}
