//! Which functions do nothing but take a lock that their caller names.

use crate::common::{c, cpp, function};
use ir::types::{Callee, FuncId, Function, InstId, Module};
use ir::wrappers::{Bodies, NoBodies, Origin, Wrapper, behind, inlined, wrapper};

const HEAD: &str = "#include <pthread.h>
    #include <semaphore.h>
    #include <stdlib.h>
    struct lock { long owner; pthread_mutex_t mutex; pthread_cond_t ready; };
    typedef struct lock *handle; ";

fn of(module: &Module, name: &str) -> Option<Origin> {
    whole(module, name).map(|wrapper| wrapper.object)
}

fn whole(module: &Module, name: &str) -> Option<Wrapper> {
    wrapper(module, function(module, name), &NoBodies)
}

fn at(parameter: usize, offset: i64, pointer: bool) -> Option<Origin> {
    Some(Origin { parameter, offset, pointer })
}

/// One other module, in which functions are found by their names.
struct Other(Module);

impl Bodies for Other {
    fn body<'m>(&'m self, module: &'m Module, id: FuncId) -> Option<(&'m Module, &'m Function)> {
        let name = &module.functions.get(id.index())?.name;
        let mut functions = self.0.functions.iter();
        let found = functions.find(|other| other.name == *name && !other.is_declaration())?;
        Some((&self.0, found))
    }
}

#[test]
fn a_lock_behind_a_parameter_or_a_pointer_there_is_its_callers() {
    let source = format!(
        "{HEAD}
        void take(struct lock *l) {{ pthread_mutex_lock(&l->mutex); l->owner = 1; }}
        int take_by_handle(int how, handle *h) {{
            if (h == NULL || *h == NULL) return 22;
            handle l = *h;
            return how ? pthread_mutex_trylock(&l->mutex) : pthread_mutex_lock(&l->mutex);
        }}
        void give(struct lock *l) {{ if (pthread_mutex_unlock(&l->mutex) != 0) abort(); }}
        void give_second(struct lock *l) {{ give(l + 1); }}
        void await(struct lock *l) {{ pthread_cond_wait(&l->ready, &l->mutex); }}
        void post(void *s) {{ sem_post(s); }}"
    );
    for level in ["-O0", "-O2"] {
        let module = c(level, &source);
        assert_eq!(of(&module, "take"), at(0, 8, false), "{level}");
        assert_eq!(of(&module, "take_by_handle"), at(1, 0, true), "{level}");
        assert_eq!(of(&module, "give"), at(0, 8, false), "{level}");
        assert_eq!(of(&module, "give_second"), at(0, 104, false), "{level}");
        assert_eq!(of(&module, "await"), at(0, 48, false), "{level}");
        assert_eq!(of(&module, "post"), at(0, 0, false), "{level}");
    }
}

#[test]
fn what_does_more_or_names_the_lock_itself_is_none() {
    let source = format!(
        "{HEAD}
        extern struct lock one; extern int size; void other(void); void use(struct lock *);
        void own(void) {{ pthread_mutex_lock(&one.mutex); }}
        void adds(struct lock *l) {{
            pthread_mutex_lock(&l->mutex); size++; pthread_mutex_unlock(&l->mutex);
        }}
        void both(struct lock *a, struct lock *b) {{
            pthread_mutex_lock(&a->mutex); pthread_mutex_lock(&b->mutex);
        }}
        void works(struct lock *l) {{ pthread_mutex_lock(&l->mutex); other(); }}
        void waits(struct lock *l) {{
            pthread_mutex_lock(&l->mutex); pthread_cond_wait(&l->ready, &l->mutex);
        }}
        void gives(struct lock *l) {{ pthread_mutex_unlock(&l->mutex); }}
        void changes(struct lock *l) {{ pthread_mutex_lock(&l->mutex); size++; gives(l); }}
        void makes(struct lock *l) {{ pthread_mutex_init(&l->mutex, NULL); }}"
    );
    for level in ["-O0", "-O1"] {
        let module = c(level, &source);
        for name in ["own", "adds", "both", "works", "waits", "changes", "makes"] {
            assert_eq!(of(&module, name), None, "{name} {level}");
        }
        assert_eq!(of(&module, "gives"), at(0, 8, false), "{level}");
    }
}

#[test]
fn a_class_around_a_lock_is_a_wrapper() {
    let source = "#include <pthread.h>
        struct Mutex {
            void Lock(); void Unlock();
            pthread_mutex_t mu_;
        };
        void Mutex::Lock() { pthread_mutex_lock(&mu_); }
        void Mutex::Unlock() { pthread_mutex_unlock(&mu_); }";
    let module = cpp("-O0", source);
    assert_eq!(of(&module, "_ZN5Mutex4LockEv"), at(0, 0, false));
    assert_eq!(of(&module, "_ZN5Mutex6UnlockEv"), at(0, 0, false));
}

