//! What could be changed, by the pattern of the cause. One file per family of patterns; each gives
//! its candidates in the order in which a maintainer would want to hear of them.

mod act;
mod again;
mod atomicity;
mod callbacks;
mod checked;
mod compared;
mod deadlock;
mod ended;
mod fetched;
mod give_back;
mod held;
mod in_one_call;
mod instead;
mod interrupted;
mod join;
mod joined;
mod kept;
mod one_sided;
mod order;
mod own_copy;
mod planner;
mod remembered;
mod routine;
mod shared;
mod siblings;
mod steps;
mod together;
mod told;
mod unseen;
mod unsignalled;
mod updated;
mod wakeup;

use crate::Bug;
use crate::check::Checked;
use crate::edit::Edited;
use crate::enforce::Rule;
use crate::sections::sections;
use crate::source::Span;
use explain::Pattern;
use model::names::{CONTENTS, FILE, initialised, is_channel, is_descriptor};
use model::{CellId, Event, EventId, EventTrace};
use std::collections::BTreeSet;

/// What kind of change a repair is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Do not give a lock back between two sections.
    HoldAcross,
    /// Make lines one critical section, under a lock that is there or a new one.
    CriticalSection,
    /// Change a variable in one atomic step.
    OneStep,
    /// Read a variable once and keep the value.
    ReadOnce,
    /// Give each thread its own copy of a variable that its creator uses again.
    OwnCopy,
    /// Let a semaphore begin with one unit.
    OneUnit,
    /// Let a statement come earlier or later in its own thread.
    Move,
    /// Join a thread first.
    JoinFirst,
    /// Create a thread later.
    StartLater,
    /// Wait for another thread's step.
    WaitFor,
    /// Ask under the mutex whether it has happened already before waiting for the signal.
    TestBeforeWait,
    /// Test again after waiting: wait in a loop.
    TestAgain,
    /// Signal what somebody waits for.
    Signal,
    /// Broadcast instead of signal.
    Broadcast,
    /// Take locks in one order.
    LockOrder,
    /// Do not take a lock again that the thread has already.
    LockOnce,
    /// Take a reader/writer lock to write from the start.
    TakeToWrite,
    /// Give a lock back before waiting.
    ReleaseFirst,
    /// Give a lock back before the thread ends.
    GiveBack,
}

impl Kind {
    /// The name in the JSON answer and in annotations.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::HoldAcross => "hold-across",
            Self::CriticalSection => "critical-section",
            Self::OneStep => "one-step",
            Self::ReadOnce => "read-once",
            Self::OwnCopy => "own-copy",
            Self::OneUnit => "one-unit",
            Self::Move => "move",
            Self::StartLater => "start-later",
            Self::JoinFirst => "join-first",
            Self::WaitFor => "wait-for",
            Self::TestBeforeWait => "test-before-wait",
            Self::TestAgain => "test-again",
            Self::Signal => "signal",
            Self::Broadcast => "broadcast",
            Self::LockOrder => "lock-order",
            Self::LockOnce => "lock-once",
            Self::TakeToWrite => "take-to-write",
            Self::ReleaseFirst => "release-first",
            Self::GiveBack => "give-back",
        }
    }
}

/// The lock of a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// Its name as in the source; what it is for when it is new.
    pub name: String,
    /// Is it one that the program does not have yet?
    pub new: bool,
}

/// A change to the program, in words and places.
#[derive(Clone, Debug)]
pub struct Repair {
    /// What kind of change.
    pub kind: Kind,
    /// What to do, one line each, without full stops; the first is the change itself.
    pub steps: Vec<String>,
    /// The lock, where it is about one.
    pub lock: Option<Guard>,
    /// The variables, condition variables and threads that it is about.
    pub variables: Vec<String>,
    /// The lines to change.
    pub places: Vec<Span>,
    /// What a running program is held to so that it does as the repaired one would.
    pub rule: Rule,
    /// What was shown; `None` before.
    pub checked: Option<Checked>,
}

impl Repair {
    /// Would a person do the same?
    pub(crate) fn says_the_same(&self, other: &Self) -> bool {
        self.kind == other.kind && self.steps == other.steps && self.lock == other.lock
    }

