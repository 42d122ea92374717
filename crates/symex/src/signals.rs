//! Signal handlers, walked where they interrupted the thread.
//!
//! The runtime lets a handler run where an entry of the path would come next, where a region of
//! choices ends, or in uninstrumented code (`crates/runtime/src/handlers.rs`), and logs which: the walk
//! meets it at the same place. Only the handler of a fault
//! runs in the middle of a block, before the instruction that caused it.

use crate::engine::Engine;
use crate::thread::{Entry, ExternalCall, ExternalFrame, Frame, Stop, contradiction};
use crate::value::Value;
use ir::types::{BinaryOp, Callee, InstKind, Instruction, Operand, TypeId};
use trace_format::layout::{RuntimeEvent, SIGNAL_AT_FAULT, SIGNAL_AT_REGION_END, tag};

/// Payload words of `SignalBegin`.
pub(crate) const SIGNAL_WORDS: usize = 6;
/// Where the words say where it ran, and the address of a fault.
const PLACE: usize = 2;
const FAULT_ADDRESS: usize = 3;
const SIGNAL: usize = 0;
/// Bytes that the kernel writes for a handler.
const INFO_BYTES: u64 = 128;
const CONTEXT_BYTES: u64 = 968;
/// An access that faults may begin so many bytes before the address that the kernel gives.
const LONGEST_ACCESS: u64 = 64;
const SIGILL: u64 = 4;
const SIGTRAP: u64 = 5;
const SIGFPE: u64 = 8;

impl<'r> Engine<'r> {
    /// Walks a handler from its `SignalBegin`, which was consumed, to its `SignalEnd`.
    ///
    /// # Errors
    /// `Left` when the handler did not return: then the thread is where it jumped to.
    pub fn handle_signal(
        &mut self,
        t: usize,
        signal: u64,
        [info, context]: [u64; 2],
    ) -> Result<(), Stop> {
        self.extend_stack(t, info, INFO_BYTES);
        self.extend_stack(t, context, CONTEXT_BYTES);
        let frame = ExternalFrame {
            signal: u32::try_from(signal).ok(),
            call: Some(ExternalCall {
                name: "a signal",
                address: None,
                arguments: Vec::new(),
                operands: Vec::new(),
                result: TypeId(0),
                reallocated: None,
                // What it calls is no callback of a function that goes on working meanwhile.
                walked: true,
                walked_result: None,
                performed: false,
                created: None,
                allocated: None,
                written: None,
                text_read: None,
                went_in: Vec::new(),
                measured: smallvec::SmallVec::new(),
                doubted: false,
                assembly: None,
                tail: false,
                read: true,
                text: None,
                stamp: self.threads[t].last_stamp,
                reading: None,
                at_work: false,
                passed: None,
                allocations: self.threads[t].allocations,
            }),
        };
        let reads = std::mem::take(&mut self.pending_reads);
        let non_local = std::mem::take(&mut self.threads[t].non_local);
        // The interrupted function's region goes on.
        let made = std::mem::take(&mut self.threads[t].choices.made);
        self.threads[t].frames.push(Frame::External(Box::new(frame)));
        let depth = self.threads[t].frames.len();
        loop {
            let ends = self.threads[t].peek()? == Some(Entry::Runtime(RuntimeEvent::SignalEnd));
            if ends && self.threads[t].frames.len() == depth {
                self.threads[t].words(1)?;
                self.threads[t].advance();
                self.threads[t].frames.pop();
                self.pending_reads = reads;
                self.threads[t].non_local = non_local;
                self.threads[t].choices.made = made;
                return Ok(());
            }
            match self.step(t) {
                Ok(()) | Err(Stop::Left) => {}
                Err(Stop::Wait(_)) => return contradiction("a signal handler joins a thread"),
                Err(stop) => return Err(stop),
            }
            if self.threads[t].frames.len() < depth {
                return Err(Stop::Left);
            }
        }
    }

    /// Walks the handlers that ran where a region has just ended, whose token is the last of so many empty
    /// ones, or is not empty.
    pub fn handle_late_signals(&mut self, t: usize, mut empty: u32) -> Result<(), Stop> {
        while self.threads[t].peek()? == Some(Entry::Runtime(RuntimeEvent::SignalBegin))
            && self.threads[t].peek_word(PLACE) == Some(SIGNAL_AT_REGION_END)
            && self.threads[t].empty_before() == empty.min(tag::MOST_EMPTY)
        {
            self.runtime(t, RuntimeEvent::SignalBegin)?;
            empty = 0;
        }
        Ok(())
    }

    /// Walks the handler of a fault before the instruction that caused it.
    pub fn handle_fault(&mut self, t: usize, inst: &'r Instruction) -> Result<(), Stop> {
        if self.threads[t].peek()? != Some(Entry::Runtime(RuntimeEvent::SignalBegin))
            || self.threads[t].peek_word(PLACE) != Some(SIGNAL_AT_FAULT)
            || !self.faults(t, inst)
        {
            return Ok(());
        }
        self.runtime(t, RuntimeEvent::SignalBegin)
    }

    /// Is this the instruction whose fault the log tells of?
    fn faults(&mut self, t: usize, inst: &'r Instruction) -> bool {
        let signal = self.threads[t].peek_word(SIGNAL).unwrap_or(0);
        let address = self.threads[t].peek_word(FAULT_ADDRESS).unwrap_or(0);
        match &inst.kind {
            InstKind::Binary(op, ..) => {
                let divides =
                    matches!(op, BinaryOp::SDiv | BinaryOp::UDiv | BinaryOp::SRem | BinaryOp::URem);
                divides && signal == SIGFPE && self.divides_badly(t, inst)
            }
            InstKind::Unreachable => matches!(signal, SIGILL | SIGTRAP),
            InstKind::Call(call) => {
                let Callee::Direct(_) = call.callee else { return false };
                let name = call.target(self.module(t)).map_or("", |callee| callee.name.as_str());
                match name.strip_prefix("llvm.").and_then(|rest| rest.split('.').next()) {
                    Some("trap" | "debugtrap" | "ubsantrap") => matches!(signal, SIGILL | SIGTRAP),
                    Some("memcpy" | "memmove" | "memset") => {
                        call.args.iter().take(2).any(|&operand| self.is_near(t, operand, address))
                    }
                    _ => false,
                }
            }
            kind => kind.address().is_some_and(|operand| self.is_near(t, operand, address)),
        }
    }

    fn divides_badly(&mut self, t: usize, inst: &'r Instruction) -> bool {
        let InstKind::Binary(op, _, divisor) = &inst.kind else { return false };
        let Some(divisor) = self.scalar(t, *divisor) else { return false };
        let value = match divisor.as_expr() {
            None => divisor.as_const(),
            Some(id) => self.recorded_value(id),
        };
        let signed = matches!(op, BinaryOp::SDiv | BinaryOp::SRem);
        let minus_one = model::expr::mask(divisor.width);
        value.is_none_or(|value| value == 0 || signed && value == minus_one)
    }

    fn is_near(&mut self, t: usize, operand: Operand, fault: u64) -> bool {
        let Value::Scalar(scalar) = self.operand(t, operand) else { return false };
        let value = match scalar.as_expr() {
            None => scalar.as_const(),
            Some(id) => self.recorded_value(id),
        };
        // An address outside of the canonical ones is given as 0.
        value.is_none_or(|value| fault == 0 || fault.wrapping_sub(value as u64) < LONGEST_ACCESS)
    }
}
