//! Writes to a local variable of the failing thread that had ended.
//!
//! Who answers a request too late, when the one that asked has given up and returned, writes to what lies on that thread's
//! stack by then: another function's variable, or what the compiler keeps there, and the thread fails somewhere else. The
//! first walk notes what other threads do in the failing one's stack. Where some of that is not to a variable that was
//! there from before until the failure, the next walk finds which variables they meant ([`crate::pointed`], or those that the
//! thread's creator had when it created it) and when these had ended. Of those that had, the run is walked once more with
//! their ends as events ([`crate::locals`]), and φbug is that the variable's end comes before the write. All else stays as
//! it was: what lies at an address is what the run had there. What the failing thread reads of such a write, no schedule
//! tells in which the write comes to the variable, so that such reads give anything.
//!
//! That a write came too late does not say that the failure is due to it. Where what failed was computed from what
//! threads read, one of these reads has to be of the write's bytes; a crash, or a check, that nothing which was read
//! explains can be due to what the compiler had there.

use crate::access::STAMP_SLACK;
use crate::engine::Engine;
use crate::failure::{AccessKey, At};
use crate::locals::Used;
use crate::pointed::Use;
use crate::value::{Scalar, Value};
use model::{CellId, Event, EventKind, ExprId, FailureCondition, Interval, WritePart};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// So many addresses are looked at, for each of the threads that use them.
const MOST_PLACES: usize = 4096;
/// Of the uses of one address by one thread, so many, the last ones: who comes too late comes last.
const MOST_USES: usize = 8;

/// What other threads do in the failing thread's stack.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outlived {
    /// By thread and address, as the first walk finds.
    places: BTreeMap<(usize, u64), VecDeque<(AccessKey, Use)>>,
    /// The failing thread's variables that are there, outermost first, as the first walk finds.
    standing: Vec<Standing>,
    /// Where variables lay whose scope the failing thread has left, as far as the compiler says it.
    left: FxHashSet<u64>,
    /// The accesses that the last walk is to find.
    pub wanted: Arc<FxHashMap<AccessKey, Meant>>,
    /// Those that it came to, and when that was.
    found: BTreeMap<AccessKey, (Interval, At)>,
    /// Orders of the recorded run that the values of the failing thread's reads show.
    pub orders: Vec<(At, At)>,
}

/// A variable of a function that has not returned.
#[derive(Clone, Copy, Debug)]
struct Standing {
    /// The frame's.
    serial: u64,
    address: u64,
    size: u64,
    /// By then it was not there yet.
    birth: u64,
}

/// The variable that an access meant, which may have ended before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meant {
    /// As object of the heap.
    pub object: usize,
    /// The clock tells that it had.
    certain: bool,
}

/// A write to a variable that had ended, maybe.
#[derive(Clone, Debug)]
struct Late {
    meant: Meant,
    end: At,
    event: At,
    when: Interval,
    /// As far as they are known.
    values: FxHashMap<CellId, Option<u128>>,
}

/// A read of what such a write left.
#[derive(Clone, Copy, Debug)]
struct Seen {
    read: u32,
    /// Its value is not what the thread itself had written, and not the clock alone says so.
    by_value: bool,
    cell: CellId,
    /// The thread's own write there before it.
    own: Option<u32>,
    write: At,
}

impl Outlived {
    /// Was anything done in the failing thread's stack that was not to a variable which was there all the time?
    pub fn is_asked(&self) -> bool {
        let stands = |used: &Use| {
            self.standing.iter().any(|local| {
                used.address.wrapping_sub(local.address) < local.size.max(1)
                    && local.birth <= used.when.earliest
                    && !self.left.contains(&local.address)
            })
        };
        self.places.values().flatten().any(|(_, used)| !stands(used))
    }

    /// The addresses, all of them in this thread's stack.
    pub fn used(&self, owner: usize) -> Used {
        self.places.keys().map(|(_, address)| (owner, *address)).collect()
    }

    fn uses(&self) -> BTreeMap<AccessKey, Use> {
        self.places.values().flatten().copied().collect()
    }
}

