//! Which loops wait, so that their rounds may be counted.

use crate::common::{c, cpp, function};
use ir::plan::plan;
use ir::repeats::{Cell, WaitingLoop};
use ir::types::{InstKind, Module};

const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];
const HEAD: &str = "#include <stdatomic.h>
    #include <stdbool.h>
    #include <sched.h>
    atomic_int flag, other, cells[64]; atomic_flag lock = ATOMIC_FLAG_INIT; volatile int plain, turn;
    int table[64]; long total; void act(void);
    #define PAUSE __builtin_ia32_pause()
    ";

/// The loops that certainly wait.
fn found(module: &Module, name: &str) -> Vec<WaitingLoop> {
    let all = plan(module, function(module, name)).repeats.into_values();
    all.filter(|waiting| waiting.certain).collect()
}

/// The loops that look as if they waited.
fn likely(module: &Module, name: &str) -> Vec<WaitingLoop> {
    let all = plan(module, function(module, name)).repeats.into_values();
    all.filter(|waiting| !waiting.certain).collect()
}

/// The waiting loops of a function `f` with this body, at every level.
fn each(body: &str, also: impl Fn(&str, &[WaitingLoop])) {
    let source = format!("{HEAD} int f(int n) {{ {body} }}");
    for level in LEVELS {
        let module = c(level, &source);
        also(level, &found(&module, "f"));
    }
}

fn waits(body: &str) {
    each(body, |level, loops| assert_eq!(loops.len(), 1, "{level}: {body}: {loops:?}"));
}

fn waits_not(body: &str) {
    each(body, |level, loops| assert_eq!(loops, [], "{level}: {body}"));
}

#[test]
fn loops_that_look_wait() {
    waits("while (!atomic_load(&flag)) ; return 0;");
    waits("while (!atomic_load_explicit(&flag, memory_order_acquire)) PAUSE; return 0;");
    waits("while (plain) __asm__ volatile(\"\" ::: \"memory\"); return 0;");
    waits("while (plain && turn == n) ; return 0;");
    waits("do { if (plain == 3) continue; PAUSE; } while (turn < n); return 0;");
    waits("while (!flag) sched_yield(); return 0;");
    waits("int seen; do seen = atomic_load(&flag); while (seen < n); return seen;");
}

#[test]
fn loops_that_update_wait() {
    waits("while (atomic_flag_test_and_set(&lock)) ; return 0;");
    waits("while (atomic_exchange(&flag, 1)) PAUSE; return 0;");
    waits("while (atomic_fetch_or(&flag, 4) & 4) ; return 0;");
    waits(
        "for (;;) { int old = 0; if (atomic_compare_exchange_weak(&flag, &old, 1)) break; PAUSE; } return 0;",
    );
    waits(
        "int old = 0; while (!atomic_compare_exchange_strong(&flag, &old, n)) old = 0; return 0;",
    );
    each(
        "int old = 0; while (!atomic_compare_exchange_strong(&flag, &old, n)) ; return 0;",
        |level, loops| {
            let [one] = loops else { panic!("{level}: {loops:?}") };
            assert_eq!(one.updates.len(), 1, "{level}");
            assert_eq!(one.counters, [], "{level}: what was found is no counter");
        },
    );
}

#[test]
fn loops_of_loops_wait_within() {
    waits("while (atomic_exchange(&flag, 1)) while (atomic_load(&flag)) PAUSE; return 0;");
    let body = "for (int i = 1; i < n; i *= 2) {
            for (int j = 0; j < i; j++) PAUSE;
            if (!flag) act();
        } return 0;";
    // Some levels make two loops of the inner one, with several pauses.
    each(body, |level, loops| assert!(!loops.is_empty(), "{level}"));
    // Compilers give both loops one header.
    each(
        "for (;;) { while (atomic_exchange(&flag, 1)) ; act(); atomic_store(&flag, 0); if (n == turn) return 1; }",
        |level, loops| {
            assert_eq!(loops.len(), 1, "{level}: {loops:?}");
        },
    );
}

