//! A repair's order as an avoidance rule: at which gates of the program threads are held back.
//! The runtime follows it (`crates/runtime/src/avoid.rs`); the form is in docs/fix.md.

use ir::loops::Loops;
use ir::types::{BlockId, InstId};
use ir::ways::leading_to;
use model::{Awaited, Event, EventId, EventKind, EventTrace, Points, Site};
use repair::{Kind, Repair, Rule, Span, Stretch, begins_wait, lines};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use symex::Recording;
use trace_format::layout::AVOID_HEAD;

/// A gate, and where it stands in the source: inlined calls expanded, innermost first.
struct Gate {
    site: String,
    frames: Vec<Place>,
    /// The loops that it is in.
    loops: BTreeSet<LoopId>,
    /// Where it stands in the code.
    function: FunctionId,
    instruction: InstId,
}

impl Gate {
    /// Are the calls that were inlined around it those by which the event's thread came there?
    fn leads_to(&self, event: &Event) -> bool {
        self.frames.len() <= event.stack.len()
            && self.frames.iter().zip(event.stack.iter()).all(|(place, site)| place.is(site))
    }
}

/// A function: its module and its place there.
type FunctionId = (usize, usize);

/// A loop: its module, function, and the block where its rounds begin.
type LoopId = (usize, usize, BlockId);

struct Place {
    file: String,
    function: String,
    line: u32,
}

impl Place {
    fn is(&self, site: &Site) -> bool {
        self.line == site.line && self.function == site.function && self.file == site.file
    }
}

/// The program's gates.
pub struct Gates<'r> {
    all: Vec<Gate>,
    recording: &'r Recording,
}

impl<'r> Gates<'r> {
    /// Of all modules of a recording.
    #[must_use]
    pub fn of(recording: &'r Recording) -> Self {
        let mut all = Vec::new();
        for (m, module) in recording.modules.iter().enumerate() {
            let module = &module.ir;
            let functions = module.functions.iter().enumerate();
            for (f, function) in functions.filter(|(_, f)| !f.blocks.is_empty()) {
                let loops = Loops::of(function);
                for gate in ir::gates::gates(module, function) {
                    let instruction = function.instructions.get(gate.instruction.index());
                    let mut next = instruction.and_then(|instruction| instruction.loc);
                    let mut frames = Vec::new();
                    while let Some(location) =
                        next.and_then(|loc| module.debug.locations.get(loc.index()))
                    {
                        let scope = module.debug.scopes.get(location.scope.index());
                        frames.push(Place {
                            file: scope.map(|scope| scope.file.clone()).unwrap_or_default(),
                            function: scope.map(|s| s.function.clone()).unwrap_or_default(),
                            line: location.line,
                        });
                        next = location.inlined_at;
                    }
                    let loops = loops.around(function, gate.instruction);
                    let loops = loops.map(|header| (m, f, header)).collect();
                    let instruction = gate.instruction;
                    all.push(Gate {
                        site: gate.site,
                        frames,
                        loops,
                        function: (m, f),
                        instruction,
                    });
                }
            }
        }
        Self { all, recording }
    }

    /// The gates at an event's place that are for what it does.
    fn at<'a>(&'a self, event: &'a Event) -> Vec<&'a str> {
        self.of_event(event).map(|gate| gate.site.as_str()).collect()
    }

    /// The gates at an event's place, for what it does, in the code that its thread was in: what is inlined in several
    /// functions has gates in each of them.
    fn of_event<'a>(&'a self, event: &'a Event) -> impl Iterator<Item = &'a Gate> {
        let word = match event.kind {
            EventKind::Read { .. } => ":read:",
            EventKind::Write { .. } => ":write:",
            EventKind::ReadModifyWrite { .. } => ":update:",
            _ => ":call:",
        };
        let here = |gate: &&Gate| {
            gate.site.contains(word) && gate.frames.iter().any(|place| place.is(event.site()))
        };
        let found: Vec<&Gate> = self.all.iter().filter(here).collect();
        let known = found.iter().any(|gate| gate.leads_to(event));
        found.into_iter().filter(move |gate| !known || gate.leads_to(event))
    }

