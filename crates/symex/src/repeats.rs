//! Rounds of waiting loops that the log counts (`ir::repeats`): they have the log of the round before.
//!
//! Where it is certain that such a round leaves all as it was, but for counters, it is not walked, and no
//! events are made for it. Otherwise the walk goes back in the log, and does the round again as often as it
//! is counted; its time stamps are those of the first time and say nothing. Once such a round was followed by
//! another and has changed nothing, so that it was left out ([`crate::idle`]), all that are left
//! would be, too: state and log are the same. A survey, which makes no events, sees for itself whether the
//! state is.

use crate::engine::Engine;
use crate::idle::State;
use crate::image::FunctionInfo;
use crate::memory::{self, MemoryByte};
use crate::thread::{Entry, Stop, contradiction};
use crate::value::{self, Scalar};
use ir::repeats::{Cell, Counter, WaitingLoop};
use ir::types::{BlockId, Operand};
use model::BinOp;
use trace_format::layout::RuntimeEvent;

/// A round: since its loop's header was entered.
pub(crate) struct Round {
    header: BlockId,
    /// How long [`crate::ThreadReport::path`] was then.
    path: usize,
    /// The place in the log, where the loop's rounds may be walked again.
    mark: Option<u64>,
    /// How this goes on.
    again: Option<Again>,
}

/// Rounds with the same log are walked again.
struct Again {
    /// How many were, this one included.
    walked: u64,
    /// How many are left.
    left: u64,
    /// In a survey: what the thread had when this one began.
    before: Option<State>,
}

impl<'r> Engine<'r> {
    /// A block was entered and its phis have their values. Where that ends a waiting loop's round, a region
    /// ended, and the log may count more rounds.
    pub fn pass_round(
        &mut self,
        t: usize,
        info: &'r FunctionInfo<'r>,
        block: BlockId,
    ) -> Result<(), Stop> {
        let loops = &info.plan.repeats;
        let Some(frame) = self.threads[t].code_mut().filter(|_| !loops.is_empty()) else {
            return Ok(());
        };
        let header = frame.round.as_ref().map(|round| round.header);
        let Some(waiting) = loops.get(&block) else {
            let within = header.and_then(|header| loops.get(&header));
            if !within.is_some_and(|waiting| waiting.blocks.contains(&block)) {
                self.leave_rounds(t);
            }
            return Ok(());
        };
        if header == Some(block) {
            // No reading is taken here: one that comes next was taken later.
            self.threads[t].end_region();
            let mut counted = false;
            while self.threads[t].peek()? == Some(Entry::Runtime(RuntimeEvent::Repeat)) {
                if !waiting.certain && self.walk_again(t, info, block, waiting)? {
                    return Ok(());
                }
                if self.repeat_round(t, block, &waiting.counters)? == 0 {
                    // A handler that comes next and has no such mark ran in a later call.
                    self.handle_late_signals(t, 0)?;
                    break;
                }
                if std::mem::replace(&mut counted, true) {
                    return contradiction("the same rounds are counted twice");
                }
            }
        }
        let thread = &mut self.threads[t];
        let path = thread.report.path.len();
        let mark = (!waiting.certain).then(|| thread.mark());
        if let Some(frame) = thread.code_mut() {
            frame.round = Some(Round { header: block, path, mark, again: None });
        }
        Ok(())
    }

    /// The thread is in no waiting loop of its innermost function any more.
    fn leave_rounds(&mut self, t: usize) {
        let thread = &mut self.threads[t];
        let round = thread.code_mut().and_then(|frame| frame.round.take());
        let Some(round) = round.filter(|round| round.mark.is_some()) else { return };
        thread.unmark();
        if round.again.is_some_and(|again| again.before.is_some()) {
            self.memory.trail = None;
        }
    }

    /// A count of rounds comes next, of which nothing is certain: goes back to do one of them. False when
    /// none has to be walked any more.
    fn walk_again(
        &mut self,
        t: usize,
        info: &'r FunctionInfo<'r>,
        header: BlockId,
        waiting: &WaitingLoop,
    ) -> Result<bool, Stop> {
        let times = self.threads[t].peek_word(0).ok_or(Stop::EndOfLog)?;
        if times == 0 {
            return Ok(false);
        }
        let round = self.threads[t].code_mut().and_then(|frame| frame.round.take());
        let Some(mut round) = round.filter(|round| round.header == header) else {
            return contradiction(format!("rounds are counted before {header} had any"));
        };
        let Again { walked, mut left, before } =
            round.again.take().unwrap_or(Again { walked: 0, left: times, before: None });
        // The first one that is walked again is the first that follows one with the same log.
        let settled = match self.symbolic() {
            true => walked > 1 && self.has_left_out(t, header),
            false => before.is_some_and(|before| self.is_unchanged(t, info, &before, waiting)),
        };
        if settled && left > 0 {
            for counter in &waiting.counters {
                self.count_on(t, counter, left);
            }
            let report = &mut self.threads[t].report;
            report.repeated_rounds = report.repeated_rounds.saturating_add(left);
            if self.options.keep_path {
                let path = report.path.get(round.path..).unwrap_or_default().to_vec();
                (0..left).for_each(|_| report.path.extend_from_slice(&path));
            }
            left = 0;
        }
        if left == 0 {
            self.threads[t].repeating = false;
            if let Some(frame) = self.threads[t].code_mut() {
                frame.round = Some(round);
            }
            return Ok(false);
        }
        if !round.mark.is_some_and(|mark| self.threads[t].go_back(mark)) {
            return contradiction("the rounds that are counted are not known");
        }
        let before = match self.symbolic() {
            true => None,
            false => Some(self.watch_memory(t, info, waiting)),
        };
        let thread = &mut self.threads[t];
        thread.repeating = true;
        round.path = thread.report.path.len();
        round.again = Some(Again { walked: walked + 1, left: left - 1, before });
        if let Some(frame) = thread.code_mut() {
            frame.round = Some(round);
        }
        Ok(true)
    }

