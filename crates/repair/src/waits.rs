//! Who may wait for whom: does a repair add a way for threads to wait for each other?

use model::{Awaited, CellId, Event, EventId, EventKind, EventTrace, ObjectId, Site, ThreadId};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// What a semaphore is called that stands for the end of a thread, which the run did not come to.
pub(crate) const END_OF_THREAD: &str = "the end of the thread";

/// What a thread can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Awaitable {
    /// An object of synchronisation.
    Object(ObjectId),
    /// A thread's end.
    End(ThreadId),
    /// What another thread writes, where a function of a library goes on looking until it has, as that of a future does.
    Value(CellId),
}

/// "Whoever has the first may wait for the second, or the second comes only from whoever gets the
/// first", and the threads by which that is so.
#[derive(Clone, Debug, Default)]
struct Waits(BTreeMap<(Awaitable, Awaitable), BTreeSet<ThreadId>>);

/// A circle that the edited trace has and the recorded one does not have, as the names of what is
/// waited for. Where the recorded one is the end of a longer run, threads may wait as in the `whole` of it, too; but
/// what a repair takes away in the end it would take away everywhere.
pub(crate) fn new_circle(
    recorded: &EventTrace,
    whole: Option<&EventTrace>,
    edited: &EventTrace,
) -> Option<Vec<String>> {
    let (mut before, mut after) = (waits(recorded), waits(edited));
    let keeps_all = || before.0.keys().all(|edge| after.0.contains_key(edge));
    if let Some(whole) = whole.filter(|_| keeps_all()) {
        for (edge, threads) in waits(whole).0 {
            before.0.entry(edge).or_default().extend(&threads);
            after.0.entry(edge).or_default().extend(threads);
        }
    }
    let new = after.0.keys().filter(|edge| !before.0.contains_key(edge));
    for &(from, to) in new {
        if let Some(path) = after.path(to, from) {
            let mut circle = vec![from];
            circle.extend(path);
            if after.needs_two_threads(&circle) {
                return Some(circle.iter().map(|node| name(edited, *node)).collect());
            }
        }
    }
    None
}

fn name(trace: &EventTrace, node: Awaitable) -> String {
    match node {
        Awaitable::Object(id) => {
            trace.objects.get(id.index()).map_or_else(|| id.to_string(), |o| o.name.clone())
        }
        Awaitable::End(id) => {
            let thread = trace.threads.get(id.index());
            format!("the end of {}", thread.map_or("a thread", |thread| &thread.name))
        }
        Awaitable::Value(id) => {
            trace.cells.get(id.index()).map_or_else(|| id.to_string(), |cell| cell.name.to_string())
        }
    }
}

