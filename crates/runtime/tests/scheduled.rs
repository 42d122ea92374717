//! Real programs under the scheduler.

use crate::common::{build, run};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use trace_format::FailureKind;
use trace_format::layout::{
    DEADLOCK_STATUS, ENDED_DEADLOCK, ENDED_FAR, LeftReason, Report, RuntimeEvent, site_hash,
};

const WORK: &str = "scheduled.c:work:write:x";

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let define = |name: &str, site: &str| format!("-D{name}={:#x}", site_hash(site.as_bytes()));
        let (work, spin) = (define("WORK", WORK), define("SPIN", "scheduled.c:spin:read:flag"));
        build("scheduled.c", "scheduled", &["-mno-red-zone", "-rdynamic", &work, &spin])
    })
}

fn command(scenario: &str, variable: &str, value: &str) -> Command {
    let mut command = Command::new(program());
    command.arg(scenario).env(variable, value);
    command
}

/// A schedule whose sites may be `W` for the gate of most scenarios.
fn schedule(turns: &str) -> String {
    format!("symbiosis-schedule 1\n{}\n", turns.replace("W", WORK))
}

/// What is in a report's file.
struct Said {
    lines: u32,
    followed: u32,
    left_line: u32,
    left_reason: LeftReason,
    deadlock: bool,
    far: bool,
    switches: u64,
    steps: u64,
    message: String,
}

fn read_report(path: &Path) -> Said {
    let bytes = fs_err::read(path).unwrap();
    assert!(bytes.len() >= size_of::<Report>());
    // SAFETY: the structure is made of integers, and there are enough bytes.
    let report = unsafe { bytes.as_ptr().cast::<Report>().read_unaligned() };
    let message = &report.message[..report.message_length as usize];
    Said {
        lines: report.lines,
        followed: report.followed,
        left_line: report.left_line,
        left_reason: LeftReason::from_code(report.left_reason).unwrap(),
        deadlock: report.ended == ENDED_DEADLOCK,
        far: report.ended == ENDED_FAR,
        switches: report.switches,
        steps: report.steps,
        message: String::from_utf8_lossy(message).into_owned(),
    }
}

/// Runs a scenario under a schedule.
fn follow(scenario: &str, turns: &str) -> (Output, Said) {
    let directory = tempfile::tempdir().unwrap();
    let report = directory.path().join("report");
    let mut command = command(scenario, "SYMBIOSIS_SCHEDULE", &schedule(turns));
    command.env("SYMBIOSIS_REPORT", &report).env("SYMBIOSIS_PATIENCE", "700");
    let begin = Instant::now();
    let output = command.output().unwrap();
    assert!(begin.elapsed() < Duration::from_secs(30), "{scenario} {turns}");
    (output, read_report(&report))
}

/// What a scenario prints under a schedule that it follows to the end.
fn followed(scenario: &str, turns: &str) -> String {
    let (output, said) = follow(scenario, turns);
    assert_eq!(said.left_line, 0, "{scenario} {turns}: {}", said.message);
    assert_eq!(
        (said.followed, said.lines),
        (said.lines, turns.lines().filter(is_turn).count() as u32)
    );
    text(&output)
}

fn is_turn(line: &&str) -> bool {
    line.starts_with('t')
}

fn text(output: &Output) -> String {
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} {complaints}", output.status);
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// What a scenario prints under a schedule that is left at this line, for this reason.
fn left(scenario: &str, turns: &str, line: u32, reason: LeftReason, message: &str) -> String {
    let (output, said) = follow(scenario, turns);
    assert_eq!((said.left_line, said.left_reason), (line, reason), "{}", said.message);
    assert_eq!(said.message.replace(WORK, "W"), message);
    text(&output)
}

/// What every scenario prints when its threads run one after the other.
const SERIAL: [(&str, &str); 17] = [
    ("steps", "111112222233333"),
    ("race", "\n400"),
    ("locks", "111111222222333333"),
    ("signals", "wwwsc1c2c3"),
    ("broadcast", "wwwsc1c2c3"),
    ("semaphores", "p1p2p3www"),
    ("barrier", "123|312|231|"),
    ("rwlock", "(1(3))(4)(2)"),
    ("spinlock", "112233"),
    ("once", "oO123"),
    ("timed", "1:110 sem:-1:1 2:110 lock:110 3:110 join:0 join:0 join:0"),
    ("sleeps", "1m213M23"),
    ("cancel", "cleaned cleaned cleaned 1 1 1 0"),
    ("embrace", "12"),
    ("spins", "12"),
    ("family", "121020"),
    ("leaves", "1"),
];

