//! The steps of an edited trace's threads, in lists: a repair may change two in a hundred thousand rounds of a loop.

use model::{EventId, EventKind, EventTrace, Stack, ThreadId};

/// An event of an edited thread.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// One of the recorded trace's.
    Kept(EventId),
    /// One that the repair adds, at this place in the source.
    Added { kind: EventKind, stack: Stack, name: Option<String> },
}

/// The steps of all threads. Those of the recorded trace have their events' numbers; behind them come the
/// threads' ends, each between its thread's last step and its first, and the added steps.
#[derive(Clone, Debug)]
pub(super) struct Steps {
    events: usize,
    threads: usize,
    added: Vec<Step>,
    next: Vec<usize>,
    /// One that was taken out comes before itself.
    before: Vec<usize>,
}

impl Steps {
    pub(super) fn of(trace: &EventTrace) -> Self {
        let (events, threads) = (trace.events.len(), trace.threads.len());
        let alone: Vec<usize> = (0..events + threads).collect();
        let mut steps =
            Self { events, threads, added: Vec::new(), next: alone.clone(), before: alone };
        for thread in &trace.threads {
            let end = steps.end(thread.id);
            thread.events.iter().for_each(|id| steps.put_before(end, id.index()));
        }
        steps
    }

    fn end(&self, thread: ThreadId) -> usize {
        self.events + thread.index()
    }

    /// The steps of a thread.
    pub(super) fn of_thread(&self, thread: ThreadId) -> impl DoubleEndedIterator<Item = Step> {
        let end = self.end(thread);
        let numbers = std::iter::successors(Some(self.next[end]), |at| Some(self.next[*at]));
        let numbers: Vec<usize> = numbers.take_while(|at| *at != end).collect();
        numbers.into_iter().map(|number| self.step(number))
    }

    fn step(&self, number: usize) -> Step {
        let added = number.checked_sub(self.events + self.threads);
        let kept = Step::Kept(EventId::from_index(number));
        added.and_then(|at| self.added.get(at).cloned()).unwrap_or(kept)
    }

    /// The last step of a thread that is none of these; the thread's end where all are.
    fn last_other(&self, thread: ThreadId, is: impl Fn(&Step) -> bool) -> usize {
        let end = self.end(thread);
        let mut at = self.before[end];
        while at != end && is(&self.step(at)) {
            at = self.before[at];
        }
        at
    }

    /// Puts a step behind the last one of a thread that is none of these, with the stack of that, or
    /// else of the first step.
    pub(super) fn add_behind_last_other(
        &mut self,
        thread: ThreadId,
        is: impl Fn(&Step) -> bool,
        make: impl FnOnce(&Step) -> Step,
    ) {
        let end = self.end(thread);
        if self.next[end] == end {
            return;
        }
        let last = self.last_other(thread, is);
        let like = self.step(if last == end { self.next[end] } else { last });
        let number = self.push(make(&like));
        self.put_before(self.next[last], number);
    }

    fn push(&mut self, step: Step) -> usize {
        let number = self.next.len();
        self.added.push(step);
        self.next.push(number);
        self.before.push(number);
        number
    }

    /// Adds a step right before, or right behind, a recorded event that is still there.
    pub(super) fn add(&mut self, id: EventId, step: Step, behind: bool) {
        if self.has(id) {
            let number = self.push(step);
            self.put(number, id, behind);
        }
    }

    fn put(&mut self, number: usize, id: EventId, behind: bool) {
        let at = if behind { self.next[id.index()] } else { id.index() };
        self.put_before(at, number);
    }

    fn put_before(&mut self, at: usize, number: usize) {
        let before = self.before[at];
        (self.next[before], self.before[number]) = (number, before);
        (self.next[number], self.before[at]) = (at, number);
    }

    fn has(&self, id: EventId) -> bool {
        self.before.get(id.index()).is_some_and(|before| *before != id.index())
    }

    /// Moves a recorded event right before, or right behind, another one, where both are there.
    pub(super) fn move_to(&mut self, id: EventId, target: EventId, behind: bool) {
        if self.has(id) && self.has(target) {
            self.remove(id);
            self.put(id.index(), target, behind);
        }
    }

    /// Takes a recorded event out.
    pub(super) fn remove(&mut self, id: EventId) {
        if self.has(id) {
            let at = id.index();
            let (before, next) = (self.before[at], self.next[at]);
            (self.next[before], self.before[next]) = (next, before);
            (self.next[at], self.before[at]) = (at, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_put_moved_and_taken_out() {
        let text = "t0: W x 1\nt0: W x 2\nt0: W x 3\nt0: W x 4\n";
        let trace = encoders::dsl::parse(text).expect("the trace is well formed").trace;
        // The thread's start and its exit are around them.
        let ids = trace.threads[0].events.clone();
        let mut steps = Steps::of(&trace);
        let fence = || Step::Added { kind: EventKind::Fence, stack: Stack::default(), name: None };
        steps.add(ids[2], fence(), false);
        steps.add(ids[2], fence(), true);
        steps.move_to(ids[4], ids[1], false);
        steps.move_to(ids[1], ids[3], true);
        steps.remove(ids[3]);
        steps.remove(ids[3]);
        steps.add(ids[3], fence(), true);
        steps.move_to(ids[1], ids[3], true);
        let is_exit = |step: &Step| matches!(step, Step::Kept(id) if *id == ids[5]);
        steps.add_behind_last_other(trace.threads[0].id, is_exit, |_| fence());
        let shown: Vec<Option<usize>> = steps
            .of_thread(trace.threads[0].id)
            .map(|step| match step {
                Step::Kept(id) => ids.iter().position(|other| *other == id),
                Step::Added { .. } => None,
            })
            .collect();
        let expected = [Some(0), Some(4), None, Some(2), None, Some(1), None, Some(5)];
        assert_eq!(shown, expected);
    }
}