impl Engine<'_> {
    /// Another thread uses an address in the failing one's stack.
    pub(crate) fn note_outlived(
        &mut self,
        t: usize,
        pointer: Option<Scalar>,
        (owner, address): (usize, u64),
    ) {
        if !self.lifetime.outlived.wanted.is_empty() {
            let key = self.access_key(t);
            if let Some(key) = key.filter(|key| self.lifetime.outlived.wanted.contains_key(key)) {
                let event = (self.happened(t), (t, self.out.event_count(t)));
                self.lifetime.outlived.found.entry(key).or_insert(event);
            }
            return;
        }
        let places = &self.lifetime.outlived.places;
        let is_new = !places.contains_key(&(t, address));
        if (is_new && places.len() >= MOST_PLACES) || !self.may_have_damaged_memory() {
            return;
        }
        let Some(used) = self.pointed(t, pointer, (owner, address)) else { return };
        let uses = self.lifetime.outlived.places.entry((t, address)).or_default();
        if uses.len() == MOST_USES {
            uses.pop_front();
        }
        uses.push_back(used);
    }

    /// A local variable begins.
    pub(crate) fn note_standing(&mut self, t: usize, (address, size): (u64, u64)) {
        if !self.notes_outlived(t) {
            return;
        }
        let birth = self.threads[t].last_stamp;
        if let Some(serial) = self.threads[t].code().map(|frame| frame.serial) {
            let local = Standing { serial, address, size, birth };
            self.lifetime.outlived.standing.push(local);
        }
    }

    /// The compiler says that the scope of the variable at this address is left.
    pub(crate) fn note_scope_left(&mut self, t: usize, pointer: Option<&Value>) {
        let address = pointer.and_then(Value::scalar).and_then(Scalar::as_const);
        if let Some(address) = address.filter(|_| self.notes_outlived(t)) {
            self.lifetime.outlived.left.insert(address as u64);
        }
    }

    /// The top frame is about to be left.
    pub(crate) fn note_returned(&mut self, t: usize) {
        if self.lifetime.outlived.standing.is_empty() || !self.notes_outlived(t) {
            return;
        }
        if let Some(serial) = self.threads[t].code().map(|frame| frame.serial) {
            let standing = &mut self.lifetime.outlived.standing;
            while standing.pop_if(|local| local.serial == serial).is_some() {}
        }
    }

    /// Is it the first walk, and the failing thread?
    fn notes_outlived(&self, t: usize) -> bool {
        self.failing == Some(t) && self.symbolic() && self.lifetime.outlived.wanted.is_empty()
    }

    /// Of the uses that an earlier walk noted, those of variables that may have ended, by this walk, which knows the
    /// variables.
    pub(crate) fn outlived(&self, earlier: &Engine<'_>) -> FxHashMap<AccessKey, Meant> {
        let uses = earlier.lifetime.outlived.uses();
        let meant = self.pointed_to(earlier, &uses);
        tracing::debug!(uses = uses.len(), meant = meant.len(), "of the failing thread's stack");
        let given = |t: usize, address: u64| {
            let locals = self.learned.locals.given_to(t);
            let lies = |object: &usize| {
                let known = self.learned.heap.objects.get(*object);
                known.is_some_and(|it| address.wrapping_sub(it.address) < it.size.max(1))
            };
            locals.filter(lies).last()
        };
        let ended = |(key, used): (&AccessKey, &Use)| {
            let object = meant.get(key).copied().or_else(|| given(key.0, used.address))?;
            let known = self.learned.heap.objects.get(object)?;
            let (_, earliest) = known.freed?;
            let when = used.when;
            let certain = known.death.saturating_add(STAMP_SLACK) < when.earliest;
            (earliest < when.latest).then_some((*key, Meant { object, certain }))
        };
        uses.iter().filter_map(ended).collect()
    }

    /// Makes a write that came too late the failure, where that may be due to it. Is it?
    pub(crate) fn blame_outlived(&mut self) -> bool {
        let Some((failing, failure)) = &self.failure else { return false };
        let FailureCondition::Value(condition) = failure.condition else { return false };
        let failing = *failing;
        let explained = self.pool.as_const(condition).is_none();
        (0..self.threads.len()).for_each(|t| self.overwrite_locals(t));
        let late = self.late_writes();
        let seen = self.seen_by(failing, &late);
        let may_be: Vec<&Late> = late
            .iter()
            .filter(|late| {
                let seen = seen.iter().filter(|seen| seen.write == late.event);
                match late.meant.certain {
                    true => !explained || seen.count() > 0,
                    false => seen.into_iter().any(|seen| seen.is_behind(late.end)),
                }
            })
            .collect();
        tracing::debug!(late = late.len(), seen = seen.len(), explained, "late writes");
        let Some(first) = first_of_last(&may_be) else { return false };
        let blamed = |seen: &&Seen| may_be.iter().any(|late| late.event == seen.write);
        let seen: Vec<Seen> = seen.iter().filter(blamed).copied().collect();
        let (object, event) = (first.meant.object, first.event);
        self.name_ended(first.end, event);
        self.lifetime.blame(object, event);
        self.used_after_free = None;
        for seen in &seen {
            self.out.read_anything(failing, seen.read);
        }
        self.lifetime.outlived.orders = orders(failing, &seen);
        true
    }

    /// The writes to variables that had ended.
    fn late_writes(&mut self) -> Vec<Late> {
        let mut late = Vec::new();
        for (key, (when, event)) in std::mem::take(&mut self.lifetime.outlived.found) {
            let Some(&meant) = self.lifetime.outlived.wanted.get(&key) else { continue };
            let Some(&end) = self.lifetime.frees.get(&meant.object) else { continue };
            let parts = self.out.event_kind(event.0, event.1).map(EventKind::writes);
            let parts = parts.unwrap_or_default().to_vec();
            if parts.is_empty() {
                continue;
            }
            let value = |part: &WritePart| (part.cell, self.recorded_value(part.value));
            let values = parts.iter().map(value).collect();
            late.push(Late { meant, end, event, when, values });
        }
        late.sort_by_key(|late| (late.when.earliest, late.event));
        late
    }

    /// The reads of a thread that gave what was written too late, and not what the thread itself had written there last.
    fn seen_by(&mut self, t: usize, late: &[Late]) -> Vec<Seen> {
        let mut own: FxHashMap<CellId, (u32, Interval, ExprId)> = FxHashMap::default();
        let mut seen = Vec::new();
        let Some(thread) = self.out.threads.get(t) else { return seen };
        let cells: FxHashSet<CellId> =
            late.iter().flat_map(|late| late.values.keys().copied()).collect();
        let touches = |event: &&(&Event, &Interval)| {
            let mut read = event.0.kind.reads().iter().map(|part| part.cell);
            let mut written = event.0.kind.writes().iter().map(|part| part.cell);
            read.any(|cell| cells.contains(&cell)) || written.any(|cell| cells.contains(&cell))
        };
        let events = thread.events.iter().zip(&thread.intervals);
        let events: Vec<(u32, Interval, EventKind)> = events
            .filter(|event| touches(&event))
            .map(|(event, when)| (event.index, *when, event.kind.clone()))
            .collect();
        for (number, when, kind) in events {
            for part in kind.reads() {
                let read = self.out.recorded(part.var);
                let before = own.get(&part.cell).copied();
                let own_value = before.and_then(|(_, _, value)| self.recorded_value(value));
                if read.is_some() && own_value == read {
                    continue;
                }
                // The log may not say what a thread finds in memory that it gave to nobody.
                let same = |value: Option<u128>| value.zip(read).is_none_or(|(a, b)| a == b);
                let fits = |late: &&Late| {
                    late.end.1 < number
                        && late.values.get(&part.cell).is_some_and(|value| same(*value))
                        && late.when.earliest <= when.latest
                        && before.is_none_or(|(_, when, _)| when.earliest <= late.when.latest)
                };
                if let Some(late) = late.iter().rfind(fits) {
                    let own = before.map(|(number, ..)| number);
                    let by_value = read.is_some() && own_value.is_some();
                    let cell = part.cell;
                    seen.push(Seen { read: number, by_value, cell, own, write: late.event });
                }
            }
            for part in kind.writes() {
                own.insert(part.cell, (number, when, part.value));
            }
        }
        seen
    }

    /// What the variable is called that ended, whoever knows it: what others have at its place has another name.
    fn name_ended(&mut self, (thread, end): At, (writer, event): At) {
        let name = |thread: usize, number: u32| self.out.threads.get(thread)?.name_of(number);
        let is_plain = |name: &&str| name.chars().all(|c| c.is_alphanumeric() || c == '_');
        let written = name(writer, event);
        let ended = name(thread, end).or(written.filter(is_plain)).map(str::to_owned);
        let written = written.map(str::to_owned).or(ended.clone());
        if let Some(ended) = ended {
            self.out.name_event(thread, end, &ended);
        }
        let written = written.as_deref().unwrap_or("a local variable");
        self.out.name_event(writer, event, written);
    }
}

