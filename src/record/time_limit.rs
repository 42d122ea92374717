//! When a run is ended because its time is up, and whether it was still running then.
//!
//! A run whose threads all wait is stuck, or waits for something outside. One with a thread that ran in the
//! last moments may be on its way to its end: the time limit alone does not tell. So may be one with a thread that
//! would run if it got a processor, and one that nobody had a look at before, because the whole machine stood still.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use trace_format::Manifest;

/// For so long before the time is up it is watched whether threads run; for half of the time where that is less.
const WATCH: Duration = Duration::from_secs(1);
/// It is looked at no less often than so many times in a row, ...
const LOOKS: u32 = 4;
/// ... with so much time between, the last of them when the time is up already, if it has to be.
const STEP: Duration = Duration::from_millis(50);

/// The processes that the recorder ended because their time was up.
#[derive(Debug, Default)]
pub(super) struct Ended {
    pub(super) processes: Vec<u32>,
    /// Those that were still running; none where nobody looked.
    pub(super) ran: Option<BTreeSet<u32>>,
}

impl Ended {
    /// Says which processes were still running. `grew`: the one that was ended because it logged more than it may, which
    /// who waits does not do.
    pub(super) fn note_running(&mut self, limit: Option<TimeLimit>, grew: Option<u32>) {
        self.ran = match grew {
            Some(pid) => Some([pid].into()),
            None => limit.and_then(TimeLimit::ran),
        };
    }

    /// Notes in a process's manifest whether it was ended, and how it was then.
    pub(super) fn note(&self, pid: u32, manifest: &mut Manifest) {
        manifest.timed_out = self.processes.contains(&pid);
        let ran = self.ran.as_ref().filter(|_| manifest.timed_out);
        manifest.still_running = ran.map(|ran| ran.contains(&pid));
    }
}

/// How long the threads of each process have run, in nanoseconds.
type Times = BTreeMap<u32, u64>;

/// See the module.
pub(super) struct TimeLimit {
    time: Duration,
    deadline: Instant,
    /// A run that is still running gets its time once more.
    may_extend: bool,
    /// What the threads had run when the watching began, and how often was looked since.
    before: Option<(Times, u32)>,
    ran: Option<BTreeSet<u32>>,
}

impl TimeLimit {
    /// `slowed`: something that ends after `time` slows the run down. None for a time that never ends.
    pub(super) fn new(now: Instant, time: Duration, slowed: bool) -> Option<Self> {
        let deadline = now.checked_add(time)?;
        Some(Self { time, deadline, may_extend: slowed, before: None, ran: None })
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// How long until the time is up.
    pub(super) fn left(&self, now: Instant) -> Duration {
        self.deadline.saturating_duration_since(now)
    }

    /// The processes that were still running when the time was up; none where it was not, or the system does
    /// not tell.
    pub(super) fn ran(self) -> Option<BTreeSet<u32>> {
        self.ran
    }

    /// Is the time up? To be asked every now and then. `processes` gives the recorded ones.
    pub(super) fn is_up(&mut self, now: Instant, processes: &dyn Fn() -> Vec<u32>) -> bool {
        let left = self.left(now);
        if left > WATCH.min(self.time / 2) {
            return false;
        }
        let (before, looks) = self.before.get_or_insert_with(|| (times(&processes()), 0));
        *looks += 1;
        if !left.is_zero() {
            return false;
        }
        if *looks < LOOKS
            && let Some(later) = now.checked_add(STEP)
        {
            self.deadline = later;
            return false;
        }
        let processes = processes();
        let mut ran = ran_since(before, &times(&processes));
        if let Some(ran) = &mut ran {
            ran.extend(processes.into_iter().filter(|pid| would_run(*pid)));
        }
        if self.may_extend
            && ran.as_ref().is_some_and(|ran| !ran.is_empty())
            && let Some(later) = now.checked_add(self.time)
        {
            (self.may_extend, self.before, self.deadline) = (false, None, later);
            return false;
        }
        self.ran = ran;
        true
    }
}

/// Which processes ran between the two. One that only began has run. None where nothing is known of any.
fn ran_since(before: &Times, now: &Times) -> Option<BTreeSet<u32>> {
    let ran = now.iter().filter(|(pid, time)| before.get(pid) != Some(time)).map(|(pid, _)| *pid);
    (!now.is_empty()).then(|| ran.collect())
}

/// What the threads of processes have run; nothing of those of which the system does not tell.
fn times(processes: &[u32]) -> Times {
    processes.iter().filter_map(|&pid| Some((pid, time(pid)?))).collect()
}

/// Has the process a thread that waits for a processor, or for a disk?
fn would_run(pid: u32) -> bool {
    states(pid).any(|state| matches!(state.as_str(), "R" | "D"))
}

/// The states of a process's threads, a letter each, as `/proc` has them.
pub(super) fn states(pid: u32) -> impl Iterator<Item = String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let stats = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok());
    // The name before may have anything in it, parentheses and spaces too.
    stats.filter_map(|stat| {
        let behind = stat.rsplit_once(')')?.1;
        behind.split_ascii_whitespace().next().map(str::to_owned)
    })
}