    /// The gates from which a thread comes to the end of a stretch again without coming through its beginning: in the
    /// function that both are in, the compiler may have written a loop's rounds out one behind the other.
    fn going_on(&self, trace: &EventTrace, stretch: Stretch) -> BTreeSet<(FunctionId, InstId)> {
        let of = |id: EventId| {
            let mut found: BTreeMap<FunctionId, BTreeSet<InstId>> = BTreeMap::new();
            for gate in self.of_event(trace.event(id)) {
                found.entry(gate.function).or_default().insert(gate.instruction);
            }
            found
        };
        let (first, last) = (of(stretch.first), of(stretch.last));
        let both = last.iter().filter_map(|(id, last)| Some((*id, first.get(id)?, last)));
        // One line that goes round is left when it is done.
        let both = both.filter(|(_, first, last)| first.is_disjoint(last));
        let on = both.flat_map(|(id, first, last)| {
            let module = self.recording.modules.get(id.0);
            let function = module.and_then(|module| module.ir.functions.get(id.1));
            let own = self.all.iter().filter(|gate| gate.function == id);
            let asked: BTreeSet<InstId> = own.map(|gate| gate.instruction).collect();
            let found = function.map(|function| leading_to(function, &asked, last, first));
            found.into_iter().flatten().map(move |instruction| (id, instruction))
        });
        on.collect()
    }

    /// Is it in a loop in which no thread is created? Who joins a thread there joins it again in the next round.
    #[must_use]
    pub fn joins_again(&self, trace: &EventTrace, place: &Span) -> bool {
        let own = |function: &str, file: &str| function == place.function && file == place.file;
        let here = |frame: &Place| {
            own(&frame.function, &frame.file) && (place.first..=place.last).contains(&frame.line)
        };
        let gates = self.all.iter().filter(|gate| gate.frames.iter().any(here));
        let loops: BTreeSet<LoopId> = gates.flat_map(|gate| gate.loops.iter().copied()).collect();
        let forks = trace.events.iter().filter(|event| {
            let created = matches!(event.kind, EventKind::Fork { .. });
            created && event.stack.iter().any(|site| own(&site.function, &site.file))
        });
        let created: BTreeSet<LoopId> = forks
            .flat_map(|fork| fork.stack.iter())
            .filter(|site| own(&site.function, &site.file))
            .flat_map(|site| {
                let same =
                    |frame: &Place| own(&frame.function, &frame.file) && frame.line == site.line;
                let gates = self.all.iter().filter(move |gate| gate.frames.iter().any(same));
                gates.flat_map(|gate| gate.loops.iter().copied())
            })
            .collect();
        !loops.is_subset(&created)
    }

    /// The loops that a stretch ends in and does not begin in. What is done there is done in each of
    /// their rounds.
    fn loops(&self, trace: &EventTrace, stretch: Stretch) -> BTreeSet<LoopId> {
        let around = |id: EventId| -> BTreeSet<LoopId> {
            self.of_event(trace.event(id)).flat_map(|gate| gate.loops.iter().copied()).collect()
        };
        &around(stretch.last) - &around(stretch.first)
    }

    /// The gates that a thread comes to when it is no longer in any of these stretches: those of
    /// their functions outside of their lines and loops, and those of the functions that called them.
    fn behind(&self, stretches: &BTreeSet<Lines>) -> BTreeSet<&str> {
        let inside = |place: &Place| stretches.iter().any(|lines| lines.has(place));
        let near = |place: &Place| stretches.iter().any(|lines| lines.is_near(place));
        let goes_on = |gate: &Gate| {
            let at = (gate.function, gate.instruction);
            stretches
                .iter()
                .any(|lines| !lines.loops.is_disjoint(&gate.loops) || lines.on.contains(&at))
        };
        let behind = self.all.iter().filter(|gate| {
            gate.frames.iter().any(near) && !gate.frames.iter().any(inside) && !goes_on(gate)
        });
        behind.map(|gate| gate.site.as_str()).collect()
    }
}

