//! What is particular to programs of OpenMP, whose runtime is instrumented code without debug information
//! (`src/cc/library/openmp`): what its threads and locks are called.

use crate::builder::Builder;
use crate::engine::Engine;
use crate::thread::Frame;
use ir::name::{self, Part};
use ir::types::InstId;
use model::{Site, Stack};
use std::collections::BTreeSet;

/// Where the threads of its teams begin.
const WORKER: &str = "symbiosis_omp_worker";
/// What the compiler calls the function that begins a task.
const TASK_ENTRY: &str = ".omp_task_entry.";
/// Its functions on locks: the first argument is the address of the program's variable.
const LOCK_FUNCTIONS: [&str; 6] = [
    "omp_set_lock",
    "omp_unset_lock",
    "omp_test_lock",
    "omp_set_nest_lock",
    "omp_unset_nest_lock",
    "omp_test_nest_lock",
];

impl Engine<'_> {
    /// In a function on a lock: what the program calls the lock that it passed. The mutex behind it is the
    /// runtime's own.
    pub(crate) fn openmp_lock(&self, t: usize) -> Option<String> {
        let mut code = self.threads[t].frames.iter().rev().filter_map(|frame| match frame {
            Frame::Code(frame) => Some(frame),
            Frame::External(_) => None,
        });
        let called = code.next()?;
        if !LOCK_FUNCTIONS.contains(&called.info.function.name.as_str()) {
            return None;
        }
        let caller = code.next()?;
        let next = caller.next.index();
        // The caller goes on behind the call, or stands at it.
        let call = [next, next.wrapping_sub(1)].into_iter().find(|at| {
            let instruction = caller.info.function.instructions.get(*at);
            instruction.is_some_and(|instruction| instruction.kind.as_call().is_some())
        })?;
        let call = InstId(u32::try_from(call).ok()?);
        name::argument_part(caller.module, caller.info.function, call, (0, 0), Part::Object(None))
    }
}

/// The compiler makes two functions of a region, and of a task, one of which calls the other: one frame
/// says all there is to say.
pub(crate) fn join_frames(stack: &mut Vec<Site>) {
    stack.dedup_by(|outer, inner| {
        let entry = outer.function.starts_with(TASK_ENTRY);
        name::is_construct(&inner.function) && (entry || outer.function == inner.function)
    });
}

/// What a thread of a team is called, by its start routine: the region that it executed, where it was one.
pub(crate) fn worker_name(entry: &str, thread: usize, out: &Builder) -> Option<String> {
    if entry != WORKER {
        return None;
    }
    let regions: BTreeSet<&str> = out
        .stacks(thread)
        .filter_map(|stack: &Stack| {
            let outermost = stack.iter().rev().find(|site| name::is_construct(&site.function))?;
            Some(outermost.function.as_str())
        })
        .collect();
    let mut regions = regions.into_iter();
    match (regions.next(), regions.next()) {
        (Some(region), None) => Some(region.to_owned()),
        _ => Some("OpenMP thread".to_owned()),
    }
}
