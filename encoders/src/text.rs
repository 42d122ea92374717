//! The readable form of a constraint system.

use crate::system::{ConstraintKind, ConstraintSystem, Term};
use model::{BinOp, CmpOp, Event, EventTrace, Expr, ExprId, FloatOp, FloatPred, WriteSource};
use std::fmt::{self, Display, Write as _};

/// Expressions nested deeper than this are shown by their identifier.
const MAX_DEPTH: usize = 8;

impl Display for ConstraintKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(condition) => write!(f, "path {condition}"),
            Self::ProgramOrder => f.write_str("program-order"),
            Self::ForkJoin => f.write_str("fork-join"),
            Self::Clock => f.write_str("clock"),
            Self::Lock => f.write_str("lock"),
            Self::TryLock => f.write_str("try-lock"),
            Self::Condition => f.write_str("condition"),
            Self::Semaphore => f.write_str("semaphore"),
            Self::Barrier => f.write_str("barrier"),
            Self::ReadFrom => f.write_str("read-from"),
            Self::Counter => f.write_str("counter"),
            Self::Lifetime => f.write_str("lifetime"),
            Self::Rejected => f.write_str("rejected"),
        }
    }
}

impl ConstraintSystem {
    /// One line per constraint: identifier, kind, origins, term. `trace` is the trace that was
    /// encoded.
    #[must_use]
    pub fn to_text(&self, trace: &EventTrace) -> String {
        let mut text = String::new();
        for constraint in self.written_out() {
            let origins: Vec<_> = constraint.origins.iter().map(ToString::to_string).collect();
            let shown = term(trace, &constraint.term);
            let (id, kind) = (constraint.id, constraint.kind);
            // Writing to a string does not fail.
            let _ = writeln!(text, "{id} {kind} [{}]: {shown}", origins.join(" "));
        }
        if let Some(failure) = &self.failure {
            let _ = writeln!(text, "failure: {}", term(trace, failure));
        }
        text
    }
}

/// One line per event, as the constraints' text names them.
#[doc(hidden)]
#[must_use]
pub fn events_text(trace: &EventTrace) -> String {
    let line = |event: &Event| {
        let thread = &trace.threads[event.thread.index()].name;
        format!("{} {thread} {}\n", event.id, event.kind.name())
    };
    trace.events.iter().map(line).collect()
}

fn term(trace: &EventTrace, of: &Term) -> String {
    let list = |parts: &[Term], joint: &str| {
        let parts: Vec<_> = parts.iter().map(|part| term(trace, part)).collect();
        format!("({})", parts.join(joint))
    };
    match of {
        Term::True => "true".to_owned(),
        Term::False => "false".to_owned(),
        Term::Before(a, b) => format!("{a} < {b}"),
        Term::ReadsFrom(read, source) => {
            let source = match source {
                WriteSource::Init => "init".to_owned(),
                WriteSource::Write(event) => event.to_string(),
            };
            format!("{}.{} <- {source}", read.event, read.part)
        }
        // Constraints are shown written out.
        Term::Uninterrupted(read, _) => format!("uninterrupted {}.{}", read.event, read.part),
        Term::Choice(choice) => choice.to_string(),
        Term::Value(expr) => expression(trace, *expr, 0),
        Term::Equal(a, b) => {
            format!("{} = {}", expression(trace, *a, 0), expression(trace, *b, 0))
        }
        Term::Not(inner) => format!("not ({})", term(trace, inner)),
        Term::And(parts) => list(parts, " and "),
        Term::Or(parts) => list(parts, " or "),
        Term::Implies(a, b) => format!("{} => {}", term(trace, a), term(trace, b)),
    }
}

fn expression(trace: &EventTrace, id: ExprId, depth: usize) -> String {
    if depth > MAX_DEPTH {
        return format!("{id:?}");
    }
    let show = |id: ExprId| expression(trace, id, depth + 1);
    match trace.exprs.get(id) {
        Expr::Const { value, .. } => value.to_string(),
        Expr::Var { var, .. } => var.to_string(),
        Expr::Bin(op, a, b) => format!("({} {} {})", show(a), binary(op), show(b)),
        Expr::Cmp(op, a, b) => format!("({} {} {})", show(a), comparison(op), show(b)),
        Expr::Not(a) => format!("~{}", show(a)),
        Expr::Ite(c, a, b) => format!("(if {} then {} else {})", show(c), show(a), show(b)),
        Expr::Extract { of, low, width } => format!("{}[{low} for {width}]", show(of)),
        Expr::Concat { high, low } => format!("({} ++ {})", show(high), show(low)),
        Expr::ZExt(a, width) => format!("zext{width}({})", show(a)),
        Expr::SExt(a, width) => format!("sext{width}({})", show(a)),
        Expr::FloatBin(op, _, a, b) => format!("({} {} {})", show(a), float(op), show(b)),
        Expr::FloatCmp(pred, _, a, b) => {
            format!("({} {} {})", show(a), float_comparison(pred), show(b))
        }
        Expr::FloatIsNan(_, a) => format!("is-nan({})", show(a)),
        Expr::FloatToFloat { of, to, .. } => format!("float{}({})", to.width(), show(of)),
        Expr::FloatToInt { of, signed, width, .. } => {
            format!("{}{width}({})", if signed { "int" } else { "uint" }, show(of))
        }
        Expr::IntToFloat { of, signed, to } => {
            let from = if signed { "signed" } else { "unsigned" };
            format!("float{}({from} {})", to.width(), show(of))
        }
    }
}

fn binary(op: BinOp) -> &'static str {
    match op {
        BinOp::Add => "+",
        BinOp::Sub => "-",
        BinOp::Mul => "*",
        BinOp::UDiv => "u/",
        BinOp::SDiv => "s/",
        BinOp::URem => "u%",
        BinOp::SRem => "s%",
        BinOp::And => "&",
        BinOp::Or => "|",
        BinOp::Xor => "^",
        BinOp::Shl => "<<",
        BinOp::LShr => "u>>",
        BinOp::AShr => "s>>",
    }
}

fn comparison(op: CmpOp) -> &'static str {
    match op {
        CmpOp::Eq => "==",
        CmpOp::ULt => "u<",
        CmpOp::ULe => "u<=",
        CmpOp::SLt => "s<",
        CmpOp::SLe => "s<=",
    }
}

fn float(op: FloatOp) -> &'static str {
    match op {
        FloatOp::Add => "f+",
        FloatOp::Sub => "f-",
        FloatOp::Mul => "f*",
        FloatOp::Div => "f/",
        FloatOp::Rem => "f%",
        FloatOp::Sqrt => "sqrt",
        FloatOp::Floor => "floor",
        FloatOp::Ceil => "ceil",
        FloatOp::Trunc => "trunc",
        FloatOp::Round => "round",
        FloatOp::RoundEven => "round-even",
    }
}

fn float_comparison(pred: FloatPred) -> &'static str {
    match pred {
        FloatPred::Eq => "f==",
        FloatPred::Lt => "f<",
        FloatPred::Le => "f<=",
    }
}