/// Where a stretch is in the source.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Lines {
    span: Span,
    /// File and function of those that led there.
    callers: BTreeSet<(String, String)>,
    /// The loops that belong to it as a whole.
    loops: BTreeSet<LoopId>,
    /// Gates from which a thread comes to its end again.
    on: BTreeSet<(FunctionId, InstId)>,
}

impl Lines {
    fn of(trace: &EventTrace, gates: &Gates<'_>, stretch: Stretch) -> Option<Self> {
        let (first, last) = (trace.event(stretch.first), trace.event(stretch.last));
        let span = lines(first, last)?;
        let own = |site: &&Site| site.function == span.function && site.file == span.file;
        let outer = first.stack.iter().rev().take_while(|site| !own(site));
        let callers = outer.map(|site| (site.file.clone(), site.function.clone())).collect();
        let on = gates.going_on(trace, stretch);
        Some(Self { span, callers, loops: gates.loops(trace, stretch), on })
    }

    fn has(&self, place: &Place) -> bool {
        self.is_own(place) && (self.span.first..=self.span.last).contains(&place.line)
    }

    fn is_own(&self, place: &Place) -> bool {
        place.function == self.span.function && place.file == self.span.file
    }

    fn is_near(&self, place: &Place) -> bool {
        let named = (place.file.clone(), place.function.clone());
        self.is_own(place) || self.callers.contains(&named)
    }
}

/// Where the events of a rule are in the program.
#[derive(Clone, Copy)]
pub struct Places<'a> {
    /// The rule's run.
    pub trace: &'a EventTrace,
    /// The points at which the program came to the events, where they are known.
    pub points: Option<&'a Points>,
    /// The program's gates.
    pub gates: &'a Gates<'a>,
}

impl Places<'_> {
    /// Where a thread can be stopped before the event.
    fn sites(&self, id: EventId) -> Option<Vec<String>> {
        let sites = match self.points {
            Some(points) => vec![site(points, id)?],
            None => self.gates.at(self.trace.event(id)).into_iter().map(str::to_owned).collect(),
        };
        (!sites.is_empty()).then_some(sites)
    }
}

/// Why there is no rule for a repair.
fn why_none(repair: &Repair) -> &'static str {
    match repair.kind {
        Kind::Signal => {
            "a signal that is not sent is no order of events that a running program could be held to"
        }
        Kind::Broadcast => {
            "that a signal wakes all is no order of events that a running program could be held to"
        }
        Kind::Move if matches!(repair.rule, Rule::None) => {
            "that a signal comes later is no order of events that a running program could be held to"
        }
        Kind::JoinFirst if matches!(repair.rule, Rule::None) => {
            "nothing in the run says where the thread would have ended"
        }
        Kind::WaitFor if matches!(repair.rule, Rule::None) => {
            "nothing in the run says when the other thread would have been done with the object"
        }
        Kind::TestAgain => {
            "a thread that tests again takes another path, and is not only held back for a while"
        }
        Kind::LockOnce => {
            "that a thread does not take a lock again is no order of events that a running program \
             could be held to"
        }
        Kind::TakeToWrite => {
            "that a lock is taken to write is no order of events that a running program could be held \
             to: the thread waits for itself in any order"
        }
        Kind::ReleaseFirst if matches!(repair.rule, Rule::None) => {
            "who is waited for takes the lock at a place at which it had been taken before"
        }
        Kind::TestBeforeWait if matches!(repair.rule, Rule::None) => {
            "threads waited at that place before, and that one waits there says nothing of this one"
        }
        Kind::GiveBack => {
            "that a lock is given back is no order of events that a running program could be held to"
        }
        _ => "its events have no places in the program at which a thread could be held back",
    }
}

