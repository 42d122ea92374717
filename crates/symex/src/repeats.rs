//! Rounds of waiting loops that the log counts (`ir::repeats`). They are as the round before, which was
//! walked, but for counters; no events are made for them.

use crate::engine::Engine;
use crate::image::FunctionInfo;
use crate::memory::{self, MemoryByte};
use crate::thread::{Entry, Stop, contradiction};
use crate::value::{self, Scalar};
use ir::repeats::{Cell, Counter};
use ir::types::{BlockId, Operand};
use model::BinOp;
use trace_format::layout::RuntimeEvent;

/// A round: since its loop's header was entered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    header: BlockId,
    /// How long [`crate::ThreadReport::path`] was then.
    path: usize,
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
        let rounds = &info.plan.repeats;
        let Some(frame) = self.threads[t].code_mut().filter(|_| !rounds.is_empty()) else {
            return Ok(());
        };
        let round = frame.round.map(|round| round.header);
        let Some(waiting) = rounds.get(&block) else {
            let within = round.and_then(|header| rounds.get(&header));
            if !within.is_some_and(|waiting| waiting.blocks.contains(&block)) {
                frame.round = None;
            }
            return Ok(());
        };
        if round == Some(block) {
            // No reading is taken here: one that comes next was taken later.
            self.threads[t].end_region();
            let mut counted = false;
            while self.threads[t].peek()? == Some(Entry::Runtime(RuntimeEvent::Repeat)) {
                if self.repeat_round(t, block, &waiting.counters)? == 0 {
                    // A handler that comes next and has no such mark ran in a later call.
                    self.handle_late_signals(t)?;
                    break;
                }
                if std::mem::replace(&mut counted, true) {
                    return contradiction("the same rounds are counted twice");
                }
            }
        }
        let path = self.threads[t].report.path.len();
        if let Some(frame) = self.threads[t].code_mut() {
            frame.round = Some(Round { header: block, path });
        }
        Ok(())
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
        let round = self.threads[t].code().and_then(|frame| frame.round);
        let Some(Round { path, .. }) = round.filter(|round| round.header == header) else {
            return contradiction(format!("rounds are counted before {header} had any"));
        };
        self.threads[t].advance();
        self.stamp(t, tsc);
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