fn time(pid: u32) -> Option<u64> {
    let mut sum: Option<u64> = None;
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        // A thread may have ended by now.
        let Ok(text) = std::fs::read_to_string(task.path().join("schedstat")) else { continue };
        let time = text.split_ascii_whitespace().next().and_then(|word| word.parse::<u64>().ok());
        sum = Some(sum.unwrap_or(0).wrapping_add(time?));
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::process::{Child, Command, Stdio};

    fn shell(script: &str) -> io::Result<Child> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    }

    /// Whether the process is said to run, and how often its time was given.
    fn watched(script: &str, slowed: bool) -> io::Result<(Option<bool>, u32)> {
        let time = Duration::from_millis(400);
        let mut child = shell(script)?;
        let pid = child.id();
        let start = Instant::now();
        let mut limit = TimeLimit::new(start, time, slowed).ok_or(io::ErrorKind::Other)?;
        while !limit.is_up(Instant::now(), &|| vec![pid]) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let times = (start.elapsed().as_secs_f64() / time.as_secs_f64()).round() as u32;
        child.kill()?;
        child.wait()?;
        Ok((limit.ran().map(|ran| ran.contains(&pid)), times))
    }

    /// Nobody looked whether its threads wait, but that it logged says it.
    #[test]
    fn a_process_that_logs_without_an_end_is_still_running() {
        let executable = trace_format::Executable { path: "a".to_owned(), build_id: None };
        let mut manifest = Manifest::new("1", Vec::new(), String::new(), executable);
        let mut ended = Ended { processes: vec![7], ran: None };
        ended.note_running(None, Some(7));
        ended.note(7, &mut manifest);
        assert_eq!((manifest.timed_out, manifest.still_running), (true, Some(true)));
        ended.note_running(None, None);
        ended.note(7, &mut manifest);
        assert_eq!((manifest.timed_out, manifest.still_running), (true, None));
    }

    #[test]
    fn a_process_that_computes_is_still_running() -> io::Result<()> {
        assert_eq!(watched("while :; do :; done", false)?, (Some(true), 1));
        Ok(())
    }

    /// Nobody has looked at the process when its time was up, as where the machine stood still: whether it waits
    /// is seen then.
    #[test]
    fn a_process_is_watched_before_it_is_said_to_wait() -> io::Result<()> {
        let mut child = shell("while :; do sleep 0.01; done")?;
        let pid = child.id();
        let time = Duration::from_secs(5);
        let long_ago = Instant::now().checked_sub(2 * time).ok_or(io::ErrorKind::Other)?;
        let mut limit = TimeLimit::new(long_ago, time, false).ok_or(io::ErrorKind::Other)?;
        let mut looks = 1;
        while !limit.is_up(Instant::now(), &|| vec![pid]) {
            looks += 1;
            std::thread::sleep(limit.left(Instant::now()));
        }
        child.kill()?;
        child.wait()?;
        assert_eq!(looks, LOOKS);
        assert_eq!(limit.ran().map(|ran| ran.contains(&pid)), Some(true));
        Ok(())
    }

    #[test]
    fn a_thread_that_waits_for_a_processor_would_run() -> io::Result<()> {
        for (script, runs) in [("while :; do :; done", true), ("read line", false)] {
            let mut child = shell(script)?;
            std::thread::sleep(Duration::from_millis(100));
            let seen = would_run(child.id());
            child.kill()?;
            child.wait()?;
            assert_eq!(seen, runs, "{script}");
        }
        Ok(())
    }

    #[test]
    fn a_process_that_waits_is_not_and_gets_no_more_time() -> io::Result<()> {
        assert_eq!(watched("read line", true)?, (Some(false), 1));
        Ok(())
    }

    #[test]
    fn a_process_that_was_slowed_down_gets_its_time_once_more() -> io::Result<()> {
        assert_eq!(watched("while :; do :; done", true)?, (Some(true), 2));
        Ok(())
    }
}
