//! Names of accesses, at every level of optimisation.

use crate::common::{c, cpp, function};
use ir::name::{
    DisplayKind, Part, access_display, access_parts, access_path, argument_part, argument_part_in,
    argument_path, demangle, function_name, global_display, global_path, pointee_size,
};
use ir::types::{GlobalId, InstId, InstKind, Module};

const LEVELS: [&str; 3] = ["-O0", "-O1", "-O2"];

/// The names of what a function accesses by the kind of instruction, in order; accesses to plain
/// local variables, which only -O0 has, are left out.
fn paths(module: &Module, name: &str, wanted: impl Fn(&InstKind) -> bool) -> Vec<String> {
    let f = function(module, name);
    let spilled = |id: &InstId| {
        let address = f.instructions[id.index()].kind.address();
        f.variables.iter().any(|v| v.address && Some(v.value) == address)
    };
    crate::common::instructions(f, wanted)
        .into_iter()
        .filter(|id| !spilled(id))
        .filter_map(|id| access_path(module, f, id))
        .collect()
}

pub fn stored(module: &Module, name: &str) -> Vec<String> {
    paths(module, name, |kind| matches!(kind, InstKind::Store { .. }))
}

pub fn loaded(module: &Module, name: &str) -> Vec<String> {
    paths(module, name, |kind| matches!(kind, InstKind::Load { .. }))
}

fn global(module: &Module, name: &str) -> GlobalId {
    let index = module.globals.iter().position(|global| global.name == name);
    GlobalId(u32::try_from(index.expect("the global")).expect("small"))
}

const QUEUE: &str = "
    struct slot { long key; int value; char tag[4]; };
    struct queue { int filled; struct slot slots[8]; struct queue *next; int head, tail; };
    struct queue *q; struct queue all[4]; int total; int grid[3][5]; int at;
";

fn queue(level: &str, body: &str) -> Module {
    c(level, &format!("{QUEUE} {body}"))
}

/// A count in front of what a reference leads to belongs to what holds both.
#[test]
fn what_lies_in_front_of_a_referred_object_is_no_element_before_it() {
    for level in LEVELS {
        let source = "
            struct host { long name, port, used; };
            struct counted { long strong, weak; host data; };
            long f(counted **at) { host &own = (*at)->data; return own.port * (*at)->strong; }
        ";
        let module = cpp(level, source);
        let names = loaded(&module, "_Z1fPP7counted");
        assert!(names.iter().any(|name| name == "(*at)->strong"), "{level}: {names:?}");
        assert!(names.iter().all(|name| !name.contains("[-1]")), "{level}: {names:?}");
    }
}

#[test]
fn the_element_behind_the_links_of_a_node() {
    for level in LEVELS {
        let of = |base: &str| {
            let source = format!(
                "struct {base} {{ {base} *next, *prev; }}; struct node : {base} {{ long value[4]; }};
                 long f({base} *it) {{ return static_cast<node *>(it)->value[3]; }}"
            );
            let module = cpp(level, &source);
            loaded(&module, &module.functions[0].name).pop()
        };
        assert_eq!(of("_List_node_base").as_deref(), Some("*it"), "{level}");
        assert_eq!(of("link").as_deref(), Some("it[2].prev"), "{level}");
    }
}

#[test]
fn the_parts_of_a_variable_that_the_optimiser_split() {
    let source = "static struct { int low, high; long version; } limits = { 1, 2, 3 };
                  void f(void) { limits.low += 10; limits.high += 20; limits.version++; }
                  int g(void) { return limits.high - limits.low + (int) limits.version; }";
    for level in LEVELS {
        let module = c(level, source);
        assert_eq!(
            stored(&module, "f"),
            ["limits.low", "limits.high", "limits.version"],
            "{level}"
        );
        if level != "-O0" {
            let parts = ["limits.0", "limits.1", "limits.2"].map(|name| global(&module, name));
            let sizes = [4, 4, 8];
            let names =
                parts.iter().zip(sizes).map(|(&id, size)| global_path(&module, id, 0, size));
            let names: Vec<String> = names.flatten().collect();
            assert_eq!(names, ["limits.low", "limits.high", "limits.version"], "{level}");
        }
    }
}