#[test]
fn threads_run_one_after_the_other_without_turns() {
    for (scenario, expected) in SERIAL {
        assert_eq!(followed(scenario, ""), expected, "{scenario}");
    }
}

#[test]
fn sleeps_take_no_time_and_wait_for_each_other_all_the_same() {
    let begin = Instant::now();
    assert_eq!(followed("sleeps", ""), "1m213M23");
    assert!(begin.elapsed() < Duration::from_secs(5));
}

#[test]
fn the_same_schedule_gives_the_same_run_every_time() {
    let turns = "t0.2 > W @3\nt0.3 > W @2\nt0.1 > $\nt0.3 > W @3 +\nt0.2 > $";
    for _ in 0..100 {
        assert_eq!(followed("steps", turns), "223111113322233");
    }
}

#[test]
fn the_same_seed_gives_the_same_run_every_time() {
    for scenario in ["race", "locks", "signals", "semaphores", "barrier", "family", "many"] {
        let once = |seed: u32| {
            let noise = format!("pct,{seed},3,60");
            text(&command(scenario, "SYMBIOSIS_NOISE", &noise).output().unwrap())
        };
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..10 {
            let first = once(seed);
            for _ in 0..5 {
                assert_eq!(once(seed), first, "{scenario} {seed}");
            }
            seen.insert(first);
        }
        assert!(seen.len() > 1, "{scenario} never changes");
    }
}

#[test]
fn all_scenarios_end_under_random_priorities() {
    for (scenario, serial) in SERIAL {
        for seed in 0..10 {
            let noise = format!("pct,{seed},4,50");
            let output = command(scenario, "SYMBIOSIS_NOISE", &noise).output().unwrap();
            if scenario == "embrace" && !output.status.success() {
                assert_eq!(output.status.code(), Some(DEADLOCK_STATUS));
                continue;
            }
            let got = text(&output);
            assert_eq!(got.len() > 1, serial.len() > 1, "{scenario} {seed} {got}");
        }
    }
}

#[test]
fn locks_are_taken_in_the_schedules_order() {
    assert_eq!(followed("locks", "t0.3 > $\nt0.1 > $\nt0.2 > $"), "333333111111222222");
    let turns = "t0.2 > ~mutex_lock @2\nt0.1 > ~mutex_lock @2\nt0.3 > $";
    assert_eq!(followed("locks", turns), "221133333311112222");
    let turns = "t0.2 > W @2\nt0.1 > W";
    let message = "t0.1 waits for a mutex that t0.2 holds on the way to W";
    assert_eq!(left("locks", turns, 3, LeftReason::Blocked, message), "221111112222333333");
}

#[test]
fn the_schedule_says_who_gets_a_signal_and_whose_wait_times_out() {
    let turns = "t0.3 > ~wake\nt0.2 > ~wake\nt0.1 > ~wake\nt0 > ~join\nt0.3 > $\nt0.1 > $";
    assert_eq!(followed("signals", turns), "wwwsc3c1c2");
    assert_eq!(followed("broadcast", turns), "wwwsc3c1c2");
    let message = "t0.3 waits for a signal of a condition variable on the way to ~relock";
    assert_eq!(left("signals", "t0.3 > ~relock", 2, LeftReason::Blocked, message), "wwwsc1c2c3");
    // The first thread waits longest, and gives up first.
    let printed = followed("timed", "t0.1 > ~wake +\nt0.1 > $");
    assert_eq!(&printed[..6], "3:110 ");
}

