//! Wrong output (`record --fail-if`): the run ended well, and somebody did not like what it wrote.
//!
//! Nothing in the run says what was wrong. It is taken to be what the last write to standard output
//! printed: φbug is that the values on shared data that were passed to it are the recorded ones, or,
//! when none was, that the thread's last branch on shared data before it went as it did.

use super::Found;
use crate::engine::Engine;
use crate::recording::RecordedFailureKind;
use crate::thread::Stop;
use crate::value::{self, Scalar, Value};
use ir::types::{ConstantKind, InstKind, Operand};
use model::{CmpOp, FailureKind};

/// Functions that write to standard output whatever they are passed.
const ALWAYS: [&str; 7] =
    ["printf", "vprintf", "puts", "putchar", "putchar_unlocked", "__printf_chk", "__vprintf_chk"];
/// Functions that write to a stream, and which argument that is.
const STREAMS: [(&str, usize); 12] = [
    ("fprintf", 0),
    ("vfprintf", 0),
    ("__fprintf_chk", 0),
    ("__vfprintf_chk", 0),
    ("fputs", 1),
    ("fputs_unlocked", 1),
    ("fputc", 1),
    ("putc", 1),
    ("_IO_putc", 1),
    ("fwrite", 3),
    ("fwrite_unlocked", 3),
    ("write", 0),
];

impl<'r> Engine<'r> {
    fn output_is_wrong(&self) -> bool {
        let failure = self.limits.failure.as_ref();
        failure.is_some_and(|failure| failure.kind == RecordedFailureKind::Output)
    }

    /// A call of an uninstrumented function: is it the thread's last write to standard output, in a
    /// run whose output was wrong?
    pub fn check_output(
        &mut self,
        t: usize,
        name: &str,
        arguments: &[Value],
        operands: &[Operand],
    ) -> Result<(), Stop> {
        if !self.output_is_wrong() || !self.writes_output(t, name, arguments, operands) {
            return Ok(());
        }
        self.threads[t].writes += 1;
        let writes = self.threads[t].writes;
        if !self.symbolic() {
            self.learned.writes[t] = self.learned.writes[t].max(writes);
            return Ok(());
        }
        if self.failing != Some(t) || writes != self.learned.writes[t] {
            return Ok(());
        }
        let condition = self.printed(arguments).or_else(|| {
            let found = self.deciding_output(t);
            found.map(|found| self.take(t, found))
        });
        Err(self.fail(t, FailureKind::Output, condition))
    }

    /// "What was passed is what it was", when something of it is symbolic.
    fn printed(&mut self, arguments: &[Value]) -> Option<model::ExprId> {
        let mut all = Scalar::boolean(true);
        for scalar in arguments.iter().filter_map(Value::scalar) {
            let Some(recorded) = scalar.as_expr().and_then(|id| self.recorded_value(id)) else {
                continue;
            };
            let constant = Scalar::constant(scalar.width, recorded);
            let same = value::cmp(&mut self.pool, CmpOp::Eq, scalar, constant);
            all = value::and(&mut self.pool, all, same);
        }
        all.as_expr()
    }

    pub(super) fn deciding_output(&self, t: usize) -> Option<Found> {
        self.search(t).or(self.threads[t].last_branch)
    }

    fn writes_output(
        &self,
        t: usize,
        name: &str,
        arguments: &[Value],
        operands: &[Operand],
    ) -> bool {
        if ALWAYS.contains(&name) {
            return true;
        }
        if let Some((_, at)) = STREAMS.iter().find(|(other, _)| *other == name) {
            if name == "write" {
                let fd = arguments.first().and_then(Value::scalar).and_then(Scalar::as_const);
                return fd == Some(1);
            }
            return operands.get(*at).is_none_or(|&operand| !self.is_stderr(t, operand));
        }
        let inserts = name.starts_with("_ZNSolsE")
            || name.starts_with("_ZNSo9_M_insert")
            || name.starts_with("_ZStlsISt11char_traits")
            || name.starts_with("_ZSt16__ostream_insert")
            || name.starts_with("_ZNSo3put")
            || name.starts_with("_ZNSo5write");
        inserts && !self.is_error_object(arguments)
    }

    /// Is the stream what was read from the variable `stderr`?
    fn is_stderr(&self, t: usize, operand: Operand) -> bool {
        let (Some(frame), Operand::Inst(id)) = (self.threads[t].code(), operand) else {
            return false;
        };
        let instruction = frame.info.function.instructions.get(id.index());
        let Some(InstKind::Load { address: Operand::Const(id), .. }) =
            instruction.map(|instruction| &instruction.kind)
        else {
            return false;
        };
        match frame.module.constants.get(id.index()).map(|constant| &constant.kind) {
            Some(ConstantKind::Global(global, 0)) => {
                frame.module.globals.get(global.index()).is_some_and(|g| g.name == "stderr")
            }
            _ => false,
        }
    }

    /// Is the first argument `std::cerr` or `std::clog`?
    fn is_error_object(&self, arguments: &[Value]) -> bool {
        let stream = arguments.first().and_then(Value::scalar).and_then(Scalar::as_const);
        let Some(stream) = stream else { return false };
        self.recording.modules.iter().any(|module| {
            let named = module.ir.globals.iter().zip(&module.globals);
            named.into_iter().any(|(global, &address)| {
                matches!(global.name.as_str(), "_ZSt4cerr" | "_ZSt4clog")
                    && u128::from(address) == stream
            })
        })
    }

    /// The thread whose last write is looked at: the initial one if it wrote at all, else the one
    /// that wrote most.
    pub fn writing_thread(&self) -> usize {
        let writes = &self.learned.writes;
        if writes.first().is_some_and(|count| *count > 0) {
            return 0;
        }
        let most = writes.iter().enumerate().max_by_key(|(t, count)| (**count, usize::MAX - t));
        most.map_or(0, |(t, _)| t)
    }
}