#[test]
fn a_guards_constructor_takes_its_parameter() {
    let source = "#include <pthread.h>
        struct Impl { pthread_mutex_t mutex; };
        struct Mutex { void lock(); long uses; Impl *impl; };
        void Mutex::lock() { pthread_mutex_lock(&impl->mutex); }
        struct Guard { Guard(Mutex &mutex); Mutex &held; };
        Guard::Guard(Mutex &mutex) : held(mutex) { held.lock(); }";
    for level in ["-O0", "-O1"] {
        let module = cpp(level, source);
        assert_eq!(of(&module, "_ZN5Mutex4lockEv"), at(0, 8, true), "{level}");
        assert_eq!(of(&module, "_ZN5GuardC2ER5Mutex"), at(1, 8, true), "{level}");
    }
}

#[test]
fn the_lock_that_a_wait_gives_back_is_another_object() {
    let source = format!(
        "{HEAD}
        void await(pthread_cond_t *c, pthread_mutex_t *m) {{ pthread_cond_wait(c, m); }}
        void outer(long how, pthread_mutex_t *m, pthread_cond_t *c) {{ await(c, m); }}
        void member(struct lock *l) {{ pthread_cond_wait(&l->ready, &l->mutex); }}
        extern pthread_mutex_t own;
        void one(pthread_cond_t *c) {{ pthread_cond_wait(c, &own); }}"
    );
    for level in ["-O0", "-O2"] {
        let module = c(level, &source);
        let lock = |name: &str| whole(&module, name).and_then(|wrapper| wrapper.lock);
        assert_eq!(of(&module, "await"), at(0, 0, false), "{level}");
        assert_eq!(lock("await"), at(1, 0, false), "{level}");
        assert_eq!(of(&module, "outer"), at(2, 0, false), "{level}");
        assert_eq!(lock("outer"), at(1, 0, false), "{level}");
        assert_eq!(lock("member"), at(0, 8, false), "{level}");
        assert_eq!(of(&module, "one"), at(0, 0, false), "{level}");
        assert_eq!(lock("one"), None, "{level}");
    }
}

#[test]
fn a_wrapper_of_another_file_is_followed() {
    let inner = format!("{HEAD} void take(struct lock *l) {{ pthread_mutex_lock(&l->mutex); }}");
    let outer = format!(
        "{HEAD} extern void take(struct lock *l); extern void work(struct lock *l);
        struct guarded {{ long value; struct lock *lock; }};
        void enter(struct guarded *g) {{ take(g->lock); }}
        void works(struct guarded *g) {{ take(g->lock); work(g->lock); }}"
    );
    for level in ["-O0", "-O1"] {
        let (module, other) = (c(level, &outer), Other(c(level, &inner)));
        let found = |name: &str| wrapper(&module, function(&module, name), &other);
        assert_eq!(found("enter").map(|wrapper| wrapper.object), at(0, 8, true), "{level}");
        assert_eq!(found("works"), None, "{level}");
        assert_eq!(of(&module, "enter"), None, "{level}");
    }
}

#[test]
fn a_virtual_function_is_called_of_the_callers_object() {
    let source = "#include <pthread.h>
        struct Mutex { virtual void lock(); virtual bool trylock(); pthread_mutex_t mutex; };
        void Mutex::lock() { pthread_mutex_lock(&mutex); }
        struct Guard { Guard(Mutex &mutex, bool waits); Mutex *held; };
        Guard::Guard(Mutex &mutex, bool waits) : held(&mutex) {
            if (waits) mutex.lock(); else if (!mutex.trylock()) held = nullptr;
        }
        void call(void (*function)(Mutex *), Mutex *mutex) { function(mutex); }";
    for level in ["-O0", "-O1"] {
        let module = cpp(level, source);
        let [take, guard] = ["_ZN5Mutex4lockEv", "_ZN5GuardC2ER5Mutexb"]
            .map(|name| whole(&module, name).expect("it is one"));
        assert_eq!(Some(guard.object), at(1, 0, false), "{level}");
        assert!(guard.is_virtual && !take.is_virtual, "{level}");
        assert_eq!(behind(&[take, guard]), at(1, 8, false), "{level}");
        assert_eq!(of(&module, "_Z4callPFvP5MutexES0_"), None, "{level}");
    }
}

