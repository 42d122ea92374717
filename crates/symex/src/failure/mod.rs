//! φbug: where the run failed, and what made it fail.

mod chain;
mod dispatch;
mod frameworks;
mod freed;
mod gone_lock;
mod later;
mod lifetime;
pub(crate) mod meant;
mod output;
mod overrun;
mod panic;
mod reached;
mod search;

pub(crate) use lifetime::{At, Lifetime};
pub(crate) use meant::{AccessKey, Known};

use crate::engine::Engine;
use crate::heap::{HeapObject, PRIVATE, USER_END};
use crate::recording::RecordedFailureKind;
use crate::report::GapKind;
use crate::sizes::size_by_name;
use crate::thread::Stop;
use crate::value::{self, Scalar, Value};
use ir::effects::Kind;
use ir::types::{BinaryOp, InstKind, Instruction, Operand};
use model::{BinOp, CmpOp, EventId, EventKind, ExprId, Failure, FailureCondition, FailureKind};

const SIGILL: i32 = 4;
const SIGTRAP: i32 = 5;
pub(crate) const SIGABRT: i32 = 6;
const SIGBUS: i32 = 7;
const SIGFPE: i32 = 8;
const SIGSEGV: i32 = 11;

/// Below this address nothing is ever mapped; a null pointer plus a field's offset lies here.
const NULL_ZONE: u64 = 1 << 16;
/// Live objects closer than this are taken for one: nothing else lies between them.
const NEIGHBOURS: u64 = 1 << 16;

/// A branch that led to the failure.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    pub condition: ExprId,
    pub path_condition: Option<usize>,
}

impl<'r> Engine<'r> {
    pub(crate) fn failure_kind(&self, t: usize) -> Option<RecordedFailureKind> {
        if !self.symbolic() || self.failing != Some(t) || self.failure.is_some() {
            return None;
        }
        self.limits.failure.as_ref().map(|failure| failure.kind)
    }

    fn signal(&self, t: usize) -> Option<(i32, u64)> {
        match self.failure_kind(t)? {
            RecordedFailureKind::Signal { signo, fault_address } => Some((signo, fault_address)),
            _ => None,
        }
    }

    /// Ends the thread with the failure. `condition` of `None` does not depend on shared data.
    fn fail(&mut self, t: usize, kind: FailureKind, condition: Option<ExprId>) -> Stop {
        let lost = (kind == FailureKind::Hang).then(|| self.lost_message(t));
        self.note_request(t);
        self.note_gone_lock(t);
        self.release_all(t);
        let pure = kind == FailureKind::Abort && self.in_pure_call(t);
        self.threads[t].back_to_last_frame();
        let name = None;
        let event = self.event(t, EventKind::Failure, name);
        let condition = condition.unwrap_or_else(|| self.pool.boolean(true));
        let mut message = self.limits.failure.as_ref().map(|failure| failure.message.clone());
        match kind {
            FailureKind::Output => {
                let taken = "wrong output; what the last write to standard output printed is taken to be the cause";
                message = Some(taken.to_owned());
            }
            FailureKind::Abort if pure => {
                message = Some("a pure virtual function was called".to_owned());
            }
            FailureKind::Hang => message = lost,
            FailureKind::User if self.reached_line().is_some() => {
                message = message.map(|place| format!("reached {place}"));
            }
            _ if self.threads[t].exited && t != 0 => {
                let said = message.filter(|said| !said.is_empty());
                let when = "when the thread had ended";
                message = Some(said.map_or(when.to_owned(), |said| format!("{said}, {when}")));
            }
            _ => {}
        }
        let failure = Failure {
            kind,
            event: EventId(event),
            condition: FailureCondition::Value(condition),
            message: message.unwrap_or_default(),
        };
        self.failure = Some((t, failure));
        Stop::Failed
    }

    fn recorded_scalar(&mut self, scalar: Scalar) -> Option<u128> {
        match scalar.as_expr() {
            None => scalar.as_const(),
            Some(id) => self.recorded_value(id),
        }
    }

