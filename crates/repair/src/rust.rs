//! Steps of repairs in the words of Rust, for lines of its files: there a lock is held by having its guard, and given back
//! by dropping that.

use crate::sections::taken;
use crate::source::Span;
use model::expr::{mask, to_signed};
use model::trace::ValueDisplay;
use model::{
    BinOp, CellId, Event, EventKind, EventTrace, Expr, ExprId, LockMode, ObjectId, PathCondition,
    VarId,
};
use std::collections::BTreeSet;

/// Is it a file of Rust?
pub(crate) fn is_rust(file: &str) -> bool {
    file.ends_with(".rs")
}

/// Are all of these lines in files of Rust?
pub(crate) fn are_rust<'s>(places: impl IntoIterator<Item = &'s Span>) -> bool {
    places.into_iter().all(|place| is_rust(&place.file))
}

/// The statement that has the guard of a new mutex.
pub(crate) const NEW_MUTEX: &str =
    " (`static LOCK: Mutex<()> = Mutex::new(());`, `let guard = LOCK.lock().unwrap();`)";

/// The method that makes the guard that may write: a lock that anybody takes to read is an `RwLock`.
pub(crate) fn method(trace: &EventTrace, object: ObjectId) -> &'static str {
    let is_shared = |event: &Event| {
        taken(event) == Some(object)
            && matches!(event.kind, EventKind::Lock { mode: LockMode::Shared, .. })
    };
    let is_write = |event: &Event| {
        let outermost = event.depth().checked_sub(1).and_then(|place| event.stack.get(place));
        taken(event) == Some(object)
            && outermost.is_some_and(|site| site.file.ends_with("/rwlock.rs"))
    };
    match trace.events.iter().any(|event| is_shared(event) || is_write(event)) {
        true => "write",
        false => "lock",
    }
}

/// What changes a variable in one step, by the passages through the lines that read it and write a value.
pub(crate) fn one_step<'t>(
    trace: &EventTrace,
    passages: impl Iterator<Item = (&'t Event, &'t Event)>,
    is_atomic: bool,
) -> String {
    let mut cell = None;
    let mut operations: BTreeSet<(&str, bool)> = BTreeSet::new();
    for (read, write) in passages {
        let (reads, writes) = (read.kind.reads(), write.kind.writes());
        cell = cell.or(reads.first().map(|part| part.cell));
        let known = match (reads, writes) {
            ([seen], [written]) => operation(trace, seen.var, written.value),
            _ => None,
        };
        operations.insert(known.unwrap_or((ANY, false)));
    }
    let names: BTreeSet<&str> = operations.iter().map(|(name, _)| *name).collect();
    let name = names.iter().next().filter(|_| names.len() == 1).copied().unwrap_or(ANY);
    let operation = match operations.iter().all(|(_, by_one)| *by_one) && name != ANY {
        true => format!("`{name}(1, Ordering::SeqCst)`"),
        false => format!("`{name}`"),
    };
    match cell.and_then(|cell| atomic(trace, cell)).filter(|_| !is_atomic) {
        Some(of) => format!("an atomic variable, such as an `{of}`, and {operation}"),
        None => operation,
    }
}

/// What makes any value of the one that was seen.
const ANY: &str = "fetch_update";

/// The operation by which what is written follows from what was seen, and whether it goes by one. Any other number
/// may have been a variable's in the program.
fn operation(trace: &EventTrace, seen: VarId, written: ExprId) -> Option<(&'static str, bool)> {
    let is_seen = |id: ExprId| matches!(trace.exprs.get(id), Expr::Var { var, .. } if var == seen);
    let Expr::Bin(operation, one, two) = trace.exprs.get(written) else { return None };
    let other = match (is_seen(one), is_seen(two)) {
        (true, false) => two,
        (false, true) if operation != BinOp::Sub => one,
        _ => return None,
    };
    let width = trace.exprs.width(other);
    let number = trace.exprs.as_const(other).map(|value| to_signed(value, width));
    match operation {
        // The compiler makes additions of subtractions.
        BinOp::Add if number.is_some_and(|value| value < 0) => {
            Some(("fetch_sub", number == Some(-1)))
        }
        BinOp::Add => Some(("fetch_add", number == Some(1))),
        BinOp::Sub => Some(("fetch_sub", number == Some(1))),
        BinOp::And => Some(("fetch_and", false)),
        BinOp::Or => Some(("fetch_or", false)),
        BinOp::Xor => Some(("fetch_xor", false)),
        _ => None,
    }
}

/// The atomic type of the size of a cell.
fn atomic(trace: &EventTrace, cell: CellId) -> Option<String> {
    let cell = trace.cells.get(cell.index())?;
    match (cell.display, cell.width) {
        (ValueDisplay::Signed, width @ (8 | 16 | 32 | 64)) => Some(format!("AtomicI{width}")),
        (ValueDisplay::Unsigned, width @ (8 | 16 | 32 | 64)) => Some(format!("AtomicU{width}")),
        (ValueDisplay::Bool, _) => Some("AtomicBool".to_owned()),
        _ => None,
    }
}

