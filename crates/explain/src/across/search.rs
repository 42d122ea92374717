//! From the failure back to what was ordered otherwise.

use super::{BRANCHES, Divergence, FLOWS, Flow, SHOWN, View, event_of, feeding};
use crate::cone::failure_reads;
use crate::dsp::DataFlow;
use crate::interrupted::Interrupted;
use model::{ConditionId, FailureCondition, ReadRef, ThreadId};
use std::collections::{BTreeSet, VecDeque};

/// Is the read, of the failing run, the library's own affair?
fn is_of_library(view: &View<'_>, read: ReadRef) -> bool {
    view.failing.trace.event(read.event).is_affair_of_library()
}

/// Does the branch hang on nothing but what is the library's own affair?
fn is_led_by_library(view: &View<'_>, branch: &Divergence) -> bool {
    !branch.reads.is_empty() && branch.reads.iter().all(|read| is_of_library(view, *read))
}

/// Follows what differs from the failure backwards.
pub(super) struct Search<'v, 'a> {
    view: &'v View<'a>,
    /// Effects before causes.
    pub(super) flows: Vec<Flow>,
    pub(super) branches: Vec<Divergence>,
}

impl<'v, 'a> Search<'v, 'a> {
    pub(super) fn new(view: &'v View<'a>) -> Self {
        Self { view, flows: Vec::new(), branches: Vec::new() }
    }

    /// Begins at what a check has read. `None` where it has read the same in the passing run.
    pub(super) fn check(&mut self, check: ConditionId) -> Option<()> {
        let branch = self.view.branch_at(check)?;
        let reads = branch.reads.clone();
        self.branches.push(branch);
        self.reads(reads);
        (!self.flows.is_empty()).then_some(())
    }

    /// Begins at what steps have read that were interrupted, and goes no further: they are what differs.
    pub(super) fn interrupted(&mut self, steps: &Interrupted) {
        let trace = self.view.failing.trace;
        let ids = [steps.second, steps.first].into_iter().chain(steps.between.iter().copied());
        let reads = ids.flat_map(|event| {
            let parts = trace.event(event).kind.reads().len();
            (0..parts).map(move |part| ReadRef { event, part: part as u32 })
        });
        let flows = reads.filter_map(|read| self.view.flow(read));
        self.flows.extend(flows.filter(|flow| self.view.changed(flow)).take(FLOWS));
    }

    /// Begins at the values that the failure depends on, when the passing run has them and they do
    /// not fail, else at the branch by which the failing thread went another way.
    pub(super) fn failure(&mut self) {
        let trace = self.view.failing.trace;
        let Some(failure) = &trace.failure else { return };
        let decisive = failure_reads(trace);
        let all = decisive.iter().all(|read| self.view.partner(*read).is_some());
        let thread = trace.event(failure.event).thread;
        let went_there =
            all && !decisive.is_empty() && self.holds(&failure.condition) != Some(true);
        if went_there {
            self.reads(decisive.iter().copied().collect());
        }
        // What a run ends with may only tell what a check had found.
        if self.flows.is_empty()
            && (!all || decisive.is_empty())
            && let Some(turn) = self.view.turn()
        {
            let reads = turn.reads.clone();
            self.branches.push(turn);
            self.reads(reads);
        }
        // A thread that came to where it fails in both runs did not go another way.
        if self.is_open() && !all && self.view.parts_at_failure(thread, &decisive) {
            self.origins(decisive.iter().copied().collect());
        }
        if self.is_open() {
            self.branch(thread);
        }
        if self.is_open() {
            self.origins(decisive.into_iter().collect());
        }
        if self.is_open() {
            // Some thread's branch that goes another way is all there is to show.
            for thread in self.view.first_to_part() {
                if self.is_open() {
                    self.branch(thread);
                }
            }
        }
        if !self.is_open() {
            self.flows.retain(|flow| !is_of_library(self.view, flow.failing.read));
            self.branches.retain(|branch| !is_led_by_library(self.view, branch));
        }
    }

    /// Is nothing found yet but what is the library's own affair? How many pointers there were to something is another
    /// number in most runs, and seldom why.
    fn is_open(&self) -> bool {
        self.flows.iter().all(|flow| is_of_library(self.view, flow.failing.read))
    }

