//! The path conditions of each thread, to be looked up by where they stand.

use model::{EventTrace, FailureKind, PathCondition, PathConditionKind, Site, ThreadId, VarId};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// See the module.
pub(crate) struct Decisions<'t> {
    trace: &'t EventTrace,
    /// By thread, in the order of their positions.
    of_threads: Vec<Vec<&'t PathCondition>>,
    /// Where tests stand behind which an exception was thrown.
    thrown: Vec<&'t Site>,
}

impl<'t> Decisions<'t> {
    pub(crate) fn of(trace: &'t EventTrace) -> Self {
        let mut of_threads: Vec<Vec<&PathCondition>> = vec![Vec::new(); trace.threads.len()];
        for condition in &trace.conditions {
            if let Some(own) = of_threads.get_mut(condition.thread.index()) {
                own.push(condition);
            }
        }
        of_threads.iter_mut().for_each(|own| own.sort_by_key(|condition| condition.position));
        let thrown = thrown(trace, &of_threads);
        Self { trace, of_threads, thrown }
    }

    /// Is it the place of a test whose other way is the exception that the run failed with? That is said there, not looked
    /// at, as an assertion is.
    pub(crate) fn is_thrown_at(&self, site: &Site) -> bool {
        self.thrown.contains(&site)
    }

    /// Those of a thread with one of these positions.
    pub(crate) fn within(
        &self,
        thread: ThreadId,
        positions: RangeInclusive<u32>,
    ) -> &[&'t PathCondition] {
        let own = self.of_threads.get(thread.index()).map_or(&[][..], Vec::as_slice);
        let from = own.partition_point(|condition| condition.position < *positions.start());
        let to = own.partition_point(|condition| condition.position <= *positions.end());
        own.get(from..to).unwrap_or_default()
    }

    /// Those of them that hang on one of these variables.
    pub(crate) fn hanging_on<'a>(
        &'a self,
        thread: ThreadId,
        positions: RangeInclusive<u32>,
        vars: &'a BTreeSet<VarId>,
    ) -> impl Iterator<Item = &'t PathCondition> + 'a {
        let own = self.within(thread, positions).iter().copied();
        own.filter(|one| {
            let asked = self.trace.exprs.variables(one.expr);
            asked.iter().any(|var| vars.contains(var))
        })
    }
}

/// Does a branch of the thread depend on what it read there?
pub(crate) fn decides(trace: &EventTrace, thread: ThreadId, var: VarId) -> bool {
    trace.conditions.iter().any(|condition| {
        condition.thread == thread
            && condition.kind == PathConditionKind::Branch
            && trace.exprs.variables(condition.expr).contains(&var)
    })
}

/// Where a run failed by an exception, which a thread may have thrown and another one got, as by a future: the places of the
/// program's last tests of threads that did nothing of their own behind these but give locks back.
fn thrown<'t>(trace: &'t EventTrace, of_threads: &[Vec<&'t PathCondition>]) -> Vec<&'t Site> {
    if trace.failure.as_ref().is_none_or(|failure| failure.kind != FailureKind::Exception) {
        return Vec::new();
    }
    let tests = trace.threads.iter().zip(of_threads).filter_map(|(thread, own)| {
        let is_test = |condition: &&&PathCondition| {
            condition.kind == PathConditionKind::Branch && !condition.site.is_in_library()
        };
        let last = own.iter().rev().find(is_test)?;
        let behind = thread.events.iter().skip(last.position as usize);
        let mut behind = behind.map(|id| trace.event(*id));
        let goes_on = behind.any(|event| {
            let accesses = !event.kind.reads().is_empty() || !event.kind.writes().is_empty();
            accesses && !event.site().is_in_library()
        });
        (!goes_on).then_some(&last.site)
    });
    tests.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;

    #[test]
    fn conditions_are_found_by_thread_and_position() {
        let text = "
            a: [look] R x -> p
            a: assume p == 0
            a: [write] W x 2
            b: R x -> q
            b: assume q == 2
        ";
        let parsed = parse(text).expect("the text is a trace");
        let trace = &parsed.trace;
        let decisions = Decisions::of(trace);
        let look = trace.event(parsed.event("look"));
        let own: BTreeSet<VarId> = look.kind.reads().iter().map(|part| part.var).collect();
        assert_eq!(decisions.within(look.thread, 0..=9).len(), 1);
        let behind = look.index + 1;
        assert!(decisions.within(look.thread, 0..=look.index).is_empty());
        assert_eq!(decisions.hanging_on(look.thread, behind..=behind, &own).count(), 1);
        let other = trace.threads.last().expect("there are threads").id;
        assert_eq!(decisions.hanging_on(other, 0..=9, &own).count(), 0);
    }
}
