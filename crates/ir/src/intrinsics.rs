//! What LLVM's intrinsics do with their arguments, as far as the analyses here care.

use crate::types::{Call, Module};

/// What an intrinsic does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intrinsic {
    /// Computes its result from its arguments and touches no memory.
    Arithmetic,
    /// Tells the optimiser or the debugger something; has no effect.
    Annotation,
    /// `memcpy` or `memmove`: destination, source, length.
    Copy,
    /// `memset`: destination, byte, length.
    Fill,
    /// The address of what the C library keeps of the thread. Nothing in the log tells it.
    ThreadPointer,
    /// Something else.
    Other,
}

/// Names after `llvm.` up to the next dot.
const ARITHMETIC: &[&str] = &[
    "abs",
    "smax",
    "smin",
    "umax",
    "umin",
    "scmp",
    "ucmp",
    "ctpop",
    "ctlz",
    "cttz",
    "bswap",
    "bitreverse",
    "fshl",
    "fshr",
    "sadd",
    "uadd",
    "ssub",
    "usub",
    "smul",
    "umul",
    "sshl",
    "ushl",
    "expect",
    "ptrmask",
    "launder",
    "strip",
    "ssa",
    "is",
    "vector",
    "fabs",
    "sqrt",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "atan2",
    "sinh",
    "cosh",
    "tanh",
    "sincos",
    "pow",
    "powi",
    "exp",
    "exp2",
    "exp10",
    "log",
    "log2",
    "log10",
    "fma",
    "fmuladd",
    "floor",
    "ceil",
    "trunc",
    "rint",
    "nearbyint",
    "round",
    "roundeven",
    "lround",
    "llround",
    "lrint",
    "llrint",
    "minnum",
    "maxnum",
    "minimum",
    "maximum",
    "minimumnum",
    "maximumnum",
    "copysign",
    "canonicalize",
    "fptosi",
    "fptoui",
    "ldexp",
    "frexp",
    "arithmetic",
    "convert",
    "objectsize",
];

const ANNOTATION: &[&str] = &[
    "dbg",
    "lifetime",
    "assume",
    "donothing",
    "sideeffect",
    "invariant",
    "prefetch",
    "pseudoprobe",
    "fake",
];

/// What the intrinsic of this symbol name does; `None` when the name is not an intrinsic's.
#[must_use]
pub fn intrinsic(name: &str) -> Option<Intrinsic> {
    let name = name.strip_prefix("llvm.")?;
    let first = name.split('.').next().unwrap_or(name);
    Some(match first {
        "memcpy" | "memmove" => Intrinsic::Copy,
        "memset" => Intrinsic::Fill,
        _ if name.starts_with("thread.pointer") => Intrinsic::ThreadPointer,
        _ if name.starts_with("experimental.noalias.scope.decl") => Intrinsic::Annotation,
        _ if ARITHMETIC.contains(&first) => Intrinsic::Arithmetic,
        _ if ANNOTATION.contains(&first) => Intrinsic::Annotation,
        _ => Intrinsic::Other,
    })
}

/// What the intrinsic does that is called; `None` for any other callee.
#[must_use]
pub fn called(module: &Module, call: &Call) -> Option<Intrinsic> {
    call.target(module).and_then(|function| intrinsic(&function.name))
}

#[cfg(test)]
mod tests {
    use super::{Intrinsic, intrinsic};

    #[test]
    fn intrinsics_are_told_apart_by_name() {
        assert_eq!(intrinsic("llvm.memcpy.p0.p0.i64"), Some(Intrinsic::Copy));
        assert_eq!(intrinsic("llvm.memset.inline.p0.i64"), Some(Intrinsic::Fill));
        assert_eq!(intrinsic("llvm.sadd.with.overflow.i32"), Some(Intrinsic::Arithmetic));
        assert_eq!(intrinsic("llvm.lifetime.start.p0"), Some(Intrinsic::Annotation));
        assert_eq!(intrinsic("llvm.thread.pointer.p0"), Some(Intrinsic::ThreadPointer));
        assert_eq!(intrinsic("llvm.threadlocal.address.p0"), Some(Intrinsic::Other));
        assert_eq!(intrinsic("llvm.va_start.p0"), Some(Intrinsic::Other));
        assert_eq!(intrinsic("memcpy"), None);
    }
}
