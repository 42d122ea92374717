//! The start: before any constructor of the program, or at the first registration.

use crate::allocator;
use crate::avoid;
use crate::children;
use crate::exceptions;
use crate::exits;
use crate::fail_at;
use crate::files::{self, FileName};
use crate::forks;
use crate::gates;
use crate::guard;
use crate::layout::{
    AVOID_VARIABLE, CHILDREN_VARIABLE, DEFAULT_PATIENCE_MS, DETECT_VARIABLE, FAIL_AT_VARIABLE,
    LINE_GATES_VARIABLE, NOISE_TIME_VARIABLE, NOISE_VARIABLE, PATIENCE_VARIABLE, READINGS_VARIABLE,
    REPORT_VARIABLE, SCHEDULE_HEAD, SCHEDULE_VARIABLE, TAIL_GATES_VARIABLE, TRACE_DIR_VARIABLE,
};
use crate::memory;
use crate::noise;
use crate::order;
use crate::process;
use crate::readings;
use crate::real;
use crate::report;
use crate::schedule;
use crate::script::{self, Script};
use crate::signals;
use crate::sys;
use crate::text::Text;
use crate::threads;
use core::ffi::{c_char, c_int};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU32, Ordering};

static STARTED: AtomicU32 = AtomicU32::new(0);

/// In an executable, the dynamic linker runs this before everything else, constructors of shared
/// libraries included.
#[cfg(symbiosis_export)]
#[used]
#[unsafe(link_section = ".preinit_array")]
static AT_START: unsafe extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) = preinit;

/// The first thing that runs.
pub unsafe extern "C" fn preinit(
    _count: c_int,
    _arguments: *mut *mut c_char,
    environment: *mut *mut c_char,
) {
    start(environment);
}

/// Starts the runtime unless that was done.
pub fn ensure() {
    if STARTED.load(Ordering::Acquire) == 0 {
        // SAFETY: reads a pointer that libc keeps.
        start(unsafe { sys::environ });
    }
}

fn start(environment: *mut *mut c_char) {
    if STARTED.swap(1, Ordering::AcqRel) != 0 {
        return;
    }
    sys::keeping_errno(|| {
        real::find_all();
        let settings = Settings::take(environment);
        let config = settings.understand();
        if let Some(name) = settings.report
            && let Err(error) = report::create(name)
        {
            complain("there is no report", name, error);
        }
        if let Some(directory) = settings.directory {
            match open_trace(directory) {
                // Another process of this recording was first.
                Ok(()) | Err(sys::EEXIST) => {}
                Err(error) => complain("this run is not recorded", directory, error),
            }
        }
        if let Some(root) = settings.children {
            children::set_root(root);
            children::set_environment(environment);
            if !process::recording()
                && let Err(error) = children::open(false)
            {
                complain("this process is not recorded", root, error);
            }
        }
        let scheduled =
            config.script.is_some() || matches!(config.noise, noise::Config::Pct { .. });
        let noisy = config.noise != noise::Config::Off;
        if let Some(rules) = settings.avoid.map(read_rules) {
            avoid::start(rules);
        }
        if scheduled || noisy {
            gates::start(config.script);
        } else if settings.avoid.is_some() {
            gates::start_named();
        }
        if !scheduled {
            noise::start(config.noise, config.noise_time);
        }
        if process::recording() {
            exceptions::start();
        }
        settings.set_readings();
        threads::start();
        if scheduled {
            if process::recording() {
                order::start();
            }
            schedule::start(config);
        }
        if process::recording() {
            signals::install();
        }
        settings.watch();
        if process::recording() || gates::wanted() {
            // SAFETY: the functions stay, and are what these registrations ask for.
            unsafe {
                sys::__register_atfork(
                    Some(forks::before),
                    None,
                    Some(threads::forked),
                    null_mut(),
                );
                sys::on_exit(exits::at_exit, null_mut());
            }
        }
    });
}

/// The values of the runtime's environment variables.
struct Settings<'a> {
    directory: Option<&'a [u8]>,
    schedule: Option<&'a [u8]>,
    noise: Option<&'a [u8]>,
    noise_time: Option<&'a [u8]>,
    children: Option<&'a [u8]>,
    patience: Option<&'a [u8]>,
    gates: Option<&'a [u8]>,
    tail: Option<&'a [u8]>,
    report: Option<&'a [u8]>,
    detect: Option<&'a [u8]>,
    readings: Option<&'a [u8]>,
    fail_at: Option<&'a [u8]>,
    avoid: Option<&'a [u8]>,
}