    /// Takes a count of rounds, and gives it.
    fn repeat_round(
        &mut self,
        t: usize,
        header: BlockId,
        counters: &[Counter],
    ) -> Result<u64, Stop> {
        let words = self.threads[t].words(2)?;
        let [times, tsc] = words[..] else { return Err(Stop::EndOfLog) };
        let round = self.threads[t].code().and_then(|frame| frame.round.as_ref());
        let Some(round) = round.filter(|round| round.header == header) else {
            return contradiction(format!("rounds are counted before {header} had any"));
        };
        let (path, certain) = (round.path, round.mark.is_none());
        self.threads[t].advance();
        let before = self.threads[t].last_stamp;
        self.stamp(t, tsc);
        let thread = &mut self.threads[t];
        let since = if thread.waited.1 == before { thread.waited.0 } else { before };
        thread.waited = (since, thread.last_stamp);
        if !certain {
            return Ok(times);
        }
        for counter in counters {
            self.count_on(t, counter, times);
        }
        let own = self.threads[t].code().map(|frame| {
            let module = self.recording.modules.get(frame.info.module);
            module.map_or(0, |module| module.base) + frame.info.id.0
        });
        let report = &mut self.threads[t].report;
        report.repeated_rounds = report.repeated_rounds.saturating_add(times);
        if self.options.keep_path {
            // A handler that ran before the round is walked in it, before the next entry of the path.
            let round = report.path.get(path..).unwrap_or_default().iter().copied();
            let round: Vec<_> = round.filter(|&(function, _)| Some(function) == own).collect();
            (0..times).for_each(|_| report.path.extend_from_slice(&round));
        }
        Ok(times)
    }

    /// The counters of the loop that begins at this header, while rounds of it are walked again.
    pub fn counting(&self, t: usize, info: &'r FunctionInfo<'r>) -> Option<&'r WaitingLoop> {
        let round = self.threads[t].code()?.round.as_ref()?;
        let waiting = info.plan.repeats.get(&round.header)?;
        (round.again.is_some() && !waiting.counters.is_empty()).then_some(waiting)
    }

    /// Where the counters are that are in memory: address and size.
    pub fn counted_bytes(&mut self, t: usize, counters: &[Counter]) -> Vec<(u64, u64)> {
        let module = self.module(t);
        let mut bytes = Vec::new();
        for counter in counters {
            if let Cell::Slot(id) = counter.cell {
                let address = self.scalar(t, Operand::Inst(id));
                let address = self.address(t, address);
                bytes.extend(address.map(|address| (address, module.store_size(counter.ty))));
            }
        }
        bytes
    }

    /// What a counter holds after so many rounds more.
    fn count_on(&mut self, t: usize, counter: &Counter, times: u64) {
        let module = self.module(t);
        let Some(bits) = module.scalar_bits(counter.ty) else { return };
        let more = u128::from(times.wrapping_mul(counter.step as u64));
        let more = Scalar::constant(bits, more);
        match counter.cell {
            Cell::Phi(id) => {
                let thread = &mut self.threads[t];
                let register = thread.code_mut().and_then(|it| it.registers.get_mut(id.index()));
                if let Some(register) = register
                    && let Some(before) = register.scalar()
                {
                    *register = value::bin(&mut self.pool, BinOp::Add, before, more).into();
                }
            }
            Cell::Slot(id) => {
                let address = self.scalar(t, Operand::Inst(id));
                let Some(address) = self.address(t, address) else { return };
                let size = module.store_size(counter.ty);
                let bytes = self.memory.read(address, size);
                let unknown =
                    |byte: &MemoryByte| matches!(byte, MemoryByte::Unknown | MemoryByte::Fresh);
                if bytes.iter().any(unknown) {
                    return;
                }
                let before = memory::compose(&mut self.pool, &bytes);
                let before = value::resize(&mut self.pool, before, bits, false);
                let after = value::bin(&mut self.pool, BinOp::Add, before, more);
                let bytes = memory::decompose(&mut self.pool, after, size);
                self.memory.write(address, &bytes);
            }
        }
    }
}
