//! Do two events of a thread belong to one round of what it does? What was seen in an earlier one led there, and not
//! to what comes now.

use super::story::Story;
use model::{EventId, EventKind, EventTrace, PathCondition, PathConditionKind};

impl Story<'_> {
    /// Does the second of a thread's two accesses come behind the first in the program's text, and not in
    /// the next round of a loop?
    pub(super) fn forward(&self, first: EventId, second: EventId) -> bool {
        is_forward(self.trace(), first, second)
    }

    /// The same, without a return from the call that both are in, and without another round through it: what was
    /// looked at in a call or a round before led to that one's end.
    pub(super) fn in_one_call(&self, first: EventId, second: EventId) -> bool {
        is_one_call(self.trace(), first, second)
    }

    /// Has the program's call in which the first event was come to its end before the second one?
    pub(super) fn has_returned(&self, first: EventId, second: EventId) -> bool {
        let [one, other] = [first, second].map(|id| self.event(id));
        let common = one.stack.iter().rev().zip(other.stack.iter().rev());
        let common = common.take_while(|(a, b)| a == b).count();
        one.stack.len().saturating_sub(one.depth()) > common + 1
    }

    /// Is the second read the same look as the first one, in a later call of a function that goes by it itself? What a
    /// function only gives back is its caller's look.
    pub(super) fn looks_anew(&self, first: EventId, second: EventId) -> bool {
        let site = self.site(first);
        if site != self.site(second) || !self.has_returned(first, second) {
            return false;
        }
        let trace = self.trace();
        let own = trace.conditions.iter().filter(|condition| {
            condition.thread == self.event(first).thread
                && condition.kind == PathConditionKind::Branch
                && condition.position > self.event(first).index
        });
        let is_of = |condition: &&PathCondition| {
            trace.reads_of(condition.expr).iter().any(|read| read.event == first)
        };
        let mut led = own.filter(is_of).peekable();
        led.peek().is_some() && led.all(|condition| condition.site.function == site.function)
    }

    /// Did the thread wait on a condition variable between two of its events? What it went by before the wait
    /// is no longer what it goes by.
    pub(super) fn waited_between(&self, first: EventId, second: EventId) -> bool {
        let [one, other] = [first, second].map(|id| self.event(id));
        let own = &self.trace().threads[one.thread.index()].events;
        let between = own.get(one.index as usize..other.index as usize).unwrap_or_default();
        let waits = |id: &EventId| {
            matches!(self.event(*id).kind, EventKind::Wake { .. } | EventKind::WaitTimedOut { .. })
        };
        between.iter().any(waits)
    }

    /// Has the thread done with what it looked at? The call of the look has returned, and another thread has ended since:
    /// it clears up.
    pub(super) fn is_done_with(&self, look: EventId, event: EventId) -> bool {
        let [one, other] = [look, event].map(|id| self.event(id));
        let own = &self.trace().threads[one.thread.index()].events;
        let between = own.get(one.index as usize..other.index as usize).unwrap_or_default();
        let joins = |id: &EventId| matches!(self.event(*id).kind, EventKind::Join { .. });
        self.has_returned(look, event) && between.iter().any(joins)
    }
}

/// See [`Story::forward`].
fn is_forward(trace: &EventTrace, first: EventId, second: EventId) -> bool {
    let [one, other] = [first, second].map(|id| &trace.event(id).stack);
    let mut both = one.iter().rev().zip(other.iter().rev());
    let parting = both.find(|(a, b)| a != b);
    parting.is_none_or(|(a, b)| a.function != b.function || a.line <= b.line)
}

/// See [`Story::in_one_call`], of any run.
pub(super) fn is_one_call(trace: &EventTrace, first: EventId, second: EventId) -> bool {
    let [one, other] = [first, second].map(|id| trace.event(id));
    let both = one.stack.iter().rev().zip(other.stack.iter().rev());
    let callers = both.take_while(|(a, b)| a == b).count().min(one.stack.len() - 1);
    let own = &trace.threads[one.thread.index()].events;
    let between = own.get(one.index as usize..other.index as usize).unwrap_or_default();
    let stays = |id: &EventId| {
        let stack = &trace.event(*id).stack;
        stack.len() >= callers
            && stack.iter().rev().zip(one.stack.iter().rev()).take(callers).all(|(a, b)| a == b)
    };
    // The line, in the function that both are in, behind which that function came back to the first one's.
    let line = |id: &EventId| trace.event(*id).stack.iter().rev().nth(callers);
    let comes_back = |pair: &[EventId]| {
        let [Some(from), Some(to), Some(look)] = [line(&pair[0]), line(&pair[1]), line(&first)]
        else {
            return false;
        };
        from.function == to.function
            && to.function == look.function
            && to.line < from.line
            && to.line <= look.line
    };
    is_forward(trace, first, second)
        && between.iter().all(stays)
        && !between.windows(2).any(comes_back)
}