/// Does a branch only look whether the addition that makes this value overflows, and is this the way on which it does not?
/// Rust's checked arithmetic has such a branch for each, which decides nothing of the program's own.
///
/// It is told by its truth at the values around those at which it may change.
pub(crate) fn rules_out_overflow(
    trace: &EventTrace,
    condition: &PathCondition,
    value: ExprId,
) -> bool {
    let Expr::Bin(BinOp::Add, one, two) = trace.exprs.get(value) else { return false };
    let width = trace.exprs.width(value);
    let operand = |id: ExprId| match trace.exprs.get(id) {
        Expr::Var { var, .. } => Some((Some(var), 0)),
        Expr::Const { value, .. } => Some((None, value)),
        _ => None,
    };
    let (Some(one), Some(two)) = (operand(one), operand(two)) else { return false };
    let vars: BTreeSet<VarId> = [one.0, two.0].into_iter().flatten().collect();
    let asked: BTreeSet<VarId> = trace.exprs.variables(condition.expr).into_iter().collect();
    // A variable twice, or other ones asked about, is another matter.
    if vars.len() != [one.0, two.0].into_iter().flatten().count() || asked != vars {
        return false;
    }
    let greatest = mask(width);
    let mut near: BTreeSet<u128> = BTreeSet::new();
    let constants = [one, two].into_iter().filter(|side| side.0.is_none()).map(|side| side.1);
    for edge in constants.clone().chain([0]) {
        for base in [0, greatest, greatest >> 1, (greatest >> 1) + 1] {
            let at = base.wrapping_sub(edge);
            near.extend([at.wrapping_sub(1), at, at.wrapping_add(1)].map(|value| value & greatest));
        }
    }
    let sides = |side: (Option<VarId>, u128)| match side.0 {
        Some(_) => near.iter().copied().collect(),
        None => vec![side.1],
    };
    let [mut unsigned, mut signed] = [true, true];
    for a in sides(one) {
        for b in sides(two) {
            let value_of = |var: VarId| match (one.0 == Some(var), two.0 == Some(var)) {
                (true, _) => Some(a),
                (_, true) => Some(b),
                _ => None,
            };
            let Some(holds) = trace.exprs.evaluate(condition.expr, &value_of) else { return false };
            let sum = a.wrapping_add(b) & greatest;
            unsigned &= (holds == 1) == (sum >= a);
            let is_exact = to_signed(a, width)
                .checked_add(to_signed(b, width))
                .is_some_and(|exact| exact == to_signed(sum, width));
            signed &= (holds == 1) == is_exact;
        }
    }
    unsigned || signed
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;

    /// Two variables, a value made of the first, and a test in between.
    fn trace(test: &str, value: &str) -> (EventTrace, ExprId) {
        let text = format!(
            "cell hits 32 = 0\ncell step 32 = 1\na: [more] R step -> s\na: [seen] R hits -> h\n\
             a: assume {test}\na: [then] W hits {value}\n"
        );
        let parsed = parse(&text).expect("the text is a trace");
        let written = parsed.trace.event(parsed.event("then")).kind.writes()[0].value;
        (parsed.trace, written)
    }

    #[test]
    fn what_is_written_is_told_by_the_operation_that_makes_it() {
        let told = |value: &str, is_atomic: bool| {
            let (trace, _) = trace("h != 7", value);
            let read = trace.events.iter().rfind(|event| !event.kind.reads().is_empty());
            let write = trace.events.iter().find(|event| !event.kind.writes().is_empty());
            let passage = (read.expect("a read"), write.expect("a write"));
            one_step(&trace, std::iter::once(passage), is_atomic)
        };
        assert_eq!(told("h + 1", true), "`fetch_add(1, Ordering::SeqCst)`");
        assert_eq!(told("h - 2", true), "`fetch_sub`");
        assert_eq!(told("h - 1", true), "`fetch_sub(1, Ordering::SeqCst)`");
        assert_eq!(told("h + s", true), "`fetch_add`");
        assert_eq!(told("s - h", true), "`fetch_update`");
        assert_eq!(
            told("h + 1", false),
            "an atomic variable, such as an `AtomicI32`, and `fetch_add(1, Ordering::SeqCst)`"
        );
    }

    #[test]
    fn a_test_for_an_overflow_is_told_from_others() {
        let is = |test: &str, value: &str| {
            let (trace, written) = trace(test, value);
            rules_out_overflow(&trace, &trace.conditions[0], written)
        };
        assert!(is("h != 4294967295", "h + 1"), "unsigned");
        assert!(is("h != 2147483647", "h + 1"), "signed");
        assert!(!is("h != 7", "h + 1"), "the program's own");
        assert!(!is("h == 4294967295", "h + 1"), "the other way");
        assert!(!is("h != 0", "h - 1"), "the program may ask so itself");
        assert!(!is("s != 4294967295", "h + 1"), "another variable");
    }
}