    /// The end of a thread's walk.
    pub fn finish_thread(&mut self, t: usize) {
        self.survey_freed(t);
        let stop = self.threads[t].stop.clone();
        if stop == Some(Stop::EndOfLog) && !self.symbolic() && self.ended_the_run(t) {
            self.learned.reported.get_or_insert(t);
        }
        if stop == Some(Stop::EndOfLog) {
            self.end_in_write(t);
            self.end_in_file(t);
        }
        let blocked = self.blocked_call(t);
        if let Some(kind) = self.failure_kind(t) {
            self.fail_at_end(t, kind, stop.as_ref());
        } else if let Some(Stop::Contradiction(detail)) = &stop {
            self.gap(t, GapKind::Stopped, detail.clone());
        }
        let failed = self.failure.as_ref().is_some_and(|(thread, _)| *thread == t);
        if !failed && !self.note_wait(t) {
            let has_ended = self.threads[t].exited && stop == Some(Stop::EndOfLog);
            if has_ended {
                self.leave_locks(t);
            }
            self.release_all(t);
            if has_ended {
                self.event(t, EventKind::Exit, None);
            }
        }
        let thread = &mut self.threads[t];
        thread.close();
        let (unused_path, unused_values) = thread.unused();
        let report = &mut thread.report;
        (report.gates, report.sync_points) = self.points.counts(t);
        report.unused_path = unused_path;
        report.unused_values = unused_values;
        report.reached_end = match &stop {
            Some(Stop::EndOfLog) => thread.left_out || unused_path == 0 && unused_values == 0,
            Some(Stop::Failed) => true,
            _ => false,
        };
        report.stopped = match stop {
            Some(Stop::EndOfLog) if thread.exited => "end of the thread".to_owned(),
            Some(Stop::EndOfLog) => "end of the log".to_owned(),
            Some(Stop::Failed) => "failure".to_owned(),
            Some(Stop::Contradiction(detail)) => detail,
            Some(Stop::Wait(_) | Stop::Left | Stop::Spent) | None => "not walked".to_owned(),
        };
        report.blocked = blocked.filter(|_| !thread.exited);
    }

    /// Of a run that ended with a status, nobody knows by which thread: is this thread in a call that ends the program, as
    /// libraries do behind the C library's back?
    fn ended_the_run(&mut self, t: usize) -> bool {
        let Some(failure) = self.limits.failure.as_ref() else { return false };
        let is_exit = matches!(failure.kind, RecordedFailureKind::Exit { .. });
        if !is_exit || failure.thread_serial != 0 || self.threads[t].exited {
            return false;
        }
        let call = self.threads[t].external_call();
        let described = call.and_then(|call| ir::effects::effect(call.name));
        described.is_some_and(|described| described.kind == Kind::Ends)
    }

    /// The failure was not met during the walk: it is where the walk ended.
    fn fail_at_end(&mut self, t: usize, kind: RecordedFailureKind, stop: Option<&Stop>) {
        if !matches!(stop, Some(Stop::EndOfLog)) {
            self.gap(t, GapKind::Failure, "the walk stopped before".to_owned());
        }
        let (kind, found) = match kind {
            RecordedFailureKind::Assertion => (FailureKind::Assertion, self.search(t)),
            RecordedFailureKind::Abort => (FailureKind::Abort, self.aborted(t)),
            RecordedFailureKind::Exit { .. } => (FailureKind::Exit, self.search(t)),
            RecordedFailureKind::Signal { signo: SIGSEGV | SIGBUS, fault_address } => {
                let place = self.faulting_argument(t, fault_address);
                let unmapped = self.is_unmapped(fault_address);
                if unmapped {
                    self.touch_freed(t, fault_address, 1, (None, false));
                } else if place.is_none() {
                    self.gap(t, GapKind::Failure, format!("fault at {fault_address:#x}"));
                }
                let condition = place.and_then(|place| self.outside_objects(place, fault_address));
                let found = condition.map(|condition| Found { condition, path_condition: None });
                (FailureKind::Segfault, found)
            }
            RecordedFailureKind::Signal { signo: SIGFPE, .. } => {
                self.gap(t, GapKind::Failure, "division".to_owned());
                (FailureKind::DivisionByZero, None)
            }
            RecordedFailureKind::Signal { .. } => (FailureKind::Abort, self.aborted(t)),
            RecordedFailureKind::UseAfterFree { address } => {
                if let Some(pointer) = self.faulting_argument(t, address) {
                    self.through(t, pointer);
                }
                self.touch_freed(t, address, 1, (None, false));
                (FailureKind::UseAfterFree, None)
            }
            RecordedFailureKind::DoubleFree { address } => {
                (FailureKind::DoubleFree, self.freed_again(t, address))
            }
            RecordedFailureKind::HeapCorruption => (FailureKind::HeapCorruption, self.search(t)),
            RecordedFailureKind::StackOverflow => (FailureKind::StackOverflow, self.search(t)),
            RecordedFailureKind::Exception => (FailureKind::Exception, self.search_throw(t)),
            RecordedFailureKind::Panic => (FailureKind::Panic, self.search(t)),
            RecordedFailureKind::User | RecordedFailureKind::Reached => {
                (FailureKind::User, self.search(t))
            }
            RecordedFailureKind::Output => (FailureKind::Output, self.deciding_output(t)),
            RecordedFailureKind::TimedOut => (FailureKind::Hang, None),
        };
        let condition = found.map(|found| self.take(t, found));
        self.fail(t, kind, condition);
    }