fn waits(trace: &EventTrace) -> Waits {
    let mut waits = Waits::default();
    let guards = setting_guards(trace);
    let mut awaiting: BTreeMap<Awaitable, BTreeSet<ThreadId>> = BTreeMap::new();
    for thread in &trace.threads {
        let mut held: Vec<ObjectId> = Vec::new();
        let mut looks = Looks::default();
        for &id in &thread.events {
            let event = trace.event(id);
            let mut cells = looks.awaited(trace, event);
            // What was there at once need not be there in another schedule.
            if event.waits_for_channel() {
                cells.extend(event.kind.reads().iter().map(|part| part.cell));
            }
            for cell in cells {
                let awaited = Awaitable::Value(cell);
                let mut kept = looks.held_since(&held);
                if let Some(guards) = guards.get(&cell).filter(|_| event.sets_once()) {
                    kept.retain(|object| !guards.contains(object));
                }
                waits.all(&kept, awaited, thread.id);
                awaiting.entry(awaited).or_default().insert(thread.id);
            }
            let awaited = match event.kind {
                EventKind::Lock { object, .. } => {
                    waits.all(&held, Awaitable::Object(object), thread.id);
                    held.push(object);
                    continue;
                }
                EventKind::Unlock { object, .. } => {
                    held.retain(|other| *other != object);
                    looks.released(object);
                    continue;
                }
                // A thread whose time was up waited, too: nobody could signal before.
                EventKind::Wake { condition: object, .. }
                | EventKind::WaitTimedOut { condition: object, .. }
                | EventKind::SemaphoreWait { object }
                | EventKind::BarrierLeave { object } => Awaitable::Object(object),
                EventKind::Join { child } => Awaitable::End(child),
                EventKind::Block { on: Awaited::End { child } } => Awaitable::End(child),
                EventKind::Block { on } => match on.object() {
                    Some(object) => Awaitable::Object(object),
                    None => continue,
                },
                _ => continue,
            };
            waits.all(&held, awaited, thread.id);
            awaiting.entry(awaited).or_default().insert(thread.id);
        }
    }
    // What has to be taken before it is given. What comes before one of a thread's gifts comes before its last one.
    let cells = awaiting.keys().filter_map(|awaited| match awaited {
        Awaitable::Value(cell) => Some(*cell),
        _ => None,
    });
    let givers = last_givers(trace, &cells.collect());
    for (awaited, threads) in &awaiting {
        match *awaited {
            Awaitable::End(child) => waits.needed(trace, *awaited, (child, None), &|_| false),
            Awaitable::Object(_) | Awaitable::Value(_) => {
                for (giver, last) in givers.get(awaited).into_iter().flatten() {
                    if threads.iter().any(|thread| thread != giver) {
                        let has = |needs: Awaitable| {
                            let alone =
                                awaiting.get(&needs).is_some_and(|all| all.iter().eq([giver]));
                            alone && served(trace, (*awaited, threads), needs, *last)
                        };
                        waits.needed(trace, *awaited, (*giver, Some(*last)), &has);
                    }
                }
            }
        }
    }
    waits
}

/// Has the one thread that waits for something, and waits once, given before all that who gives it waits for until then?
/// What a thread waits for until its end is not known.
fn served(
    trace: &EventTrace,
    (awaited, threads): (Awaitable, &BTreeSet<ThreadId>),
    needs: Awaitable,
    gift: EventId,
) -> bool {
    let (Awaitable::Object(awaited), Awaitable::Object(needs)) = (awaited, needs) else {
        return false;
    };
    if trace.objects.get(awaited.index()).is_none_or(|object| object.name == END_OF_THREAD) {
        return false;
    }
    let mut waiters = threads.iter();
    let (Some(waiter), None) = (waiters.next(), waiters.next()) else { return false };
    let waits_for = |id: &EventId, on: ObjectId| match trace.event(*id).kind {
        EventKind::Wake { condition: object, .. } | EventKind::SemaphoreWait { object } => {
            object == on
        }
        _ => false,
    };
    let gives = |id: &&EventId| match trace.event(**id).kind {
        EventKind::Signal { condition: object }
        | EventKind::Broadcast { condition: object }
        | EventKind::SemaphorePost { object } => object == needs,
        _ => false,
    };
    let Some(own) = trace.threads.get(waiter.index()).map(|thread| &thread.events) else {
        return false;
    };
    let mut at = own.iter().enumerate().filter(|(_, id)| waits_for(id, awaited)).map(|(at, _)| at);
    let (Some(at), None) = (at.next(), at.next()) else { return false };
    let earlier = trace.thread_of(gift).events.iter().take(trace.event(gift).index as usize);
    let needed = earlier.filter(|id| waits_for(id, needs)).count();
    own[..at].iter().filter(gives).count() >= needed
}

/// By what Rust's library sets once, the locks that all have who set it. Who has one of them waits for nobody else to set it,
/// for nobody is about to.
fn setting_guards(trace: &EventTrace) -> BTreeMap<CellId, BTreeSet<ObjectId>> {
    let mut guards: BTreeMap<CellId, BTreeSet<ObjectId>> = BTreeMap::new();
    for thread in &trace.threads {
        let mut held: BTreeSet<ObjectId> = BTreeSet::new();
        for event in thread.events.iter().map(|id| trace.event(*id)) {
            match event.kind {
                EventKind::Lock { object, .. } => {
                    held.insert(object);
                }
                EventKind::Unlock { object, .. } => {
                    held.remove(&object);
                }
                _ if event.sets_once() => {
                    for part in event.kind.writes() {
                        let known = guards.entry(part.cell).or_insert_with(|| held.clone());
                        known.retain(|object| held.contains(object));
                    }
                }
                _ => {}
            }
        }
    }
    guards
}