#[test]
fn members_behind_pointers_and_in_globals() {
    for level in LEVELS {
        let module = queue(
            level,
            "void f(struct queue *p) { p->filled = 1; q->head = 2; all[2].tail = 3; total = 4;
             q->next->slots[1].value = 5; all[1].slots[3].tag[2] = 6; }",
        );
        assert_eq!(
            stored(&module, "f"),
            [
                "p->filled",
                "q->head",
                "all[2].tail",
                "total",
                "q->next->slots[1].value",
                "all[1].slots[3].tag[2]",
            ],
            "{level}"
        );
    }
}

#[test]
fn variable_indices_carry_their_names() {
    for level in LEVELS {
        let module = queue(
            level,
            "int unseen(void);
             void f(struct queue *p, int i, int j) {
                 p->slots[i].value = 1; grid[i][j] = 2; grid[j][2] = 3; all[i].slots[j].key = 4;
                 p->slots[p->head].key = 5; grid[at][unseen()] = 6; }
             void g(int *a, char *b, int n) { a[n] = 1; b[n] = 2; a[3] = 3; *a = 4; b[n + 1] = 5; }",
        );
        assert_eq!(
            stored(&module, "f"),
            [
                "p->slots[i].value",
                "grid[i][j]",
                "grid[j][2]",
                "all[i].slots[j].key",
                "p->slots[p->head].key",
                "grid[at][..]",
            ],
            "{level}"
        );
        assert_eq!(stored(&module, "g"), ["a[n]", "b[n]", "a[3]", "*a", "b[n+1]"], "{level}");
    }
}

#[test]
fn local_objects_and_loops() {
    for level in LEVELS {
        let module = queue(
            level,
            "void take(struct queue *);
             void f(void) { struct queue mine; mine.filled = 1; mine.slots[2].key = 2; take(&mine); }
             int g(struct queue *p) { int sum = 0; while (p) { sum += p->filled; p = p->next; }
                                      return sum; }
             void h(int n) { for (int i = 0; i < n; i++) all[i].filled = 0; }",
        );
        assert_eq!(stored(&module, "f"), ["mine.filled", "mine.slots[2].key"], "{level}");
        assert_eq!(loaded(&module, "g"), ["p->filled", "p->next"], "{level}");
        // The loop may be unrolled.
        let stores = stored(&module, "h");
        assert!(!stores.is_empty() && stores.iter().all(|path| path == "all[i].filled"), "{level}");
    }
}

#[test]
fn unions_bit_fields_and_pointers_to_pointers() {
    let source = "struct u { int tag; union { long whole; int half; }; unsigned a : 3, b : 5;
                               unsigned wide; } ;
        void f(struct u *p, int **pp, void *raw) {
            p->whole = 1; p->b = 3; p->wide = 4; **pp = 5; pp[2] = 0;
            *(int *)raw = 6; }
        void g(struct u *p) { p->half = 2; }";
    for level in LEVELS {
        let module = c(level, source);
        assert_eq!(
            stored(&module, "f"),
            ["p->whole", "p->{a,b}", "p->wide", "**pp", "pp[2]", "*raw"],
            "{level}"
        );
        assert_eq!(stored(&module, "g"), ["p->half"], "{level}");
    }
}

#[test]
fn of_a_unions_members_the_one_with_such_an_object_is_named() {
    let source = "struct event { int value; long lock[5]; long cond[6]; };
        struct device { int kind; union {
            struct { void *ports[32]; int count; } jack;
            struct { long time; struct event asked, done; } null; }; };
        void wait(void *cond, void *lock);
        void f(struct device *d) { wait(d->null.done.cond, d->null.done.lock); d->null.asked.value = 1; }";
    for level in LEVELS {
        let module = c(level, source);
        let found = function(&module, "f");
        let call = crate::common::instructions(found, |kind| kind.as_call().is_some()).pop();
        let call = call.expect("a call");
        let name = |argument, size| argument_path(&module, found, call, argument, Some(size));
        assert_eq!(name(0, 48).as_deref(), Some("d->null.done.cond"), "{level}");
        assert_eq!(name(1, 40).as_deref(), Some("d->null.done.lock"), "{level}");
        assert_eq!(stored(&module, "f"), ["d->null.asked.value"], "{level}");
    }
}

