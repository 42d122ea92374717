//! `record --fail-at FILE:LINE`: the thread stopped where the line's code begins, which may be a few
//! instructions before the log says that its block was entered.

use crate::engine::Engine;
use crate::recording::RecordedFailureKind;
use crate::thread::Stop;
use ir::types::{BlockId, InstId};
use model::FailureKind;

/// Is `file` what the user called `named`: the same path, or one that ends with it?
pub(super) fn is_file(file: &str, named: &str) -> bool {
    let named = named.trim_start_matches("./");
    file.strip_suffix(named).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
}

impl<'r> Engine<'r> {
    /// The place that must not be reached, in the thread that reached it.
    fn forbidden(&self, t: usize) -> Option<(&'r str, u32)> {
        let failure = self.limits.failure.as_ref()?;
        if self.failing != Some(t) || failure.kind != RecordedFailureKind::Reached {
            return None;
        }
        let (file, line) = failure.message.rsplit_once(':')?;
        Some((file, line.parse().ok()?))
    }

    /// The line that must not be reached, when a thread reached it.
    pub(crate) fn reached_line(&self) -> Option<(&'r str, u32)> {
        self.failing.and_then(|t| self.forbidden(t))
    }

    /// Is the instruction of the current function code of this line?
    fn is_at(&self, t: usize, id: InstId, file: &str, line: u32) -> bool {
        let Some((info, _)) = self.current(t) else { return false };
        let debug = &self.image.module(info.module).debug;
        let instruction = info.function.instructions.get(id.index());
        let location = instruction.and_then(|instruction| instruction.loc);
        let location = location.and_then(|id| debug.locations.get(id.index()));
        location.filter(|location| location.line == line).is_some_and(|location| {
            let scope = debug.scopes.get(location.scope.index());
            scope.is_some_and(|scope| is_file(&scope.file, file))
        })
    }

    /// The instruction that comes next is of the line that must not be reached.
    pub fn check_reached(&mut self, t: usize, id: InstId) -> Result<(), Stop> {
        let Some((file, line)) = self.forbidden(t) else { return Ok(()) };
        if !self.threads[t].exhausted() || !self.is_at(t, id, file, line) {
            return Ok(());
        }
        if !self.symbolic() {
            return Err(Stop::EndOfLog);
        }
        let found = self.search(t);
        let condition = found.map(|found| self.take(t, found));
        Err(self.fail(t, FailureKind::User, condition))
    }

    /// The block among these that has code of the line that must not be reached, when the log of
    /// the thread that reached it is used up.
    pub fn forbidden_block(&self, t: usize, blocks: &[BlockId]) -> Option<BlockId> {
        let (file, line) = self.forbidden(t)?;
        if !self.threads[t].exhausted() {
            return None;
        }
        let (info, _) = self.current(t)?;
        blocks.iter().copied().find(|block| {
            let block = info.function.blocks.get(block.index());
            block.is_some_and(|block| block.instructions().any(|id| self.is_at(t, id, file, line)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::is_file;

    #[test]
    fn files_are_compared_from_their_ends() {
        assert!(is_file("/src/bank.c", "bank.c"));
        assert!(is_file("bank.c", "./bank.c"));
        assert!(is_file("lib/bank.c", "lib/bank.c"));
        assert!(!is_file("riverbank.c", "bank.c"));
    }
}