    /// What made a library end the run, or the branch that led there.
    fn aborted(&mut self, t: usize) -> Option<Found> {
        self.overrun(t).or_else(|| self.pure_call(t)).or_else(|| self.search(t))
    }

    /// The branch that led to an exception that nobody caught. Where it was thrown may have been
    /// unwound, up to a function that lets none out.
    fn search_throw(&mut self, t: usize) -> Option<Found> {
        let call = self.threads[t].external_call();
        let unwound = call.is_some_and(|call| call.name.contains("terminate"));
        let thrown = self.threads[t].thrown;
        thrown.filter(|_| unwound).or_else(|| self.search(t)).or(thrown)
    }

    /// An exception begins to unwind: remembers what led to it.
    pub fn note_throw(&mut self, t: usize) {
        if self.failure_kind(t) == Some(RecordedFailureKind::Exception) {
            self.threads[t].thrown = self.search(t);
        }
    }

    /// The branch becomes φbug, and is no path condition any more.
    fn take(&mut self, t: usize, found: Found) -> ExprId {
        let before = self.parts_before(t, found);
        let all = std::iter::once(found).chain(before);
        let numbers = all.clone().filter_map(|part| part.path_condition);
        for number in numbers {
            if let Some(condition) = self.out.threads[t].condition_mut(number) {
                condition.kept = false;
            }
        }
        let conditions: Vec<ExprId> = all.map(|part| part.condition).collect();
        let parts = conditions.into_iter().reduce(|all, part| self.pool.and(part, all));
        parts.unwrap_or(found.condition)
    }

    /// Uninstrumented code faulted on what it was passed: the pointer nearest below the fault, as
    /// the place of the fault. `None` when no argument is near.
    pub(super) fn faulting_argument(&mut self, t: usize, fault: u64) -> Option<Scalar> {
        let (distance, pointer) = self.nearest_argument(t, fault)?;
        let distance = Scalar::constant(64, distance.into());
        Some(value::bin(&mut self.pool, BinOp::Add, pointer, distance))
    }

    /// What the program calls that which it passed to uninstrumented code that faulted on it.
    pub(super) fn argument_name(&mut self, t: usize, fault: u64) -> Option<String> {
        let (distance, _) = self.nearest_argument(t, fault)?;
        let size = self.threads[t].external_call().and_then(|call| size_by_name(call.name));
        self.object_name(t, fault - distance, size)
    }

    /// The pointer nearest below the fault among the arguments of the call in progress, and how far below it is.
    fn nearest_argument(&mut self, t: usize, fault: u64) -> Option<(u64, Scalar)> {
        let call = self.threads[t].external_call()?;
        let scalars: Vec<Scalar> = call.arguments.iter().filter_map(Value::scalar).collect();
        let mut best: Option<(u64, Scalar)> = None;
        for scalar in scalars.into_iter().filter(|scalar| scalar.width == 64) {
            let Some(value) = self.recorded_scalar(scalar) else { continue };
            let distance = fault.wrapping_sub(value as u64);
            // A length of zero is no pointer, but then neither it nor a null pointer is symbolic.
            let better = |(nearest, other): (u64, Scalar)| {
                (distance, scalar.as_expr().is_none()) < (nearest, other.as_expr().is_none())
            };
            if distance < NULL_ZONE && best.is_none_or(better) {
                best = Some((distance, scalar));
            }
        }
        best
    }