    /// Where the passing run does not tell what the failure depends on (a variable that only one
    /// thread writes there is no event of its): the branch of the nearest write behind it that only
    /// the failing run has.
    fn origins(&mut self, reads: VecDeque<ReadRef>) {
        let mut queue = reads;
        let mut seen: BTreeSet<ReadRef> = queue.iter().copied().collect();
        while let Some(read) = queue.pop_front().filter(|_| self.is_open()) {
            let Some(&write) = self.view.failing.evaluation.reads_from.get(&read) else { continue };
            let Some(event) = event_of(write) else { continue };
            if self.view.matching.in_passing(event).is_none() {
                self.branch(self.view.failing.trace.event(event).thread);
            }
            let feeding = feeding(self.view.failing.trace, DataFlow { write, read });
            queue.extend(feeding.into_iter().filter(|earlier| seen.insert(*earlier)));
        }
    }

    fn holds(&self, condition: &FailureCondition) -> Option<bool> {
        match condition {
            FailureCondition::Value(expr) => self.view.evaluated(*expr).map(|value| value != 0),
            FailureCondition::Before(a, b) => {
                let places = self.view.passing_place(*a).zip(self.view.passing_place(*b));
                places.map(|(a, b)| a < b)
            }
            // What else waits and signals in the passing run is not compared.
            FailureCondition::Unwoken { .. } => None,
            FailureCondition::All(parts) => {
                FailureCondition::decide(parts, false, |part| self.holds(part))
            }
            FailureCondition::Any(parts) => {
                FailureCondition::decide(parts, true, |part| self.holds(part))
            }
        }
    }

    /// Explains why a thread went another way.
    fn branch(&mut self, thread: ThreadId) {
        let known = self.branches.iter().any(|branch| branch.thread == thread);
        if known || self.branches.len() >= BRANCHES {
            return;
        }
        if let Some(divergence) = self.view.divergence(thread) {
            let reads = divergence.reads.clone();
            let waker = self.view.waker(&divergence);
            self.branches.push(divergence);
            self.reads(reads);
            if let Some(waker) = waker {
                self.branch(waker);
            }
        }
    }

    /// Explains why these reads return something else.
    fn reads(&mut self, reads: Vec<ReadRef>) {
        let mut queue = VecDeque::from([reads]);
        while let Some(mut reads) = queue.pop_front() {
            // What happened last decides.
            reads.sort_by_key(|read| std::cmp::Reverse((self.view.place(read.event), *read)));
            let known = |flows: &[Flow], read| flows.iter().any(|f| f.failing.read == read);
            let flows = reads.into_iter().filter_map(|read| self.view.flow(read));
            let flows: Vec<Flow> = flows
                .filter(|flow| self.view.changed(flow) && !known(&self.flows, flow.failing.read))
                .take(FLOWS)
                .collect();
            for flow in flows {
                self.flows.push(flow);
                queue.push_back(self.view.pointers(&flow));
                let explained = self.branches.len();
                self.sources(&flow);
                queue.push_back(self.view.behind_other_value(&flow));
                // Where both runs have the source, what it writes may be another value, or it may
                // come at another time because of what it reads.
                if self.branches.len() == explained {
                    queue.push_back(feeding(self.view.failing.trace, flow.failing));
                    self.computed(&flow);
                }
            }
            if self.flows.len() >= SHOWN {
                return;
            }
        }
    }

    /// Where both runs have the source, and what it reads does not tell why it writes another value
    /// (a count of what its thread found, say), its thread came there another way.
    fn computed(&mut self, flow: &Flow) {
        let Some(write) = event_of(flow.failing.write).filter(|_| flow.same_source) else { return };
        if self.view.follows_from_reads(flow) == Some(false) {
            self.branch(self.view.failing.trace.event(write).thread);
        }
    }

    /// A source that only one of the runs has is there because of a branch of its thread.
    fn sources(&mut self, flow: &Flow) {
        let view = self.view;
        let failing =
            event_of(flow.failing.write).filter(|w| view.matching.in_passing(*w).is_none());
        if let Some(write) = failing {
            self.branch(view.failing.trace.event(write).thread);
        }
        let passing =
            event_of(flow.passing.write).filter(|w| view.matching.in_failing(*w).is_none());
        if let Some(write) = passing {
            let name = &view.passing.trace.thread_of(write).name;
            let threads = &view.failing.trace.threads;
            if let Some(thread) = threads.iter().find(|thread| thread.name == *name) {
                self.branch(thread.id);
            }
        }
    }
}
