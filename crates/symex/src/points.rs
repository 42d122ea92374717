//! Counts the scheduling points that each thread passes, as the runtime's scheduler does, and gives
//! every event its [`Point`].

use crate::engine::Engine;
use crate::image::FunctionInfo;
use crate::thread::Frame;
use ir::types::InstId;
use model::{EventKind, Passage, Point, Points};
use rustc_hash::FxHashMap;
use std::ops::Range;
use trace_format::layout::{SyncOp, SyncPoint, sync_point_name};

/// The points of one thread's walk.
#[derive(Default)]
struct Passed {
    /// Per site: how often the thread has passed it.
    occurrences: FxHashMap<u32, u64>,
    /// The point of the event that comes next.
    here: Point,
    /// Code has performed an event since `here`.
    used: bool,
    /// How many frames there were at the gate `here`, unless an event or a point that does not
    /// belong to the same call came since.
    gate_depth: Option<usize>,
}

impl Passed {
    fn pass(&mut self, site: u32) -> Passage {
        let occurrence = self.occurrences.entry(site).or_default();
        *occurrence += 1;
        Passage { site, occurrence: *occurrence }
    }

    fn stand(&mut self, passage: Passage) {
        self.here.site = passage.site;
        self.here.occurrence = passage.occurrence;
        self.here.through = None;
        self.used = false;
        self.gate_depth = None;
    }
}

/// The points of all threads.
#[derive(Default)]
pub(crate) struct Tracker {
    sites: Vec<String>,
    numbers: FxHashMap<String, u32>,
    threads: Vec<Passed>,
    /// Per event of each thread.
    of: Vec<Vec<Point>>,
    /// The sites passed of late, while somebody wants to know ([`crate::idle`]).
    pub recent: Option<Vec<u32>>,
}

/// How a thread stands between its last event and the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stand {
    site: u32,
    through: Option<u32>,
    used: bool,
    gate_depth: Option<usize>,
}

impl Tracker {
    pub fn new(threads: usize) -> Self {
        Self {
            threads: (0..threads).map(|_| Passed::default()).collect(),
            of: vec![Vec::new(); threads],
            ..Self::default()
        }
    }

    fn number(&mut self, site: &str) -> u32 {
        if let Some(&number) = self.numbers.get(site) {
            return number;
        }
        let number = self.sites.len() as u32;
        self.sites.push(site.to_owned());
        self.numbers.insert(site.to_owned(), number);
        number
    }

    /// How many gates and sync points a thread has passed.
    pub fn counts(&self, t: usize) -> (u64, u64) {
        self.threads.get(t).map_or((0, 0), |passed| (passed.here.gates, passed.here.syncs))
    }

    pub fn stand(&self, t: usize) -> Option<Stand> {
        let passed = self.threads.get(t)?;
        let through = passed.here.through.map(|passage| passage.site);
        let (used, gate_depth) = (passed.used, passed.gate_depth);
        Some(Stand { site: passed.here.site, through, used, gate_depth })
    }

    /// Takes the points of events out, given by their places, as if the thread had not passed these
    /// sites, so many gates and so many sync points.
    pub fn remove(
        &mut self,
        t: usize,
        events: Range<usize>,
        sites: &[u32],
        gates: u64,
        syncs: u64,
    ) {
        let mut fewer: FxHashMap<u32, u64> = FxHashMap::default();
        for site in sites {
            *fewer.entry(*site).or_default() += 1;
        }
        let passed = &mut self.threads[t];
        for (site, count) in &fewer {
            if let Some(occurrences) = passed.occurrences.get_mut(site) {
                *occurrences = occurrences.saturating_sub(*count);
            }
        }
        let shift = |point: &mut Point| {
            let earlier = |site: u32| fewer.get(&site).copied().unwrap_or(0);
            point.occurrence = point.occurrence.saturating_sub(earlier(point.site));
            if let Some(through) = &mut point.through {
                through.occurrence = through.occurrence.saturating_sub(earlier(through.site));
            }
            point.gates = point.gates.saturating_sub(gates);
            point.syncs = point.syncs.saturating_sub(syncs);
        };
        shift(&mut passed.here);
        let begin = events.start;
        self.of[t].drain(events);
        self.of[t].iter_mut().skip(begin).for_each(shift);
    }

    /// Notes the point of a thread's next event.
    pub fn event(&mut self, t: usize, kind: &EventKind) {
        let passed = &mut self.threads[t];
        self.of[t].push(Point { first: !passed.used, ..passed.here });
        if !matches!(kind, EventKind::Unlock { synthetic: true, .. }) {
            passed.used = true;
            passed.gate_depth = None;
        }
    }

    /// The points of all events, grouped by thread as in an event trace.
    pub fn finish(self) -> Points {
        Points { sites: self.sites, of: self.of.into_iter().flatten().collect() }
    }
}

impl<'r> Engine<'r> {
    /// The thread is about to execute an instruction: it passes its gate first, if there is one.
    pub fn pass_gate(&mut self, t: usize, info: &'r FunctionInfo<'r>, id: InstId) {
        // An instruction that had to wait for another thread's walk is not executed twice.
        let again = std::mem::take(&mut self.threads[t].again);
        if again || !self.symbolic() {
            return;
        }
        let Some(site) = info.gate(id) else { return };
        let site = self.points.number(site);
        let depth = self.threads[t].frames.len();
        self.points.recent.iter_mut().for_each(|recent| recent.push(site));
        let passed = &mut self.points.threads[t];
        let passage = passed.pass(site);
        passed.here.gates += 1;
        passed.stand(passage);
        passed.gate_depth = Some(depth);
        let instruction = info.function.instructions.get(id.index());
        // Where the variable lies as in the run, the thread's own next access may be to the same place.
        if self.learned.locals.are_only_ends()
            || instruction.is_some_and(|instruction| instruction.kind.as_call().is_some())
        {
            self.overwrite_locals(t);
        }
    }

    /// The runtime passed one of its own points in the thread.
    pub fn pass_sync(&mut self, t: usize, point: SyncPoint, operation: Option<SyncOp>) {
        if !self.symbolic() {
            return;
        }
        let site = self.points.number(sync_point_name(point, operation));
        let begins = matches!(point, SyncPoint::Create | SyncPoint::Join | SyncPoint::Begin);
        // Is the call of the last gate still under way, without any instrumented code in it?
        let frames = &self.threads[t].frames;
        let in_call = |depth: usize| matches!(frames.get(depth), Some(Frame::External(_)));
        self.points.recent.iter_mut().for_each(|recent| recent.push(site));
        let same = begins && self.points.threads[t].gate_depth.is_some_and(in_call);
        let passed = &mut self.points.threads[t];
        let passage = passed.pass(site);
        passed.here.syncs += 1;
        match same {
            true => passed.here.through = Some(passage),
            false => passed.stand(passage),
        }
    }
}