#[test]
fn classes_references_and_statics() {
    let source = "#include <atomic>
        namespace bank { struct Account { long id; int balance; };
          struct Base { int kind; virtual ~Base() {} };
          struct Savings : Base { Account account; static int opened; int rate;
            void touch() { rate = 7; } };
          int Savings::opened; Account accounts[4]; std::atomic<int> hits; }
        void f(bank::Savings &s, bank::Account &a, int &n) {
            s.kind = 1; s.account.balance = 2; a.id = 3; n = 4; bank::Savings::opened = 5;
            bank::accounts[3].balance = 6; }
        int main(int argc, char **) { bank::Savings s; s.touch(); return s.rate; }";
    for level in LEVELS {
        let module = cpp(level, source);
        assert_eq!(
            stored(&module, "_Z1fRN4bank7SavingsERNS_7AccountERi"),
            ["s.kind", "s.account.balance", "a.id", "n", "opened", "accounts[3].balance"],
            "{level}"
        );
        let hits = global(&module, "_ZN4bank4hitsE");
        assert_eq!(global_path(&module, hits, 0, 4).as_deref(), Some("hits"), "{level}");
    }
    let module = cpp("-O0", source);
    assert_eq!(stored(&module, "_ZN4bank7Savings5touchEv").last().unwrap(), "this->rate");
}

/// A holder of a lock that is inlined has the same value as the object which begins with the lock.
#[test]
fn of_variables_with_the_same_value_the_fitting_one_is_chosen() {
    let source = "#include <mutex>
        struct Own { std::mutex &held; explicit Own(std::mutex &m) : held(m) { held.lock(); }
                     ~Own() { held.unlock(); } };
        struct Buffer { std::mutex lock; long tail; int count;
            void cut(int n) { std::lock_guard<std::mutex> guard(lock); count = n; }
            void grow(int n) { Own own(lock); count = n; tail = n; } };
        struct Head { long first, second; };
        void touch(long *first) { first[0] = 1; }
        void f(Buffer *b) { b->cut(1); b->grow(2); }
        void g(Head *head) { touch(&head->first); head->second = 2; }";
    for level in LEVELS {
        let module = cpp(level, source);
        if level != "-O0" {
            let f = stored(&module, "_Z1fP6Buffer");
            assert_eq!(f, ["b->count", "b->count", "b->tail"], "{level}");
            // In `touch`, the source says `first`.
            assert_eq!(stored(&module, "_Z1gP4Head"), ["*first", "head->second"], "{level}");
        } else {
            let cut = stored(&module, "_ZN6Buffer3cutEi");
            assert_eq!(cut.last().map(String::as_str), Some("this->count"));
        }
    }
}

/// The compiler may see an element far in front of the one that it began with, where the source has an object of another
/// type that the array follows.
#[test]
fn what_lies_in_front_of_an_array() {
    let body = "struct worker { long low, high; int state; long number; char rest[32]; };
         struct pool { long arrived; char rest[112]; long wanted; struct worker workers[]; };
         void lock(struct pool *);
         static void arrive(struct pool *pool) { lock(pool); pool->arrived = pool->arrived + 1; }
         void run(void *argument) {
             struct worker *self = (struct worker *)argument;
             struct pool *pool = (struct pool *)(self - self->number) - 1;
             arrive(pool);
             while (self->state != 2) arrive(pool);
         }";
    for level in ["-O1", "-O2"] {
        assert_eq!(stored(&c(level, body), "run"), ["pool->arrived", "pool->arrived"], "{level}");
    }
}

/// An element of the array at the end of a structure may be as large as all that stands before it: then an index is none
/// of an array of structures either.
#[test]
fn the_elements_of_an_array_without_a_length() {
    let body = "struct slot { unsigned next; int owner; int payload; };
         struct pool { unsigned count, head, failures; struct slot slots[]; };
         void give(struct pool *p, unsigned h) { p->slots[h].next = p->head; p->slots[h + 1].owner = 1; p->head = h; }";
    for level in LEVELS {
        let names = stored(&c(level, body), "give");
        let names: Vec<&str> =
            names.iter().map(String::as_str).filter(|n| n.contains("->")).collect();
        assert_eq!(names, ["p->slots[h].next", "p->slots[h+1].owner", "p->head"], "{level}");
    }
}