/// The text of a repair's rule, or why it has none.
///
/// # Errors
/// When the repair is no order of events, or its events have no places where a thread can be stopped, or
/// where the threads that have to wait can be stopped alone.
pub fn text(repair: &Repair, at: &Places<'_>) -> Result<String, &'static str> {
    let shared = match &repair.rule {
        Rule::After { first, then } => {
            let held = then.iter().filter_map(|id| at.sites(*id)).flatten().collect();
            first.iter().all(|id| is_held_up(at, *id, then, &held))
        }
        Rule::Alone(stretches) => is_entered_elsewhere(at, stretches),
        Rule::None => false,
    };
    // Who takes the lock again and again waits for it again behind the one time.
    if let (Kind::ReleaseFirst, Rule::After { first, .. }) = (repair.kind, &repair.rule) {
        let mut gates = first.iter().flat_map(|id| at.gates.of_event(at.trace.event(*id)));
        if gates.any(|gate| !gate.loops.is_empty()) {
            return Err("who is waited for takes the lock in a loop");
        }
    }
    if shared {
        return Err("its threads would be held back at places that others come through as well");
    }
    lines_of(&repair.rule, at).ok_or_else(|| why_none(repair))
}

fn lines_of(rule: &Rule, at: &Places<'_>) -> Option<String> {
    let Places { trace, points, gates } = *at;
    let mut places: BTreeSet<(&'static str, String)> = BTreeSet::new();
    let mut stretches_in_source: BTreeSet<Lines> = BTreeSet::new();
    // A loop brings a thread to one place very often.
    let mut known = BTreeSet::new();
    let mut is_new = |first: EventId, last: EventId| {
        let place = |id: EventId| {
            let event = trace.event(id);
            (event.stack.identity(), event.kind.name())
        };
        known.insert((place(first), place(last)))
    };
    let mut add_lines = |stretch: Stretch| {
        if is_new(stretch.first, stretch.last) {
            stretches_in_source.extend(Lines::of(trace, gates, stretch));
        }
    };
    let mut sites = BTreeMap::new();
    let mut sites_of = |id: EventId| -> Option<Vec<String>> {
        // Points tell events at one place apart.
        if points.is_some() {
            return at.sites(id);
        }
        let event = trace.event(id);
        let place = (event.stack.identity(), event.kind.name());
        sites.entry(place).or_insert_with(|| at.sites(id)).clone()
    };
    let kind = match rule {
        Rule::Alone(stretches) => {
            for stretch in stretches {
                for site in sites_of(stretch.first)? {
                    // The runtime sees to it that who waits on a condition variable is outside
                    // meanwhile.
                    if !matches!(site.as_str(), "~relock" | "~wake") {
                        places.insert(("enter", site));
                    }
                }
                add_lines(*stretch);
            }
            places.extend(begins_anew(at, stretches).into_iter().map(|site| ("leave", site)));
            "alone"
        }
        Rule::After { first, then } => {
            for &id in first {
                // A lock is taken, and a wait begins, behind the call's own sync point, which does not tell yet.
                let taken = matches!(
                    trace.event(id).kind,
                    EventKind::Lock { .. } | EventKind::Block { on: Awaited::Lock { .. } }
                ) || begins_wait(trace, id);
                let point = points.and_then(|points| points.point(id));
                let calls = point.is_some_and(|point| point.through.is_some());
                let role = if taken && calls { "call" } else { "first" };
                places.extend(sites_of(id)?.into_iter().map(|site| (role, site)));
                add_lines(Stretch { first: id, last: id });
            }
            for &id in then {
                places.extend(sites_of(id)?.into_iter().map(|site| ("then", site)));
            }
            "after"
        }
        Rule::None => return None,
    };
    if places.is_empty() {
        return None;
    }
    let entries: BTreeSet<String> = places.iter().map(|place| place.1.clone()).collect();
    let behind = gates.behind(&stretches_in_source);
    let behind = behind.into_iter().filter(|site| !entries.contains(*site));
    places.extend(behind.map(|site| ("leave", site.to_owned())));
    let mut text = format!("{AVOID_HEAD}\nrule {kind}\n");
    for (role, site) in &places {
        let _ = writeln!(text, "{role} {site}");
    }
    Some(text)
}

/// The places where stretches begin and that lie within none: who comes to one again has left what it began there before, as in
/// the next round of a loop whose rounds are held one by one.
fn begins_anew(at: &Places<'_>, stretches: &[Stretch]) -> BTreeSet<String> {
    let trace = at.trace;
    let place = |id: EventId| {
        let point = at.points.and_then(|points| points.point(id)).map(|point| point.site);
        let event = trace.event(id);
        (point, event.stack.identity(), event.kind.name())
    };
    let mut sites: BTreeMap<_, Vec<String>> = BTreeMap::new();
    let mut sites_of = |id: EventId| {
        sites.entry(place(id)).or_insert_with(|| at.sites(id).unwrap_or_default()).clone()
    };
    let mut begins: BTreeMap<_, (Stretch, BTreeSet<String>)> = BTreeMap::new();
    for stretch in stretches {
        let key = [stretch.first, stretch.last].map(|id| {
            let event = trace.event(id);
            (event.stack.identity(), event.kind.name())
        });
        let (_, own) = begins.entry(key).or_insert((*stretch, BTreeSet::new()));
        own.extend(sites_of(stretch.first));
    }
    let mut anew: BTreeSet<String> =
        begins.values().flat_map(|(_, sites)| sites.iter().cloned()).collect();
    anew.retain(|site| !site.starts_with('~'));
    for Stretch { first, last } in stretches {
        let index = |id: EventId| trace.event(id).index as usize;
        let own = &trace.thread_of(*first).events;
        let inside = own.get(index(*first) + 1..=index(*last)).unwrap_or_default();
        for site in inside.iter().flat_map(|id| sites_of(*id)) {
            anew.remove(&site);
        }
    }
    // Nor may other ways lead there through the lines of another one. Where it begins in other copies of its lines is no such way.
    for (stretch, own) in begins.values() {
        let Some(lines) = Lines::of(trace, at.gates, *stretch) else { continue };
        let line = |gate: &Gate| gate.frames.iter().find(|it| lines.has(it)).map(|it| it.line);
        let begins = at.gates.all.iter().filter(|gate| own.contains(&gate.site));
        let begins: BTreeSet<u32> = begins.filter_map(line).collect();
        for gate in &at.gates.all {
            let on = lines.on.contains(&(gate.function, gate.instruction));
            let within = line(gate).map_or(on, |line| !begins.contains(&line));
            if within && !own.contains(&gate.site) {
                anew.remove(&gate.site);
            }
        }
    }
    anew
}

/// Would the thread of the first step be held up at these places before it has taken that, although it
/// comes through them from other code than the second step's threads do? A lock that is taken in a function
/// of a library, say, has one place for all who call that.
fn is_held_up(at: &Places<'_>, first: EventId, then: &[EventId], held: &BTreeSet<String>) -> bool {
    let trace = at.trace;
    let until = trace.event(first).index as usize;
    let mut before = trace.thread_of(first).events.iter().take(until);
    before.any(|&id| {
        let stack = &trace.event(id).stack;
        then.iter().all(|then| trace.event(*then).stack != *stack)
            && at.sites(id).is_some_and(|sites| sites.iter().any(|site| held.contains(site)))
    })
}

/// Does a thread come through the place where one of the stretches begins from other code, and so past the
/// places where it ends?
fn is_entered_elsewhere(at: &Places<'_>, stretches: &[Stretch]) -> bool {
    let begins = |stretch: &Stretch| at.sites(stretch.first);
    let entries: BTreeSet<String> = stretches.iter().filter_map(begins).flatten().collect();
    let spans = |s: &Stretch| lines(at.trace.event(s.first), at.trace.event(s.last));
    let spans: BTreeSet<Span> = stretches.iter().filter_map(spans).collect();
    let within = |event: &Event| {
        let mut stack = event.stack.iter();
        stack.any(|site| {
            spans.iter().any(|span| {
                let own = site.function == span.function && site.file == span.file;
                own && (span.first..=span.last).contains(&site.line)
            })
        })
    };
    at.trace.events.iter().any(|event| {
        let enters = |sites: Vec<String>| sites.iter().any(|site| entries.contains(site));
        at.sites(event.id).is_some_and(enters) && !within(event)
    })
}

fn site(points: &Points, id: EventId) -> Option<String> {
    let point = points.point(id)?;
    let name = points.site(point);
    (name != "?" && !name.is_empty()).then(|| name.to_owned())
}
