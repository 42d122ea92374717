//! What threads wait for, for people.

use super::graph::Graph;
use super::{Stuck, Waits, polling, woken};
use crate::builder::{Builder, says_more};
use model::{Awaited, ChannelStep, EventKind, ExprPool, ObjectId, ObjectKind};

/// What the thread waits for: as others call it, where they say more than the call in which it waits, such as one inside
/// of a library does.
fn called<'a>(stuck: &'a Stuck, out: &'a Builder) -> &'a str {
    let awaited = match out.event_kind(stuck.thread, stuck.block) {
        Some(EventKind::Block { on }) => Some(on),
        _ => None,
    };
    let object = awaited.and_then(|on| match on {
        Awaited::Lock { object, .. }
        | Awaited::Unit { object }
        | Awaited::Arrivals { object }
        | Awaited::Signal { condition: object } => Some(object),
        _ => None,
    });
    let named = object.and_then(|object| out.objects.get(object.index()));
    let other = named.map(|object| object.name.as_str()).filter(|name| !name.is_empty());
    other.filter(|name| says_more(name, &stuck.object)).unwrap_or(&stuck.object)
}

/// The same, among all that threads wait for: two locks that have one name in their own classes' functions are called as the
/// callers of these call them.
fn called_among<'a>(stuck: &'a Stuck, graph: &Graph<'_>, out: &'a Builder) -> &'a str {
    let name = called(stuck, out);
    let Some(object) = lock_of(stuck, out) else { return name };
    let is_namesake = |other: &Stuck| {
        lock_of(other, out).is_some_and(|it| it != object) && called(other, out) == name
    };
    if !graph.stuck.iter().any(is_namesake) {
        return name;
    }
    let events = out.threads.iter().flat_map(|log| &log.events);
    model::names::lock_from_outside(object, events).unwrap_or(name)
}

/// The lock that the thread waits for.
fn lock_of(stuck: &Stuck, out: &Builder) -> Option<ObjectId> {
    match out.event_kind(stuck.thread, stuck.block)? {
        EventKind::Block { on: Awaited::Lock { object, .. } } => Some(*object),
        _ => None,
    }
}

/// `t0.1 waits for the lock stock, which t0.2 holds`.
pub(super) fn of(
    graph: &Graph<'_>,
    at: usize,
    names: &[&str],
    (out, pool): (&Builder, &ExprPool),
) -> String {
    let stuck = &graph.stuck[at];
    let name = |thread: usize| names.get(thread).copied().unwrap_or("?");
    let (me, object) = (name(stuck.thread), called_among(stuck, graph, out));
    match &stuck.waits {
        Waits::Lock { .. } => {
            format!("{me} waits for the lock {object}{}", holder(graph, at, &name))
        }
        Waits::Condition { condition, .. } => {
            let signals = count(out, |kind| {
                matches!(kind, EventKind::Signal { condition: c }
                    | EventKind::Broadcast { condition: c } if c == condition)
            });
            let woken = count(
                out,
                |kind| matches!(kind, EventKind::Wake { condition: c, .. } if c == condition),
            );
            let why = match (signals, woken) {
                _ if graph.is_forgotten(at, out) => ", which was initialised after that",
                (0, _) => ", which nobody signals",
                (_, 0) => ", which was signalled before that only",
                _ => ", whose signals came before that or woke others",
            };
            format!("{me} waits on the condition {object}{why}")
        }
        Waits::Semaphore(semaphore) => {
            let why = match graph.units(at) {
                [] => units(out, *semaphore),
                units => {
                    let mut takers: Vec<&str> = units.iter().map(|unit| name(unit.0)).collect();
                    takers.dedup();
                    format!(", which {} took", takers.join(" and "))
                }
            };
            format!("{me} waits for a unit of the semaphore {object}{why}")
        }
        Waits::Barrier(barrier) => {
            let here = graph.stuck.iter().filter(|other| other.waits == stuck.waits).count();
            let count = match out.objects.get(barrier.index()).map(|object| object.kind) {
                Some(ObjectKind::Barrier { count }) => count,
                _ => 0,
            };
            format!("{me} waits at the barrier {object}, where {here} of {count} have arrived")
        }
        Waits::Change(polled) => {
            let why = match polling::releases(out, pool, stuck.thread, polled) {
                0 => ", and nobody changes it",
                _ => "; what would let it go on came before its last look, or was overwritten",
            };
            format!("{me} waits{} until {object} changes{why}", place(stuck, out))
        }
        Waits::Join(child) => format!("{me} waits for the end of {}", name(*child)),
        Waits::Child(function, process) => {
            let child = match process {
                Some(process) => format!("process {process}"),
                None => "a process that it started".to_owned(),
            };
            format!("{me} waits in {function} for the end of {child}")
        }
        Waits::Call(function) => format!("{me} had not come back from the call of {function}"),
        Waits::Loop(site) => {
            let file = site.file.rsplit('/').next().unwrap_or_default();
            let at =
                if site.line > 0 { format!(" at {file}:{}", site.line) } else { String::new() };
            format!("{me} was still in the loop in {}{at}", site.function)
        }
        Waits::Other => match channel_step(stuck, out) {
            Some((called, why)) => format!("{me} waits in {called} of a channel {why}"),
            None => {
                let woken = stuck.futex.map(|address| {
                    woken::in_words(graph.woken, address, &|thread| name(thread).to_owned())
                });
                let woken = woken.unwrap_or_default();
                format!("{me} waits in {} of {object}{woken}", stuck.operation)
            }
        },
    }
}

