//! What the assumed orders say of sources, before anything is decided.
//!
//! A question about a schedule with many of its orders leaves few sources to most reads. The search would find that
//! out of one source at a time, each by a cycle of the orders that follow from it. Here all of them are compared
//! with what comes before what, and those that cannot be are ruled out, with the orders that say so.

use super::super::graph::Clocks;
use super::{Literal, ReadRef, Search};

/// So often what follows from sources that are ruled out is looked at for more of them.
pub(super) const ROUNDS: u32 = 8;
/// Events, threads and threads again are this many at most.
const EFFORT: usize = 20_000_000;
/// Not more clauses at a time.
const MOST: usize = 200_000;

impl Search<'_> {
    /// Rules sources out by the orders that hold now; false when there are none to rule out.
    pub(super) fn rule_out(&mut self) -> bool {
        if self.threads.effort() > EFFORT {
            return false;
        }
        let clauses = self.ruled_out();
        let found = !clauses.is_empty();
        // What the orders rule out that always hold goes for all questions, and takes back what is assumed.
        let certain: Vec<Literal> =
            clauses.iter().filter(|clause| clause.len() == 1).map(|clause| clause[0]).collect();
        if !certain.is_empty() {
            for literal in certain {
                if self.value(literal).is_none() {
                    self.imply(vec![literal]);
                }
            }
            return true;
        }
        for clause in clauses {
            // One that was ruled out for another read may have taken others with it.
            let is_open = self.value(clause[0]).is_none();
            let follows = clause[1..].iter().all(|&literal| self.value(literal) == Some(false));
            if is_open && follows {
                self.imply_for_now(clause);
            }
        }
        found
    }

    /// For each source that cannot be a clause, which begins with that it is not.
    fn ruled_out(&self) -> Vec<Vec<Literal>> {
        let clocks = Clocks::of(&self.graph, &self.threads);
        let mut reads: Vec<(ReadRef, u32)> = self.reads.iter().map(|(&r, &n)| (r, n)).collect();
        reads.sort_unstable_by_key(|&(_, number)| number);
        let mut found = Vec::new();
        for (read, number) in reads {
            let event = read.event.0;
            let sources = &self.sources_of[number as usize];
            let open = sources.iter().filter(|(source, _)| self.assigned[source.index()].is_none());
            // Of each thread the last write that comes before the read.
            let mut latest: Option<Vec<u32>> = None;
            for &(source, write) in open {
                let latest = latest.get_or_insert_with(|| self.latest_before(&clocks, read));
                let mut because = Vec::new();
                match write {
                    Some(write) if write != event && clocks.before(event, write) => {
                        clocks.explain(event, write, &mut because);
                    }
                    _ => {
                        let own = write.map(|write| self.threads.place(write).0);
                        let hides = |&&later: &&u32| {
                            write.is_none_or(|write| write != later && clocks.before(write, later))
                        };
                        // In the write's own thread it needs no reason to be later.
                        let is_own = |later: &&u32| Some(self.threads.place(**later).0) == own;
                        let hiding = latest.iter().filter(hides);
                        let Some(&later) = hiding.max_by_key(is_own) else { continue };
                        if let Some(write) = write {
                            clocks.explain(write, later, &mut because);
                        }
                        clocks.explain(later, event, &mut because);
                    }
                }
                because.sort_unstable();
                because.dedup();
                let not = source.literal(false);
                found.push(std::iter::once(not).chain(because.into_iter().map(|l| !l)).collect());
                if found.len() >= MOST {
                    return found;
                }
            }
        }
        found
    }

    fn latest_before(&self, clocks: &Clocks<'_>, read: ReadRef) -> Vec<u32> {
        let writes = self.system.open_writes(read).iter().map(|write| write.0);
        let writes: Vec<u32> = writes.filter(|&write| write != read.event.0).collect();
        let of_a_thread =
            writes.chunk_by(|&a, &b| self.threads.place(a).0 == self.threads.place(b).0);
        of_a_thread.filter_map(|writes| clocks.last_before(writes, read.event.0)).collect()
    }
}
