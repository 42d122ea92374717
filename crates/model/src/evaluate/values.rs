//! Values of variables and expressions during one evaluation, memoised without allocation.

use crate::expr::{Expr, ExprId, mask};
use crate::ids::VarId;
use crate::trace::EventTrace;

/// The tables of one evaluation. A run number stands beside every entry, so that starting the
/// next run does not touch the table of expressions.
pub(super) struct Values {
    variables: Vec<Option<u128>>,
    /// The value of an expression in run `known_in`.
    known: Vec<u128>,
    known_in: Vec<u32>,
    /// The query in which an expression was found to have no value. An unknown is not kept any
    /// longer, since a variable may get its value later in the run.
    unknown_in: Vec<u32>,
    run: u32,
    query: u32,
    stack: Vec<(ExprId, bool)>,
}

impl Values {
    pub(super) fn new(trace: &EventTrace) -> Self {
        let expressions = trace.exprs.len();
        Self {
            variables: vec![None; trace.variables.len()],
            known: vec![0; expressions],
            known_in: vec![0; expressions],
            unknown_in: vec![0; expressions],
            run: 0,
            query: 0,
            stack: Vec::new(),
        }
    }

    /// Forgets all values.
    pub(super) fn reset(&mut self) {
        self.variables.fill(None);
        self.run = self.run.wrapping_add(1);
        if self.run == 0 {
            self.known_in.fill(0);
            self.run = 1;
        }
    }

    pub(super) fn set(&mut self, var: VarId, value: Option<u128>) {
        self.variables[var.index()] = value;
    }

    pub(super) fn variables(&self) -> &[Option<u128>] {
        &self.variables
    }

    /// The value of an expression; `None` when it depends on a variable without a value.
    pub(super) fn of(&mut self, trace: &EventTrace, root: ExprId) -> Option<u128> {
        if let Expr::Const { value, .. } = trace.exprs.get(root) {
            return Some(value);
        }
        self.query = self.query.wrapping_add(1);
        if self.query == 0 {
            self.unknown_in.fill(0);
            self.query = 1;
        }
        self.stack.push((root, false));
        while let Some((id, ready)) = self.stack.pop() {
            self.step(trace, id, ready);
        }
        self.get(root)
    }

    fn get(&self, id: ExprId) -> Option<u128> {
        let index = id.0 as usize;
        (self.known_in[index] == self.run).then(|| self.known[index])
    }

    fn step(&mut self, trace: &EventTrace, id: ExprId, ready: bool) {
        let index = id.0 as usize;
        if self.known_in[index] == self.run || self.unknown_in[index] == self.query {
            return;
        }
        let expr = trace.exprs.get(id);
        let value = match expr {
            Expr::Var { var, width } => self.variables[var.index()].map(|v| v & mask(width)),
            Expr::Const { value, .. } => Some(value),
            _ if ready => trace.exprs.apply(expr, |operand| self.get(operand)),
            _ => {
                self.stack.push((id, true));
                expr.for_each_operand(|operand| self.stack.push((operand, false)));
                return;
            }
        };
        match value {
            Some(value) => {
                self.known[index] = value;
                self.known_in[index] = self.run;
            }
            None => self.unknown_in[index] = self.query,
        }
    }
}