/// By what is waited for and thread, the last event with which it gives that.
fn last_givers(
    trace: &EventTrace,
    cells: &BTreeSet<CellId>,
) -> BTreeMap<Awaitable, BTreeMap<ThreadId, EventId>> {
    let mut givers: BTreeMap<Awaitable, BTreeMap<ThreadId, EventId>> = BTreeMap::new();
    for thread in &trace.threads {
        for &id in &thread.events {
            match trace.event(id).kind {
                EventKind::Signal { condition: object }
                | EventKind::Broadcast { condition: object }
                | EventKind::SemaphorePost { object }
                | EventKind::BarrierArrive { object } => {
                    givers.entry(Awaitable::Object(object)).or_default().insert(thread.id, id);
                }
                EventKind::Write { ref parts }
                | EventKind::ReadModifyWrite { writes: ref parts, .. } => {
                    for part in parts.iter().filter(|part| cells.contains(&part.cell)) {
                        givers
                            .entry(Awaitable::Value(part.cell))
                            .or_default()
                            .insert(thread.id, id);
                    }
                }
                _ => {}
            }
        }
    }
    givers
}

/// What a thread sees while it is in one call of a library's function.
#[derive(Default)]
struct Looks<'t> {
    /// The call: where the program is in it.
    call: &'t [Site],
    /// By variable, where it was looked at, and what it was when the thread last saw or wrote it.
    seen: BTreeMap<CellId, (&'t [Site], Option<u128>)>,
    /// Locks that it gave back in the call.
    released: BTreeSet<ObjectId>,
}

impl<'t> Looks<'t> {
    /// The variables of which this event sees what another thread wrote after an earlier place of the same call had seen
    /// them otherwise: there the library waits, or tries again. Of what it does not look at atomically, as a container at
    /// its own members, it expects that nobody else writes it.
    fn awaited(&mut self, trace: &'t EventTrace, event: &'t Event) -> Vec<CellId> {
        let depth = event.depth();
        let (inner, call) = event.stack.split_at(depth.min(event.stack.len()));
        if depth == 0 || call != self.call {
            self.call = if depth == 0 { &[] } else { call };
            self.seen.clear();
            self.released.clear();
        }
        if depth == 0 {
            return Vec::new();
        }
        let mut awaited = Vec::new();
        for part in event.kind.reads() {
            let value = trace.variables.get(part.var.index()).and_then(|var| var.recorded);
            let before = self.seen.insert(part.cell, (inner, value));
            if let (Some((place, Some(before))), Some(now)) = (before, value)
                && place != inner
                && before != now
                && is_atomic(inner)
            {
                awaited.push(part.cell);
            }
        }
        for part in event.kind.writes() {
            let recorded = |var| Some(trace.recorded_value(var));
            let value = trace.exprs.evaluate(part.value, &recorded);
            self.seen.insert(part.cell, (inner, value));
        }
        awaited
    }

    fn released(&mut self, object: ObjectId) {
        self.released.insert(object);
    }

    /// Of these locks, those that the thread has had in all of the call.
    fn held_since(&self, held: &[ObjectId]) -> Vec<ObjectId> {
        held.iter().copied().filter(|object| !self.released.contains(object)).collect()
    }
}

/// Does the library come to this place by its atomic operations? These are in files of that name in the libraries of C++ and
/// Rust.
fn is_atomic(inside: &[Site]) -> bool {
    inside.iter().any(|site| site.file.contains("atomic"))
}

impl Waits {
    fn all(&mut self, held: &[ObjectId], awaited: Awaitable, thread: ThreadId) {
        for &object in held {
            self.add(Awaitable::Object(object), awaited, thread);
        }
    }

    fn add(&mut self, from: Awaitable, to: Awaitable, thread: ThreadId) {
        if from != to {
            self.0.entry((from, to)).or_default().insert(thread);
        }
    }

