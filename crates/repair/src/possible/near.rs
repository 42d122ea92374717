//! Of a long run, and of one in which events meet in too many ways to ask about all: can the order of the bug come up near
//! where the run itself nearly had it? Schedules are looked at that begin as the run did. That one has the order shows that
//! it can come up; that none has shows nothing.

use super::ways::Way;
use super::{ALIKE, Combination, Found, Places, Run, Search, place};
use crate::check::Limits;
use encoders::Slice;
use model::evaluate::{Evaluation, Evaluator};
use model::{EventId, EventTrace, Schedule, VarId};
use solver::SolverError;
use std::collections::BTreeMap;
use std::time::Duration;

/// So many events before and behind the combination's come in another order, and where these have no schedule with it so
/// many.
const AROUND: [usize; 2] = [60, 600];
/// Events of a combination that are further from each other are not asked about.
const APART: usize = 3_000;
/// One question may take no longer than that.
const LONGEST: Duration = Duration::from_secs(2);

/// What was found near where combinations are.
pub(super) struct Near {
    /// Where the order can come up.
    pub(super) found: Found,
    /// Of so many combinations it is known that it cannot in any schedule that was looked at.
    pub(super) ruled_out: usize,
}

/// A run as it went.
pub(crate) struct Went {
    schedule: Schedule,
    evaluation: Evaluation,
    /// By event, its place in the schedule.
    places: Vec<usize>,
}

impl Went {
    /// What the run had for a variable, where that is known.
    pub(crate) fn value(&self, var: VarId) -> Option<u128> {
        self.evaluation.values.get(var.index()).copied().flatten()
    }

    /// `None` where its log and clock do not tell.
    pub(crate) fn of(run: &EventTrace, limits: Limits<'_>) -> Option<Self> {
        let system = encoders::encode_recorded_orders(run).ok()?;
        let follow = |strict| solver::follow(run, &system, &[], strict, || limits.is_left());
        let schedule = follow(true).or_else(|| follow(false))?;
        let recorded = |var| Some(run.recorded_value(var));
        let evaluation = Evaluator::new(run).run(&schedule.order, &recorded).ok()?;
        if !evaluation.violated.is_empty() {
            return None;
        }
        let mut places = vec![0; run.events.len()];
        for (at, id) in schedule.order.iter().enumerate() {
            *places.get_mut(id.index())? = at;
        }
        Some(Self { schedule, evaluation, places })
    }

    /// What lies around a combination's events. `None` where they are too far from each other, and where what comes
    /// before them does not stand by itself.
    fn around(&self, run: &EventTrace, events: &[EventId], around: usize) -> Option<Slice> {
        let places = || events.iter().map(|id| self.places[id.index()]);
        let (first, last) = (places().min()?, places().max()?);
        if last - first > APART {
            return None;
        }
        let until = (last + around).min(self.schedule.order.len());
        let part = first.saturating_sub(around).max(1)..until;
        encoders::window(run, &self.schedule, &self.evaluation, part)
    }
}

impl Combination {
    /// The same in a part of the run that has its events.
    fn in_part(&self, part: &Slice) -> Option<Self> {
        let sequence = self.sequence.iter().map(|id| part.find(*id)).collect::<Option<Vec<_>>>()?;
        Some(Self::new(&part.trace, sequence))
    }
}

