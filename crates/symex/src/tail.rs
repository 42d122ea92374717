//! Beyond the end of a log: what a thread that was stopped by another thread's failure would have
//! done next, as far as that is certain.
//!
//! A failure often comes because an event of another thread came too late: it had not happened yet
//! when the process ended, so the log does not have it, and no schedule of the logged events alone
//! avoids the failure. The walk therefore goes on after the last entry, through calls that only
//! sleep or print or release, and along branches whose condition is known, until something is
//! needed that only the log can tell: a result, an address, a branch on shared data, a
//! synchronisation call.

use crate::engine::Engine;
use crate::sync::is_certain;
use crate::thread::{Frame, Stop};
use crate::value::{Scalar, Value};
use ir::types::{BlockId, Function, InstId, InstKind, Instruction, Operand};

/// The most instructions of one thread beyond its log along branches that no log confirms.
const LONGEST: u64 = 10_000;

impl<'r> Engine<'r> {
    /// Has the thread used up its log, which ended because another thread failed?
    pub fn in_tail(&self, t: usize) -> bool {
        let others = self.failing.is_some_and(|failing| failing != t);
        others && self.threads[t].exhausted() && self.threads[t].tail <= LONGEST
    }

    /// Where a branch goes whose condition is known.
    pub fn certain_successor(&mut self, t: usize, inst: &'r Instruction) -> Result<BlockId, Stop> {
        match &inst.kind {
            InstKind::CondBr(condition, then, otherwise) => {
                match self.scalar(t, *condition).and_then(Scalar::as_const) {
                    Some(0) => Ok(*otherwise),
                    Some(_) => Ok(*then),
                    None => Err(Stop::EndOfLog),
                }
            }
            _ => Err(Stop::EndOfLog),
        }
    }

    /// The log ends inside a call of uninstrumented code. One that only sleeps, or that only
    /// prints and whose result nobody uses, can be taken to return.
    pub fn return_unlogged(&mut self, t: usize) -> Result<(), Stop> {
        if !self.in_tail(t) || self.threads[t].exited {
            return Err(Stop::EndOfLog);
        }
        let Some(Frame::External(frame)) = self.threads[t].frames.last() else {
            return Err(Stop::EndOfLog);
        };
        let Some(call) = frame.call.as_ref().filter(|call| !call.walked) else {
            return Err(Stop::EndOfLog);
        };
        let (name, synchronises) = (call.name, is_certain(call.name));
        if synchronises {
            self.complete_certain(t);
            let performed = self.threads[t].external_call().is_some_and(|call| call.performed);
            if !performed {
                return Err(Stop::EndOfLog);
            }
            self.threads[t].frames.pop();
            return self.finish(t, Value::Scalar(Scalar::constant(32, 0)));
        }
        if is_sleep(name) {
            self.threads[t].frames.pop();
            return self.finish(t, Value::Scalar(Scalar::constant(32, 0)));
        }
        if !only_prints(name) || !self.result_is_unused(t) {
            return Err(Stop::EndOfLog);
        }
        self.threads[t].frames.pop();
        self.finish(t, Value::default())
    }

    /// Does no instruction use the result of the call that the topmost function is in?
    fn result_is_unused(&self, t: usize) -> bool {
        let Some(frame) = self.threads[t].frames.iter().rev().find_map(|frame| match frame {
            Frame::Code(code) => Some(code),
            Frame::External(_) => None,
        }) else {
            return false;
        };
        !is_used(frame.info.function, frame.next)
    }
}

fn is_used(function: &Function, id: InstId) -> bool {
    let mut used = false;
    for instruction in &function.instructions {
        instruction.kind.for_each_operand(&mut |operand| used |= operand == Operand::Inst(id));
    }
    used
}

/// Functions that give 0 after a while, `int` all of them.
pub(crate) fn is_sleep(name: &str) -> bool {
    matches!(name, "sleep" | "usleep" | "nanosleep" | "clock_nanosleep" | "sched_yield")
}

/// Functions that write text, return, and change nothing that instrumented code can see.
fn only_prints(name: &str) -> bool {
    matches!(
        name,
        "printf"
            | "fprintf"
            | "vprintf"
            | "vfprintf"
            | "dprintf"
            | "puts"
            | "putchar"
            | "fputs"
            | "fputc"
            | "putc"
            | "fwrite"
            | "fflush"
            | "perror"
            | "syslog"
            | "__printf_chk"
            | "__fprintf_chk"
            | "__vprintf_chk"
            | "__vfprintf_chk"
            | "__syslog_chk"
    )
}