    /// Lets it speak of the events of another trace, of which its own events are images.
    pub(crate) fn speak_of(&mut self, origin: impl Fn(EventId) -> Option<EventId>) {
        self.rule = self.rule.speaking_of(&origin);
        if let Some(passing) = self.checked.as_mut().and_then(|checked| checked.passing.as_mut()) {
            *passing = passing.iter().filter_map(|id| origin(*id)).collect();
        }
    }

    /// Is it the same change but for how far it goes, so that the simpler one is enough? So is one that has a lock of the
    /// program's own held where this one makes a new one, which others may have while they wait for that.
    pub(crate) fn is_variant_of(&self, other: &Self) -> bool {
        let moved = self.kind == Kind::Move && other.kind == Kind::Move;
        let guarded = self.lock.is_some() && self.lock == other.lock && self.kind == other.kind;
        let is_new = |repair: &Self| repair.lock.as_ref().map(|lock| lock.new);
        let goes_further = (is_new(self), is_new(other)) == (Some(true), Some(false))
            && other.places.iter().all(|place| self.places.contains(place));
        // The one statement before the other is the other behind the one.
        let same = || {
            let all = |repair: &Self| repair.places.iter().cloned().collect::<BTreeSet<_>>();
            all(self) == all(other)
        };
        let moved = moved && (self.places.first() == other.places.first() || same());
        moved || guarded || goes_further
    }
}

/// A repair and the trace that it would make.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) repair: Repair,
    pub(crate) edited: Edited,
}

/// All candidates, the simplest first.
pub(crate) fn all(bug: &Bug<'_>) -> Vec<Candidate> {
    let found = of_pattern(bug).into_iter();
    let mut found: Vec<Candidate> = found.map(|found| in_one_call::told(bug, found)).collect();
    // A handler may interrupt the thread that has the lock or does what is waited for.
    let handles = |place: &Span| bug.handlers.contains(&place.function);
    found.retain(|Candidate { repair, .. }| {
        let blocks = repair.lock.is_some() || repair.kind == Kind::WaitFor;
        !(blocks && repair.places.iter().any(handles))
    });
    // Constructors and destructors write the pointer to an object's table of virtual functions between
    // the lines of the program, where neither a lock nor a signal can be put.
    let is_table = |name: &String| {
        let member = name.rsplit(['.', '>']).next().unwrap_or(name);
        member.starts_with("_vptr$") || member.starts_with("_vptr.")
    };
    if variables(bug).iter().any(is_table) {
        found.retain(|found| matches!(found.repair.kind, Kind::StartLater | Kind::JoinFirst));
    }
    // What happens to a descriptor is the kernel's: no lock is for it. Where two steps of a thread were parted
    // by another's close, that one is wrong, and not when it came.
    if variables(bug).iter().any(|name| is_descriptor(name)) {
        let parted = matches!(bug.pattern, Pattern::Atomicity | Pattern::SeveralVariables);
        found.retain(|Candidate { repair, .. }| !parted && repair.lock.is_none());
    }
    // Several bit-fields in one unit, for which no language has an atomic operation.
    found.retain(|Candidate { repair, .. }| {
        let is_unit = |name: &String| name.contains(".{");
        repair.kind != Kind::OneStep || !repair.variables.iter().any(is_unit)
    });
    found.retain(|Candidate { repair, .. }| !ended::only_parts(bug, repair));
    // A condition variable is initialised when nobody has it yet, not under a lock.
    if variables(bug).iter().any(|name| initialised(name).is_some()) {
        found.retain(|Candidate { repair, .. }| repair.lock.is_none());
    }
    // How many `Arc`s there are changes wherever one of them goes away, where no line could hold a lock.
    let counts = |id: &model::EventId| {
        let event = bug.trace.event(*id);
        event.counts_references() && event.called_of_rusts_library().is_some()
    };
    if !bug.events.is_empty() && bug.events.iter().all(counts) {
        found.retain(|Candidate { repair, .. }| repair.lock.is_none());
    }
    // A lock that is found by way of the variable is another one when that has been written.
    found.retain(|Candidate { repair, .. }| {
        let old = repair.lock.as_ref().filter(|lock| !lock.new);
        old.is_none_or(|lock| !is_found_by(bug, &lock.name))
    });
    // An object that has no name in the source is a library's, whose code nobody is going to change.
    let moves = |repair: &Repair| repair.lock.is_none() && repair.kind != Kind::LockOrder;
    found.retain(|Candidate { repair, .. }| {
        !(moves(repair) && repair.steps.iter().any(|step| step.contains("`0x")))
    });
    unseen::told(bug.trace, bug.uses, &mut found);
    kept::told(bug.uses, &mut found);
    found
}