impl Seen {
    /// Shows the value that the write came behind what the thread itself wrote there when its variable had ended?
    fn is_behind(&self, end: At) -> bool {
        self.by_value && self.own.is_some_and(|own| own > end.1)
    }
}

/// Of the last variables that ended together and were written to, the first write: what came before was done long ago.
fn first_of_last<'a>(late: &[&'a Late]) -> Option<&'a Late> {
    let last = late.last()?;
    let mut together = BTreeSet::from([last.end]);
    let neighbours = |end: At, ends: &BTreeSet<At>| {
        ends.iter().any(|other| other.0 == end.0 && other.1.abs_diff(end.1) <= 1)
    };
    // Ends that come right behind each other have numbers that do.
    while let Some(more) =
        late.iter().find(|late| !together.contains(&late.end) && neighbours(late.end, &together))
    {
        together.insert(more.end);
    }
    late.iter().find(|late| together.contains(&late.end)).copied()
}

/// What the recorded run shows of the orders of such writes: behind what the thread had written there itself, and before
/// the reads that gave them. Of several reads in a row the first one says it all.
fn orders(failing: usize, seen: &[Seen]) -> Vec<(At, At)> {
    let mut told: FxHashSet<(CellId, Option<u32>, At)> = FxHashSet::default();
    let first = seen.iter().filter(|seen| told.insert((seen.cell, seen.own, seen.write)));
    let both = first.flat_map(|seen| {
        let behind = seen.own.map(|own| ((failing, own), seen.write));
        behind.into_iter().chain([(seen.write, (failing, seen.read))])
    });
    both.collect()
}
