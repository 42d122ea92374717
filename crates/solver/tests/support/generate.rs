//! Random small traces, as text.

#![allow(dead_code, reason = "the tests of the crate itself use a part of it")]

use super::random::Random;

/// Mostly one, so that threads meet.
const CELLS: [&str; 4] = ["x", "x", "x", "y"];

/// A thread that is being written.
#[derive(Default)]
struct Thread {
    lines: Vec<String>,
    /// Names read so far.
    names: Vec<String>,
    held: Option<(&'static str, bool)>,
    at_barrier: bool,
    ended: bool,
}

/// One random trace of about 8 events besides starts and exits; with waits it can be 13.
pub fn generate(seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut threads: Vec<Thread> = (0..2 + random.below(2)).map(|_| Thread::default()).collect();
    let fork = random.chance(30);
    let events = 6 + random.below(2);
    // Forks count, the implicit ones too.
    let mut left = events.saturating_sub(threads.len() - 1);
    let flavour = random.below(8);
    let mut names = 0;
    if fork {
        if flavour > 5 && random.chance(40) {
            threads[0].lines.push(format!("W x {}", random.below(3)));
        }
        threads[0].lines.push("fork t1".to_owned());
    }
    if flavour == 2 {
        left = left.min(waiters(&mut threads, &mut random));
    }
    while left > 0 {
        let index = random.below(threads.len());
        let thread = &mut threads[index];
        let used = statement(thread, flavour, left, &mut names, &mut random);
        left -= used.min(left);
    }
    finish(threads, fork, &mut random)
}

/// A random trace of two threads that take the cell `l` for a lock, mostly as they should.
pub fn generate_locked(seed: u64) -> String {
    let mut random = Random::new(seed);
    let (taken, mut names) = (1 + random.below(2), 0);
    let mut lines = Vec::new();
    if random.chance(20) {
        lines.push(format!("t0: W l {}", random.below(2)));
        lines.push("t0: fork t1".to_owned());
    }
    for thread in ["t0", "t1"] {
        let mut name = || {
            names += 1;
            format!("a{names}")
        };
        let (mut read, mut failed) = (None, false);
        for _ in 0..1 + usize::from(random.chance(25)) {
            let (own, seen) = (name(), name());
            let value = match random.below(8) {
                0 => format!("{own} + 1"),
                1..=3 => format!("{own} == 0 ? {taken} : {own}"),
                _ => taken.to_string(),
            };
            if !random.chance(8) {
                lines.push(format!("{thread}: RMW l -> {own} = {value}"));
            }
            let says = match random.below(10) {
                0 => None,
                1 => Some("!= 0"),
                _ => Some("== 0"),
            };
            if let Some(says) = says.filter(|_| lines.last().is_some_and(|it| it.contains(&own))) {
                lines.push(format!("{thread}: assume {own} {says}"));
                failed |= says == "!= 0";
            }
            lines.push(format!("{thread}: R x -> {seen}"));
            if random.chance(70) {
                lines.push(format!("{thread}: W x {seen} + 1"));
            }
            let gives_back = name();
            match random.below(10) {
                0 => {}
                1 | 2 => lines.push(format!("{thread}: RMW l -> {gives_back} = 0")),
                _ => lines.push(format!("{thread}: W l 0")),
            }
            read = Some(seen);
        }
        if let Some(seen) = read.filter(|_| thread == "t1") {
            let kind = if failed { "<" } else { "==" };
            lines.push(format!("{thread}: fail {seen} {kind} 1"));
        }
    }
    lines.join("\n") + "\n"
}

/// One or two threads that wait, each with a mutex of its own or with a common one, and some
/// signals: left to chance, such traces hardly ever can run. Gives how many events may follow.
fn waiters(threads: &mut [Thread], random: &mut Random) -> usize {
    let two = threads.len() > 2 && random.chance(60);
    let own = random.chance(15);
    for (index, thread) in threads.iter_mut().rev().take(1 + usize::from(two)).enumerate() {
        let name = if own && index == 1 { "n" } else { "m" };
        let verb = if random.chance(90) { "wait" } else { "wait-timed-out" };
        let lines = [format!("lock {name}"), format!("{verb} c {name}"), format!("unlock {name}")];
        thread.lines.extend(lines);
    }
    for _ in 0..1 + random.below(2) {
        let verb = if random.chance(80) { "signal" } else { "broadcast" };
        let sender = if random.chance(80) { 0 } else { random.below(threads.len()) };
        threads[sender].lines.push(format!("{verb} c"));
    }
    1
}

/// Adds a statement; gives how many events it makes.
fn statement(
    thread: &mut Thread,
    flavour: usize,
    left: usize,
    names: &mut usize,
    random: &mut Random,
) -> usize {
    if thread.ended {
        return 1;
    }
    let synchronises = random.chance(40);
    match (synchronises, flavour) {
        (_, 6 | 7) if random.chance(75) => count(thread, left, names, random),
        (true, 0 | 1) => lock(thread, random),
        (true, 2) => condition(thread, left, random),
        (true, 3) => {
            let verb =
                *random.pick(&["sem-wait", "sem-wait", "post", "post", "post", "sem-failed"]);
            thread.lines.push(format!("{verb} s"));
            1
        }
        (true, 4) => barrier(thread, random),
        _ => access(thread, names, random),
    }
}

fn lock(thread: &mut Thread, random: &mut Random) -> usize {
    match thread.held {
        // Of the lock that the thread holds itself, or of another one.
        Some(_) if random.chance(10) => failed_try(thread, random),
        Some((name, shared)) => {
            let verb = if shared { "rdunlock" } else { "unlock" };
            thread.lines.push(format!("{verb} {name}"));
            thread.held = None;
        }
        None if random.chance(15) => failed_try(thread, random),
        None => {
            let name = if random.chance(80) { "m" } else { "n" };
            let shared = random.chance(25);
            thread.lines.push(format!("{} {name}", if shared { "rdlock" } else { "lock" }));
            thread.held = Some((name, shared));
        }
    }
    1
}

fn failed_try(thread: &mut Thread, random: &mut Random) {
    let verb = if random.chance(30) { "tryrdlock-failed" } else { "trylock-failed" };
    thread.lines.push(format!("{verb} m"));
}

/// Adds a constant to `x`: mostly as one step or under one lock, sometimes under another lock,
/// under a lock that does not exclude others, or under none, and sometimes what is added to is not
/// the value that `x` has then. As many events as fit: a section that does not is no loss.
fn count(thread: &mut Thread, left: usize, names: &mut usize, random: &mut Random) -> usize {
    *names += 1;
    let name = format!("a{names}");
    let stale = random.chance(10).then(|| thread.names.last().cloned()).flatten();
    let constant = 1 + random.below(2);
    let operator = *random.pick(&["+", "+", "-"]);
    let value = format!("{} {operator} {constant}", stale.as_ref().unwrap_or(&name));
    thread.names.push(name.clone());
    if left < 4 || thread.held.is_some() || random.chance(25) {
        thread.lines.push(format!("RMW x -> {name} = {value}"));
        return 1;
    }
    let lock = match random.below(20) {
        0 => Some(("lock n", "unlock n")),
        1 => Some(("rdlock m", "rdunlock m")),
        2 | 3 => None,
        _ => Some(("lock m", "unlock m")),
    };
    let twice = random.chance(10);
    thread.lines.extend(lock.map(|(lock, _)| lock.to_owned()));
    thread.lines.push(format!("R x -> {name}"));
    if random.chance(20) {
        thread.lines.push(format!("assume {}", comparison(&name, random)));
    }
    thread.lines.push(format!("W x {value}"));
    if twice {
        thread.lines.push(format!("W x {name} + 2"));
    }
    thread.lines.extend(lock.map(|(_, unlock)| unlock.to_owned()));
    2 + usize::from(twice) + 2 * usize::from(lock.is_some())
}

fn condition(thread: &mut Thread, left: usize, random: &mut Random) -> usize {
    match thread.held {
        Some((name, false)) if left >= 3 && random.chance(70) => {
            let verb = if random.chance(85) { "wait" } else { "wait-timed-out" };
            thread.lines.push(format!("{verb} c {name}"));
            3
        }
        Some(_) => lock(thread, random),
        None if random.chance(55) => {
            thread.lines.push("lock m".to_owned());
            thread.held = Some(("m", false));
            1
        }
        None => {
            let verb = if random.chance(75) { "signal" } else { "broadcast" };
            thread.lines.push(format!("{verb} c"));
            1
        }
    }
}

fn barrier(thread: &mut Thread, random: &mut Random) -> usize {
    if random.chance(20) {
        thread.lines.push("arrive b".to_owned());
        thread.ended = true;
        return 1;
    }
    thread.lines.push("barrier b".to_owned());
    thread.at_barrier = true;
    2
}

fn access(thread: &mut Thread, names: &mut usize, random: &mut Random) -> usize {
    let cell = *random.pick(&CELLS);
    match random.below(10) {
        0..=3 => {
            let value = value(thread, random);
            thread.lines.push(format!("W {cell} {value}"));
        }
        4 => {
            *names += 1;
            let name = format!("a{names}");
            let value = match random.below(3) {
                0 => random.below(4).to_string(),
                1 => format!("{name} + 1"),
                _ => format!("{name} * 2"),
            };
            thread.lines.push(format!("RMW {cell} -> {name} = {value}"));
            thread.names.push(name);
        }
        _ => {
            *names += 1;
            let name = format!("a{names}");
            thread.lines.push(format!("R {cell} -> {name}"));
            if random.chance(15) {
                thread.lines.push(format!("assume {}", comparison(&name, random)));
            }
            thread.names.push(name);
        }
    }
    1
}

fn value(thread: &Thread, random: &mut Random) -> String {
    let constant = random.below(4);
    if thread.names.is_empty() || random.chance(40) {
        return constant.to_string();
    }
    let name = random.pick(&thread.names);
    let operator = *random.pick(&["+", "-", "*"]);
    format!("{name} {operator} {constant}")
}

fn comparison(name: &str, random: &mut Random) -> String {
    let operator = *random.pick(&["==", "!=", "<", ">="]);
    format!("{name} {operator} {}", random.below(3))
}

fn finish(mut threads: Vec<Thread>, fork: bool, random: &mut Random) -> String {
    for thread in &mut threads {
        // A lock that is not released is held to the end; a few stay so.
        if let Some((name, shared)) = thread.held
            && !thread.ended
            && random.chance(70)
        {
            let verb = if shared { "rdunlock" } else { "unlock" };
            thread.lines.push(format!("{verb} {name}"));
        }
    }
    if fork && random.chance(40) && !threads[0].ended {
        threads[0].lines.push("join t1".to_owned());
        if random.chance(60) {
            threads[0].lines.push("R x -> last".to_owned());
            threads[0].names.push("last".to_owned());
        }
    }
    let failing = random.below(threads.len());
    if !threads[failing].ended {
        // The failure reads something, most of the time what another thread writes.
        let cell = *random.pick(&CELLS);
        threads[failing].lines.push(format!("R {cell} -> seen"));
        threads[failing].names.push("seen".to_owned());
    }
    let mut names: Vec<String> = threads.iter().flat_map(|thread| thread.names.clone()).collect();
    let failure = match names.len() {
        0 => None,
        1 => Some(comparison(&names[0], random)),
        _ => {
            let seen = names.iter().position(|name| name == "seen").unwrap_or_default();
            let first = names.swap_remove(seen);
            let second = random.pick(&names).clone();
            let both = format!(" {} ", random.pick(&["&&", "||"]));
            Some(match random.below(5) {
                // Truths as operands, of which each may be known without a value.
                3 => {
                    let parts = [&first, &second, &first].map(|name| comparison(name, random));
                    format!("{} ? {} : {}", parts[0], parts[1], parts[2])
                }
                4 => {
                    let parts = [&first, &second].map(|name| comparison(name, random));
                    format!("({}) {} ({})", parts[0], random.pick(&["==", "!="]), parts[1])
                }
                0 => format!("{first} {} {second}", random.pick(&["==", "!=", "<"])),
                1 => comparison(&first, random) + &both + &comparison(&second, random),
                _ => comparison(&first, random),
            })
        }
    };
    let mut text =
        format!("cell x 8 = {}\ncell y 8 = {}\n", random.below(3), 253 + random.below(3));
    text += &format!("sem s {}\nbarrier b {}\n", random.below(3), 2 + random.below(2));
    for (index, thread) in threads.iter().enumerate() {
        if thread.lines.is_empty() {
            // The first thread that the text names is the initial one.
            text += &format!("t{index}: fence\n");
        }
        thread.lines.iter().for_each(|line| text += &format!("t{index}: {line}\n"));
    }
    // Last, since it may mention what any thread read.
    if !threads[failing].ended {
        text += &format!("t{failing}: fail {}\n", failure.as_deref().unwrap_or_default());
    }
    text
}