#[test]
fn the_holder_of_a_lock_names_the_lock_of_the_object() {
    let source = "#include <mutex>
        struct Buffer { std::mutex lock; int count; };
        void f(Buffer *b) { std::lock_guard<std::mutex> guard(b->lock); b->count = 1; }";
    for level in ["-O1", "-O2"] {
        let module = cpp(level, source);
        let f = function(&module, "_Z1fP6Buffer");
        let calls = crate::common::instructions(f, |kind| {
            let call = kind.as_call().and_then(|call| call.target(&module));
            call.is_some_and(|callee| callee.name.starts_with("pthread_mutex_"))
        });
        assert_eq!(calls.len(), 2, "{level}");
        for call in calls {
            let path = argument_path(&module, f, call, 0, Some(40));
            assert_eq!(path.as_deref(), Some("b->lock"), "{level}");
        }
    }
}

/// What Rust's library keeps in a variable of its own, as who holds a lock does, is no name that the program has for it.
#[test]
fn a_variable_of_rusts_library_leaves_the_name_to_others() {
    let source = |file: &str| {
        format!(
            "struct guard {{ int &lock; }}; struct pool {{ long id; int mask; }};
# 1 \"{file}\"
static inline __attribute__((always_inline)) void give_back(int &place) {{ guard self{{place}}; self.lock = 0; }}
# 4 \"pool.rs\"
void f(pool *p) {{ give_back(p->mask); }}"
        )
    };
    let name = |file| stored(&cpp("-O0", &source(file)), "_Z1fP4pool").pop();
    assert_eq!(name("pool.rs").as_deref(), Some("self.lock"));
    assert_eq!(name("/rustc/1/library/std/src/sync/mutex.rs").as_deref(), Some("*self.lock"));
}

/// Which member of a union it is, and which variant of an `enum` in Rust, the type does not say, but who copied it from there.
#[test]
fn what_could_be_one_of_several_is_called_as_its_copy() {
    let source = "struct Thread { long id; int woken; }; struct Barrier { long id; int count; };
        union Wake { Thread *one; Barrier *all; };
        void drop(Barrier **);
        void f(Wake *wake) { Barrier *barrier = wake->all; barrier->count = 0; drop(&barrier); }
        void g(Wake *wake) { wake->one->woken = 1; }";
    for level in ["-O1", "-O2"] {
        let module = cpp(level, source);
        let counted = stored(&module, "_Z1fP4Wake");
        assert!(counted.iter().any(|name| name == "barrier->count"), "{level}: {counted:?}");
        assert_eq!(stored(&module, "_Z1gP4Wake"), ["wake->one->woken"], "{level}");
    }
}

/// At -O0 such functions have parameters in variables of their own, which say less.
#[test]
fn what_an_inlined_function_of_a_library_gets() {
    let source = "#include <atomic>
        struct Bucket { int size; std::atomic<int> tokens; };
        void f(Bucket &b) { b.tokens.store(b.tokens.load() + 1); }
        struct Pool { std::atomic<int> left; void g() { left.store(1); } };
        void h(Pool &p) { p.g(); }";
    for level in LEVELS {
        let module = cpp(level, source);
        assert_eq!(stored(&module, "_Z1fR6Bucket").last().unwrap(), "b.tokens", "{level}");
        assert_eq!(loaded(&module, "_Z1fR6Bucket").last().unwrap(), "b.tokens", "{level}");
        let inner = if level == "-O0" { "_ZN4Pool1gEv" } else { "_Z1hR4Pool" };
        let name = if level == "-O0" { "this->left" } else { "p.left" };
        assert_eq!(stored(&module, inner).last().unwrap(), name, "{level}");
    }
}

#[test]
fn parts_of_what_a_call_gets() {
    let source = "struct queue { int head, tail; long slots[4]; };
        void take(struct queue *);
        void f(struct queue *q) { take(q); }";
    for level in LEVELS {
        let module = c(level, source);
        let f = function(&module, "f");
        let call = crate::common::instructions(f, |kind| {
            kind.as_call().is_some_and(|call| {
                call.target(&module).is_some_and(|callee| callee.name == "take")
            })
        })[0];
        let part = |offset, part| argument_part(&module, f, call, (0, offset), part);
        assert_eq!(part(4, Part::Bytes(4)).as_deref(), Some("q->tail"), "{level}");
        assert_eq!(part(24, Part::Bytes(8)).as_deref(), Some("q->slots[2]"), "{level}");
        assert_eq!(part(8, Part::Object(Some(32))).as_deref(), Some("q->slots"), "{level}");
        assert_eq!(pointee_size(&module, f, 0), Some(40), "{level}");
    }
}