fn of_pattern(bug: &Bug<'_>) -> Vec<Candidate> {
    let routine = || order::wanted(bug).into_iter().filter_map(|w| routine::candidate(bug, w));
    match bug.pattern {
        Pattern::Atomicity | Pattern::SeveralVariables => {
            let mut found: Vec<Candidate> = routine().collect();
            found.extend(again::candidates(bug));
            found.extend(order::given_back(bug));
            found.extend(order::handed_over(bug));
            found.extend(steps::one_unit(bug));
            found.extend(steps::read_once(bug));
            let mut instead: Vec<Candidate> = steps::one_step(bug).into_iter().collect();
            instead.extend(compared::candidate(bug));
            // To take a lock to write that all of them have is less than to keep it for longer.
            let is_counter = !instead.is_empty() && !shared::is_taken_wrongly(bug);
            let to_write = shared::candidate(bug);
            (if is_counter { &mut instead } else { &mut found }).extend(to_write);
            let locks = atomicity::candidates(bug).into_iter();
            let locks = locks.map(|candidate| updated::without_reading(bug, candidate)).collect();
            let locks = around_new_locks(locks, instead);
            // Threads that go without locks on purpose get none where another order of their steps will do.
            let [first, then] = match miss_each_other_without_locks(bug) {
                true => [order::candidates(bug), locks],
                false => [locks, order::candidates(bug)],
            };
            found.extend(first);
            found.extend(then);
            found.extend(order::waits(bug));
            found
        }
        Pattern::Order | Pattern::UseAfterFree | Pattern::DoubleFree | Pattern::Orders => {
            let mut found: Vec<Candidate> = own_copy::candidate(bug).into_iter().collect();
            found.extend(routine());
            found.extend(steps::one_count(bug));
            found.extend(again::candidates(bug));
            found.extend(shared::candidate(bug));
            found.extend(order::candidates(bug));
            found.extend(atomicity::candidates(bug));
            found.extend(order::waits(bug));
            found
        }
        // Where no signal was sent, who was to send it looked at the wrong moment.
        Pattern::MissedWakeup if !wakeup::names_signal(bug) => {
            let mut found: Vec<Candidate> = unsignalled::candidate(bug).into_iter().collect();
            found.extend(order::candidates(bug));
            found.extend(atomicity::candidates(bug));
            found
        }
        Pattern::MissedWakeup => wakeup::candidates(bug),
        Pattern::Deadlock => {
            let mut found: Vec<Candidate> = give_back::candidate(bug).into_iter().collect();
            found.extend(deadlock::candidates(bug));
            found
        }
        // What a late write needs is no order of events.
        Pattern::LateWrite | Pattern::EverySchedule => Vec::new(),
    }
}

/// Did a thread that hangs and the one that was to wake it miss each other, and is none of that under a lock?
fn miss_each_other_without_locks(bug: &Bug<'_>) -> bool {
    let hangs = bug.trace.failure.as_ref().is_some_and(|f| f.kind == model::FailureKind::Hang);
    let all = sections(bug.trace);
    bug.pattern == Pattern::SeveralVariables
        && hangs
        && bug.events.iter().all(|id| all.around(bug.trace, *id).is_empty())
}

