//! Did a run fail, as far as its raw files tell?

use super::Run;
use trace_format::{Failure, FailureKind, TraceError};

impl Run {
    /// Did the run as a whole fail? A program that recorded is judged by its trace, and by crashes,
    /// hangs and the like of all processes that it started: with what status they exit is between
    /// them and those who wait for them. Another command is judged by how it ended, because test
    /// suites start programs that are meant to fail.
    ///
    /// # Errors
    ///
    /// When the raw files are malformed.
    pub fn any_failed(&self) -> Result<bool, TraceError> {
        if !self.recorded {
            return Ok(self.manifest.timed_out || self.status() != 0);
        }
        if self.failed()? {
            return Ok(true);
        }
        for child in &self.children {
            if child.failure()?.is_some_and(|failure| failure.kind != FailureKind::Exit) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Was the run still at work when its time was up, and is that all that ended it? Nobody else failed then, either.
    ///
    /// # Errors
    ///
    /// When the raw files are malformed.
    pub fn was_at_work(&self) -> Result<bool, TraceError> {
        let only_ended = |run: &Self| -> Result<bool, TraceError> {
            let failure = run.failure()?;
            Ok(failure.is_none_or(|failure| failure.kind == FailureKind::Hang))
        };
        if !self.manifest.timed_out || self.manifest.still_running != Some(true) {
            return Ok(false);
        }
        for run in self.children.iter().chain(self.recorded.then_some(self)) {
            if !only_ended(run)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Did the run fail? Read from the raw files, for a run that may not be worth sealing.
    ///
    /// # Errors
    ///
    /// When the raw files are malformed.
    pub fn failed(&self) -> Result<bool, TraceError> {
        Ok(self.failure()?.is_some())
    }

    fn failure(&self) -> Result<Option<Failure>, TraceError> {
        let mut manifest = self.manifest.clone();
        trace_format::read_raw(&self.directory, &mut manifest)?;
        Ok(manifest.failure)
    }
}