#[test]
fn each_function_has_its_own_word_for_what_is_passed_on() {
    let source = "struct lock { long words[5]; };
        struct pool { int size; struct lock lock; };
        struct house { int rooms; struct pool pool; };
        void take(struct lock *);
        static inline __attribute__((always_inline)) void add(struct pool *self) { take(&self->lock); }
        void serve(struct house *house) { add(&house->pool); }
        struct house *only;
        void all(void) { add(&only->pool); }";
    for level in LEVELS {
        let module = c(level, source);
        let names = |caller: &str| {
            let caller = function(&module, caller);
            let call = crate::common::instructions(caller, |kind| {
                kind.as_call().is_some_and(|call| {
                    call.target(&module).is_some_and(|callee| callee.name == "take")
                })
            })[0];
            [0, 1, 2].map(|inner| {
                argument_part_in(&module, caller, (call, inner), (0, 0), Part::Object(Some(40)))
            })
        };
        let words = |words: [Option<&str>; 3]| words.map(|word| word.map(str::to_owned));
        let expected = words([Some("self->lock"), Some("house->pool.lock"), None]);
        assert_eq!(names("serve"), expected, "{level}");
        let expected = words([Some("self->lock"), Some("only->pool.lock"), None]);
        assert_eq!(names("all"), expected, "{level}");
    }
}

#[test]
fn wrapped_and_captured_pointers() {
    let source = "#include <memory>
        #include <vector>
        struct Node { long key; int done; Node *next; };
        struct Link { Node *node; };
        Link first(); std::unique_ptr<Node> kept; std::vector<int> numbers;
        void f() { Link link = first(); link.node->done = 1; }
        void g() { kept->done = 2; numbers[3] = 3; }
        struct Job { long id; int done; int run(int n) {
            auto finish = [this, &n] { done = n; n = 5; }; return call(finish); }
            template <class F> __attribute__((noinline)) static int call(F &f) { f(); return 1; } };
        int h(Job &job) { return job.run(3); }
        struct Sum { int items; }; template <class F> struct Task { long id; F body;
            __attribute__((noinline)) void run() { body(); } };
        template <class F> void start(F f) { Task<F> task{1, f}; task.run(); }
        void k(Sum &sum) { start([&sum] { sum.items = 4; }); }";
    for level in LEVELS {
        let module = cpp(level, source);
        assert_eq!(stored(&module, "_Z1fv").last().unwrap(), "link.node->done", "{level}");
        if level != "-O0" {
            assert_eq!(stored(&module, "_Z1gv"), ["kept->done", "numbers[3]"], "{level}");
        }
        let (lambda, names) = match level {
            "-O0" => ("_ZZN3Job3runEiENKUlvE_clEv", ["this->done", "n"]),
            _ => ("_ZN3Job4callIZNS_3runEiEUlvE_EEiRT_", ["this->done", "n"]),
        };
        assert_eq!(stored(&module, lambda), names, "{level}");
        // Whoever keeps a lambda expression, what it captures is called as it is there.
        if level != "-O0" {
            let kept = "_ZN4TaskIZ1kR3SumE3$_0E3runEv";
            assert_eq!(stored(&module, kept), ["sum.items"], "{level}");
        }
    }
}

#[test]
fn globals_by_offset() {
    let module = queue("-O0", "void *keep[] = {&q, &all, &total, &grid}; void f(void) { at = 1; }");
    let path = |name, offset, size| global_path(&module, global(&module, name), offset, size);
    assert_eq!(path("total", 0, 4).as_deref(), Some("total"));
    assert_eq!(path("grid", 4 * 7, 4).as_deref(), Some("grid[1][2]"));
    assert_eq!(path("all", 0, 4).as_deref(), Some("all[0].filled"));
    assert_eq!(path("all", 8 + 16 + 8, 4).as_deref(), Some("all[0].slots[1].value"));
    assert_eq!(path("all", 8 + 12, 1).as_deref(), Some("all[0].slots[0].tag[0]"));
    assert_eq!(path("all", 0, 0).as_deref(), Some("all"));
}