/// Does the name of a lock lead through a pointer that the cause is about, and that is written there?
fn is_found_by(bug: &Bug<'_>, lock: &str) -> bool {
    let events = || bug.events.iter().map(|id| bug.trace.event(*id));
    let written: BTreeSet<CellId> =
        events().flat_map(|event| event.kind.writes()).map(|part| part.cell).collect();
    let is_written = |event: &&Event| {
        let parts = event.kind.reads().iter().map(|part| part.cell);
        parts
            .chain(event.kind.writes().iter().map(|part| part.cell))
            .any(|cell| written.contains(&cell))
    };
    let written = events().filter(is_written).filter(|event| !is_own_of_library(bug.trace, event));
    let mut names = written.filter_map(|event| bug.trace.subject(event));
    names.any(|name| {
        let name = explain::outside_of_library(name);
        lock.strip_prefix(name).is_some_and(|rest| rest.starts_with("->"))
            || lock.strip_prefix('*').is_some_and(|rest| rest == name)
    })
}

/// Is what the event is about called by the `this` of a library's function? That is none that the lines of the program
/// have.
fn is_own_of_library(trace: &EventTrace, event: &Event) -> bool {
    let name = trace.subject(event).map(explain::outside_of_library).unwrap_or_default();
    event.depth() > 0 && name.trim_matches(['*', '(', ')']) == "this"
}

/// One atomic step is less than a new lock, and more than to use one that is there.
fn around_new_locks(mut locks: Vec<Candidate>, instead: Vec<Candidate>) -> Vec<Candidate> {
    let is_new = |other: &Candidate| other.repair.lock.as_ref().is_some_and(|lock| lock.new);
    let at = locks.iter().position(is_new).unwrap_or(locks.len());
    locks.splice(at..at, instead);
    locks
}

/// A name of the source, without a library's own members.
pub(crate) fn quoted(name: &str) -> String {
    if is_descriptor(name) {
        return name.to_owned();
    }
    if is_channel(name) {
        return format!("the {name}");
    }
    if let Some(path) = name.strip_prefix(FILE) {
        return format!("the file `{path}`");
    }
    if let Some(path) = name.strip_prefix(CONTENTS) {
        return format!("the {CONTENTS}`{path}`");
    }
    format!("`{}`", explain::outside_of_library(initialised(name).unwrap_or(name)))
}

/// What the events of the cause are about, without repetition.
fn variables(bug: &Bug<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for id in bug.events {
        let event = bug.trace.event(*id);
        let Some(name) = bug.trace.subject(event) else { continue };
        let own = is_own_of_library(bug.trace, event).then(|| elsewhere(bug.trace, event));
        let name = explain::outside_of_library(own.flatten().unwrap_or(name));
        if !names.iter().any(|other| explain::same_variable(other, name)) {
            names.push(name.to_owned());
        }
    }
    names
}