impl Settings<'_> {
    /// Takes the variables out of the environment, so that programs which this one starts neither
    /// write into the same trace nor follow the schedule.
    fn take(environment: *mut *mut c_char) -> Self {
        // SAFETY: the environment is a null-terminated array of C strings, and nobody else reads
        // it yet.
        let take = |name| unsafe { take_variable(environment, name) };
        // SAFETY: as above.
        let children = unsafe { find_variable(environment, CHILDREN_VARIABLE) };
        Self {
            directory: take(TRACE_DIR_VARIABLE),
            schedule: take(SCHEDULE_VARIABLE),
            // Where children are recorded, they run under the same noise.
            noise: match children {
                // SAFETY: as above.
                Some(_) => unsafe { find_variable(environment, NOISE_VARIABLE) },
                None => take(NOISE_VARIABLE),
            },
            noise_time: match children {
                // SAFETY: as above.
                Some(_) => unsafe { find_variable(environment, NOISE_TIME_VARIABLE) },
                None => take(NOISE_TIME_VARIABLE),
            },
            children: children.filter(|value| !value.is_empty()),
            patience: take(PATIENCE_VARIABLE),
            gates: take(LINE_GATES_VARIABLE),
            tail: take(TAIL_GATES_VARIABLE),
            report: take(REPORT_VARIABLE),
            detect: take(DETECT_VARIABLE),
            // Where children are recorded, so is their time.
            readings: match children {
                // SAFETY: as above.
                Some(_) => unsafe { find_variable(environment, READINGS_VARIABLE) },
                None => take(READINGS_VARIABLE),
            },
            fail_at: take(FAIL_AT_VARIABLE),
            avoid: take(AVOID_VARIABLE),
        }
    }

    /// Has threads read the clock as often as was asked for, from the first one on.
    fn set_readings(&self) {
        if let Some(value) = self.readings {
            let every = script::number(value).unwrap_or_else(|| {
                refuse(READINGS_VARIABLE.as_bytes(), 0, b"a number of bytes expected")
            });
            readings::set(every);
        }
    }

    /// Begins to look for the failures that were asked for.
    fn watch(&self) {
        if let Some(value) = self.detect {
            if !guard::is_wanted(value) {
                refuse(DETECT_VARIABLE.as_bytes(), 0, b"`use-after-free` expected");
            }
            allocator::prepare();
            if !guard::start() {
                report::complain(b"there is no address space for a guarded heap");
            }
        }
        if let Some(value) = self.fail_at
            && !fail_at::plant(value)
        {
            refuse(FAIL_AT_VARIABLE.as_bytes(), 0, b"the places cannot be watched");
        }
    }

    /// What they ask for. Ends the process where they make no sense: the program was started to be
    /// run in that way and no other.
    fn understand(&self) -> schedule::Config {
        let noise = self.noise.map_or(noise::Config::Off, |text| {
            noise::Config::parse(text).unwrap_or_else(|| {
                let form =
                    b"`random,SEED,RATE,MICROSECONDS,GATES` or `pct,SEED,DEPTH,STEPS` expected";
                refuse(NOISE_VARIABLE.as_bytes(), 0, form)
            })
        });
        let number = |text: Option<&[u8]>, default, name: &str, form: &[u8]| {
            text.map_or(default, |text| {
                script::number(text).unwrap_or_else(|| refuse(name.as_bytes(), 0, form))
            })
        };
        let form = b"a number of milliseconds expected";
        let noise_time = number(self.noise_time, u64::MAX, NOISE_TIME_VARIABLE, form);
        let patience = number(self.patience, DEFAULT_PATIENCE_MS, PATIENCE_VARIABLE, form);
        let form = b"a number of gates expected";
        let gates = number(self.gates, u64::MAX, LINE_GATES_VARIABLE, form);
        let tail = number(self.tail, u64::MAX, TAIL_GATES_VARIABLE, form);
        let script = self.schedule.map(read_script);
        schedule::Config { script, noise, noise_time, patience, gates, tail }
    }
}

fn read_script(value: &[u8]) -> &'static Script {
    let inline = value.starts_with(SCHEDULE_HEAD.as_bytes());
    let name = if inline { SCHEDULE_VARIABLE.as_bytes() } else { value };
    let text = if inline { memory::copy(value) } else { read_file(value) };
    let Some(text) = text else {
        let mut problem = Text::<128>::new();
        problem.push(b"the schedule cannot be read (errno ");
        refuse(name, 0, problem.push_decimal(sys::errno() as u64).push(b")").as_bytes())
    };
    match Script::parse(text) {
        Ok(script) => memory::keep(script)
            .unwrap_or_else(|| refuse(name, 0, b"there is no memory for the schedule")),
        Err(problem) => refuse(name, problem.line, problem.what.as_bytes()),
    }
}

fn read_rules(name: &[u8]) -> &'static avoid::Rules {
    let Some(text) = read_file(name) else {
        let mut problem = Text::<128>::new();
        problem.push(b"the rules cannot be read (errno ");
        refuse(name, 0, problem.push_decimal(sys::errno() as u64).push(b")").as_bytes())
    };
    match avoid::Rules::parse(text) {
        Ok(rules) => memory::keep(rules)
            .unwrap_or_else(|| refuse(name, 0, b"there is no memory for the rules")),
        Err((line, what)) => refuse(name, line, what.as_bytes()),
    }
}

