//! Threads that were not waiting when the run was ended: whether the run hung at all.
//!
//! Only a circle of threads waits for ever whatever else goes on. Any other wait may be ended by a thread
//! that still runs, and would have been, had there been more time, in a run that is merely slow. So a run is
//! told as one that hung only where it is known what is amiss with a wait (a signal that came too early, a
//! lock that nobody gives back), and no running thread has ever done what would end it.

use super::graph::Graph;
use super::orders::HangCondition;
use super::{Stuck, Waits};
use crate::engine::Engine;
use crate::report::RunningThread;
use model::{EventKind, Site};
use std::collections::BTreeSet;

impl Engine<'_> {
    /// Notes a thread whose log ends while it runs. What a thread did whose log cannot be followed to its
    /// end is not known, and a process that is a fork does not have the threads whose logs end there.
    pub(super) fn note_running(&mut self, t: usize) {
        if self.threads[t].exhausted() && !self.recording.forked {
            let site = self.site(t);
            self.waiting.running.push((t, site));
        }
    }

    /// Is it a thread that the process does not have, which is a fork, but for its log until then? What it was in does not come
    /// to an end, and it waits for nothing.
    pub(super) fn is_left_behind(&self, t: usize) -> bool {
        let kept = &self.learned.kept_by_fork;
        self.recording.forked && !kept.is_empty() && !kept.contains(&t)
    }

    /// The threads that still ran, in the order of threads, where these may have brought the run to its end;
    /// none where it hung.
    pub(super) fn still_runs(
        &self,
        graph: &Graph<'_>,
        noted: &[(usize, Site)],
    ) -> Vec<RunningThread> {
        let in_loop = |stuck: &Stuck| match &stuck.waits {
            Waits::Loop(site) => Some((stuck.thread, site.clone(), true)),
            _ => None,
        };
        let mut running: Vec<(usize, Site, bool)> =
            graph.stuck.iter().filter_map(in_loop).collect();
        running.extend(noted.iter().map(|(thread, site)| (*thread, site.clone(), false)));
        running.sort_by_key(|(thread, ..)| *thread);
        let threads: BTreeSet<usize> = running.iter().map(|(thread, ..)| *thread).collect();
        if threads.is_empty()
            || graph.circle().is_some()
            || self.hangs_all_the_same(graph, &threads)
        {
            return Vec::new();
        }
        let told = running.into_iter().map(|(thread, site, in_loop)| RunningThread {
            name: self.threads[thread].log.name.clone(),
            site,
            in_loop,
        });
        told.collect()
    }

    /// Is it known what keeps the run from its end, and can none of these threads end that?
    fn hangs_all_the_same(&self, graph: &Graph<'_>, running: &BTreeSet<usize>) -> bool {
        let waits_for_process = |stuck: &Stuck| matches!(stuck.waits, Waits::Child(..));
        if graph.stuck.iter().any(waits_for_process) {
            return true;
        }
        let roots = match graph.of_thread(0) {
            Some(initial) => {
                let reached = graph.reached_from(initial);
                graph.roots().into_iter().filter(|root| reached.contains(root)).collect()
            }
            None if running.contains(&0) => return false,
            None => graph.roots(),
        };
        let condition = HangCondition::of_roots(graph, &roots, &self.out, &self.pool);
        !condition.is_always() && !roots.iter().any(|&root| self.may_be_ended(graph, root, running))
    }

    /// May one of the running threads end this wait, by what it has done so far?
    fn may_be_ended(&self, graph: &Graph<'_>, root: usize, running: &BTreeSet<usize>) -> bool {
        let did = |ends: &dyn Fn(&EventKind) -> bool| {
            let threads = running.iter().filter_map(|&thread| self.out.threads.get(thread));
            threads.flat_map(|log| &log.events).any(|event| ends(&event.kind))
        };
        match &graph.stuck[root].waits {
            Waits::Lock { .. } => graph.holders(root).any(|held| running.contains(&held.thread)),
            Waits::Condition { condition: of, .. } => did(&|kind| {
                matches!(kind, EventKind::Signal { condition } | EventKind::Broadcast { condition }
                    if condition == of)
            }),
            Waits::Semaphore(of) => {
                did(&|kind| matches!(kind, EventKind::SemaphorePost { object } if object == of))
            }
            Waits::Change(polled) => did(&|kind| {
                let cell = |cell| polled.iter().any(|polled| polled.cell == cell);
                kind.writes().iter().any(|write| cell(write.cell))
            }),
            Waits::Join(child) => running.contains(child),
            Waits::Loop(_) | Waits::Barrier(_) | Waits::Call(_) | Waits::Other => true,
            Waits::Child(..) => false,
        }
    }
}