    /// Everything that a thread waits for, up to an event, and that is not there before.
    fn needed(
        &mut self,
        trace: &EventTrace,
        given: Awaitable,
        (thread, until): (ThreadId, Option<EventId>),
        is_there: &dyn Fn(Awaitable) -> bool,
    ) {
        let last = until.map_or(u32::MAX, |id| trace.event(id).index);
        let own = trace.threads.get(thread.index()).map_or(&[][..], |thread| &thread.events);
        let earlier = own.iter().map(|id| trace.event(*id)).take_while(|event| event.index < last);
        for event in earlier {
            let needs = match event.kind {
                EventKind::Lock { object, .. }
                | EventKind::SemaphoreWait { object }
                | EventKind::Wake { condition: object, .. }
                | EventKind::BarrierLeave { object } => Awaitable::Object(object),
                EventKind::Join { child } => Awaitable::End(child),
                _ => continue,
            };
            if !is_there(needs) {
                self.add(given, needs, thread);
            }
        }
    }

    fn path(&self, from: Awaitable, to: Awaitable) -> Option<Vec<Awaitable>> {
        let mut before: BTreeMap<Awaitable, Option<Awaitable>> = BTreeMap::from([(from, None)]);
        let mut open = vec![from];
        while let Some(node) = open.pop() {
            if node == to {
                let mut path = vec![node];
                let mut at = node;
                while let Some(Some(previous)) = before.get(&at) {
                    path.push(*previous);
                    at = *previous;
                }
                path.reverse();
                return Some(path);
            }
            for &(_, next) in self.0.keys().filter(|(source, _)| *source == node) {
                if let Entry::Vacant(entry) = before.entry(next) {
                    entry.insert(Some(node));
                    open.push(next);
                }
            }
        }
        None
    }