/// A file's contents; none, and `errno` set, when it cannot be read.
fn read_file(name: &[u8]) -> Option<&'static [u8]> {
    /// Longer schedules are refused.
    const LONGEST: usize = 64 << 20;
    let mut path = FileName::new();
    path.push(name);
    let fd = files::open(&path, 0).map_err(sys::set_errno).ok()?;
    let data = sys::anonymous(LONGEST).cast::<u8>();
    let mut length = 0;
    let read = !data.is_null()
        && loop {
            // SAFETY: the block has `LONGEST` bytes.
            let n = unsafe { sys::read(fd, data.add(length).cast(), LONGEST - length) };
            match n {
                0 => break true,
                1.. => length += n as usize,
                _ if sys::errno() == sys::EINTR => {}
                _ => break false,
            }
            if length == LONGEST {
                sys::set_errno(sys::EFBIG);
                break false;
            }
        };
    sys::keeping_errno(|| files::close(fd));
    // SAFETY: so many bytes were read, and the block is never given back.
    if read { Some(unsafe { core::slice::from_raw_parts(data, length) }) } else { None }
}

/// Says what is wrong with a setting and ends the process with status 2. `line` 0 is none.
fn refuse(name: &[u8], line: u32, what: &[u8]) -> ! {
    let mut text = Text::<4500>::new();
    text.push(name);
    if line != 0 {
        text.push(b": line ").push_decimal(u64::from(line));
    }
    report::complain(text.push(b": ").push(what).as_bytes());
    sys::exit_now(2)
}

fn open_trace(directory: &[u8]) -> Result<(), c_int> {
    files::set_directory(directory)?;
    files::make_directory(b"threads")?;
    files::make_directory(b"ir")?;
    process::create(false)
}

/// Says on standard error why there will be no trace or report: there is no other place for it.
fn complain(what: &str, name: &[u8], error: c_int) {
    let mut text = Text::<4400>::new();
    text.push(what.as_bytes()).push(b": cannot write to ").push(name);
    text.push(b" (errno ").push_decimal(error as u64).push(b")");
    report::complain(text.as_bytes());
}

/// Finds a variable: its entry in the environment, and its value.
unsafe fn variable<'a>(
    environment: *mut *mut c_char,
    name: &str,
) -> Option<(*mut *mut c_char, &'a [u8])> {
    if environment.is_null() {
        return None;
    }
    // SAFETY: the caller vouches for the array.
    unsafe {
        let mut at = environment;
        while !(*at).is_null() {
            let entry = core::slice::from_raw_parts((*at).cast::<u8>(), sys::strlen(*at));
            if let Some(value) = value_of(entry, name) {
                return Some((at, value));
            }
            at = at.add(1);
        }
    }
    None
}

/// Finds a variable and takes it out of the environment. An empty one counts as none.
unsafe fn take_variable<'a>(environment: *mut *mut c_char, name: &str) -> Option<&'a [u8]> {
    // SAFETY: the caller vouches for the array, which ends with a null pointer.
    unsafe {
        let (mut at, value) = variable(environment, name)?;
        while !(*at).is_null() {
            *at = *at.add(1);
            at = at.add(1);
        }
        Some(value).filter(|value| !value.is_empty())
    }
}

/// Finds a variable and leaves it where it is. An empty one counts as none.
unsafe fn find_variable<'a>(environment: *mut *mut c_char, name: &str) -> Option<&'a [u8]> {
    // SAFETY: the caller vouches for the array.
    let (_, value) = unsafe { variable(environment, name) }?;
    Some(value).filter(|value| !value.is_empty())
}

/// The variable's value, when this entry is it.
fn value_of<'a>(entry: &'a [u8], name: &str) -> Option<&'a [u8]> {
    entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_name_is_the_variable() {
        assert_eq!(value_of(b"SYMBIOSIS_TRACE_DIR=/x", TRACE_DIR_VARIABLE), Some(&b"/x"[..]));
        assert_eq!(value_of(b"SYMBIOSIS_TRACE_DIRECTORY=/x", TRACE_DIR_VARIABLE), None);
        assert_eq!(value_of(b"PATH=/x", TRACE_DIR_VARIABLE), None);
    }

    #[test]
    fn the_variable_leaves_the_environment() {
        let mut entries: Vec<Vec<u8>> = ["A=1", "SYMBIOSIS_TRACE_DIR=/tmp/x", "B=2"]
            .iter()
            .map(|text| [text.as_bytes(), b"\0"].concat())
            .collect();
        let mut array: Vec<*mut c_char> =
            entries.iter_mut().map(|entry| entry.as_mut_ptr().cast()).collect();
        let (a, b) = (array[0], array[2]);
        array.push(null_mut());
        // SAFETY: a null-terminated array of C strings.
        let value = unsafe { take_variable(array.as_mut_ptr(), TRACE_DIR_VARIABLE) };
        assert_eq!(value, Some(&b"/tmp/x"[..]));
        assert_eq!(array, [a, b, null_mut(), null_mut()]);
    }
}