    /// An access of `size` bytes in the rest of a walk that ends in SIGSEGV or SIGBUS: is it the
    /// one?
    pub fn check_fault(
        &mut self,
        t: usize,
        pointer: Option<Scalar>,
        size: u64,
    ) -> Result<(), Stop> {
        if let Some(RecordedFailureKind::UseAfterFree { address }) = self.failure_kind(t) {
            return self.check_freed(t, pointer, size, address);
        }
        let Some((SIGSEGV | SIGBUS, fault)) = self.signal(t) else {
            return self.check_wild(t, pointer);
        };
        let Some(pointer) = pointer.filter(|_| self.threads[t].exhausted()) else { return Ok(()) };
        let hit = match self.recorded_scalar(pointer) {
            Some(address) => {
                let address = address as u64;
                let within = fault.wrapping_sub(address) < size.max(1);
                // The processor does not say which non-canonical address it was.
                within || (fault == 0 && self.is_no_address(address))
            }
            None => true,
        };
        if !hit {
            return Ok(());
        }
        let condition = self.outside_objects(pointer, fault);
        if condition.is_none() && self.is_unmapped(fault) {
            let accessed = self.accessed(t);
            self.touch_freed(t, fault, size, accessed);
        }
        Err(self.fail(t, FailureKind::Segfault, condition))
    }

    /// Can the processor have refused an access there without naming the address, because it is none?
    /// Made-up addresses of objects look alike, and are never refused.
    fn is_no_address(&self, address: u64) -> bool {
        let made_up = PRIVATE..PRIVATE + ((self.threads.len() as u64) << 40);
        (USER_END..=!USER_END).contains(&address) && !made_up.contains(&address)
    }

    /// A thread that walks on after the end of its log, because another one ended the run, did not
    /// get past a null pointer.
    fn check_wild(&mut self, t: usize, pointer: Option<Scalar>) -> Result<(), Stop> {
        let Some(pointer) = pointer.filter(|_| self.threads[t].exhausted()) else { return Ok(()) };
        match self.recorded_scalar(pointer) {
            Some(address) if address < u128::from(NULL_ZONE) => Err(Stop::EndOfLog),
            _ => Ok(()),
        }
    }

    /// "The address lies in no live object", when it is symbolic.
    fn outside_objects(&mut self, address: Scalar, fault: u64) -> Option<ExprId> {
        address.as_expr()?;
        let limit = Scalar::constant(64, u128::from(NULL_ZONE));
        let null = value::cmp(&mut self.pool, CmpOp::ULt, address, limit).as_expr();
        self.lifetime.freed.null = null;
        if fault < NULL_ZONE {
            return null;
        }
        let mut outside = Scalar::boolean(true);
        for (low, high) in self.live_ranges(fault) {
            let (low, high) = (Scalar::constant(64, low.into()), Scalar::constant(64, high.into()));
            let below = value::cmp(&mut self.pool, CmpOp::ULt, address, low);
            let above = value::cmp(&mut self.pool, CmpOp::ULe, high, address);
            let apart = value::or(&mut self.pool, below, above);
            outside = value::and(&mut self.pool, outside, apart);
        }
        outside.as_expr()
    }

    /// Where live objects are, neighbours joined, without the fault's own place.
    fn live_ranges(&self, fault: u64) -> Vec<(u64, u64)> {
        let heap = self.learned.heap.objects.iter().flat_map(HeapObject::live_parts);
        let stacks = self.learned.stacks.iter().flatten().copied();
        let mut ranges: Vec<(u64, u64)> =
            self.image.global_ranges().chain(heap).chain(stacks).collect();
        ranges.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (low, high) in ranges {
            match joined.last_mut() {
                Some((_, end))
                    if low <= end.saturating_add(NEIGHBOURS) && !(*end <= fault && fault < low) =>
                {
                    *end = (*end).max(high);
                }
                _ => joined.push((low, high)),
            }
        }
        joined.retain(|&(low, high)| !(low..high).contains(&fault));
        joined
    }