impl Search<'_> {
    /// Which of the combinations can come up near where they are. The error says why that is not known.
    pub(super) fn near(
        &self,
        combinations: &[&Combination],
        between: bool,
    ) -> Result<Result<Near, String>, SolverError> {
        let run = self.run;
        let Some(went) = Went::of(run, self.limits) else {
            return Ok(Err("the log does not tell in which order the run went".to_owned()));
        };
        let mut near = Near { found: Found::nowhere(), ruled_out: 0 };
        let found = &mut near.found;
        let mut known: BTreeMap<Vec<String>, usize> = BTreeMap::new();
        for combination in combinations {
            if !self.limits.is_left() {
                break;
            }
            let lines: Vec<String> =
                combination.sequence.iter().map(|id| place(run, *id)).collect();
            let known = known.entry(lines).or_default();
            if *known >= ALIKE {
                continue;
            }
            let mut is_ruled_out = false;
            for around in AROUND {
                let Some(part) = went.around(run, &combination.sequence, around) else { continue };
                let Some(there) = combination.in_part(&part) else { continue };
                let here = self.in_part(&part, &there, between)?;
                let here = here.inspect_err(|why| tracing::debug!(why, "not known near there"));
                is_ruled_out = here.as_ref().is_ok_and(|here| here.place.is_none());
                let Ok(here) = here else { continue };
                found.place = found.place.take().or(here.place);
                if self.places == Places::Any && found.place.is_some() {
                    return Ok(Ok(near));
                }
                if !here.ways.found.is_empty() {
                    let whole = here.ways.found.into_iter().map(|way| whole(&part, way));
                    found.ways.found.extend(whole);
                    *known += 1;
                    break;
                }
            }
            near.ruled_out += usize::from(is_ruled_out);
        }
        Ok(Ok(near))
    }

    /// Asks about one combination in a part of the run. The error says why it is not known whether it can come up there.
    fn in_part(
        &self,
        part: &Slice,
        combination: &Combination,
        between: bool,
    ) -> Result<Result<Found, String>, SolverError> {
        let search = Search {
            bug: self.bug,
            run: &part.trace,
            new: Run { trace: &part.trace, ..self.new },
            limits: Limits { time: self.limits.time.min(LONGEST), ..self.limits },
            is_part: true,
            places: self.places,
            elsewhere: self.elsewhere.clone(),
        };
        search.open(&[combination], between)
    }
}

/// Schedules of a part, with what came before.
fn whole(part: &Slice, way: Way) -> Way {
    let orders = way.orders.iter().map(|order| part.behind_beginning(order));
    Way { orders: orders.collect(), ..way }
}

#[cfg(test)]
mod tests {
    use crate::{Bug, Limits, Possible, Run, possible, possible_at_all};
    use encoders::dsl::parse;
    use explain::Pattern;
    use model::{Point, Points};
    use std::collections::BTreeSet;
    use std::time::Duration;

    const LIMITS: Limits<'_> =
        Limits { time: Duration::from_secs(60), memory_mb: None, left: &|| Duration::MAX };

    /// Two threads add to a total, with a lock or without one.
    #[test]
    fn whether_the_order_can_come_up_is_told_without_schedules() {
        let run = |begin: &str, end: &str| {
            let own = |a: &str| {
                format!("{begin}\n@: [@-look] R x -> @1\n@: [@-write] W x @1 + 1\n{end}")
                    .replace('@', a)
            };
            let text =
                "t: fork a\n t: fork b\n t: join a\n t: join b\n t: R x -> f\n t: fail f != 2";
            parse(&format!("{text}\n{}\n{}", own("a"), own("b"))).expect("the text is a trace")
        };
        let failing = run("", "");
        let events = ["a-look", "b-write", "a-write"].map(|label| failing.event(label));
        let bug = Bug::by_hand(&failing.trace, Pattern::Atomicity, &events);
        for (new, is_open) in [(run("", ""), true), (run("@: lock m", "@: unlock m"), false)] {
            let of = vec![Point::default(); new.trace.events.len()];
            let points = Points { sites: vec!["work".to_owned()], of };
            let functions = BTreeSet::new();
            let new = Run {
                trace: &new.trace,
                points: &points,
                functions: &functions,
                incomplete: false,
            };
            let all = possible(&bug, new, LIMITS).expect("the solver answers");
            let whether = possible_at_all(&bug, new, LIMITS).expect("the solver answers");
            match (all, whether) {
                (Possible::Yes { ways, .. }, Possible::Yes { ways: none, .. }) if is_open => {
                    assert!(!ways.found.is_empty() && none.found.is_empty() && !none.everywhere);
                }
                (all, whether) => assert!(!is_open && all == whether, "{all:?} {whether:?}"),
            }
        }
    }
}