    /// One thread alone, which takes locks in one order and later in another, waits for nobody.
    fn needs_two_threads(&self, circle: &[Awaitable]) -> bool {
        let mut threads: BTreeSet<ThreadId> = BTreeSet::new();
        for two in circle.windows(2) {
            threads.extend(self.0.get(&(two[0], two[1])).into_iter().flatten());
        }
        threads.len() > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;
    use std::fmt::Write;

    fn names(waits: &Waits, trace: &EventTrace) -> Vec<(String, String)> {
        waits.0.keys().map(|(from, to)| (name(trace, *from), name(trace, *to))).collect()
    }

    #[test]
    fn what_is_taken_before_any_of_the_gifts_is_needed() {
        let text = "
            a: lock m
            a: unlock m
            a: post s
            a: lock n
            a: unlock n
            a: post s
            a: lock late
            a: unlock late
            b: sem-wait s
            b: sem-wait s
        ";
        let parsed = parse(text).expect("the text is a trace");
        let found = names(&waits(&parsed.trace), &parsed.trace);
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(found, [pair("s", "m"), pair("s", "n")]);
        let own = parse("a: lock m\na: post s\na: unlock m\na: sem-wait s").expect("a trace");
        assert!(names(&waits(&own.trace), &own.trace).is_empty(), "it gives to nobody else");
    }

    /// Who waits for a task to be done has handed it out before: what the worker waited for until then is there.
    #[test]
    fn who_has_given_what_is_needed_waits_in_no_circle() {
        let circle = |main: &str, worker: &str| {
            let text = format!("{main}\n{worker}\n");
            let parsed = parse(&text).expect("the text is a trace");
            new_circle(&parse("a: W x 1").expect("a trace").trace, None, &parsed.trace)
        };
        let worker = "w: sem-wait task\nw: post done\nw: sem-wait task\n";
        assert_eq!(circle("t: post task\nt: sem-wait done\nt: post task", worker), None);
        assert!(
            circle("t: sem-wait done\nt: post task", worker).is_some(),
            "nothing is handed out"
        );
        let other = format!("{worker}v: sem-wait task\n");
        let main = "t: post task\nt: sem-wait done\nt: post task\nt: post task";
        assert!(circle(main, &other).is_some(), "another one may take it");
    }

    /// Who finds that another thread is about to set a cell waits until that has: not where both have one lock.
    #[test]
    fn nobody_waits_for_a_cell_to_be_set_with_the_lock_that_all_set_it_under() {
        let setting = |thread: &str, first: &str, lock: &str| {
            format!(
                "{thread}: lock {lock}\n{thread}: [{thread}1] {first}\n{thread}: [{thread}2] RMW once -> {thread}y = 5\n\
                 {thread}: [{thread}3] R once -> {thread}z\n{thread}: unlock {lock}\n"
            )
        };
        let circles = |locks: [&str; 2], function: &str| {
            let text = format!(
                "cell once 32 = 3\n{}{}",
                setting("a", "W once 1", locks[0]),
                setting("b", "R once -> bx", locks[1])
            );
            let mut parsed = parse(&text).expect("the text is a trace");
            let site = |file: &str, line: u32, function: &str| Site {
                file: file.to_owned(),
                line,
                column: 1,
                function: function.to_owned(),
            };
            for label in ["a1", "a2", "a3", "b1", "b2", "b3"] {
                let id = parsed.event(label);
                let line = parsed.trace.event(id).index;
                parsed.trace.events[id.index()].stack = [
                    site("/rustc/1/library/core/src/sync/atomic.rs", line, "swap"),
                    site("/rustc/1/library/std/src/sys/sync/once/futex.rs", line, "call"),
                    site("/rustc/1/library/std/src/sync/once_lock.rs", 9, function),
                    site("a.rs", 8, "config"),
                ]
                .into();
            }
            let var = |label| parsed.trace.event(parsed.event(label)).kind.reads()[0].var;
            for (var, value) in [(var("b1"), 1), (var("b2"), 1), (var("b3"), 0)] {
                parsed.trace.variables[var.index()].recorded = Some(value);
            }
            let found = waits(&parsed.trace).0;
            found.into_keys().any(|(_, to)| matches!(to, Awaitable::Value(_)))
        };
        assert!(circles(["m", "n"], "set"), "the other one has another lock");
        assert!(circles(["m", "m"], "get_or_init"), "what it runs may need the lock");
        assert!(!circles(["m", "m"], "set"));
    }

    /// A future's `get` looks, sets a bit, sleeps and looks again: with a lock that its promise is kept under it never comes back.
    #[test]
    fn a_library_that_looks_until_another_one_has_written_waits() {
        let text = "
            cell ready 32 = 0
            t: fork w
            t: lock m
            t: [look] R ready -> a
            t: [bit] RMW ready -> b = b + 2
            t: [again] R ready -> c
            t: unlock m
            w: lock m
            w: W ready 1
            w: unlock m
        ";
        let circle_in = |file: &str, again: u128, line: u32| {
            let mut parsed = parse(text).expect("the text is a trace");
            let site = |file: &str, line| Site { file: file.to_owned(), line, ..Site::default() };
            for (label, inner) in [("look", 1), ("bit", 2), ("again", line)] {
                let library = site(&format!("/usr/include/c++/12/bits/{file}"), inner);
                let id = parsed.event(label);
                parsed.trace.events[id.index()].stack = [library, site("a.cc", 10)].into();
            }
            let var = |label| parsed.trace.event(parsed.event(label)).kind.reads()[0].var;
            for (var, value) in [(var("look"), 0), (var("bit"), 0), (var("again"), again)] {
                parsed.trace.variables[var.index()].recorded = Some(value);
            }
            let mut recorded = parsed.trace.clone();
            for event in &mut recorded.events {
                if let EventKind::Lock { .. } | EventKind::Unlock { .. } = event.kind {
                    event.kind = EventKind::Fence;
                }
            }
            new_circle(&recorded, None, &parsed.trace)
        };
        let circle = |again, line| circle_in("atomic_futex.h", again, line);
        assert!(circle(1, 3).is_some(), "the other one's write is what it waited for");
        assert_eq!(circle(2, 3), None, "that is its own write");
        assert_eq!(circle(1, 2), None, "a place that looks in each round is the program's affair");
        assert_eq!(
            circle_in("stl_tree.h", 1, 3),
            None,
            "a container that another thread writes to waits for nobody"
        );
    }

    /// What is taken from a channel with a lock that is needed to send comes never, also where it was there in the run.
    #[test]
    fn what_takes_from_a_channel_waits() {
        let text = "
            t: fork w
            t: lock m
            t: [take] R tail -> a
            t: unlock m
            w: lock m
            w: W tail 1
            w: unlock m
        ";
        let circle = |called: &str| {
            let mut parsed = parse(text).expect("the text is a trace");
            let site = |file: &str, function: &str| Site {
                file: file.to_owned(),
                function: function.to_owned(),
                ..Site::default()
            };
            let inside = site("/rustc/0/library/std/src/sync/mpmc/list.rs", "read");
            let library = site("/rustc/0/library/std/src/sync/mpsc.rs", called);
            let id = parsed.event("take");
            parsed.trace.events[id.index()].stack = [inside, library, site("a.rs", "main")].into();
            let mut recorded = parsed.trace.clone();
            for event in &mut recorded.events {
                if let EventKind::Lock { .. } | EventKind::Unlock { .. } = event.kind {
                    event.kind = EventKind::Fence;
                }
            }
            new_circle(&recorded, None, &parsed.trace)
        };
        assert!(circle("recv<u32>").is_some());
        assert_eq!(circle("try_recv<u32>"), None);
    }

    /// Who keeps a lock while it waits for so long gets no signal from those who need that.
    #[test]
    fn a_wait_with_a_time_limit_is_a_wait() {
        let locks = ("a: lock n\n", "a: unlock n\n", "b: lock n\n", "b: unlock n\n");
        let run = |(first, last, other, end): (&str, &str, &str, &str)| {
            let text = format!(
                "{first}a: lock m\na: wait-timed-out c m\na: unlock m\n{last}{other}b: lock m\nb: signal c\nb: unlock m\n{end}"
            );
            parse(&text).expect("the text is a trace").trace
        };
        let circle = new_circle(&run(("", "", "", "")), None, &run(locks));
        assert!(circle.is_some_and(|names| names.contains(&"n".to_owned())));
    }

    /// Each wait beside each gift and all that came before it would take hours.
    #[test]
    fn long_runs_are_looked_through_once() {
        let mut text = String::new();
        for _ in 0..5_000 {
            writeln!(
                text,
                "a: lock m\na: unlock m\na: post s\nb: sem-wait s\nb: post t\na: sem-wait t"
            )
            .expect("text");
        }
        let parsed = parse(&text).expect("the text is a trace");
        let found = names(&waits(&parsed.trace), &parsed.trace);
        assert!(found.contains(&("s".to_owned(), "m".to_owned())), "{found:?}");
        assert!(found.len() <= 4, "{found:?}");
    }

    /// What threads wait for in the beginning of a run makes circles with what a repair adds at its end, unless the
    /// repair takes an order away, which it does everywhere.
    #[test]
    fn the_beginning_of_a_run_may_close_a_circle() {
        let all = "z: lock m\nz: unlock m\nz: lock n\nz: unlock n\n";
        let trace = |text: &str| parse(&format!("{all}{text}")).expect("the text is a trace").trace;
        let nested = |outer: &str, inner: &str, thread: &str| {
            format!(
                "{thread}: lock {outer}\n{thread}: lock {inner}\n{thread}: unlock {inner}\n{thread}: unlock {outer}\n"
            )
        };
        let plain = trace("a: lock m\na: unlock m\n");
        let longer = trace(&nested("m", "n", "a"));
        let whole = trace(&format!("a: lock m\na: unlock m\n{}", nested("n", "m", "b")));
        assert_eq!(new_circle(&plain, None, &longer), None);
        let circle = new_circle(&plain, Some(&whole), &longer).expect("they wait for each other");
        assert!(circle.contains(&"m".to_owned()) && circle.contains(&"n".to_owned()), "{circle:?}");
        let other = trace(&nested("n", "m", "a"));
        assert_eq!(new_circle(&longer, Some(&longer), &other), None);
    }
}
