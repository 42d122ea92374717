//! Gates in real programs, closed and open.

use crate::common::{build, run};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::OnceLock;
use trace_format::layout::{REPORT_MAGIC, site_hash};

/// Every gate takes the slow path, and none sleeps.
const EVERY: &str = "random,1,1000000,0,100000";
/// About every tenth gate takes the slow path, and some sleep a little.
const SOME: &str = "random,5,100000,20,100000";

fn program() -> &'static Path {
    static PROGRAM: OnceLock<std::path::PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        build("gates.c", "gates", &["-mno-red-zone", "-rdynamic", "-Wall", "-Werror"])
    })
}

fn scenario(name: &str) -> Command {
    let mut command = Command::new(program());
    command.arg(name);
    command
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {} {complaints}", output.status);
    assert_eq!(complaints, "", "{command:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn gates_are_closed_unless_asked_for() {
    assert_eq!(output(&mut scenario("counts")), "t0 closed 0\n");
    assert_eq!(run(&mut scenario("counts")).stdout, "t0 closed 0\n");
    assert_eq!(output(&mut scenario("registers")), "kept closed\n");
}

#[test]
fn open_gates_are_counted_exactly() {
    for noise in [EVERY, SOME, "random,1,0,0,1"] {
        let text = output(scenario("counts").env("SYMBIOSIS_NOISE", noise));
        assert_eq!(text, "t0 open 1000\n", "{noise}");
        let traced = run(scenario("counts").env("SYMBIOSIS_NOISE", noise));
        assert_eq!(traced.stdout, "t0 open 1000\n", "{noise}");
        let text = output(scenario("threads").env("SYMBIOSIS_NOISE", noise));
        assert_eq!(text, "10000\n10001\n10002\n10003\n", "{noise}");
    }
}

#[test]
fn a_gate_keeps_all_registers() {
    for noise in [EVERY, SOME, "random,1,0,0,1"] {
        let text = output(scenario("registers").env("SYMBIOSIS_NOISE", noise));
        assert_eq!(text, "kept open\n", "{noise}");
    }
}

#[test]
fn the_gates_that_a_schedule_names_always_take_the_slow_path() {
    let text = output(scenario("counts").env("SYMBIOSIS_SCHEDULE", "symbiosis-schedule 1"));
    assert_eq!(text, "t0 open 1000\n");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("schedule");
    let schedule = "symbiosis-schedule 1\n\
        t0 > gates.c:pass:write:x @5\nt0 > gates.c:across:write:x @3 +\nt0 > $\n";
    fs_err::write(&file, schedule).unwrap();
    for (name, expected) in [("counts", "t0 open 1000\n"), ("registers", "kept open\n")] {
        let report = directory.path().join("report");
        let mut command = scenario(name);
        command.env("SYMBIOSIS_SCHEDULE", &file).env("SYMBIOSIS_REPORT", &report);
        assert_eq!(output(&mut command), expected);
        assert_eq!(fs_err::read(report).unwrap()[..8], REPORT_MAGIC.to_le_bytes());
    }
}

#[test]
fn debuggers_and_exceptions_find_the_caller_at_every_instruction_of_a_gate() {
    let text = output(scenario("unwinds").env("SYMBIOSIS_NOISE", EVERY));
    assert!(text.starts_with("many 0 of "), "{text}");
}

#[test]
fn noise_takes_its_time() {
    // Half of the 1000 gates sleep, for 50 microseconds on average.
    let started = std::time::Instant::now();
    output(scenario("counts").env("SYMBIOSIS_NOISE", "random,3,1000000,100,100000"));
    assert!(started.elapsed().as_millis() >= 15, "{:?}", started.elapsed());
}

#[test]
fn noise_is_rarer_behind_the_first_gates() {
    // Half of the 1000 gates are disturbed, every second time for 1 millisecond on average; or some forty of them.
    let time = |gates: u32| {
        let started = std::time::Instant::now();
        let noise = format!("random,3,500000,2000,{gates}");
        output(scenario("counts").env("SYMBIOSIS_NOISE", noise));
        started.elapsed()
    };
    assert!(time(1) * 2 < time(100_000));
}

#[test]
fn noise_ends_when_its_time_is_up() {
    // Half of the 1000 gates would sleep, for 5 milliseconds on average. To have the program takes time of its own.
    let mut counts = scenario("counts");
    let started = std::time::Instant::now();
    counts
        .env("SYMBIOSIS_NOISE", "random,3,1000000,10000,100000")
        .env("SYMBIOSIS_NOISE_TIME", "100");
    assert_eq!(output(&mut counts), "t0 open 1000\n");
    assert!(started.elapsed().as_millis() < 1_500, "{:?}", started.elapsed());
}

#[test]
fn a_forked_child_passes_its_gates_unhindered() {
    for noise in [EVERY, SOME] {
        let text = output(scenario("fork").env("SYMBIOSIS_NOISE", noise));
        assert_eq!(text, "child 7\nt0 open 100\n", "{noise}");
        let traced = run(scenario("fork").env("SYMBIOSIS_NOISE", noise));
        assert_eq!(traced.stdout, "child 7\nt0 open 100\n", "{noise}");
        assert_eq!(traced.names(), ["t0"]);
    }
}

#[test]
fn gates_in_signal_handlers_are_counted_too() {
    for noise in [EVERY, SOME, "random,1,1000,500,100000"] {
        assert_eq!(output(scenario("signals").env("SYMBIOSIS_NOISE", noise)), "exact\n", "{noise}");
    }
}

#[test]
fn gates_of_shared_libraries_are_opened_when_they_are_loaded() {
    let flags = ["-shared", "-fPIC", "-mno-red-zone"];
    let library = build("gated_library.c", "libgated.so", &flags);
    let mut command = scenario("library");
    assert_eq!(output(command.arg(&library)), "t0 closed 0\nt0 closed 0\n");
    let text = output(command.env("SYMBIOSIS_NOISE", EVERY));
    assert_eq!(text, "t0 open 25\nt0 open 45\n");
    let text = output(command.env("SYMBIOSIS_NOISE", SOME));
    assert_eq!(text, "t0 open 25\nt0 open 45\n");
}

#[test]
fn no_traces_stay_behind() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = scenario("traces");
    command.env("SYMBIOSIS_NOISE", SOME).env("SYMBIOSIS_PATIENCE", "900");
    command.env("SYMBIOSIS_REPORT", directory.path().join("report"));
    assert_eq!(run(&mut command).stdout, "0\n");
}

