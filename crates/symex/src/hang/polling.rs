//! Threads that go round a loop until a variable changes, for ever.
//!
//! A thread polls when the last full round of the loop that its log ends in left everything as it was
//! ([`crate::idle`]) and its conditions speak of what it read. What came behind that round is cut off:
//! the thread waits where it read last, with the locks that it had at the loop's header. It goes on when
//! a read variable has a value with which the round would have gone another way. Writes of such values
//! *release* the thread, others *keep* it. It waits for ever when the last write of each variable keeps
//! it, so the condition is that each release comes before some write that keeps, or before the round.

use super::Place;
use super::orders::Way;
use crate::builder::Builder;
use model::{CellId, Expr, ExprId, ExprPool, VarId};

/// A variable that a thread reads in each round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Polled {
    pub cell: CellId,
    /// The last read, by number.
    pub read: u32,
    var: VarId,
    /// What must be true for another round.
    conditions: Vec<ExprId>,
    /// These speak of other variables, too.
    mixed: bool,
}

/// What a write does to a thread that polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Releases,
    Keeps,
    /// What is written depends on what was read.
    Unknown,
}

/// The variables that decide about another round, by the round's reads and conditions.
pub(super) fn polled<'e>(
    events: impl Iterator<Item = &'e model::Event>,
    conditions: &[ExprId],
    pool: &ExprPool,
) -> Vec<Polled> {
    let mut found: Vec<Polled> = Vec::new();
    for event in events {
        for part in event.kind.reads() {
            let about = |id: &&ExprId| pool.variables(**id).contains(&part.var);
            let own: Vec<ExprId> = conditions.iter().filter(about).copied().collect();
            if own.is_empty() {
                continue;
            }
            let mixed = own.iter().any(|id| pool.variables(*id).len() > 1);
            found.push(Polled {
                cell: part.cell,
                read: event.index,
                var: part.var,
                conditions: own,
                mixed,
            });
        }
    }
    found
}

/// Where others write the variable, and what that does: a value that nobody knows may release. Where the thread
/// itself writes one, it keeps: the thread reads the variable behind that, and what it reads had to keep it.
fn writes(out: &Builder, pool: &ExprPool, thread: usize, polled: &Polled) -> Vec<(Place, Effect)> {
    let mut found = Vec::new();
    for (other, log) in out.threads.iter().enumerate() {
        for event in &log.events {
            for write in event.kind.writes().iter().filter(|write| write.cell == polled.cell) {
                let own = event.kind.reads().iter().find(|read| read.cell == write.cell);
                let own = own.map(|read| read.var);
                let effect = match effect(pool, polled, write.value, own) {
                    Some(Effect::Unknown) if other == thread => Effect::Keeps,
                    Some(Effect::Unknown) => Effect::Releases,
                    Some(known) => known,
                    None => continue,
                };
                if other != thread || effect == Effect::Keeps {
                    found.push(((other, event.index), effect));
                }
            }
        }
    }
    found
}

/// What a written value does; none when the write leaves the variable as it is.
fn effect(pool: &ExprPool, polled: &Polled, value: ExprId, own: Option<VarId>) -> Option<Effect> {
    let mut result = None;
    let mut open = vec![value];
    while let Some(id) = open.pop() {
        match pool.get(id) {
            Expr::Ite(_, then, otherwise) => open.extend([then, otherwise]),
            Expr::Var { var, .. } if own == Some(var) => {}
            Expr::Const { value, .. } if !polled.mixed => {
                let of = |var: VarId| (var == polled.var).then_some(value);
                let again = polled.conditions.iter().all(|id| pool.evaluate(*id, &of) == Some(1));
                if !again {
                    return Some(Effect::Releases);
                }
                result = Some(Effect::Keeps);
            }
            _ => return Some(Effect::Unknown),
        }
    }
    result
}

/// What makes the thread wait for ever; none where every order along the recorded paths does, because
/// nobody releases it.
pub(super) fn way(out: &Builder, pool: &ExprPool, thread: usize, polled: &[Polled]) -> Option<Way> {
    let mut pairs: Vec<Vec<(Place, Place)>> = Vec::new();
    for variable in polled {
        let writes = writes(out, pool, thread, variable);
        let of = |effect: Effect| {
            let found = writes.iter().filter(move |write| write.1 == effect);
            found.map(|write| write.0)
        };
        for release in of(Effect::Releases) {
            let read = (thread, variable.read);
            // A thread's own order needs no condition.
            let settled = of(Effect::Keeps).any(|keep| keep.0 == release.0 && keep.1 > release.1);
            if settled {
                continue;
            }
            let others = of(Effect::Keeps).filter(|keep| keep.0 != release.0);
            let mut orders: Vec<(Place, Place)> = others.map(|keep| (release, keep)).collect();
            if orders.is_empty() || variable.mixed {
                orders.push((release, read));
            }
            pairs.push(orders);
        }
    }
    (!pairs.is_empty()).then_some(Way::Overtaken(pairs))
}

/// How many writes of others release the thread.
pub(super) fn releases(out: &Builder, pool: &ExprPool, thread: usize, polled: &[Polled]) -> usize {
    let of = |variable: &Polled| {
        let found = writes(out, pool, thread, variable);
        found.iter().filter(|write| write.1 == Effect::Releases).count()
    };
    polled.iter().map(of).sum()
}

/// The name of what is read, and the event's place in the thread.
pub(super) fn name(out: &Builder, thread: usize, polled: &Polled) -> String {
    let own = out.event_name(thread, polled.read);
    let cell = out.cells.get(polled.cell.index()).map(|cell| cell.name.as_str());
    let quality = crate::builder::name_quality;
    match (own, cell) {
        (Some(own), Some(cell)) if quality(own) < quality(cell) => cell.to_owned(),
        (Some(own), _) => own.to_owned(),
        (None, cell) => cell.unwrap_or("a variable").to_owned(),
    }
}