/// What an event of the program's own lines calls the place that this one is about.
fn elsewhere<'t>(trace: &'t EventTrace, event: &Event) -> Option<&'t str> {
    let place = |event: &Event| {
        let written = event.kind.writes().iter().map(|part| part.cell);
        event.kind.reads().iter().map(|part| part.cell).chain(written).next()
    };
    let cell = place(event)?;
    let others = trace.events.iter().filter(|other| place(other) == Some(cell));
    let mut others = others.filter(|other| !is_own_of_library(trace, other));
    others.find_map(|other| trace.subject(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;

    /// The library's `this` is another one than that of the class whose lock is `this->m_`.
    #[test]
    fn the_librarys_own_object_leads_to_no_lock_of_the_program() {
        let text = "
            cell table 32 = 0
            t0: fork a
            a: [made] W table 1
            a: [write] W table 2
            t0: [read] R table -> t
            t0: fail t == 2
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let [made, write, read] = ["made", "write", "read"].map(|label| parsed.event(label));
        let site = |file: &str, function: &str| model::Site {
            file: file.to_owned(),
            line: 9,
            column: 1,
            function: function.to_owned(),
        };
        let library = site("/usr/include/c++/12/bits/hashtable.h", "_M_insert");
        for id in [write, read] {
            let event = &mut parsed.trace.events[id.index()];
            event.stack = [library.clone(), site("a.cc", "intern")].into();
            event.name = Some("this->_M_before_begin".into());
        }
        parsed.trace.events[made.index()].name = Some("this->table_._M_h._M_buckets".into());
        let events = [write, read];
        fn bug<'b>(trace: &'b EventTrace, events: &'b [model::EventId]) -> Bug<'b> {
            Bug::by_hand(trace, Pattern::Atomicity, events)
        }
        assert_eq!(variables(&bug(&parsed.trace, &events)), ["this->table_"]);
        assert!(!is_found_by(&bug(&parsed.trace, &events), "this->m_"));
        // In the program's own lines it is the same object.
        for id in events {
            parsed.trace.events[id.index()].stack = [site("a.cc", "intern")].into();
        }
        assert!(is_found_by(&bug(&parsed.trace, &events), "this->m_"));
    }

    /// Who leaves something looks too early whether somebody sleeps.
    #[test]
    fn who_goes_without_locks_gets_another_order_first() {
        let text = "
            cell letters 32 = 0
            cell sleeping 32 = 0
            t0: fork a
            a: [look] R sleeping -> s
            a: assume s == 0
            a: [act] W letters 1
            t0: [change] W sleeping 1
            t0: [missed] R letters -> l
            t0: fail l == 0
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let events = ["change", "missed", "look", "act"].map(|label| parsed.event(label));
        let first = |trace: &model::EventTrace| {
            let found = all(&Bug::by_hand(trace, Pattern::SeveralVariables, &events));
            found.first().map(|found| found.repair.kind)
        };
        assert_eq!(first(&parsed.trace), Some(Kind::CriticalSection));
        parsed.trace.failure.as_mut().expect("a failure").kind = model::FailureKind::Hang;
        assert_eq!(first(&parsed.trace), Some(Kind::Move));
    }

    /// To call what loads a table before the table is published is to publish it only behind that call.
    #[test]
    fn one_statement_before_the_other_is_told_once() {
        let at = |line: u32| {
            let (file, function) = ("table.cc".to_owned(), "instance".to_owned());
            Span::of(&model::Site { file, line, column: 1, function })
        };
        let moved = |kind: Kind, lines: [u32; 2]| Repair {
            kind,
            steps: Vec::new(),
            lock: None,
            variables: Vec::new(),
            places: lines.map(at).to_vec(),
            rule: Rule::None,
            checked: None,
        };
        let earlier = moved(Kind::Move, [21, 20]);
        assert!(moved(Kind::Move, [20, 21]).is_variant_of(&earlier));
        assert!(!moved(Kind::Move, [20, 22]).is_variant_of(&earlier));
        assert!(!moved(Kind::WaitFor, [20, 21]).is_variant_of(&earlier));
    }

    #[test]
    fn a_condition_variable_gets_no_lock_to_be_initialised_under() {
        let parsed = parse(
            "
            cell made 8 = 0
            a: fork b
            a: [make] W made 1
            b: [wait] R made -> seen
            b: fail seen == 0
            ",
        )
        .expect("the text is a trace");
        let events = ["wait", "make"].map(|label| parsed.event(label));
        let locks = |name: &str| {
            let mut trace = parsed.trace.clone();
            for id in events {
                trace.events[id.index()].name = Some(name.into());
            }
            let bug = Bug::by_hand(&trace, Pattern::Order, &events);
            let found = all(&bug);
            assert!(!found.is_empty());
            found.iter().filter(|found| found.repair.lock.is_some()).count()
        };
        assert_ne!(locks("made"), 0);
        assert_eq!(locks("initialisation of w->wake"), 0);
    }

    #[test]
    fn a_lock_behind_a_pointer_that_changes_does_not_guard_the_pointer() {
        let parsed =
            parse("b: [look] R data -> d\na: [make] W data 1").expect("the text is a trace");
        let events = ["look", "make"].map(|label| parsed.event(label));
        let mut trace = parsed.trace.clone();
        for (id, name) in events.into_iter().zip(["this->data._M_ptr", "group.data._M_ptr"]) {
            trace.events[id.index()].name = Some(name.into());
        }
        let bug = Bug::by_hand(&trace, Pattern::Order, &events);
        assert!(is_found_by(&bug, "group.data->mutex"));
        assert!(is_found_by(&bug, "this->data->mutex"));
        assert!(!is_found_by(&bug, "group.mutex"));
        assert!(!is_found_by(&bug, "group.database->mutex"));
    }
}