#[test]
fn failures_are_brought_about_by_their_schedule_alone() {
    let turns = "t0.1 > W @2\nt0.2 > W @2\nt0.1 !";
    for _ in 0..20 {
        let (output, said) = follow("failure", turns);
        assert!(!output.status.success());
        assert!(String::from_utf8_lossy(&output.stderr).contains("x != 2"));
        assert_eq!((said.left_line, said.followed, said.lines), (0, 3, 3), "{}", said.message);
    }
    let message = "t0.1 ended before it got to the failure";
    assert_eq!(left("failure", "t0.1 !", 2, LeftReason::Ended, message), "passed");
    let turns = "t0.1 > W @2\nt0.2 > W @2\nt0.2 > $";
    assert_eq!(followed("failure", turns), "passed");
    let (output, said) = follow("failure", "t0.1 > W @2\nt0.2 > W @2\nt0.1 > W @3");
    assert!(!output.status.success());
    assert_eq!((said.left_line, said.left_reason), (4, LeftReason::Exited), "{}", said.message);
}

#[test]
fn behind_the_last_turn_others_are_held() {
    // Without holding, t0.2 would go on as soon as t0 waits for it.
    let turns = "end hold\nt0.1 > W @2\nt0.2 > W @2\nt0.1 > W @2 +";
    let (output, said) = follow("failure", turns);
    assert!(!output.status.success(), "{}", said.message);
    assert_eq!(
        followed("steps", "end hold\nt0.2 > W @2\nt0.3 > W @3\nt0.2 > W @4"),
        "233222233311111"
    );
}

#[test]
fn a_wrong_schedule_never_hangs() {
    let cases = [
        ("steps", "t0.9 > $", LeftReason::Absent, "t0.9 was never created to get to its end"),
        ("steps", "t0.1 > W @9", LeftReason::Ended, "t0.1 ended before it got to W @9"),
        ("steps", "t0.1.1 > W", LeftReason::Absent, "t0.1.1 was never created to get to W"),
        ("spins", "t0.1 > $", LeftReason::Late, "t0.1 took too long to get to its end"),
        ("cancel", "t0.3 > ~wake", LeftReason::Late, "t0.3 took too long to get to ~wake"),
    ];
    for (scenario, turns, reason, message) in cases {
        let serial = SERIAL.iter().find(|entry| entry.0 == scenario).unwrap().1;
        let printed = left(scenario, turns, 2, reason, message);
        assert_eq!(printed.len(), serial.len(), "{scenario}: {printed}");
    }
    let turns = "t0.1 > $\nt0.2 > $\nt0.1 > W @2\nt0.2 > W @2\n".repeat(20);
    let (output, said) = follow("spins", &turns);
    assert_eq!(text(&output).len(), 2);
    assert_eq!((said.left_line, said.left_reason), (2, LeftReason::Late));
}

#[test]
fn deadlocks_are_reported_with_what_everybody_waits_for() {
    let turns = "t0.1 > W +\nt0.2 > W +";
    let message = "deadlock: t0 waits for the end of t0.1; t0.1 waits for a mutex that t0.2 \
        holds; t0.2 waits for a mutex that t0.1 holds";
    let (output, said) = follow("embrace", turns);
    assert_eq!(output.status.code(), Some(DEADLOCK_STATUS));
    assert!(said.deadlock);
    assert_eq!((said.followed, &said.message[..]), (2, message));

    let mut command = command("embrace", "SYMBIOSIS_SCHEDULE", &schedule(turns));
    let traced = run(&mut command);
    assert_eq!(traced.failure().kind, FailureKind::Hang);
    assert_eq!(traced.failure().thread_serial, None);
    assert_eq!(traced.failure().message, message);
}

#[test]
fn a_run_that_goes_on_behind_the_schedule_is_ended_where_that_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let report = directory.path().join("report");
    let run_with = |tail: &str| {
        let mut command = command("race", "SYMBIOSIS_SCHEDULE", &schedule("t0.1 > W +"));
        command.env("SYMBIOSIS_REPORT", &report).env("SYMBIOSIS_TAIL_GATES", tail);
        (command.output().unwrap(), read_report(&report))
    };
    let (output, said) = run_with("1000000");
    assert_eq!((text(&output).trim(), said.far), ("400", false));
    let (output, said) = run_with("100");
    assert_eq!((&text(&output)[..], said.far, said.deadlock), ("", true, false));
    assert_eq!((said.followed, said.left_line), (1, 0), "{}", said.message);
}