#[test]
fn a_condition_variable_of_the_cpp_library_is_its_callers() {
    let source = "#include <condition_variable>
        struct Plain { void tell(); std::mutex m; std::condition_variable c; };
        struct Any { void tell(); std::mutex m; std::condition_variable_any c; };
        struct Monitor { void tell(); Any *impl; };
        void Plain::tell() { c.notify_one(); }
        void Any::tell() { c.notify_all(); }
        void Monitor::tell() { impl->tell(); }
        void both(Plain *p) { p->m.lock(); p->c.notify_one(); p->m.unlock(); }";
    for level in ["-O0", "-O1"] {
        let module = cpp(level, source);
        assert_eq!(of(&module, "_ZN5Plain4tellEv"), at(0, 40, false), "{level}");
        assert_eq!(of(&module, "_ZN3Any4tellEv"), at(0, 40, false), "{level}");
        assert_eq!(of(&module, "_ZN7Monitor4tellEv"), at(0, 0, true), "{level}");
        assert_eq!(of(&module, "_Z4bothP5Plain"), None, "{level}");
    }
}

#[test]
fn who_writes_or_joins_does_more_than_to_tell() {
    let source = format!(
        "{HEAD}
        static inline void tell(struct lock *l) {{ pthread_cond_broadcast(&l->ready); }}
        void tell_all(struct lock *l) {{ tell(l); }}
        void set(struct lock *l) {{ l->owner = 1; pthread_cond_broadcast(&l->ready); }}
        void end(struct lock *l, pthread_t t) {{
            pthread_cond_broadcast(&l->ready); pthread_join(t, NULL);
        }}
        static inline void set_here(struct lock *l) {{ l->owner = 1; tell(l); }}
        static inline void end_here(struct lock *l, pthread_t t) {{
            tell(l); pthread_join(t, NULL);
        }}
        void stop(struct lock *l) {{ set_here(l); }}
        void start(struct lock *l);
        void own(void) {{ struct lock l = {{0}}; start(&l); set_here(&l); }}
        void close(struct lock *l, pthread_t t) {{ end_here(l, t); }}"
    );
    for level in ["-O0", "-O2"] {
        let module = c(level, &source);
        assert_eq!(of(&module, "tell_all"), at(0, 48, false), "{level}");
        assert_eq!(of(&module, "set"), None, "{level}");
        assert_eq!(of(&module, "end"), None, "{level}");
    }
    let module = c("-O2", &source);
    for outer in ["stop", "own", "close"] {
        assert_eq!(inlined_calls(&module, outer, "pthread_cond_broadcast"), [1], "{outer}");
    }
}

/// How many functions that were inlined in `outer` do nothing but take a lock.
fn inlined_in(module: &Module, outer: &str) -> Vec<usize> {
    inlined_calls(module, outer, "pthread_mutex_lock")
}

/// How many functions that were inlined in `outer` do nothing but call this one.
fn inlined_calls(module: &Module, outer: &str, called: &str) -> Vec<usize> {
    let outer = function(module, outer);
    let takes = |id: &InstId| {
        let instruction = &outer.instructions[id.index()];
        let Some(call) = instruction.kind.as_call() else { return false };
        matches!(call.callee, Callee::Direct(id) if module.functions[id.index()].name == called)
    };
    let ids = (0..outer.instructions.len()).map(|at| InstId(at as u32));
    ids.filter(takes).map(|id| inlined(module, outer, id, &NoBodies)).collect()
}

#[test]
fn a_wrapper_that_was_inlined_is_one_still() {
    let source = format!(
        "{HEAD} extern int size; extern void other(void);
        static inline void take(struct lock *l) {{ pthread_mutex_lock(&l->mutex); l->owner = 1; }}
        static inline void give(struct lock *l) {{ pthread_mutex_unlock(&l->mutex); }}
        static inline void enter(struct lock *l) {{ take(l); }}
        static inline void add(struct lock *l) {{ take(l); size++; give(l); }}
        static inline void work(struct lock *l) {{ take(l); other(); }}
        void once(struct lock *l) {{ enter(l); size++; give(l); }}
        void twice(struct lock *l) {{ add(l); add(l); }}
        void works(struct lock *l) {{ work(l); give(l); }}
        static struct lock one;
        static inline void use_one(void) {{ size++; pthread_mutex_lock(&one.mutex); }}
        void own(struct lock *l) {{ pthread_mutex_lock(&l->mutex); }}
        void known(void) {{ use_one(); size++; }}"
    );
    let module = c("-O2", &source);
    assert_eq!(inlined_in(&module, "known"), [0], "nobody gives it the lock");
    assert_eq!(inlined_in(&module, "once"), [2]);
    assert_eq!(inlined_in(&module, "twice"), [1, 1]);
    assert_eq!(inlined_in(&module, "works"), [1]);
    assert_eq!(inlined_in(&module, "own"), [0]);
}
