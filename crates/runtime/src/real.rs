//! The functions behind the interposed ones: the next definition in the dynamic linker's order.

use crate::exported;
use crate::sys::{self, Pthread};
use core::ffi::{CStr, c_char, c_int, c_long, c_uint, c_ulong, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering};

/// A thread's start routine.
pub type StartRoutine = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
/// A C11 thread's start routine.
pub type C11Routine = unsafe extern "C" fn(*mut c_void) -> c_int;
/// `init_routine` of `pthread_once`.
pub type OnceRoutine = unsafe extern "C" fn();
type P = *mut c_void;
type Time = *const c_void;

/// The functions that exist in several versions, with the one that fits the program's objects.
const VERSIONED: [(&CStr, &CStr); 8] = [
    (c"pthread_cond_init", c"GLIBC_2.3.2"),
    (c"pthread_cond_wait", c"GLIBC_2.3.2"),
    (c"pthread_cond_timedwait", c"GLIBC_2.3.2"),
    (c"pthread_cond_signal", c"GLIBC_2.3.2"),
    (c"pthread_cond_broadcast", c"GLIBC_2.3.2"),
    (c"timer_create", c"GLIBC_2.3.3"),
    (c"timer_settime", c"GLIBC_2.3.3"),
    (c"timer_delete", c"GLIBC_2.3.3"),
];

/// Finds a function, once. Of one that exists in several versions that is asked for first which fits the program's
/// objects. Nobody else's version is, nor what no
/// library has: a search in vain allocates, and an allocator (jemalloc, say) locks mutexes, whose functions
/// are looked for here; the program's own may not be ready yet.
pub(crate) fn find(slot: &AtomicUsize, name: *const c_char) -> usize {
    let known = slot.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    // SAFETY: both names end with a zero.
    let address = sys::keeping_errno(|| unsafe {
        let text = CStr::from_ptr(name);
        if !exported::is_elsewhere(text) {
            return null_mut();
        }
        let versioned = match VERSIONED.iter().find(|(name, _)| *name == text) {
            Some((_, version)) => sys::dlvsym(sys::RTLD_NEXT, name, version.as_ptr()),
            None => null_mut(),
        };
        if versioned.is_null() { sys::dlsym(sys::RTLD_NEXT, name) } else { versioned }
    }) as usize;
    slot.store(address, Ordering::Relaxed);
    address
}

macro_rules! real {
    ($($name:ident($($ty:ty),*) $(-> $result:ty)?;)*) => {
        $(
            #[doc = concat!("The program's own `", stringify!($name), "`; none when libc is too old.")]
            #[inline]
            pub fn $name() -> Option<unsafe extern "C" fn($($ty),*) $(-> $result)?> {
                static SLOT: AtomicUsize = AtomicUsize::new(0);
                let address = find(&SLOT, concat!(stringify!($name), "\0").as_ptr().cast());
                // SAFETY: zero is `None`, and anything else is the function of that name, whose
                // type is libc's.
                unsafe { core::mem::transmute(address) }
            }
        )*

        /// Finds all of them, so that no later call, perhaps from a signal handler, has to.
        pub fn find_all() {
            $(let _ = $name();)*
        }
    };
}

