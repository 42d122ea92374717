//! Which functions do nothing but take a lock that their caller names.

mod common;

use common::{c, cpp, function};
use ir::types::{FuncId, Function, Module};
use ir::wrappers::{Bodies, NoBodies, Origin, Wrapper, wrapper};

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