#[test]
fn loops_with_loops_within_wait() {
    // Nothing of one round is left for the next.
    let sum = "for (;;) { int sum = 0; for (int j = 0; j < n; j++) sum += atomic_load(&cells[j]);
        if (sum + plain == 0) break; } return 0;";
    each(sum, |level, loops| {
        // Some levels make one loop more, for when the inner one has no round; -O3 gives both one header,
        // whose rounds then go on to another place.
        let is_outer = |it: &&WaitingLoop| it.blocks.len() > 1 && it.loads.len() > 1;
        let outer = loops.iter().find(is_outer);
        assert_eq!(outer.is_some(), level != "-O3", "{level}: {loops:?}");
        assert!(outer.is_none_or(|it| it.counters.is_empty()), "{level}: {loops:?}");
    });
    // A round of the outer loop has all pauses of the inner one.
    let pauses =
        "int tries = 0; while (!atomic_load(&flag)) { for (int i = 0; i < n; i++) PAUSE; tries++; }
        return tries;";
    each(pauses, |level, loops| {
        let is_outer = |it: &WaitingLoop| (it.loads.len(), it.counters.len()) == (1, 1);
        assert!(!loops.is_empty() && loops.iter().all(is_outer), "{level}: {loops:?}");
    });
    // How often the inner loop goes round is left for the next round.
    let counts =
        "int tries = 0; while (!atomic_load(&flag)) for (int i = 0; i < plain; i++) tries++;
        return tries;";
    each(counts, |level, loops| {
        let outer = |it: &&WaitingLoop| it.updates.is_empty() && it.loads.len() > 1;
        assert_eq!(loops.iter().filter(outer).count(), 0, "{level}: {loops:?}");
    });
}

#[test]
fn rounds_are_counted_by_counters() {
    let body = "int j; for (j = 0; j < 1000000; j++) if (atomic_load(&flag)) break; return j;";
    each(body, |level, loops| {
        let [one] = loops else { panic!("{level}: {loops:?}") };
        let [counter] = one.counters[..] else { panic!("{level}: {:?}", one.counters) };
        // Unrolled, a round looks several times.
        assert_eq!(counter.step, one.loads.len() as i64, "{level}");
        assert_eq!(matches!(counter.cell, Cell::Slot(_)), level == "-O0");
    });
    each("while (n -= 3) if (atomic_load(&flag)) return n; return 0;", |level, loops| {
        let [one] = loops else { panic!("{level}: {loops:?}") };
        let steps: Vec<i64> = one.counters.iter().map(|it| it.step).collect();
        assert_eq!(steps, [-3 * one.loads.len() as i64], "{level}");
    });
}

#[test]
fn loops_with_effects_do_not_wait() {
    waits_not("while (atomic_fetch_add(&flag, 1) < n) ; return 0;");
    waits_not("while (!atomic_load(&flag)) plain = n; return 0;");
    waits_not("while (!atomic_load(&flag)) total++; return 0;");
    waits_not("while (!atomic_load(&flag)) act(); return 0;");
    waits_not("while (!atomic_load(&flag)) atomic_store(&other, 1); return 0;");
}

#[test]
fn loops_that_go_on_do_not_wait() {
    // What is looked at is another place in every round.
    waits_not(
        "volatile int *all = table; for (int i = 0; i < n; i++) if (all[i]) return i; return 0;",
    );
    // What is left behind depends on the rounds before.
    waits_not("int sum = 0; while (!atomic_load(&flag)) sum = sum * 3 + plain; return sum;");
    waits_not(
        "int a = 0, b = 1, c; while (!atomic_load(&flag)) { c = a; a = b; b = c; } return a;",
    );
    waits_not("int step = 0; while (!atomic_load(&flag)) step += plain; return step;");
    waits_not("int all = 0; for (int i = 0; !atomic_load(&flag); i++) all |= i; return all;");
    // Nothing that others may change.
    waits_not("for (volatile int i = 0; i < n; i++) ; return 0;");
}

#[test]
fn all_that_a_waiting_loop_loads_is_logged_and_nothing_is_guessed() {
    let body = "int v = plain; while (plain != n || turn == v) ; return plain + v;";
    let source = format!("{HEAD} int f(int n) {{ {body} }}");
    for level in LEVELS {
        let module = c(level, &source);
        let f = function(&module, "f");
        let plan = plan(&module, f);
        let loops: Vec<&WaitingLoop> = plan.repeats.values().collect();
        let [one] = loops[..] else { panic!("{level}: {loops:?}") };
        assert_eq!(one.loads.len(), 2, "{level}");
        for id in &one.loads {
            assert!(matches!(f.instructions[id.index()].kind, InstKind::Load { .. }));
            assert!(plan.values.contains(id) && !plan.guesses.loads.contains(id), "{level}");
        }
    }
}

const CALLS: &str = "int is_set(void); int is_at(int); void swap(int *);
    static __attribute__((noinline)) int looks(void) { return plain; }
    static __attribute__((noinline)) int counts(void) { return ++plain; }
    static __attribute__((noinline)) int many(void) { int k = 0; while (table[k]) k++; return k; }
    static __attribute__((noinline)) int deep(void) { return looks() + looks(); }
    int usleep(unsigned);
    ";