#[test]
fn objects_that_calls_get() {
    let source = "#include <pthread.h>
        struct q { pthread_mutex_t lock; int filled; pthread_cond_t ready; } *q;
        struct first { int x; } *other; pthread_mutex_t global_lock;
        void take(struct first *);
        void f(struct q *p) { pthread_mutex_lock(&p->lock); pthread_cond_wait(&q->ready, &q->lock);
            pthread_mutex_unlock(&global_lock); take(other); }";
    for level in LEVELS {
        let module = c(level, source);
        let f = function(&module, "f");
        let calls = crate::common::instructions(f, |kind| {
            kind.as_call()
                .and_then(|call| call.target(&module))
                .is_some_and(|callee| !callee.intrinsic)
        });
        let path =
            |call: usize, argument, size| argument_path(&module, f, calls[call], argument, size);
        assert_eq!(path(0, 0, Some(40)).as_deref(), Some("p->lock"), "{level}");
        assert_eq!(path(1, 0, Some(48)).as_deref(), Some("q->ready"), "{level}");
        assert_eq!(path(1, 1, Some(40)).as_deref(), Some("q->lock"), "{level}");
        assert_eq!(path(2, 0, Some(40)).as_deref(), Some("global_lock"), "{level}");
        assert_eq!(path(3, 0, None).as_deref(), Some("*other"), "{level}");
        assert_eq!(access_path(&module, f, calls[3]).as_deref(), Some("*other"), "{level}");
    }
}

#[test]
fn values_are_shown_as_the_source_types_them() {
    let source = "#include <stdbool.h>
        #include <stdint.h>
        struct s { int i; unsigned u; char c; uint8_t byte; bool flag; double d; void *p;
                   enum { A, B } e; _Atomic long a; } s;
        void f(int i, void *p) { s.i = i; s.u = i; s.c = i; s.byte = i; s.flag = i; s.d = i;
                                 s.p = p; s.e = i; s.a = i; }";
    for level in LEVELS {
        let module = c(level, source);
        let f = function(&module, "f");
        let kinds: Vec<(String, DisplayKind)> =
            crate::common::instructions(f, |kind| matches!(kind, InstKind::Store { .. }))
                .into_iter()
                .filter_map(|id| Some((access_path(&module, f, id)?, id)))
                .filter(|(path, _)| path.starts_with("s."))
                .map(|(path, id): (String, InstId)| (path, access_display(&module, f, id)))
                .collect();
        let kinds: Vec<(&str, DisplayKind)> =
            kinds.iter().map(|(path, kind)| (path.as_str(), *kind)).collect();
        assert_eq!(
            kinds,
            [
                ("s.i", DisplayKind::Signed),
                ("s.u", DisplayKind::Unsigned),
                ("s.c", DisplayKind::Char),
                ("s.byte", DisplayKind::Unsigned),
                ("s.flag", DisplayKind::Bool),
                ("s.d", DisplayKind::Float),
                ("s.p", DisplayKind::Pointer),
                ("s.e", DisplayKind::Signed),
                ("s.a", DisplayKind::Signed),
            ],
            "{level}"
        );
    }
}

#[test]
fn functions_have_readable_names() {
    assert_eq!(demangle("_ZN4bank7Account7depositEi"), "bank::Account::deposit");
    assert_eq!(demangle("main"), "main");
    assert_eq!(demangle("f"), "f", "it is no type");
    assert_eq!(demangle("_ZZZ"), "_ZZZ");
    let module = cpp("-O1", "namespace n { int g(int x) { return x; } }");
    assert_eq!(function_name(&module, function(&module, "_ZN1n1gEi")), "g");
}