real! {
    pthread_create(*mut Pthread, *const c_void, StartRoutine, P) -> c_int;
    pthread_join(Pthread, *mut P) -> c_int;
    pthread_tryjoin_np(Pthread, *mut P) -> c_int;
    pthread_timedjoin_np(Pthread, *mut P, Time) -> c_int;
    pthread_clockjoin_np(Pthread, *mut P, c_int, Time) -> c_int;
    pthread_exit(P);
    timer_create(c_int, *const c_void, *mut usize) -> c_int;
    timer_settime(usize, c_int, *const c_void, P) -> c_int;
    timer_delete(usize) -> c_int;
    mq_notify(c_int, *const c_void) -> c_int;
    pthread_cancel(Pthread) -> c_int;
    pthread_mutex_lock(P) -> c_int;
    pthread_mutex_trylock(P) -> c_int;
    pthread_mutex_timedlock(P, Time) -> c_int;
    pthread_mutex_clocklock(P, c_int, Time) -> c_int;
    pthread_mutex_unlock(P) -> c_int;
    pthread_rwlock_rdlock(P) -> c_int;
    pthread_rwlock_tryrdlock(P) -> c_int;
    pthread_rwlock_timedrdlock(P, Time) -> c_int;
    pthread_rwlock_clockrdlock(P, c_int, Time) -> c_int;
    pthread_rwlock_wrlock(P) -> c_int;
    pthread_rwlock_trywrlock(P) -> c_int;
    pthread_rwlock_timedwrlock(P, Time) -> c_int;
    pthread_rwlock_clockwrlock(P, c_int, Time) -> c_int;
    pthread_rwlock_unlock(P) -> c_int;
    pthread_cond_init(P, *const c_void) -> c_int;
    pthread_cond_wait(P, P) -> c_int;
    pthread_cond_timedwait(P, P, Time) -> c_int;
    pthread_cond_clockwait(P, P, c_int, Time) -> c_int;
    pthread_cond_signal(P) -> c_int;
    pthread_cond_broadcast(P) -> c_int;
    sem_init(P, c_int, c_uint) -> c_int;
    sem_open(*const c_char, c_int, c_uint, c_uint) -> P;
    sem_getvalue(P, *mut c_int) -> c_int;
    sem_wait(P) -> c_int;
    sem_trywait(P) -> c_int;
    sem_timedwait(P, Time) -> c_int;
    sem_clockwait(P, c_int, Time) -> c_int;
    sem_post(P) -> c_int;
    pthread_barrier_init(P, *const c_void, c_uint) -> c_int;
    pthread_barrier_wait(P) -> c_int;
    pthread_spin_lock(P) -> c_int;
    pthread_spin_trylock(P) -> c_int;
    pthread_spin_unlock(P) -> c_int;
    pthread_once(P, OnceRoutine) -> c_int;
    clock_gettime(c_int, P) -> c_int;
    gettimeofday(P, P) -> c_int;
    time(P) -> c_long;
    timespec_get(P, c_int) -> c_int;
    clock() -> c_long;
    sched_getcpu() -> c_int;
    rand() -> c_int;
    random() -> c_long;
    lrand48() -> c_long;
    mrand48() -> c_long;
    drand48() -> f64;
    getrandom(P, usize, c_uint) -> isize;
    getentropy(P, usize) -> c_int;
    _ZNSt18condition_variableC1Ev(P);
    _ZSt13set_terminatePFvvE(usize) -> usize;
    _ZNSt6chrono3_V212system_clock3nowEv() -> i64;
    _ZNSt6chrono3_V212steady_clock3nowEv() -> i64;
    _ZNSt13random_device9_M_getvalEv(P) -> c_uint;
    _ZNSt3__16chrono12system_clock3nowEv() -> i64;
    _ZNSt3__16chrono12steady_clock3nowEv() -> i64;
    _ZNSt3__113random_deviceclEv(P) -> c_uint;
    kill(c_int, c_int) -> c_int;
    killpg(c_int, c_int) -> c_int;
    sigqueue(c_int, c_int, P) -> c_int;
    tgkill(c_int, c_int, c_int) -> c_int;
    sched_yield() -> c_int;
    pthread_yield() -> c_int;
    usleep(c_uint) -> c_int;
    sleep(c_uint) -> c_uint;
    nanosleep(Time, P) -> c_int;
    clock_nanosleep(c_int, c_int, Time, P) -> c_int;
    poll(P, c_ulong, c_int) -> c_int;
    select(c_int, P, P, P, P) -> c_int;
    connect(c_int, P, c_uint) -> c_int;
    accept(c_int, P, P) -> c_int;
    accept4(c_int, P, P, c_int) -> c_int;
    write(c_int, P, usize) -> isize;
    writev(c_int, P, c_int) -> isize;
    send(c_int, P, usize, c_int) -> isize;
    sendto(c_int, P, usize, c_int, P, c_uint) -> isize;
    sendmsg(c_int, P, c_int) -> isize;
    read(c_int, P, usize) -> isize;
    __read_chk(c_int, P, usize, usize) -> isize;
    readv(c_int, P, c_int) -> isize;
    recv(c_int, P, usize, c_int) -> isize;
    __recv_chk(c_int, P, usize, usize, c_int) -> isize;
    recvfrom(c_int, P, usize, c_int, P, P) -> isize;
    recvmsg(c_int, P, c_int) -> isize;
    shutdown(c_int, c_int) -> c_int;
    close(c_int) -> c_int;
    dup(c_int) -> c_int;
    dup2(c_int, c_int) -> c_int;
    dup3(c_int, c_int, c_int) -> c_int;
    fcntl(c_int, c_int, c_long) -> c_int;
    fcntl64(c_int, c_int, c_long) -> c_int;
    sendfile(c_int, c_int, P, usize) -> isize;
    sendfile64(c_int, c_int, P, usize) -> isize;
    splice(c_int, P, c_int, P, usize, c_uint) -> isize;
    sendmmsg(c_int, P, c_uint, c_int) -> c_int;
    fdopen(c_int, *const c_char) -> P;
    open(P, c_int, c_uint) -> c_int;
    open64(P, c_int, c_uint) -> c_int;
    __open_2(P, c_int) -> c_int;
    __open64_2(P, c_int) -> c_int;
    openat(c_int, P, c_int, c_uint) -> c_int;
    openat64(c_int, P, c_int, c_uint) -> c_int;
    creat(P, c_uint) -> c_int;
    creat64(P, c_uint) -> c_int;
    pread(c_int, P, usize, c_long) -> isize;
    pread64(c_int, P, usize, c_long) -> isize;
    pwrite(c_int, P, usize, c_long) -> isize;
    pwrite64(c_int, P, usize, c_long) -> isize;
    truncate(P, c_long) -> c_int;
    truncate64(P, c_long) -> c_int;
    ftruncate(c_int, c_long) -> c_int;
    ftruncate64(c_int, c_long) -> c_int;
    fopen(P, P) -> P;
    fopen64(P, P) -> P;
    fflush(P) -> c_int;
    fclose(P) -> c_int;
    stat(P, P) -> c_int;
    stat64(P, P) -> c_int;
    lstat(P, P) -> c_int;
    lstat64(P, P) -> c_int;
    access(P, c_int) -> c_int;
    mkdir(P, c_uint) -> c_int;
    rmdir(P) -> c_int;
    unlink(P) -> c_int;
    remove(P) -> c_int;
    rename(P, P) -> c_int;
    link(P, P) -> c_int;
    symlink(P, P) -> c_int;
    chroot(P) -> c_int;
    setuid(c_uint) -> c_int;
    seteuid(c_uint) -> c_int;
    setreuid(c_uint, c_uint) -> c_int;
    setresuid(c_uint, c_uint, c_uint) -> c_int;
    thrd_yield();
    thrd_sleep(Time, P) -> c_int;
    thrd_create(*mut Pthread, C11Routine, P) -> c_int;
    thrd_join(Pthread, *mut c_int) -> c_int;
    thrd_exit(c_int);
    mtx_lock(P) -> c_int;
    mtx_trylock(P) -> c_int;
    mtx_timedlock(P, Time) -> c_int;
    mtx_unlock(P) -> c_int;
    cnd_init(P) -> c_int;
    cnd_wait(P, P) -> c_int;
    cnd_timedwait(P, P, Time) -> c_int;
    cnd_signal(P) -> c_int;
    cnd_broadcast(P) -> c_int;
    call_once(P, OnceRoutine);
    __assert_fail(*const c_char, *const c_char, c_uint, *const c_char);
    malloc_usable_size(P) -> usize;
    abort();
    exit(c_int);
    _exit(c_int);
    _Exit(c_int);
    quick_exit(c_int);
    fork() -> c_int;
    longjmp(P, c_int);
    _longjmp(P, c_int);
    siglongjmp(P, c_int);
    __longjmp_chk(P, c_int);
}