#[test]
fn a_thread_that_waits_in_the_kernel_loses_the_turn() {
    assert_eq!(followed("pipes", ""), "wr!");
    let turns = "t0.1 > W @2\nt0.2 > $";
    let message = "t0.1 waits or runs outside of what the scheduler controls on the way to W @2";
    assert_eq!(left("pipes", turns, 2, LeftReason::Blocked, message), "wr!");
    assert_eq!(followed("pipes", "t0.2 > $\nt0.1 > W @2 +"), "wr!");
}

#[test]
fn signal_handlers_and_forked_children_are_left_alone() {
    assert_eq!(followed("handler", ""), "posted");
    assert_eq!(followed("forks", ""), "11111 5");
    let traced = run(&mut command("forks", "SYMBIOSIS_SCHEDULE", &schedule("")));
    assert_eq!(traced.stdout.trim_end(), "11111 5");
    assert_eq!(traced.names(), ["t0", "t0.1"]);
}

#[test]
fn the_cxx_library_is_scheduled_too_and_believes_in_virtual_time() {
    let program = build("scheduled.cpp", "scheduled-cpp", &["-std=c++20"]);
    let expected = "4 42\n6 3\n0 1\n0\n2 1\n";
    for noise in 0..6 {
        let mut command = Command::new(&program);
        match noise {
            0 => command.env("SYMBIOSIS_SCHEDULE", schedule("")),
            seed => command.env("SYMBIOSIS_NOISE", format!("pct,{seed},5,60")),
        };
        let begin = Instant::now();
        let output = command.output().unwrap();
        assert!(begin.elapsed() < Duration::from_secs(30));
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{noise}");
    }
}

#[test]
fn many_threads_take_turns() {
    let printed = followed("many", "t0.64 > $\nt0.1 > W @3\nt0.33 > W @2\nt0.32 > $");
    assert!(printed.starts_with("646464646411333232323232333333333434"), "{printed}");
}

#[test]
fn the_order_of_a_recorded_run_covers_all_points() {
    let turns = "t0.2 > W @3\nt0.3 > W @2\nt0.1 > $";
    let traced = run(&mut command("locks", "SYMBIOSIS_SCHEDULE", &schedule(turns)));
    assert_eq!(traced.names(), ["t0", "t0.1", "t0.2", "t0.3"]);
    let bytes = fs_err::read(traced.directory.path().join("order.bin")).unwrap();
    let words: Vec<u64> =
        bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
    let records: Vec<&[u64]> = words.chunks_exact(3).take_while(|record| record[0] != 0).collect();
    let mut last = [[0; 2]; 5];
    for pair in records.windows(2) {
        assert!(pair[0][0] != pair[1][0] || pair[0] == pair[1], "two turns in a row: {records:?}");
    }
    for record in &records {
        let before = &mut last[record[0] as usize];
        assert!(before[0] <= record[1] && before[1] <= record[2], "{records:?}");
        *before = [record[1], record[2]];
    }
    for (serial, thread) in [(2, "t0.1"), (3, "t0.2"), (4, "t0.3")] {
        let calls = traced.calls(thread, 0, RuntimeEvent::SyncBegin).len() as u64;
        // Its locks and unlocks, its start and its end; two gates for every lock.
        assert_eq!(last[serial], [calls, calls + 2], "{thread}");
    }
}

#[test]
fn marks_are_announced_to_a_debugger() {
    let text = "symbiosis-schedule 1\nmark 7 t0.2 W @3\nt0.3 > $\n".replace('W', WORK);
    let mut gdb = Command::new("gdb");
    gdb.args(["-q", "-batch", "-nx", "-ex", "set startup-with-shell off", "-ex"]);
    gdb.arg("break symbiosis_mark").args(["-ex", "run", "-ex", "printf \"%d %s\\n\", $rdi, $rsi"]);
    gdb.args(["-ex", "continue", "--args"]).arg(program()).arg("steps");
    let output = gdb.env("SYMBIOSIS_SCHEDULE", text).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("7 t0.2\n"), "{said}");
    assert!(said.contains("exited normally"), "{said}");
}

#[test]
fn what_a_run_takes_is_counted() {
    let (_, said) = follow("steps", "");
    // Threads 1 to 3: start, five gates, end; the initial one: start, three creations and joins.
    assert_eq!(said.steps, 3 * 7 + 7);
    assert_eq!(said.switches, 4);
}