#[test]
fn a_member_whose_type_is_only_declared_has_its_name() {
    // The constructor is elsewhere, and with it what the debug information says about the type.
    for level in LEVELS {
        let module = cpp(
            level,
            "struct Bell { Bell(); ~Bell(); void ring(); private: char inside[48]; };
             struct Pool { long jobs; Bell wake; Bell end; int left; void stop(); };
             void Pool::stop() { wake.ring(); end.ring(); left = 1; }",
        );
        let f = function(&module, "_ZN4Pool4stopEv");
        let calls = crate::common::instructions(f, |kind| kind.as_call().is_some());
        let rung: Vec<String> =
            calls.into_iter().filter_map(|call| argument_path(&module, f, call, 0, None)).collect();
        assert_eq!(rung, ["this->wake", "this->end"], "{level}");
        assert!(stored(&module, "_ZN4Pool4stopEv").contains(&"this->left".to_owned()), "{level}");
    }
}

/// Of a static variable that only ever has two values the optimiser keeps which of them it has.
#[test]
fn a_variable_of_two_values_is_shown_with_those_of_the_source() {
    let source = "static int running = 1, limit = -5;
                  int look(void) { return running; } int most(void) { return limit; }
                  void stop(void) { running = 0; limit = 20; }";
    let shown = |level: &str, name: &str, size: u64| {
        let module = c(level, source);
        global_display(&module, global(&module, name), 0, size)
    };
    assert_eq!(shown("-O0", "running", 4), Some(DisplayKind::Signed));
    assert_eq!(shown("-O1", "running", 1), Some(DisplayKind::Either([1, 0])));
    assert_eq!(shown("-O2", "limit", 1), Some(DisplayKind::Either([-5, 20])));
}

/// An object that is allocated once for all may become a global, and the pointer to it is gone.
#[test]
fn an_object_that_became_a_global_is_named_by_its_pointer() {
    let source = "
        void *calloc(unsigned long, unsigned long);
        struct account { int id; long balance; int log[4]; };
        static struct account *shared;
        void start(void) { shared = calloc(1, sizeof *shared); }
        void pay(void) { if (shared) shared->balance++; }
        int logged(int i) { return shared->log[i]; }";
    let module = c("-O1", source);
    let body = global(&module, "shared.body");
    assert_eq!(global_path(&module, body, 8, 8).as_deref(), Some("shared->balance"));
    assert_eq!(global_path(&module, body, 24, 4).as_deref(), Some("shared->log[2]"));
    assert_eq!(global_display(&module, body, 8, 8), Some(DisplayKind::Signed));
    let stores = paths(&module, "pay", |kind| matches!(kind, InstKind::Store { .. }));
    assert!(stores.contains(&"shared->balance".to_owned()), "{stores:?}");
    let loads = paths(&module, "logged", |kind| matches!(kind, InstKind::Load { .. }));
    assert!(loads.iter().any(|path| path.starts_with("shared->log[")), "{loads:?}");
    let done = global(&module, "shared.init");
    assert_eq!(global_path(&module, done, 0, 1).as_deref(), Some("shared"));
}

#[test]
fn several_members_at_once() {
    let source = "
        struct counts { long id; int uses, weak; };
        struct pair { int low, high; };
        union either { long whole; struct pair parts; };
        struct pair current;
        long both(struct counts *c) { return *(long *)&c->uses; }
        void set(struct counts *c, long value) { *(long *)&c->uses = value; }
        long whole(struct pair *p) { return *(long *)p; }
        long same(struct counts *c) { return c->id; }
        long row(int (*grid)[6]) { return *(long *)&(*grid)[2]; }
        long word(struct { long at; char tag[12]; } *t) { return *(long *)t->tag; }
        long one(union either *e) { return e->whole; }
        struct pair copied(void) { return current; }";
    for level in LEVELS {
        let module = c(level, source);
        let is_wide = |f: &str, kind: &InstKind| {
            let stores = matches!(kind, InstKind::Store { .. });
            if f == "set" { stores } else { matches!(kind, InstKind::Load { .. }) }
        };
        let parts = |f: &str| {
            let found = function(&module, f);
            let wide = crate::common::instructions(found, |kind| is_wide(f, kind));
            let mut parts = wide.into_iter().map(|id| access_parts(&module, found, id));
            let parts = parts.find(|parts| !parts.is_empty()).unwrap_or_default();
            parts.iter().map(|p| (p.offset, p.size, p.display)).collect::<Vec<_>>()
        };
        let name = |f: &str| paths(&module, f, |kind| is_wide(f, kind)).pop().unwrap_or_default();
        let two = [(0, 4, DisplayKind::Signed), (4, 4, DisplayKind::Signed)];
        assert_eq!(
            (name("both").as_str(), parts("both")),
            ("c->{uses,weak}", two.into()),
            "{level}"
        );
        assert_eq!((name("set").as_str(), parts("set")), ("c->{uses,weak}", two.into()), "{level}");
        assert_eq!((name("whole").as_str(), parts("whole")), ("*p", two.into()), "{level}");
        assert_eq!((name("same").as_str(), parts("same")), ("c->id", Vec::new()), "{level}");
        assert_eq!(parts("row"), two, "{level}");
        assert_eq!(parts("word"), [], "{level}");
        assert_eq!(parts("one"), [], "{level}");
        if level != "-O0" {
            assert_eq!(parts("copied"), two, "{level}");
        }
    }
}

