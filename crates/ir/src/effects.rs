//! What the functions of the C library do to the memory that their callers can see.
//!
//! The instrumenter logs the bytes that a call wrote, by the rule given here; the executor computes
//! the functions that are [`Effect::Modelled`] itself. A function that is not in the table may
//! write anything: there the instrumenter logs the objects that its arguments point to.
//!
//! Sizes are those of glibc on x86-64. A rule may name more bytes than were written, never fewer:
//! logging a byte that did not change says nothing false about its value.

use std::collections::HashMap;
use std::sync::OnceLock;

/// What a function does to its caller's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It writes these regions and nothing else; an empty list for a function that writes nothing.
    Writes(&'static [Write]),
    /// The executor computes what it does, or the runtime reports it.
    Modelled,
}

/// A region that a function writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// Where it begins. Nothing is written when that is null.
    pub place: Place,
    /// How long it is.
    pub length: Length,
}

/// Where a region begins. Arguments count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Where the argument points.
    Argument(u8),
    /// Where the pointer points that lies, after the call, where the argument points.
    Pointee(u8),
    /// Where the result points.
    Result,
    /// `before` bytes in front of where the pointer points that lies where the result points: a
    /// table that never changes, reported when the program begins. Tables count from 0 to 2.
    Table {
        /// Which.
        index: u8,
        /// How much of it lies in front of the pointer.
        before: u16,
    },
}

/// How long a region is, in bytes, evaluated after the call. What comes out negative counts as 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// That many bytes.
    Bytes(u64),
    /// The argument.
    Argument(u8),
    /// The argument times a constant.
    ArgumentTimes(u8, u64),
    /// The product of two arguments.
    Product(u8, u8),
    /// The result times a constant.
    ResultTimes(u64),
    /// The result times an argument.
    ResultTimesArgument(u8),
    /// The result and a zero byte after it, but no more than the argument.
    TextWithin(u8),
    /// The result and a zero byte after it; nothing when the result is negative.
    TextOfResult,
    /// Up to and with the first zero byte.
    Text,
    /// The 32-bit number where the argument points.
    PointedTo32(u8),
}

impl Effect {
    /// The highest argument that a rule mentions.
    #[must_use]
    pub fn last_argument(&self) -> Option<u8> {
        let Self::Writes(writes) = self else { return None };
        writes.iter().flat_map(Write::arguments).max()
    }

    /// Whether a rule needs the result.
    #[must_use]
    pub fn needs_result(&self) -> bool {
        let Self::Writes(writes) = self else { return false };
        writes.iter().any(|write| {
            matches!(write.place, Place::Result | Place::Table { .. })
                || write.length.needs_result()
        })
    }
}

impl Write {
    fn arguments(&self) -> impl Iterator<Item = u8> + use<> {
        let place = match self.place {
            Place::Argument(index) | Place::Pointee(index) => Some(index),
            Place::Result | Place::Table { .. } => None,
        };
        let (first, second) = match self.length {
            Length::Argument(index)
            | Length::ArgumentTimes(index, _)
            | Length::ResultTimesArgument(index)
            | Length::TextWithin(index)
            | Length::PointedTo32(index) => (Some(index), None),
            Length::Product(first, second) => (Some(first), Some(second)),
            Length::Bytes(_) | Length::ResultTimes(_) | Length::TextOfResult | Length::Text => {
                (None, None)
            }
        };
        [place, first, second].into_iter().flatten()
    }
}

impl Length {
    fn needs_result(self) -> bool {
        matches!(
            self,
            Self::ResultTimes(_)
                | Self::ResultTimesArgument(_)
                | Self::TextWithin(_)
                | Self::TextOfResult
        )
    }
}

/// What the table says about a function; `None` for a function that it does not know.
#[must_use]
pub fn effect(name: &str) -> Option<&'static Effect> {
    static INDEX: OnceLock<HashMap<&'static str, &'static Effect>> = OnceLock::new();
    let index = INDEX.get_or_init(|| {
        let rows = TABLE.iter().flat_map(|(names, effect)| {
            names.split_ascii_whitespace().map(move |name| (name, effect))
        });
        rows.collect()
    });
    index.get(name).copied()
}