    /// A division in the rest of a walk that ends in SIGFPE.
    pub fn check_division(&mut self, t: usize, inst: &'r Instruction) -> Result<(), Stop> {
        let InstKind::Binary(op, dividend, divisor) = &inst.kind else { return Ok(()) };
        let signed = match op {
            BinaryOp::SDiv | BinaryOp::SRem => true,
            BinaryOp::UDiv | BinaryOp::URem => false,
            _ => return Ok(()),
        };
        let Some((SIGFPE, _)) = self.signal(t) else { return Ok(()) };
        let (dividend, divisor) = (self.scalar(t, *dividend), self.scalar(t, *divisor));
        let Some((dividend, divisor)) = dividend.zip(divisor) else { return Ok(()) };
        if !self.threads[t].exhausted() {
            return Ok(());
        }
        let zero = Scalar::constant(divisor.width, 0);
        let by_zero = value::cmp(&mut self.pool, CmpOp::Eq, divisor, zero);
        let overflows = match signed {
            true => {
                let ones = Scalar::constant(divisor.width, u128::MAX);
                let lowest = Scalar::constant(divisor.width, 1u128 << (divisor.width - 1));
                let a = value::cmp(&mut self.pool, CmpOp::Eq, divisor, ones);
                let b = value::cmp(&mut self.pool, CmpOp::Eq, dividend, lowest);
                value::and(&mut self.pool, a, b)
            }
            false => Scalar::boolean(false),
        };
        for trap in [by_zero, overflows] {
            if self.recorded_scalar(trap) == Some(1) {
                return Err(self.fail(t, FailureKind::DivisionByZero, trap.as_expr()));
            }
        }
        if self.recorded_scalar(by_zero).is_none() {
            let trap = value::or(&mut self.pool, by_zero, overflows);
            return Err(self.fail(t, FailureKind::DivisionByZero, trap.as_expr()));
        }
        Ok(())
    }

    /// `llvm.trap`.
    pub fn trap(&mut self, t: usize) -> Result<(), Stop> {
        if let Some((SIGILL | SIGTRAP | SIGABRT, _)) = self.signal(t) {
            let found = self.search(t);
            let condition = found.map(|found| self.take(t, found));
            return Err(self.fail(t, FailureKind::Abort, condition));
        }
        match self.threads[t].exhausted() {
            true => Err(Stop::EndOfLog),
            false => self.finish(t, Value::Absent),
        }
    }

    /// A call of `exit` and its like with a status that makes the run a failure.
    pub fn check_exit_call(
        &mut self,
        t: usize,
        name: &str,
        arguments: &[Value],
        operands: &[Operand],
    ) -> Result<(), Stop> {
        let exits = matches!(name, "exit" | "_exit" | "_Exit" | "quick_exit");
        let status = arguments.first().and_then(Value::scalar);
        match status {
            Some(status) if exits => self.exit_with(t, status, operands.first().copied()),
            _ => Ok(()),
        }
    }

    /// The return of `main`.
    pub fn check_exit_by_return(
        &mut self,
        t: usize,
        operand: Option<Operand>,
        value: &Value,
    ) -> Result<(), Stop> {
        let thread = &self.threads[t];
        let main = thread.code().is_some_and(|frame| frame.info.function.name == "main");
        match value.scalar() {
            Some(status) if main && thread.frames.len() == 2 => self.exit_with(t, status, operand),
            _ => Ok(()),
        }
    }

    fn exit_with(
        &mut self,
        t: usize,
        status: Scalar,
        operand: Option<Operand>,
    ) -> Result<(), Stop> {
        let Some(RecordedFailureKind::Exit { .. }) = self.failure_kind(t) else { return Ok(()) };
        let low = value::extract(&mut self.pool, status, 0, 8);
        let zero = value::cmp(&mut self.pool, CmpOp::Eq, low, Scalar::constant(8, 0));
        let nonzero = value::not(&mut self.pool, zero);
        if self.recorded_scalar(nonzero) == Some(0) {
            return Ok(());
        }
        let condition = match nonzero.as_expr() {
            Some(expr) => Some(expr),
            None => {
                let thread = &self.threads[t];
                let origin = thread
                    .code()
                    .zip(operand)
                    .and_then(|(frame, operand)| self.origin(thread, frame, operand, u64::MAX));
                let found = origin.or_else(|| self.search(t));
                found.map(|found| self.take(t, found))
            }
        };
        Err(self.fail(t, FailureKind::Exit, condition))
    }
}
