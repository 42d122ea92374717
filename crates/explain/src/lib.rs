//! From a constraint system and a solver session to what a person reads: the failing schedule, its
//! root cause, alternate schedules, and the differential schedule projection ([S] 3.3 to 3.5).
//!
//! Does no IO, reads no clock, and knows no solver but through [`solver::Session`]. Every schedule
//! that leaves this crate was accepted by the evaluator ([`model::evaluate`]), which knows nothing
//! of any solver. Equal inputs give equal results.
//!
//! | module | room for |
//! | --- | --- |
//! | `conflict` | the conflict orders of a schedule |
//! | `held` | locks that were held at the end of the recorded run |
//! | `switches` | few context switches |
//! | `updates` | no more lost updates than it takes, and an explanation by one of them |
//! | `cone`, `root_cause` | which of the orders matter, and a minimal set of them |
//! | `pairs` | which pairs of events to reverse |
//! | `network`, `flow`, `local` | reversing a pair with little else changed |
//! | `alternates`, `nearest` | schedules that do not fail, near the one that does |
//! | `dsp`, `visible`, `consequence` | the difference, what makes it visible, and what follows from what |
//! | `across`, `align`, `late` | the same for a run that takes other paths |
//! | `checked` | checks whose outcome a failure at the end only tells of |
//! | `cause` | the cause in one sentence |
//! | `widen` | from the part of a trace that matters to the whole |
//! | `flips` | which pairs to try the other way round on the real program |
//! | `came_back` | values that others changed and changed back before a compare-exchange |
//! | `ask`, `context`, `failing`, `extend`, `happens_before` | what these share |

mod across;
mod align;
mod alternates;
mod apart;
mod ask;
mod came_back;
mod cause;
mod checked;
mod commuting;
mod cone;
mod conflict;
mod consequence;
mod context;
mod dsp;
mod error;
mod explanation;
mod extend;
mod failing;
mod flips;
mod flow;
mod happens_before;
mod held;
mod interrupted;
mod late;
mod local;
mod nearest;
mod network;
mod pairs;
mod pin;
mod root_cause;
mod switches;
mod turned;
mod updates;
mod visible;
mod widen;

pub use across::{Across, Divergence, Flipped, Side, across, across_check, across_interrupted};
pub use align::{Matching, align};
pub use alternates::{Alternate, Alternates};
pub use apart::apart;
pub use came_back::{CameBack, came_back};
pub use cause::{
    Cause, CauseEvent, Passing, Pattern, cause, goes_on_without_look, last_member, late_write,
    outside_of_library, same_variable,
};
pub use checked::{may_tell_of_check, outcomes};
pub use commuting::Commuting;
pub use conflict::{ConflictOrder, OrderKind, conflict_orders};
pub use dsp::{AtomicBlock, Counts, DataFlow, Dsp, FinalWrite};
pub use error::ExplainError;
pub use explanation::{
    Clock, Cut, CutReason, Explanation, FailingSchedule, Options, Phase, Statistics, Verdict,
    explain, explain_from, explain_with,
};
pub use flips::{Flip, MOST_FLIPS, flipped_order, flips, serial_order};
pub use held::orders_of_run;
pub use interrupted::{Interrupted, interrupted_steps};
pub use late::is_meeting;
pub use pin::{has_inputs, pin_inputs};
pub use root_cause::{CauseKind, RootCause};
pub use switches::{context_switches, with_fewer_switches};
pub use turned::with_turned_pairs;
pub use updates::{explain_by_update, with_whole_updates};
pub use widen::widen;