const NOTHING: Effect = Effect::Writes(&[]);

const fn at(argument: u8, length: Length) -> Write {
    Write { place: Place::Argument(argument), length }
}

const fn behind(argument: u8, length: Length) -> Write {
    Write { place: Place::Pointee(argument), length }
}

const fn result(length: Length) -> Write {
    Write { place: Place::Result, length }
}

const fn table(index: u8, before: u16, bytes: u64) -> Write {
    Write { place: Place::Table { index, before }, length: Bytes(bytes) }
}

macro_rules! writes {
    ($($write:expr),+ $(,)?) => {
        Effect::Writes(const { &[$($write),+] })
    };
}

use Length::{
    Argument, ArgumentTimes, Bytes, PointedTo32, Product, ResultTimes, ResultTimesArgument, Text,
    TextOfResult, TextWithin,
};

/// Functions by effect, those of one header together.
static TABLE: &[(&str, Effect)] = &[
    // Computed by the executor: memory and strings.
    (
        "memcpy memmove memset bcopy bzero strlen strnlen strcpy strncpy strcat strncat strcmp \
         strncmp memcmp bcmp strchr strrchr memchr stpcpy mempcpy __memcpy_chk __memmove_chk \
         __memset_chk __strcpy_chk __strncpy_chk __strcat_chk __strncat_chk __stpcpy_chk \
         __mempcpy_chk",
        Effect::Modelled,
    ),
    // Reported by the runtime: allocation.
    (
        "malloc calloc realloc reallocarray free cfree aligned_alloc memalign valloc pvalloc \
         posix_memalign malloc_usable_size _Znwm _Znam _ZnwmRKSt9nothrow_t _ZnamRKSt9nothrow_t \
         _ZnwmSt11align_val_t _ZnamSt11align_val_t _ZnwmSt11align_val_tRKSt9nothrow_t \
         _ZnamSt11align_val_tRKSt9nothrow_t _ZdlPv _ZdaPv _ZdlPvm _ZdaPvm \
         _ZdlPvRKSt9nothrow_t _ZdaPvRKSt9nothrow_t _ZdlPvSt11align_val_t _ZdaPvSt11align_val_t \
         _ZdlPvmSt11align_val_t _ZdaPvmSt11align_val_t",
        Effect::Modelled,
    ),
    // Reported by the runtime: synchronisation. The contents of the objects mean nothing outside
    // the library.
    (
        "pthread_mutex_init pthread_mutex_destroy pthread_mutex_lock pthread_mutex_trylock \
         pthread_mutex_timedlock pthread_mutex_clocklock pthread_mutex_unlock \
         pthread_mutex_consistent pthread_rwlock_init pthread_rwlock_destroy \
         pthread_rwlock_rdlock pthread_rwlock_tryrdlock pthread_rwlock_timedrdlock \
         pthread_rwlock_clockrdlock pthread_rwlock_wrlock pthread_rwlock_trywrlock \
         pthread_rwlock_timedwrlock pthread_rwlock_clockwrlock pthread_rwlock_unlock \
         pthread_cond_init pthread_cond_destroy pthread_cond_wait pthread_cond_timedwait \
         pthread_cond_clockwait pthread_cond_signal pthread_cond_broadcast pthread_barrier_init \
         pthread_barrier_destroy pthread_barrier_wait pthread_spin_init pthread_spin_destroy \
         pthread_spin_lock pthread_spin_trylock pthread_spin_unlock pthread_once sem_init \
         sem_destroy sem_wait sem_trywait sem_timedwait sem_clockwait sem_post sem_close \
         sem_unlink mtx_init mtx_destroy mtx_lock mtx_trylock mtx_timedlock mtx_unlock cnd_init \
         cnd_destroy cnd_wait cnd_timedwait cnd_signal cnd_broadcast call_once pthread_exit \
         thrd_exit",
        Effect::Modelled,
    ),
    // Ends of the program.
    (
        "abort exit _exit _Exit quick_exit __assert_fail __assert_perror_fail __assert \
         __stack_chk_fail __chk_fail __fortify_fail err errx verr verrx _ZSt9terminatev \
         __cxa_pure_virtual __cxa_deleted_virtual __cxa_bad_cast __cxa_bad_typeid \
         __cxa_throw_bad_array_new_length _ZSt17__throw_bad_allocv",
        Effect::Modelled,
    ),
    // pthread.h, threads.h
    ("pthread_create thrd_create", writes![at(0, Bytes(8))]),
    ("pthread_join pthread_tryjoin_np pthread_timedjoin_np", writes![at(1, Bytes(8))]),
    ("thrd_join", writes![at(1, Bytes(4))]),
    ("pthread_attr_init", writes![at(0, Bytes(56))]),
    ("pthread_getattr_np", writes![at(1, Bytes(56))]),
    (
        "pthread_attr_destroy pthread_attr_setdetachstate pthread_attr_setstacksize \
         pthread_attr_setstack pthread_attr_setguardsize pthread_attr_setinheritsched \
         pthread_attr_setschedparam pthread_attr_setschedpolicy pthread_attr_setscope \
         pthread_attr_setaffinity_np",
        writes![at(0, Bytes(56))],
    ),
    (
        "pthread_attr_getdetachstate pthread_attr_getinheritsched pthread_attr_getschedparam \
         pthread_attr_getschedpolicy pthread_attr_getscope pthread_mutexattr_gettype \
         pthread_mutexattr_getpshared pthread_mutexattr_getprotocol pthread_mutexattr_getrobust \
         pthread_condattr_getclock pthread_condattr_getpshared pthread_rwlockattr_getpshared \
         pthread_barrierattr_getpshared pthread_getcpuclockid sem_getvalue",
        writes![at(1, Bytes(4))],
    ),
    ("pthread_attr_getstacksize pthread_attr_getguardsize", writes![at(1, Bytes(8))]),
    ("pthread_attr_getstack", writes![at(1, Bytes(8)), at(2, Bytes(8))]),
    (
        "pthread_mutexattr_init pthread_mutexattr_destroy pthread_mutexattr_settype \
         pthread_mutexattr_setpshared pthread_mutexattr_setprotocol pthread_mutexattr_setrobust \
         pthread_condattr_init pthread_condattr_destroy pthread_condattr_setclock \
         pthread_condattr_setpshared pthread_barrierattr_init pthread_barrierattr_destroy \
         pthread_barrierattr_setpshared pthread_key_create __pthread_key_create tss_create",
        writes![at(0, Bytes(4))],
    ),
    (
        "pthread_rwlockattr_init pthread_rwlockattr_destroy pthread_rwlockattr_setpshared \
         pthread_rwlockattr_setkind_np",
        writes![at(0, Bytes(8))],
    ),
    ("pthread_setcancelstate pthread_setcanceltype", writes![at(1, Bytes(4))]),
    ("pthread_getschedparam", writes![at(1, Bytes(4)), at(2, Bytes(4))]),
    ("pthread_getaffinity_np", writes![at(2, Argument(1))]),
    ("pthread_getname_np", writes![at(1, Argument(2))]),
    (
        "pthread_self pthread_equal pthread_detach pthread_cancel pthread_testcancel pthread_kill \
         pthread_key_delete pthread_setspecific pthread_getspecific pthread_setname_np \
         pthread_setaffinity_np pthread_setschedparam pthread_setschedprio pthread_yield \
         pthread_getconcurrency pthread_setconcurrency pthread_atfork __register_atfork \
         pthread_sigqueue thrd_current thrd_equal thrd_detach thrd_yield tss_get tss_set \
         tss_delete",
        NOTHING,
    ),
    ("pthread_sigmask sigprocmask", writes![at(2, Bytes(128))]),
    ("sem_open", NOTHING),
    // assert.h, errno.h, locale.h, ctype.h
    ("__errno_location", writes![result(Bytes(4))]),
    // The tables of the locale go from -128 to 255.
    ("__ctype_b_loc", writes![result(Bytes(8)), table(0, 256, 768)]),
    ("__ctype_tolower_loc", writes![result(Bytes(8)), table(1, 512, 1536)]),
    ("__ctype_toupper_loc", writes![result(Bytes(8)), table(2, 512, 1536)]),
    (
        "isalnum isalpha isblank iscntrl isdigit isgraph islower isprint ispunct isspace isupper \
         isxdigit isascii tolower toupper toascii __ctype_get_mb_cur_max",
        NOTHING,
    ),
    ("setlocale strerror strerror_l strsignal strerrorname_np", writes![result(Text)]),
    ("newlocale uselocale freelocale duplocale", NOTHING),
    // string.h, strings.h: what the executor leaves to the library.
    (
        "strcasecmp strncasecmp strcoll strspn strcspn strpbrk strstr strcasestr strchrnul memrchr \
         rawmemchr memmem index rindex ffs ffsl ffsll strverscmp",
        NOTHING,
    ),
    ("strdup strndup __strdup __strndup", writes![result(Text)]),
    ("strtok", writes![result(Text)]),
    ("strtok_r __strtok_r", writes![at(2, Bytes(8)), result(Text)]),
    ("strsep", writes![at(0, Bytes(8)), result(Text)]),
    ("strerror_r", writes![result(Text)]),
    ("__xpg_strerror_r", writes![at(1, Argument(2))]),
    ("strxfrm", writes![at(0, Argument(2))]),
    ("strlcpy strlcat", writes![at(0, Argument(2))]),
    ("memccpy", writes![at(0, Argument(3))]),
    ("swab", writes![at(1, Argument(2))]),
    ("explicit_bzero", writes![at(0, Argument(1))]),
    // stdio.h
    (
        "printf vprintf fprintf vfprintf dprintf vdprintf puts putchar putc fputc fputs fwrite \
         puts_unlocked putchar_unlocked putc_unlocked fputc_unlocked fputs_unlocked \
         fwrite_unlocked __printf_chk __vprintf_chk __fprintf_chk __vfprintf_chk __dprintf_chk \
         perror fflush fflush_unlocked fclose fopen fopen64 fdopen freopen tmpfile popen pclose \
         setbuf setvbuf setlinebuf fseek fseeko fseeko64 ftell ftello ftello64 rewind feof ferror \
         feof_unlocked ferror_unlocked clearerr fileno fileno_unlocked getc fgetc getchar \
         getc_unlocked fgetc_unlocked getchar_unlocked _IO_getc _IO_putc ungetc remove rename \
         flockfile ftrylockfile funlockfile fmemopen fsetpos putw getw __overflow __uflow \
         putwchar fputwc fputws wprintf fwprintf psignal",
        NOTHING,
    ),
    ("fgets fgets_unlocked gets __fgets_chk", writes![result(Text)]),
    ("fread fread_unlocked", writes![at(0, ResultTimesArgument(1))]),
    ("__fread_chk", writes![at(0, ResultTimesArgument(2))]),
    ("fgetpos", writes![at(1, Bytes(16))]),
    ("sprintf vsprintf __sprintf_chk __vsprintf_chk", writes![at(0, TextOfResult)]),
    ("snprintf vsnprintf __snprintf_chk __vsnprintf_chk", writes![at(0, TextWithin(1))]),
    (
        "asprintf vasprintf __asprintf_chk __vasprintf_chk",
        writes![at(0, Bytes(8)), behind(0, TextOfResult)],
    ),
    ("getline", writes![at(0, Bytes(8)), at(1, Bytes(8)), behind(0, TextOfResult)]),
    ("getdelim __getdelim", writes![at(0, Bytes(8)), at(1, Bytes(8)), behind(0, TextOfResult)]),
    ("tmpnam ctermid", writes![result(Text)]),
    ("open_memstream", writes![at(0, Bytes(8)), at(1, Bytes(8))]),
    // stdlib.h
    (
        "atoi atol atoll atof abs labs llabs div ldiv rand srand random srandom drand48 lrand48 \
         mrand48 srand48 arc4random arc4random_uniform system atexit on_exit at_quick_exit \
         __cxa_atexit __cxa_thread_atexit __cxa_thread_atexit_impl __cxa_finalize setenv unsetenv \
         putenv clearenv mblen bsearch getsubopt",
        NOTHING,
    ),
    ("rand_r", writes![at(0, Bytes(4))]),
    ("erand48 nrand48 jrand48", writes![at(0, Bytes(6))]),
    ("initstate", writes![at(1, Argument(2))]),
    ("getenv secure_getenv __secure_getenv", writes![result(Text)]),
    (
        "strtol strtoul strtoll strtoull strtoimax strtoumax strtod strtof strtold \
         __isoc23_strtol __isoc23_strtoul __isoc23_strtoll __isoc23_strtoull __strtol_internal",
        writes![at(1, Bytes(8))],
    ),
    ("qsort", writes![at(0, Product(1, 2))]),
    ("qsort_r", writes![at(0, Product(1, 2))]),
    ("mbtowc", writes![at(0, Bytes(4))]),
    ("wctomb", writes![at(0, ResultTimes(1))]),
    ("mbstowcs", writes![at(0, ArgumentTimes(2, 4))]),
    ("wcstombs", writes![at(0, Argument(2))]),
    ("mkstemp mkstemp64 mkdtemp mkostemp", writes![at(0, Text)]),
    ("realpath __realpath_chk canonicalize_file_name", writes![result(Text)]),
    ("getloadavg", writes![at(0, ResultTimes(8))]),
    ("arc4random_buf", writes![at(0, Argument(1))]),
    ("getrandom getentropy", writes![at(0, Argument(1))]),
    // unistd.h, fcntl.h, sys/file.h
    (
        "write pwrite pwrite64 writev pwritev close open open64 openat openat64 creat lseek \
         lseek64 dup dup2 dup3 fsync fdatasync sync truncate ftruncate ftruncate64 unlink unlinkat \
         link symlink rmdir mkdir mkdirat mknod mkfifo chdir fchdir chmod fchmod chown fchown \
         lchown access faccessat isatty getpid getppid gettid getuid geteuid getgid getegid setuid \
         setgid setsid getpgid setpgid getpgrp getsid fork vfork _Fork execv execve execvp execl \
         execlp execle sleep usleep alarm pause nice sysconf pathconf fpathconf getpagesize sbrk \
         brk sched_yield fcntl fcntl64 flock lockf posix_fadvise fallocate umask sethostname \
         daemon getdtablesize renameat linkat symlinkat tcsetpgrp tcgetpgrp __open_2 __open64_2",
        NOTHING,
    ),
    ("read pread pread64 __read_chk __pread_chk", writes![at(1, ResultTimes(1))]),
    ("readlink __readlink_chk", writes![at(1, ResultTimes(1))]),
    ("readlinkat", writes![at(2, ResultTimes(1))]),
    ("pipe pipe2", writes![at(0, Bytes(8))]),
    ("getcwd __getcwd_chk get_current_dir_name", writes![result(Text)]),
    ("gethostname getdomainname getlogin_r", writes![at(0, Argument(1))]),
    ("ttyname_r", writes![at(1, Argument(2))]),
    ("ttyname getlogin", writes![result(Text)]),
    ("getopt getopt_long getopt_long_only", NOTHING),
    ("confstr", writes![at(1, Argument(2))]),
    ("getgroups", writes![at(1, ResultTimes(4))]),
    ("sendfile sendfile64", writes![at(2, Bytes(8))]),
    ("splice copy_file_range", writes![at(1, Bytes(8)), at(3, Bytes(8))]),
    // time.h, sys/time.h
    ("time", writes![at(0, Bytes(8))]),
    (
        "clock difftime clock_settime settimeofday tzset utime utimes futimes utimensat futimens \
         timer_settime timer_delete",
        NOTHING,
    ),
    ("gettimeofday", writes![at(0, Bytes(16)), at(1, Bytes(8))]),
    ("clock_gettime clock_getres", writes![at(1, Bytes(16))]),
    ("timespec_get", writes![at(0, Bytes(16))]),
    ("nanosleep", writes![at(1, Bytes(16))]),
    ("clock_nanosleep", writes![at(3, Bytes(16))]),
    ("localtime gmtime", writes![result(Bytes(56))]),
    ("localtime_r gmtime_r", writes![at(1, Bytes(56))]),
    ("mktime timegm timelocal", writes![at(0, Bytes(56))]),
    ("asctime ctime", writes![result(Text)]),
    ("asctime_r ctime_r", writes![at(1, Text)]),
    ("strftime", writes![at(0, Argument(1))]),
    ("strptime", writes![at(2, Bytes(56))]),
    ("getitimer timer_gettime", writes![at(1, Bytes(32))]),
    ("setitimer", writes![at(2, Bytes(32))]),
    ("times", writes![at(0, Bytes(32))]),
    ("timer_create", writes![at(2, Bytes(8))]),
    ("timerfd_create timerfd_settime eventfd eventfd_write", NOTHING),
    ("eventfd_read timerfd_gettime", writes![at(1, Bytes(32))]),
    // sys/stat.h, sys/statvfs.h, dirent.h
    ("stat lstat fstat stat64 lstat64 fstat64", writes![at(1, Bytes(144))]),
    (
        "fstatat fstatat64 __xstat __lxstat __fxstat __xstat64 __lxstat64 __fxstat64",
        writes![at(2, Bytes(144))],
    ),
    ("statfs fstatfs statfs64 fstatfs64", writes![at(1, Bytes(120))]),
    ("statvfs fstatvfs statvfs64 fstatvfs64", writes![at(1, Bytes(112))]),
    ("statx", writes![at(4, Bytes(256))]),
    ("opendir fdopendir closedir rewinddir seekdir telldir dirfd", NOTHING),
    ("readdir readdir64", writes![result(Bytes(280))]),
    // signal.h, sys/wait.h, setjmp.h
    ("raise kill killpg sigsuspend signal bsd_signal", NOTHING),
    ("sigaction", writes![at(2, Bytes(152))]),
    ("sigaltstack", writes![at(1, Bytes(24))]),
    ("sigemptyset sigfillset sigaddset sigdelset sigpending", writes![at(0, Bytes(128))]),
    ("sigismember", NOTHING),
    ("sigwait", writes![at(1, Bytes(4))]),
    ("sigwaitinfo sigtimedwait", writes![at(1, Bytes(128))]),
    ("wait", writes![at(0, Bytes(4))]),
    ("waitpid", writes![at(1, Bytes(4))]),
    ("wait3", writes![at(0, Bytes(4)), at(2, Bytes(144))]),
    ("wait4", writes![at(1, Bytes(4)), at(3, Bytes(144))]),
    ("waitid", writes![at(2, Bytes(128))]),
    // sys/resource.h, sys/utsname.h, sched.h, sys/sysinfo.h
    ("getrusage getrlimit getrlimit64", writes![at(1, Bytes(144))]),
    ("setrlimit setrlimit64 getpriority setpriority", NOTHING),
    ("uname", writes![at(0, Bytes(390))]),
    ("sysinfo", writes![at(0, Bytes(112))]),
    ("sched_getaffinity", writes![at(2, Argument(1))]),
    ("sched_getparam", writes![at(1, Bytes(4))]),
    (
        "sched_setaffinity sched_setscheduler sched_getscheduler sched_setparam sched_getcpu \
         sched_get_priority_max sched_get_priority_min get_nprocs get_nprocs_conf __sched_cpucount \
         __sched_cpualloc __sched_cpufree",
        NOTHING,
    ),
    // sys/mman.h, sys/shm.h. Fresh mappings are zero or a file's contents; they are not logged.
    (
        "mmap mmap64 munmap mprotect madvise posix_madvise msync mlock munlock mlockall munlockall \
         shm_open shm_unlink shmget shmdt shmctl semget semop",
        NOTHING,
    ),
    // sys/socket.h, poll.h, netdb.h, arpa/inet.h
    (
        "socket bind connect listen shutdown send sendto sendmsg setsockopt htons htonl ntohs ntohl \
         inet_addr inet_network if_nametoindex freeaddrinfo epoll_create epoll_create1 epoll_ctl \
         inotify_init inotify_add_watch inotify_rm_watch",
        NOTHING,
    ),
    ("socketpair", writes![at(3, Bytes(8))]),
    ("accept accept4", writes![at(1, PointedTo32(2)), at(2, Bytes(4))]),
    ("getsockname getpeername", writes![at(1, PointedTo32(2)), at(2, Bytes(4))]),
    ("getsockopt", writes![at(3, PointedTo32(4)), at(4, Bytes(4))]),
    ("recv __recv_chk", writes![at(1, ResultTimes(1))]),
    ("recvfrom", writes![at(1, ResultTimes(1)), at(4, PointedTo32(5)), at(5, Bytes(4))]),
    ("poll ppoll __poll_chk", writes![at(0, ArgumentTimes(1, 8))]),
    ("select", writes![at(1, Bytes(128)), at(2, Bytes(128)), at(3, Bytes(128)), at(4, Bytes(16))]),
    ("pselect", writes![at(1, Bytes(128)), at(2, Bytes(128)), at(3, Bytes(128))]),
    ("epoll_wait epoll_pwait", writes![at(1, ResultTimes(12))]),
    ("inet_pton", writes![at(2, Bytes(16))]),
    ("inet_aton", writes![at(1, Bytes(4))]),
    ("inet_ntoa inet_ntop gai_strerror hstrerror", writes![result(Text)]),
    ("getaddrinfo", writes![at(3, Bytes(8)), behind(3, Bytes(48))]),
    ("getnameinfo", writes![at(2, Argument(3)), at(4, Argument(5))]),
    // math.h
    (
        "sin cos tan asin acos atan atan2 sinh cosh tanh exp exp2 expm1 log log2 log10 log1p pow \
         sqrt cbrt hypot floor ceil round trunc rint nearbyint lround llround lrint llrint fmod \
         remainder fabs fmin fmax fdim fma copysign erf erfc tgamma lgamma ldexp scalbn logb ilogb \
         nextafter sinf cosf tanf asinf acosf atanf atan2f expf exp2f logf log2f log10f powf sqrtf \
         floorf ceilf roundf truncf rintf fmodf fabsf fminf fmaxf hypotf ldexpf cbrtf lroundf \
         __isnan __isinf __finite __fpclassify __signbit",
        NOTHING,
    ),
    ("frexp frexpf frexpl", writes![at(1, Bytes(4))]),
    ("modf", writes![at(1, Bytes(8))]),
    ("modff", writes![at(1, Bytes(4))]),
    ("remquo remquof", writes![at(2, Bytes(4))]),
    ("sincos", writes![at(1, Bytes(8)), at(2, Bytes(8))]),
    ("sincosf", writes![at(1, Bytes(4)), at(2, Bytes(4))]),
    // dlfcn.h, syslog.h, termios.h
    (
        "dlopen dlsym dlvsym dlclose openlog syslog vsyslog __syslog_chk closelog setlogmask",
        NOTHING,
    ),
    ("dlerror", writes![result(Text)]),
    ("dladdr", writes![at(1, Bytes(32))]),
    ("tcgetattr", writes![at(1, Bytes(60))]),
    ("tcsetattr tcflush tcdrain", NOTHING),
    // The C++ runtime. Exceptions are followed through their landing pads.
    (
        "__cxa_allocate_exception __cxa_free_exception __cxa_throw __cxa_rethrow __cxa_begin_catch \
         __cxa_end_catch __cxa_get_exception_ptr __cxa_current_exception_type \
         __cxa_init_primary_exception __dynamic_cast __gxx_personality_v0 _Unwind_Resume \
         _ZSt18uncaught_exceptionv _ZSt19uncaught_exceptionsv \
         _ZNSt6chrono3_V212system_clock3nowEv _ZNSt6chrono3_V212steady_clock3nowEv \
         _ZNSt6thread20hardware_concurrencyEv",
        NOTHING,
    ),
    // Their waits and wake-ups are seen in the pthread calls that they make.
    (
        "_ZNSt18condition_variable10notify_allEv _ZNSt18condition_variable10notify_oneEv \
         _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE \
         _ZNSt18condition_variableD1Ev _ZNSt18condition_variableD2Ev \
         _ZNSt22condition_variable_anyD1Ev _ZNSt22condition_variable_anyD2Ev",
        NOTHING,
    ),
    (
        "_ZNSt18condition_variableC1Ev _ZNSt18condition_variableC2Ev \
         _ZNSt22condition_variable_anyC1Ev _ZNSt22condition_variable_anyC2Ev",
        writes![at(0, Bytes(48))],
    ),
    // The containers of libstdc++: the nodes that are named. Others that a rotation changes come
    // out of the log when their pointers are loaded.
    (
        "_ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_",
        writes![at(1, Bytes(32)), at(2, Bytes(32)), at(3, Bytes(32))],
    ),
    (
        "_ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_",
        writes![at(0, Bytes(32)), at(1, Bytes(32))],
    ),
    ("_ZNSt8__detail15_List_node_base7_M_hookEPS0_", writes![at(0, Bytes(16)), at(1, Bytes(16))]),
    (
        "_ZNKSt8__detail20_Prime_rehash_policy14_M_need_rehashEmmm \
         _ZNKSt8__detail20_Prime_rehash_policy11_M_next_bktEm",
        writes![at(0, Bytes(16))],
    ),
    (
        "_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base \
         _ZSt18_Rb_tree_incrementPKSt18_Rb_tree_node_base \
         _ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base \
         _ZSt18_Rb_tree_decrementPKSt18_Rb_tree_node_base _ZSt11_Hash_bytesPKvmm",
        NOTHING,
    ),
    ("__cxa_guard_acquire __cxa_guard_release __cxa_guard_abort", writes![at(0, Bytes(8))]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_name_stands_once() {
        let mut seen = BTreeSet::new();
        for name in TABLE.iter().flat_map(|(names, _)| names.split_ascii_whitespace()) {
            assert!(seen.insert(name), "{name} stands twice");
            let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            assert!(plain && !name.is_empty(), "{name} is no symbol");
        }
        assert!(seen.len() > 500, "{} names", seen.len());
    }

    #[test]
    fn rules_mention_arguments_that_functions_have() {
        for (names, effect) in TABLE {
            assert!(effect.last_argument().unwrap_or(0) <= 5, "{names}");
        }
        assert_eq!(effect("fread").and_then(Effect::last_argument), Some(1));
        assert_eq!(effect("puts").and_then(Effect::last_argument), None);
    }

    #[test]
    fn the_length_of_a_text_is_only_asked_where_one_was_written() {
        for (names, effect) in TABLE {
            let Effect::Writes(writes) = effect else { continue };
            for write in *writes {
                let zero = matches!(write.length, Bytes(0));
                assert!(!zero, "{names} writes nothing through {:?}", write.place);
            }
        }
    }

    #[test]
    fn well_known_functions() {
        assert_eq!(effect("memcpy"), Some(&Effect::Modelled));
        assert_eq!(effect("printf"), Some(&NOTHING));
        assert_eq!(effect("scanf"), None);
        let read = effect("read").unwrap();
        assert!(read.needs_result() && read.last_argument() == Some(1));
        assert!(!effect("pthread_create").unwrap().needs_result());
    }
}