/// What a call returned a reference to, in the words of who called.
#[test]
fn what_a_call_leads_to() {
    let source = "
        struct item { int id, price; };
        struct list { item all[4]; item &operator[](unsigned long i); item &at(int i); item &back(); item *find(const int &id); };
        __attribute__((noinline)) item &list::operator[](unsigned long i) { return all[i]; }
        __attribute__((noinline)) item &list::at(int i) { return all[i]; }
        __attribute__((noinline)) item &list::back() { return all[3]; }
        __attribute__((noinline)) item *list::find(const int &id) { return all[1].id == id ? &all[1] : nullptr; }
        struct pointer { item *to; item &operator*(); item *operator->(); };
        __attribute__((noinline)) item &pointer::operator*() { return *to; }
        __attribute__((noinline)) item *pointer::operator->() { return to; }
        __attribute__((noinline)) static item *pick(list *of, int i) { return &of->all[i]; }
        __attribute__((noinline)) static item &first(list &of) { return of.all[0]; }
        template <int I> __attribute__((noinline)) item &get(list &of) { return of.all[I]; }
        struct shop { int number; list items; pointer best; };
        void f(shop &s, list *l, int i) {
            s.items[2].price = 1;
            s.items[i].id = 2;
            s.items.back().price = 3;
            l->at(i + 1).price = 4;
            (*l)[3].id = 5;
            l->find(i)->price = 6;
            (*s.best).price = 7;
            s.best->id = 8;
            pick(l, i)->price = 9;
            l->find(7)->id = 10;
            first(*l).id = 11;
            get<1>(*l).id = 12;
        }";
    for level in LEVELS {
        let module = cpp(level, source);
        let name = module.functions.iter().find(|function| function.name.starts_with("_Z1f"));
        let names = stored(&module, &name.expect("the function").name);
        let expected = [
            "s.items[2].price",
            "s.items[i].id",
            "s.items.back().price",
            "l->at(i+1).price",
            "(*l)[3].id",
            "l->find(i)->price",
            "s.best->price",
            "s.best->id",
            "pick(..)->price",
            "l->find(..)->id",
            "first(*l).id",
            "get<1>(*l).id",
        ];
        let known: Vec<&str> =
            names.iter().map(String::as_str).filter(|name| expected.contains(name)).collect();
        assert_eq!(known, expected, "{level}: {names:?}");
    }
}

/// What is behind the object of a base class, or at an offset that nobody knows, has no name, rather than a wrong one.
#[test]
fn what_is_no_member_is_not_called_one() {
    let source = "
        template <class T> struct base { int n; void up() { static_cast<T *>(this)->m = 1; n = 2; } };
        struct leaf : base<leaf> { int m; };
        struct shop { long first; leaf of; int plain; };
        void f(shop &s) { s.of.up(); }
        void g(shop &s, int shop::*member) { s.*member = 3; }";
    for level in LEVELS {
        let module = cpp(level, source);
        let names = |start: &str| {
            let found = module.functions.iter().filter(|f| f.name.contains(start));
            found.flat_map(|f| stored(&module, &f.name)).collect::<Vec<_>>()
        };
        let up = if level == "-O0" { names("2upEv") } else { names("_Z1f") };
        let expected: &[&str] = if level == "-O0" { &["this->n"] } else { &["s.of.m", "s.of.n"] };
        assert_eq!(up, expected, "{level}");
        assert!(names("_Z1g").iter().all(|name| name != "s.first"), "{level}: {:?}", names("_Z1g"));
    }
}