fn refusal(variable: &str, value: impl AsRef<std::ffi::OsStr>) -> String {
    let Output { status, stdout, stderr } =
        scenario("counts").env(variable, value).output().unwrap();
    assert_eq!((status.code(), stdout.len()), (Some(2), 0), "before main");
    String::from_utf8(stderr).unwrap()
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let text = refusal("SYMBIOSIS_SCHEDULE", "symbiosis-schedule 1\n\nt1 > $\n");
    assert!(text.starts_with("symbiosis: SYMBIOSIS_SCHEDULE: line 3: "), "{text}");
    let text = refusal("SYMBIOSIS_SCHEDULE", "/nonexistent/schedule");
    assert!(
        text.contains("/nonexistent/schedule: the schedule cannot be read (errno 2)"),
        "{text}"
    );
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("schedule");
    fs_err::write(&file, "symbiosis-schedule 1\nt0 ?\n").unwrap();
    let text = refusal("SYMBIOSIS_SCHEDULE", &file);
    assert!(text.contains(&format!("{}: line 2: ", file.display())), "{text}");
    assert!(refusal("SYMBIOSIS_NOISE", "loud").contains("random,SEED"));
    assert!(refusal("SYMBIOSIS_PATIENCE", "long").contains("milliseconds"));
}

#[test]
fn a_gate_that_is_no_nop_is_left_alone_and_reported() {
    // The hash stands in place of the `nop` too: no such byte sequence is a gate.
    let program = build("gates.c", "no-nop", &["-mno-red-zone", "-rdynamic", "-DBROKEN_GATE"]);
    let directory = tempfile::tempdir().unwrap();
    let report = directory.path().join("report");
    let mut command = Command::new(program);
    command.arg("counts").env("SYMBIOSIS_NOISE", EVERY).env("SYMBIOSIS_REPORT", &report);
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert!(status.success());
    assert_eq!(String::from_utf8_lossy(&stdout), "t0 closed 1000\n");
    let text = String::from_utf8(stderr).unwrap();
    assert!(text.starts_with("symbiosis: 1 of 3 gates cannot be opened"), "{text}");
    let report = fs_err::read(report).unwrap();
    assert!(report.windows(19).any(|part| part == b"gates cannot be ope"));
}

#[test]
fn code_that_cannot_be_made_writable_keeps_its_gates_closed() {
    use std::os::unix::process::CommandExt;
    let mut command = scenario("counts");
    command.env("SYMBIOSIS_NOISE", EVERY);
    // Memory is never both writable and executable from here on; kernels before 6.3 refuse.
    const PR_SET_MDWE: libc::c_int = 65;
    // SAFETY: a system call without pointers.
    unsafe {
        command.pre_exec(|| match libc::prctl(PR_SET_MDWE, 1, 0, 0, 0) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    let Ok(Output { status, stdout, stderr }) = command.output() else { return };
    let text = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{status} {text}");
    assert_eq!(String::from_utf8_lossy(&stdout), "t0 closed 0\n");
    assert!(text.contains("the code cannot be made writable (errno 13)"), "{text}");
}

#[test]
fn hashes_are_the_agreed_ones() {
    assert_eq!(site_hash(b""), 0xcbf2_9ce4_8422_2325);
    assert_eq!(site_hash(b"a"), 0xaf63_dc4c_8601_ec8c);
    // As in the programs.
    assert_eq!(site_hash(b"gates.c:pass:write:x"), 0xf5ae_88a6_f184_a99c);
    assert_eq!(site_hash(b"gates.c:across:write:x"), 0x228e_2bf7_8554_e130);
}
