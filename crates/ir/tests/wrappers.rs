//! Which functions do nothing but take a lock that their caller names.

mod common;

use common::{c, cpp, function};
use ir::types::Module;
use ir::wrappers::{Wrapper, wrapper};

const HEAD: &str = "#include <pthread.h>
    #include <semaphore.h>
    #include <stdlib.h>
    struct lock { long owner; pthread_mutex_t mutex; pthread_cond_t ready; };
    typedef struct lock *handle; ";

fn of(module: &Module, name: &str) -> Option<Wrapper> {
    wrapper(module, function(module, name))
}

fn at(parameter: usize, offset: i64, pointer: bool) -> Option<Wrapper> {
    Some(Wrapper { parameter, offset, pointer })
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
