//! Test frameworks: the run ends with an exit status long after the check that failed. The check is
//! the failure.
//!
//! * GoogleTest constructs a `testing::internal::AssertHelper` when a check fails (or is a mere
//!   `SUCCEED()`); its first argument behind the object is the kind of result, 0 for a success. φbug
//!   is the branch that led there.
//! * Catch2 calls `Catch::AssertionHandler::handleExpr` for every check, with the result inside the
//!   expression that it gets; where that is compiled with the test (`CATCH_CONFIG_MAIN`) and inlined, it is seen by what it
//!   calls. Which one failed is known from what the framework printed: the
//!   recording's message is its `FILE:LINE`. φbug is that the result is false (true for
//!   `REQUIRE_FALSE` and its like).

use super::reached::is_file;
use crate::engine::Engine;
use crate::memory;
use crate::recording::RecordedFailureKind;
use crate::thread::{Frame, Stop};
use crate::value::{self, Scalar, Value};
use model::{CmpOp, ExprId, FailureKind};

const GOOGLE_TEST: &str = "_ZN7testing8internal12AssertHelperC";
const CATCH: &str = "_ZN5Catch16AssertionHandler10handleExprERK";
/// What that calls, with the check as its first argument behind the object.
const CATCH_RUN: &str = "_ZN5Catch10RunContext10handleExprERK";
/// Where a check's result is in `ITransientExpression`, in bytes, behind the table of virtual
/// functions and another flag.
const RESULT: u64 = 9;
/// Where the flags of the check are in an `AssertionHandler`, and in the `AssertionInfo` that it begins with, in bytes, and
/// the one that stands for a check that the expression is false.
const FLAGS: u64 = 48;
const FALSE_TEST: u128 = 4;
/// How Catch2's own functions begin, whose frames may stand between the test and the report.
const CATCH_OWN: [&str; 2] = ["_ZN5Catch", "_ZNK5Catch"];
/// Files of the frameworks, by parts of their paths.
const FILES: [&str; 4] = ["/catch2/", "catch.hpp", "/gtest/", "/gmock/"];

fn number(arguments: &[Value], at: usize) -> Option<u128> {
    arguments.get(at).and_then(Value::scalar).and_then(Scalar::as_const)
}

impl Engine<'_> {
    /// A call of a function by name, in a run that ended with a status: is it about the check that
    /// failed? The first such call is the failure.
    pub fn check_report(&mut self, t: usize, name: &str, arguments: &[Value]) -> Result<(), Stop> {
        let google = name.starts_with(GOOGLE_TEST);
        let arguments = match arguments {
            [_, of_check @ ..] if name.starts_with(CATCH_RUN) => of_check,
            _ if google || name.starts_with(CATCH) => arguments,
            _ => return Ok(()),
        };
        let kind = self.limits.failure.as_ref().map(|failure| failure.kind);
        if !matches!(kind, Some(RecordedFailureKind::Exit { .. })) {
            return Ok(());
        }
        let failed = match google {
            true => number(arguments, 1).is_some_and(|kind| kind & 0xffff_ffff != 0),
            false => self.is_reported_check(t),
        };
        if !failed {
            return Ok(());
        }
        if !self.symbolic() {
            let reported = self.learned.reported.get_or_insert(t);
            *reported = (*reported).min(t);
            return Ok(());
        }
        if self.failing != Some(t) {
            return Ok(());
        }
        let result = if google { None } else { self.catch_result(t, arguments) };
        if result.is_some_and(|result| self.recorded_scalar(result) == Some(0)) {
            // A check on this line that held: another one failed.
            return Ok(());
        }
        let condition: Option<ExprId> = result.and_then(Scalar::as_expr).or_else(|| {
            let found = self.search(t);
            found.map(|found| self.take(t, found))
        });
        self.leave_framework(t);
        let stop = self.fail(t, FailureKind::Assertion, condition);
        self.out.strip_last_stack(t, &|file| FILES.iter().any(|part| file.contains(part)));
        Err(stop)
    }

    /// Is the thread at the check that the framework reported, or in a call from there?
    fn is_reported_check(&self, t: usize) -> bool {
        let message = self.limits.failure.as_ref().map(|failure| failure.message.as_str());
        let Some((file, line)) = message.and_then(|message| message.rsplit_once(':')) else {
            return false;
        };
        let Ok(line) = line.parse::<u32>() else { return false };
        let file = file.rsplit('/').next().unwrap_or_default();
        self.threads[t].frames.iter().rev().any(|frame| {
            let Frame::Code(frame) = frame else { return false };
            let debug = &frame.module.debug;
            let instruction = frame.info.function.instructions.get(frame.next.index());
            let mut next = instruction.and_then(|instruction| instruction.loc);
            // As in `Engine::chain`: the calls that were inlined, from the innermost.
            for _ in 0..debug.locations.len() {
                let Some(location) = next.and_then(|id| debug.locations.get(id.index())) else {
                    return false;
                };
                let scope = debug.scopes.get(location.scope.index());
                if location.line == line && scope.is_some_and(|scope| is_file(&scope.file, file)) {
                    return true;
                }
                next = location.inlined_at;
            }
            false
        })
    }

    /// "The check does not hold", when its arguments are where they are taken to be.
    fn catch_result(&mut self, t: usize, arguments: &[Value]) -> Option<Scalar> {
        let (handler, expression) = (number(arguments, 0)?, number(arguments, 1)?);
        let mut field = |address: u128, offset: u64, length: u64| {
            let address = self.lookup(t, address as u64)?.wrapping_add(offset);
            let bytes = self.memory.read(address, length);
            let known = |byte: &memory::MemoryByte| {
                !matches!(byte, memory::MemoryByte::Unknown | memory::MemoryByte::Fresh)
            };
            bytes.iter().all(known).then(|| memory::compose(&mut self.pool, &bytes))
        };
        let result = field(expression, RESULT, 1)?;
        let flags = field(handler, FLAGS, 4).and_then(Scalar::as_const).unwrap_or(0);
        let fails = value::cmp(&mut self.pool, CmpOp::Eq, result, Scalar::constant(8, 0));
        Some(match flags & FALSE_TEST {
            0 => fails,
            _ => value::not(&mut self.pool, fails),
        })
    }

    /// Takes the framework's own frames away, so that the failure is in the test.
    fn leave_framework(&mut self, t: usize) {
        let own = |frame: &Frame<'_>| match frame {
            Frame::Code(frame) => {
                let name = &frame.info.function.name;
                CATCH_OWN.iter().any(|begin| name.starts_with(begin))
            }
            Frame::External(_) => true,
        };
        let frames = &self.threads[t].frames;
        let Some(test) = frames.iter().rposition(|frame| !own(frame)) else { return };
        self.threads[t].frames.truncate(test + 1);
    }
}
