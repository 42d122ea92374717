//! Questions to the session, with everything it answers checked.

use crate::context::{Context, InputValues};
use crate::error::ExplainError;
use model::{EventId, Schedule};
use solver::{Goal, Model, Order, Outcome, Session, UnknownReason};
use std::time::{Duration, Instant};

/// The answer to "is there a schedule that passes, with these orders?".
pub(crate) enum Answer {
    /// This one, with the failing schedule's inputs; checked.
    Passes(Schedule),
    /// Only with other inputs than the failing schedule's; checked with those.
    OtherInputs,
    /// None: these of the orders rule it out.
    None(Vec<Order>),
    /// No answer.
    Unknown(UnknownReason),
}

/// How much of the time that a question may take is given to one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Share {
    /// To a question that much depends on.
    Large,
    /// To one of many.
    Small,
    /// To one that is asked again when there is no answer.
    First,
    /// The same, where an answer to another question is better.
    Second,
    /// To one whose answer there is a replacement for.
    Brief,
}

impl Share {
    fn divisor(self) -> u32 {
        match self {
            Self::Large => 6,
            Self::Small => 24,
            Self::First => 6,
            Self::Second => 12,
            Self::Brief => 120,
        }
    }
}

/// The part of all the time that the questions of a phase may take together whose answer has a replacement.
const BRIEF: u32 = 30;

/// This many questions may stay without answer; later ones of the phase are not asked.
const UNANSWERED: usize = 4;

/// A session and what it was asked.
pub(crate) struct Asker<'s> {
    session: &'s mut dyn Session,
    pub(crate) calls: usize,
    /// What there is in all.
    time: Duration,
    /// Until when questions of this phase are asked, and what each of them gets, where that is limited.
    limit: Option<(Instant, Share)>,
    /// Questions of this phase without answer, and why the last one has none.
    unanswered: usize,
    reason: UnknownReason,
    /// Schedules known to pass with the failing schedule's inputs, as positions by event.
    pub(crate) witnesses: Vec<Witness>,
}

/// A schedule that passes.
pub(crate) struct Witness {
    pub(crate) schedule: Schedule,
    positions: Vec<u32>,
}

impl Witness {
    pub(crate) fn new(context: &Context<'_, '_>, order: Vec<EventId>) -> Self {
        let positions = crate::conflict::positions(context.trace, &order);
        Self { schedule: Schedule { order }, positions }
    }

    pub(crate) fn keeps(&self, order: Order) -> bool {
        self.positions[order.before.index()] < self.positions[order.after.index()]
    }
}

impl<'s> Asker<'s> {
    pub(crate) fn new(session: &'s mut dyn Session) -> Self {
        let reason = UnknownReason::TimeOut;
        Self {
            session,
            calls: 0,
            time: Duration::MAX,
            limit: None,
            unanswered: 0,
            reason,
            witnesses: Vec::new(),
        }
    }

    /// There is so much time in all.
    pub(crate) fn within(&mut self, time: Duration) {
        self.time = time;
    }

    /// A new phase begins: hard questions of the last one are forgotten.
    pub(crate) fn begin(&mut self) {
        (self.unanswered, self.limit) = (0, None);
    }

    /// The other questions of this phase get little time.
    pub(crate) fn be_brief(&mut self) {
        self.get(BRIEF, Share::Brief);
    }

    /// The other questions of this phase get no more than this part of all the time together.
    pub(crate) fn stop_after(&mut self, part: u32) {
        self.get(part, Share::Small);
    }

    fn get(&mut self, part: u32, share: Share) {
        self.limit = Instant::now().checked_add(self.time / part).map(|until| (until, share));
    }

    /// Has the time of the phase's questions an end of its own?
    pub(crate) fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// The failing schedule is found: later answers are sought near it.
    pub(crate) fn look_near(&mut self, schedule: &Schedule) {
        self.session.look_near(schedule);
    }

    /// A failing schedule with all of these orders; without a share the question gets all of the time.
    pub(crate) fn fails(
        &mut self,
        orders: &[Order],
        share: Option<Share>,
    ) -> Result<Outcome, ExplainError> {
        self.calls += 1;
        Ok(match share {
            None => self.session.check(Goal::Fail, orders)?,
            Some(share) => self.session.check_within(Goal::Fail, orders, share.divisor())?,
        })
    }

    /// Is there a schedule that passes with all of these orders? A known one answers at once.
    pub(crate) fn passes(
        &mut self,
        context: &mut Context<'_, '_>,
        orders: &[Order],
        share: Share,
    ) -> Result<Answer, ExplainError> {
        if let Some(known) = self.witnesses.iter().find(|w| orders.iter().all(|o| w.keeps(*o))) {
            return Ok(Answer::Passes(known.schedule.clone()));
        }
        let is_over = self.limit.is_some_and(|(until, _)| Instant::now() >= until);
        if is_over || context.effort.expired() {
            return Ok(Answer::Unknown(UnknownReason::TimeOut));
        }
        if self.unanswered >= UNANSWERED {
            return Ok(Answer::Unknown(self.reason.clone()));
        }
        self.calls += 1;
        let share = self.limit.map_or(share, |(_, share)| share);
        match self.session.check_within(Goal::Pass, orders, share.divisor())? {
            Outcome::Unsat(core) => {
                let core = core.into_iter().filter_map(|index| orders.get(index).copied());
                Ok(Answer::None(core.collect()))
            }
            Outcome::Unknown(reason) => {
                self.unanswered += 1;
                self.reason = reason.clone();
                Ok(Answer::Unknown(reason))
            }
            Outcome::Sat(found) => self.accept(context, found),
        }
    }

    fn accept(
        &mut self,
        context: &mut Context<'_, '_>,
        found: Model,
    ) -> Result<Answer, ExplainError> {
        if context.passing(&found.schedule.order).is_ok() {
            self.witnesses.push(Witness::new(context, found.schedule.order.clone()));
            return Ok(Answer::Passes(found.schedule));
        }
        let failing = context.inputs.clone();
        context.inputs = InputValues::new(context.trace, &found.values);
        let checked = context.passing(&found.schedule.order);
        context.inputs = failing;
        checked.map(|_| Answer::OtherInputs)
    }
}
