//! The state machine with programs that are only lists of calls, run by one thread.

mod world;

use super::core::{Core, Next, Phase, Plan, QUANTUM};
use super::slots::{NEVER, Slots, Wait, WaitKind, Wake};
use crate::layout::LeftReason;
use crate::script::{Mark, Target, Turn, thread_hash};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU32, Ordering};
use world::*;

#[test]
fn without_a_schedule_threads_run_one_after_the_other() {
    let mut world = world(&three(&[Gate(A), Gate(B)]), |_| {});
    assert_eq!(world.run(), End::All);
    assert_eq!(world.sites(A), [1, 2, 3]);
    let order: Vec<u32> = world.log.iter().map(|entry| entry.0).filter(|slot| *slot > 0).collect();
    assert_eq!(order, [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
}

#[test]
fn turns_are_taken_in_the_schedules_order() {
    let programs = three(&[Gate(A), Gate(A), Gate(B)]);
    let turns = [to("t0.2", A, 2), past("t0.1", A, 1), to("t0.3", B, 1), end("t0.1"), end("t0.3")];
    let mut world = followed(&programs, &turns);
    assert_eq!(world.run(), End::All);
    assert!(world.core.left.is_none());
    assert_eq!(world.core.followed, 5);
    assert_eq!(world.sites(A), [2, 1, 3, 3, 1, 2]);
    assert_eq!(world.sites(B), [1, 3, 2]);
}

#[test]
fn a_place_that_was_passed_is_over_at_once() {
    let programs = three(&[Gate(A), Gate(A), Gate(B)]);
    let turns = [end("t0.2"), to("t0.2", A, 1), past("t0.2", A, 2), to("t0.1", B, 1)];
    let mut world = followed(&programs, &turns);
    world.run();
    assert!(world.core.left.is_none());
    assert_eq!(world.core.followed, 4);
}

#[test]
fn a_turn_behind_a_lock_that_another_thread_holds_is_left_and_taken_later() {
    let programs = three(&[Lock(0), Gate(A), Gate(B), Unlock(0)]);
    let turns = [to("t0.2", B, 1), to("t0.1", B, 1), end("t0.3")];
    let mut world = followed(&programs, &turns);
    assert_eq!(world.run(), End::All);
    let left = world.core.left.unwrap();
    assert_eq!((left.line, left.reason), (3, LeftReason::Blocked));
    assert_eq!(left.message.as_bytes(), b"t0.1 waits for a mutex on the way to site");
    assert_eq!(world.core.followed, 1);
    assert_eq!(world.sites(A), [2, 1, 3]);
}

/// Who has no further line is free to give a lock back that the line's thread waits for.
#[test]
fn a_lock_of_a_thread_that_is_done_is_waited_for() {
    let programs = three(&[Lock(0), Gate(A), Gate(B), Unlock(0)]);
    let turns = [past("t0.2", A, 1), past("t0.1", B, 1)];
    let mut world = followed(&programs, &turns);
    world.owners = Some(Box::new([0; 4]));
    assert_eq!(world.run(), End::All);
    assert!(world.core.left.is_none());
    assert_eq!(world.core.followed, 2);
    assert_eq!(world.sites(A)[..2], [2, 1]);
    // Not so where it is to stand before a place, which comes behind the others' lines.
    let mut world = followed(&programs, &[to("t0.2", B, 1), past("t0.1", B, 1)]);
    world.owners = Some(Box::new([0; 4]));
    assert_eq!(world.run(), End::All);
    assert_eq!(world.core.left.map(|left| left.reason), Some(LeftReason::Blocked));
}

#[test]
fn a_thread_that_ends_early_leaves_its_line() {
    let turns = [to("t0.1", A, 9), to("t0.9", A, 1), to("t0.2", A, 2), to("t1", A, 1)];
    let mut world = followed(&three(&[Gate(A), Gate(A)]), &turns);
    assert_eq!(world.run(), End::All);
    let left = world.core.left.unwrap();
    assert_eq!((left.line, left.reason), (2, LeftReason::Ended));
}

#[test]
fn what_is_not_created_yet_is_waited_for_at_its_creator() {
    let programs = vec![
        ("t0", vec![Gate(A), Create(1), Gate(A), Join(1)]),
        ("t0.1", vec![Gate(B), Create(2), Gate(B)]),
        ("t0.1.1", vec![Gate(A)]),
    ];
    let mut world = followed(&programs, &[past("t0.1.1", A, 1)]);
    assert_eq!(world.run(), End::All);
    assert!(world.core.left.is_none());
    assert_eq!(world.sites(A), [0, 2, 0]);
    assert_eq!(world.sites(B), [1, 1]);
}

#[test]
fn a_signal_goes_to_the_waiter_whose_turn_it_is() {
    let waiter = vec![Lock(0), Await(0, 0, NEVER), Gate(A), Unlock(0)];
    let mut programs = three(&waiter);
    programs[0].1 =
        vec![Create(1), Create(2), Create(3), Sleep(5), Signal(0), Signal(0), Signal(0)];
    let mut fifo = world(&programs, |_| {});
    assert_eq!(fifo.run(), End::All);
    assert_eq!(fifo.sites(A), [1, 2, 3]);
    let turns = [
        to("t0.1", WAKE, 1),
        to("t0.2", WAKE, 1),
        to("t0.3", WAKE, 1),
        past("t0", CALL, 4),
        end("t0.2"),
    ];
    let mut chosen = followed(&programs, &turns);
    assert_eq!(chosen.run(), End::All);
    assert!(chosen.core.left.is_none(), "{}", chosen.core.followed);
    assert_eq!(chosen.sites(A)[0], 2);
}

/// The initial thread, which can run, and `t0.1`, which waits for a futex that is 0.
fn with_futex_waiter(word: &AtomicU32, turns: &[Turn]) -> Core {
    let mut core = Core::new();
    core.slots = Slots::with_room(8);
    if !turns.is_empty() {
        core.follow(plan(&numbered(turns), false), NEVER);
    }
    for name in ["t0", "t0.1"] {
        core.add(name.as_bytes(), null_mut(), START).expect("room");
    }
    core.turn = 1;
    core.last = 1;
    let address = word.as_ptr() as u64;
    core.block(1, Wait { expected: 0, ..Wait::on(WaitKind::Futex, address) }, 0);
    core
}

#[test]
fn a_futex_waiter_needs_a_wake_up() {
    let word = AtomicU32::new(0);
    let mut core = with_futex_waiter(&word, &[]);
    let address = word.as_ptr() as u64;
    assert_eq!(core.decide(), Next::Turn(0));
    word.store(1, Ordering::Relaxed);
    core.end(0);
    assert_eq!(core.decide(), Next::Idle, "that the word has changed wakes nobody");
    assert_eq!(core.wake(address + 8, 5), 0, "another word");
    assert_eq!(core.wake(address, 0), 0);
    assert_eq!(core.wake(address, 5), 1);
    assert_eq!(core.decide(), Next::Turn(1));
    assert_eq!(core.slots.get(1).wake, Wake::Again);
}

#[test]
fn a_schedule_lets_a_futex_waiter_go_on_when_the_word_has_changed() {
    for changed in [false, true] {
        let word = AtomicU32::new(0);
        let mut core = with_futex_waiter(&word, &[end("t0.1")]);
        word.store(u32::from(changed), Ordering::Relaxed);
        assert_eq!(core.decide(), Next::Turn(u32::from(changed)));
        assert_eq!(core.left.is_some(), !changed, "the thread has to wait for another one");
    }
    // It may be the failure that it waits.
    let word = AtomicU32::new(0);
    let failure = Turn { target: Target::Failure, ..end("t0.1") };
    let mut core = with_futex_waiter(&word, &[failure]);
    word.store(1, Ordering::Relaxed);
    assert_eq!(core.decide(), Next::Turn(0));
}

#[test]
fn a_futex_waiter_is_as_good_as_at_the_place_where_it_is_to_stop() {
    let place = |past| Turn { past, ..to("t0.1", 77, 1) };
    let word = AtomicU32::new(0);
    let mut core = with_futex_waiter(&word, &[place(false), end("t0"), end("t0.1")]);
    assert_eq!(core.decide(), Next::Turn(0));
    word.store(1, Ordering::Relaxed);
    core.end(0);
    assert_eq!(core.decide(), Next::Turn(1), "what it waits for has come");
    assert!(core.left.is_none());
    // It is to pass the place, and cannot.
    let mut core = with_futex_waiter(&AtomicU32::new(0), &[place(true), end("t0"), end("t0.1")]);
    assert_eq!(core.decide(), Next::Turn(0));
    assert!(core.left.is_some());
}

#[test]
fn a_signal_that_nobody_waits_for_is_lost() {
    let programs = vec![
        ("t0", vec![Create(1), Signal(0), Join(1)]),
        ("t0.1", vec![Lock(0), Await(0, 0, NEVER)]),
    ];
    let mut world = world(&programs, |_| {});
    assert_eq!(world.run(), End::Deadlock);
    let mut text = crate::text::Text::<500>::new();
    super::words::deadlock(&world.core, &mut text);
    assert_eq!(
        text.as_bytes(),
        b"deadlock: t0 waits for the end of t0.1; t0.1 waits for a signal of a condition variable"
    );
}

#[test]
fn a_condition_that_is_initialised_forgets_who_waits_for_it() {
    let told = |initialised: Option<Op>| {
        let first =
            [Some(Create(1)), Some(Gate(A)), initialised, Some(Broadcast(0)), Some(Join(1))];
        let programs = vec![
            ("t0", first.into_iter().flatten().collect()),
            ("t0.1", vec![Lock(0), Await(0, 0, NEVER), Unlock(0)]),
        ];
        followed(&programs, &[to("t0.1", WAKE, 1), past("t0", A, 1)]).run()
    };
    assert_eq!(told(None), End::All);
    assert_eq!(told(Some(Initialise(0))), End::Deadlock);
    assert_eq!(told(Some(Initialise(1))), End::All, "another one");
}

/// Runs a thread `t0.1` that waits with this time limit for a signal that came before, to the failure's turn.
fn waiting_at_the_failure(limit: u64, waits: &[&str]) -> (End, u64) {
    let programs = [
        ("t0", &[Create(1), Signal(0), Gate(A), Join(1)][..]),
        ("t0.1", &[Lock(0), Await(0, 0, limit), Unlock(0)]),
    ];
    let turns = [past("t0", A, 1), Turn { target: Target::Failure, ..to("t0.1", 0, 0) }];
    let waits: Vec<u64> = waits.iter().map(|name| thread_hash(name.as_bytes())).collect();
    let waits: &'static [u64] = waits.leak();
    let mut world = World::new(&programs, |core| {
        core.follow(Plan { waits, ..plan(&turns, true) }, 1 << 40);
    });
    let end = world.run();
    (end, world.timed_out as u64)
}

#[test]
fn a_long_time_limit_does_not_end_at_the_failure_of_a_run_that_was_stuck() {
    assert_eq!(waiting_at_the_failure(60_000_000_000, &["t0.1"]), (End::Deadlock, 0));
    // Who looks again soon is not stuck, nor is a thread of which the schedule does not say so.
    assert_eq!(waiting_at_the_failure(100_000_000, &["t0.1"]), (End::All, 1));
    assert_eq!(waiting_at_the_failure(60_000_000_000, &["t0"]), (End::All, 1));
}

#[test]
fn a_timed_wait_that_has_the_turn_times_out() {
    let programs = vec![
        ("t0", vec![Create(1), Gate(A), Signal(0), Join(1)]),
        ("t0.1", vec![Lock(0), Await(0, 0, 1 << 50), Gate(B), Unlock(0)]),
    ];
    let mut first = followed(&programs, &[to("t0.1", B, 1), past("t0", A, 1)]);
    first.run();
    assert!(first.core.left.is_none());
    assert_eq!((first.timed_out, first.sites(A).len()), (1, 1));
    let turns = [to("t0.1", WAKE, 1), past("t0", CALL, 2), end("t0.1")];
    let mut second = followed(&programs, &turns);
    second.run();
    assert!(second.core.left.is_none());
    assert_eq!(second.timed_out, 0);
}

#[test]
fn sleepers_come_back_in_the_order_of_their_deadlines() {
    let programs = vec![
        ("t0", vec![Create(1), Create(2), Create(3), Gate(A)]),
        ("t0.1", vec![Gate(B), Sleep(300), Gate(A)]),
        ("t0.2", vec![Gate(B), Sleep(100), Gate(A)]),
        ("t0.3", vec![Gate(B), Sleep(200), Gate(A)]),
    ];
    let mut world = world(&programs, |_| {});
    assert_eq!(world.run(), End::All);
    assert_eq!(world.sites(A), [0, 2, 3, 1]);
    assert_eq!(world.core.now, 300);
}

#[test]
fn holding_lets_others_go_only_as_far_as_needed() {
    let programs = three(&[Gate(A), Lock(0), Gate(B), Unlock(0), Gate(B)]);
    let turns = numbered(&[past("t0.2", B, 1), to("t0.1", A, 1), past("t0.1", A, 1)]);
    let mut world = world(&programs, |core| core.follow(plan(&turns, true), 1 << 30));
    assert_eq!(world.run(), End::All);
    assert!(world.core.left.is_none());
    // t0.1 needs the mutex of t0.2, which goes on until it has released it, and no further.
    let b = world.sites(B);
    assert_eq!(b, [2, 1, 1, 2, 3, 3]);
}

#[test]
fn the_order_of_turns_is_recorded() {
    let mut world = world(&three(&[Gate(A)]), |_| {});
    world.run();
    let serials: Vec<u64> = world.records.iter().map(|record| record.thread).collect();
    assert_eq!(serials, [1, 2, 3, 4, 1]);
    assert_eq!(world.records[1].points, 3);
    assert_eq!(world.core.switches, 4);
    assert_eq!(world.core.steps, world.log.len() as u64);
}

#[test]
fn marks_are_found() {
    let marks = vec![Mark { number: 7, thread: thread_hash(b"t0"), hash: A, occurrence: 2 }].leak();
    let mut world = World::new(&[("t0", &[Gate(A), Gate(A)])], |core| {
        core.follow(Plan { marks, ..plan(&[], false) }, 0);
    });
    assert_eq!(world.run(), End::All);
    assert_eq!(world.marks, [7]);
}

#[test]
fn priorities_change_at_the_change_points() {
    let programs = three(&[Gate(A); 20]);
    let mut orders = std::collections::BTreeSet::new();
    for seed in 0..50 {
        let order = |depth| {
            let mut world = world(&programs, |core| core.perturb(seed, depth, 60));
            assert_eq!(world.run(), End::All);
            world.sites(A)
        };
        assert_eq!(order(3), order(3));
        // With a depth of 1 only creations interrupt: each thread runs through.
        let mut runs = order(1);
        runs.dedup();
        assert_eq!(runs.len(), 3, "{runs:?}");
        orders.insert(order(3));
    }
    assert!(orders.len() > 20, "{}", orders.len());
}

#[test]
fn a_thread_that_is_away_gives_its_line_to_others_and_comes_back() {
    let turns = [to("t0.1", A, 2), end("t0.1")];
    let mut world = followed(&three(&[Gate(A), Gate(A)]), &turns);
    let mut lost = false;
    let mut next = world.decide();
    for _ in 0..200 {
        match next {
            Next::Turn(1) if !lost && world.sites(A).contains(&1) => {
                lost = true;
                world.core.lose(1);
            }
            Next::Turn(slot) => world.go_on(slot),
            Next::Stuck => panic!("nobody polls"),
            Next::Far => panic!("there is no limit"),
            Next::Idle => {
                assert_eq!(world.core.away, 1);
                world.core.back(1);
            }
        }
        if world.threads.iter().all(|thread| thread.stage == Stage::Ended) {
            break;
        }
        next = world.decide();
    }
    assert!(lost);
    assert!(world.threads.iter().all(|thread| thread.stage == Stage::Ended));
}

#[test]
fn expired_lines_are_given_up_and_the_schedule_goes_on() {
    let turns = [to("t0.1", A, 1), to("t0.2", A, 2), end("t0.3")];
    let mut world = followed(&three(&[Gate(A), Gate(A)]), &turns);
    world.decide();
    assert!(world.core.expire());
    assert_eq!(world.core.left.unwrap().reason, LeftReason::Late);
    assert_eq!(world.core.phase, Phase::Script);
    assert_eq!(world.run(), End::All);
    assert_eq!(world.sites(A), [2, 3, 3, 1, 1, 2]);
}

/// A thread that spins for a lock that the schedule keeps another one from giving back never comes to its place.
#[test]
fn a_line_in_which_too_many_gates_are_passed_is_given_up() {
    let spinning: Vec<Op> = std::iter::repeat_n(Gate(B), 50).chain([Gate(A)]).collect();
    let programs = [
        ("t0", vec![Create(1), Create(2), Join(1), Join(2)]),
        ("t0.1", spinning),
        ("t0.2", vec![Gate(A)]),
    ];
    let turns = [to("t0.1", A, 1), to("t0.2", A, 1), end("t0.2")];
    let left_after = |gates: u64| {
        let mut world = followed(&programs, &turns);
        world.core.gates = gates;
        assert_eq!(world.run(), End::All);
        (world.core.left.map(|left| (left.line, left.reason)), world.sites(A))
    };
    assert_eq!(left_after(20), (Some((2, LeftReason::Late)), vec![2, 1]));
    assert_eq!(left_after(100), (None, vec![2, 1]));
    assert_eq!(left_after(u64::MAX), (None, vec![2, 1]));
}

/// A server goes on for ever.
#[test]
fn behind_the_schedule_no_more_is_passed_than_was_asked_for() {
    let rounds = 3 * usize::try_from(QUANTUM).unwrap();
    let spinning: Vec<Op> = std::iter::repeat_n(Gate(B), rounds).chain([Gate(A)]).collect();
    let programs = [
        ("t0", vec![Create(1), Create(2), Join(1), Join(2)]),
        ("t0.1", spinning),
        ("t0.2", vec![Gate(A)]),
    ];
    let run = |turns: &[Turn], tail: u64| {
        let mut world = followed(&programs, turns);
        world.core.tail = tail;
        (world.run(), world.core.left.is_some())
    };
    let schedule = [to("t0.2", A, 1), to("t0.1", B, 1)];
    assert_eq!(run(&schedule, u64::MAX), (End::All, false));
    assert_eq!(run(&schedule, 2 * QUANTUM), (End::Far, false));
    assert_eq!(run(&schedule, 4 * QUANTUM), (End::All, false));
    // What the schedule itself takes does not count.
    assert_eq!(run(&[end("t0.1"), end("t0.2")], 2 * QUANTUM), (End::All, false));
}

/// A timer whose thread alone is to go on behind the schedule never comes to an end.
#[test]
fn a_thread_that_passes_too_many_gates_alone_lets_others_go_on() {
    // Who has the turn keeps it for so long when nobody is held back.
    let rounds = 3 * usize::try_from(QUANTUM).unwrap();
    let spinning: Vec<Op> = std::iter::repeat_n(Gate(B), rounds).chain([Gate(A)]).collect();
    let programs = [
        ("t0", vec![Create(1), Create(2), Join(1), Join(2)]),
        ("t0.1", spinning),
        ("t0.2", vec![Gate(A)]),
    ];
    let turns = [to("t0.2", A, 1), to("t0.1", B, 1)];
    let order_after = |gates: u64| {
        let mut world = followed(&programs, &turns);
        world.core.plan.hold = true;
        world.core.gates = gates;
        assert_eq!(world.run(), End::All);
        (world.core.left.is_some(), world.sites(A))
    };
    assert_eq!(order_after(20), (false, vec![2, 1]));
    assert_eq!(order_after(u64::MAX), (false, vec![1, 2]));
}

/// Its quantum ends with the lock held, each time: a round is of as many points as divide it.
#[test]
fn a_thread_that_looks_under_a_lock_lets_others_have_the_lock() {
    let waited_for = |per_round: u64| {
        let inside = per_round - 3;
        let mut round = vec![Lock(0)];
        round.extend(std::iter::repeat_n(Gate(B), usize::try_from(inside).unwrap()));
        round.extend([Unlock(0), Gate(B)]);
        let rounds = usize::try_from(2 * QUANTUM / per_round).unwrap();
        let looking = std::iter::repeat_n(round, rounds).flatten().chain([Gate(A)]).collect();
        let programs = [
            ("t0", vec![Create(1), Create(2), Join(1), Join(2)]),
            ("t0.1", looking),
            ("t0.2", vec![Lock(0), Gate(A), Unlock(0)]),
        ];
        let mut world = world(&programs, |_| {});
        assert_eq!(world.run(), End::All);
        let first = world.log.iter().position(|entry| *entry == (2, A)).expect("it ran");
        world.log[..first].iter().filter(|entry| entry.0 == 1).count()
    };
    for per_round in 4..12 {
        let points = waited_for(per_round);
        assert!(points < 2000, "{points} points of rounds of {per_round}");
    }
}

/// Random programs under random schedules: no two threads run, every wake-up arrives, every run
/// ends, and in the same way every time.
#[test]
fn random_programs_end_under_all_policies() {
    let mut state = 1u64;
    let mut random = move |below: u64| {
        state = super::core::mix(state);
        state % below
    };
    let mut ends = [0usize; 2];
    for round in 0..3000 {
        let threads = 2 + random(3) as usize;
        let mut programs: Vec<(&'static str, Vec<Op>)> = Vec::new();
        let names = ["t0", "t0.1", "t0.2", "t0.3", "t0.4"];
        for (index, name) in names.iter().enumerate().take(threads) {
            let mut program = Vec::new();
            if index == 0 {
                program.extend((1..threads).map(Create));
            }
            for _ in 0..random(8) {
                let one = |random: &mut dyn FnMut(u64) -> u64| random(2) as usize;
                program.push(match random(13) {
                    0 => Lock(one(&mut random)),
                    1 | 2 => Unlock(one(&mut random)),
                    3 => {
                        let limit = if random(2) == 0 { NEVER } else { random(1000) };
                        Await(one(&mut random), one(&mut random), limit)
                    }
                    4 | 5 => Signal(one(&mut random)),
                    6 => Broadcast(one(&mut random)),
                    7 => Post(one(&mut random)),
                    8 => Take(one(&mut random)),
                    9 => Meet(one(&mut random), 2),
                    10 => Sleep(random(1000)),
                    11 => Yield,
                    _ => Gate(A + random(2)),
                });
            }
            for mutex in 0..2 {
                program.push(Unlock(mutex));
            }
            if index == 0 {
                program.extend((1..threads).map(Join));
            }
            programs.push((name, program));
        }
        let turns: Vec<Turn> = (0..random(10))
            .map(|_| {
                let thread = names[random(5) as usize];
                let site = [A, B, CALL, WAKE, RELOCK, LEAVE, START, EXIT][random(8) as usize];
                match random(4) {
                    0 => end(thread),
                    1 => past(thread, site, 1 + random(3)),
                    _ => to(thread, site, 1 + random(4)),
                }
            })
            .collect();
        let turns = numbered(&turns);
        let hold = random(2) == 0;
        let run = || {
            let mut world = world(&programs, |core| match round % 3 {
                0 => core.follow(plan(&turns, hold), 1 << 30),
                1 => core.perturb(round, 3, 40),
                _ => {}
            });
            let end = world.run();
            let left = world.core.left.map(|left| (left.line, left.reason));
            (end, world.log, world.records, left, world.core.followed)
        };
        let result = run();
        assert_eq!(result, run());
        ends[usize::from(result.0 == End::Deadlock)] += 1;
    }
    assert!(ends[0] > 500 && ends[1] > 500, "{ends:?}");
}

/// Runs a process whose thread `t0.1` goes round a loop, while `t0` waits for its end and `t0.2` for a
/// semaphore that `given` units are given to behind some gates.
fn polling(round: &[Op], given: bool) -> End {
    let polls: &'static [u64] = vec![thread_hash(b"t0.1")].leak();
    let turn = Turn { target: Target::Failure, ..to("t0.1", 0, 0) };
    let rounds: Vec<Op> = round.iter().copied().cycle().take(300_000).collect();
    let mut main = vec![Create(1), Create(2)];
    main.extend(vec![Gate(B); 50_000]);
    main.extend([Post(0), Join(2)]);
    main.extend(given.then_some(Sleep(1 << 40)));
    main.push(Join(1));
    let other = [Take(0), Gate(A)];
    let programs: [(&str, &[Op]); 3] = [("t0", &main), ("t0.1", &rounds), ("t0.2", &other)];
    let mut world = World::new(&programs, |core| {
        core.follow(Plan { polls, ..plan(&[turn], true) }, 1 << 40);
    });
    let end = world.run();
    assert!(world.sites(A).contains(&2), "the others got on first");
    end
}

#[test]
fn threads_that_poll_are_stuck_when_nobody_else_gets_on() {
    assert_eq!(polling(&[Gate(A)], false), End::Stuck);
    assert_eq!(polling(&[Gate(A), Sleep(1000)], false), End::Stuck);
    // Somebody still sleeps: that has an end.
    assert_eq!(polling(&[Gate(A)], true), End::All);
}