/// The function of a channel in which the thread waits, and what would let it go on.
fn channel_step(stuck: &Stuck, out: &Builder) -> Option<(String, &'static str)> {
    let events = &out.threads.get(stuck.thread)?.events;
    let block = events.iter().find(|event| event.index == stuck.block)?;
    let why = match block.channel_step()? {
        ChannelStep::Receive => "for a message, or until its last sender is dropped",
        ChannelStep::Send => "for somebody who receives, or until its last receiver is dropped",
        ChannelStep::Drop => return None,
    };
    let called = match block.called_of_channel()? {
        "next" => "recv",
        called => called,
    };
    Some((called.to_owned(), why))
}

/// ` in worker at flag.c:16`
fn place(stuck: &Stuck, out: &Builder) -> String {
    let events = out.threads.get(stuck.thread).map(|log| &log.events);
    let block = events.and_then(|events| events.iter().find(|event| event.index == stuck.block));
    match block.and_then(|block| block.stack.first()).filter(|site| site.line > 0) {
        Some(site) => {
            let file = site.file.rsplit('/').next().unwrap_or_default();
            format!(" in {} at {file}:{}", site.function, site.line)
        }
        None => String::new(),
    }
}

fn holder<'n>(graph: &Graph<'_>, at: usize, name: &dyn Fn(usize) -> &'n str) -> String {
    let holders: Vec<usize> = graph.holders(at).map(|held| held.thread).collect();
    if holders.contains(&graph.stuck[at].thread) {
        return ", which it holds itself".to_owned();
    }
    if let Some(&holder) = holders.first() {
        let waits = graph.stuck.iter().any(|other| other.thread == holder);
        let how = if waits { "holds" } else { "never gave back" };
        return format!(", which {} {how}", name(holder));
    }
    match graph.steps(at).iter().find(|step| step.precedence) {
        Some(step) => {
            format!(", which {} waits for to write", name(graph.stuck[step.to].thread))
        }
        None => String::new(),
    }
}

fn units(out: &Builder, semaphore: ObjectId) -> String {
    let initial = match out.objects.get(semaphore.index()).map(|object| object.kind) {
        Some(ObjectKind::Semaphore { initial }) => initial,
        _ => 0,
    };
    let given = count(
        out,
        |kind| matches!(kind, EventKind::SemaphorePost { object } if *object == semaphore),
    );
    let taken = count(
        out,
        |kind| matches!(kind, EventKind::SemaphoreWait { object } if *object == semaphore),
    );
    format!(", which began with {initial}, was given {given} and lost {taken}")
}

fn count(out: &Builder, matches: impl Fn(&EventKind) -> bool) -> usize {
    let events = out.threads.iter().flat_map(|thread| &thread.events);
    events.filter(|event| matches(&event.kind)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::ThreadEvents;
    use model::{Event, Interval, Stack};

    /// What a library calls its own argument says nothing; what the program calls the condition elsewhere does.
    #[test]
    fn what_is_waited_for_is_called_as_others_call_it() {
        let mut out = Builder::default();
        out.threads.push(ThreadEvents::default());
        let condition = out.object(ObjectKind::Condition, "self.idle".to_owned());
        let kind = EventKind::Block { on: Awaited::Signal { condition } };
        let stack = (Stack::default(), Event::ALL_CONTINUED);
        let block = out.event(0, kind, stack, None, Interval::default());
        let mut stuck = Stuck {
            thread: 0,
            waits: Waits::Other,
            block,
            operation: "CondWait".to_owned(),
            object: "*self".to_owned(),
            initialised: None,
            futex: None,
            memory: super::super::lost::Memory::Other,
        };
        assert_eq!(called(&stuck, &out), "self.idle");
        stuck.object = "pool.idle".to_owned();
        assert_eq!(called(&stuck, &out), "pool.idle");
    }
}