/// The loops of a function `f` with this body that look as if they waited, at every level.
fn each_likely(body: &str, also: impl Fn(&str, &[WaitingLoop])) {
    let source = format!("{HEAD} {CALLS} int f(int n, int (*g)(void)) {{ {body} }}");
    for level in LEVELS {
        let module = c(level, &source);
        assert_eq!(found(&module, "f"), [], "{level}: {body}");
        also(level, &likely(&module, "f"));
    }
}

#[test]
fn loops_with_calls_may_wait() {
    for body in [
        "while (!is_set()) ; return 0;",
        "while (!is_set()) sched_yield(); return 0;",
        "while (!is_at(n)) ; return 0;",
        "while (!looks()) ; return 0;",
        "while (!deep()) usleep(10); return 0;",
        "while (!atomic_load(&flag)) usleep(10); return 0;",
        "while (!g()) ; return 0;",
        "int old = 0; do { old = 0; swap(&old); } while (!old); return 0;",
    ] {
        each_likely(body, |level, loops| {
            assert_eq!(loops.len(), 1, "{level}: {body}: {loops:?}");
            let one = &loops[0];
            assert!(one.loads.is_empty() && one.updates.is_empty(), "{level}: {body}");
            assert_eq!(one.counters, [], "{level}: {body}");
        });
    }
    each_likely("int j = 0; while (!is_set()) j++; return j;", |level, loops| {
        let [one] = loops else { panic!("{level}: {loops:?}") };
        let [counter] = one.counters[..] else { panic!("{level}: {loops:?}") };
        assert_eq!(counter.step, 1, "{level}");
    });
    // Others may see how far it is.
    let seen = "int seen = 0, j = 0; swap(&seen); while (!is_set()) seen = ++j; return seen;";
    each_likely(seen, |level, loops| {
        let [one] = loops else { panic!("{level}: {loops:?}") };
        assert_eq!(one.counters, [], "{level}");
    });
    // What it keeps goes on otherwise than by a constant.
    each_likely("int j = 1; while (!is_set()) j *= 3; return j;", |level, loops| {
        let [one] = loops else { panic!("{level}: {loops:?}") };
        assert_eq!(one.counters, [], "{level}");
    });
}

#[test]
fn loops_with_other_calls_do_not_wait() {
    for body in [
        "while (counts() < n) ; return 0;",
        "while (many() < n) ; return 0;",
        "int j = 0; while (!is_at(j)) j++; return 0;",
        "while (!is_set()) plain = 1; return 0;",
        "while (!is_set()) atomic_fetch_add(&flag, 1); return 0;",
    ] {
        each_likely(body, |level, loops| assert_eq!(loops, [], "{level}: {body}"));
    }
}

#[test]
fn loops_of_cpp_wait_unoptimised() {
    let source = "#include <atomic>
        #include <thread>
        std::atomic<int> flag; std::atomic_flag lock = ATOMIC_FLAG_INIT; bool is_set();
        struct Own { ~Own(); };
        int f(int n) { while (!flag.load(std::memory_order_acquire)) ; return n; }
        void g() { while (lock.test_and_set(std::memory_order_acquire)) std::this_thread::yield(); }
        void h() { int old = 0; while (!flag.compare_exchange_weak(old, 1)) old = 0; }
        void i() { while (flag.exchange(1)) ; }
        void j() { Own own; while (!is_set()) ; }
        struct Job { virtual bool done() = 0; };
        void k(Job *job) { while (!job->done()) ; }";
    let module = cpp("-O0", source);
    for name in ["_Z1fi", "_Z1gv", "_Z1hv", "_Z1iv", "_Z1jv", "_Z1kP3Job"] {
        assert_eq!(found(&module, name).len() + likely(&module, name).len(), 1, "{name}");
    }
}

#[test]
fn loops_of_cpp_wait() {
    let source = "#include <atomic>
        std::atomic<int> flag; std::atomic_flag lock = ATOMIC_FLAG_INIT;
        int f(int n) { while (!flag.load(std::memory_order_acquire)) ; return n; }
        void g() { while (lock.test_and_set(std::memory_order_acquire)) __builtin_ia32_pause(); }
        void h() { int old = 0; while (!flag.compare_exchange_weak(old, 1)) old = 0; }";
    for level in &LEVELS[1..] {
        let module = cpp(level, source);
        for name in ["_Z1fi", "_Z1gv", "_Z1hv"] {
            assert_eq!(found(&module, name).len(), 1, "{level}: {name}");
        }
    }
}
