//! How a libc function is interposed: the Rust function gets the symbol `__symbiosis_rt_NAME`, and
//! `NAME` is a weak alias of it. Weak, so that a program with a `malloc` or an `abort` of its own
//! still links; the dynamic linker takes a weak definition in the executable before libc's.

/// Defines interposed functions. The name must be the libc function's.
macro_rules! interpose {
    ($($(#[$meta:meta])* fn $name:ident($($argument:ident: $ty:ty),* $(,)?) $(-> $result:ty)? $body:block)*) => {$(
        $(#[$meta])*
        #[doc = concat!("What the program gets for `", stringify!($name), "`.")]
        #[cfg_attr(symbiosis_export, unsafe(export_name = concat!("__symbiosis_rt_", stringify!($name))))]
        pub unsafe extern "C" fn $name($($argument: $ty),*) $(-> $result)? {
            // SAFETY: the caller keeps the contract of the libc function of this name, and all
            // that the body does is to pass its arguments on to that function.
            #[allow(unused_unsafe)]
            unsafe { $body }
        }
        #[cfg(symbiosis_export)]
        core::arch::global_asm!(
            concat!(".weak ", stringify!($name)),
            concat!(".type ", stringify!($name), ",@function"),
            concat!(".set ", stringify!($name), ", __symbiosis_rt_", stringify!($name)),
            options(att_syntax)
        );
    )*};
}

/// Defines interposed functions that know who calls them: `$caller` is the return address, and
/// `$register` the register of the argument behind the last one, which carries it. `NUMBER` is the
/// function's place among those with inputs.
macro_rules! interpose_with_caller {
    ($caller:ident: $($(#[$meta:meta])* $register:literal fn $name:ident($($argument:ident: $ty:ty),* $(,)?) -> $result:ty $body:block)*) => {$(
        $(#[$meta])*
        #[doc = concat!("What the program gets for `", stringify!($name), "`.")]
        #[cfg_attr(symbiosis_export, unsafe(export_name = concat!("__symbiosis_rt_", stringify!($name))))]
        pub unsafe extern "C" fn $name($($argument: $ty,)* $caller: u64) -> $result {
            #[allow(dead_code)]
            const NUMBER: usize = $crate::inputs::number(stringify!($name));
            // SAFETY: the caller keeps the contract of the libc function of this name, and the body
            // does not do more with its arguments than that function.
            #[allow(unused_unsafe)]
            unsafe { $body }
        }
        #[cfg(symbiosis_export)]
        core::arch::global_asm!(
            ".text",
            ".p2align 4",
            concat!(".weak ", stringify!($name)),
            concat!(".type ", stringify!($name), ",@function"),
            concat!(stringify!($name), ":"),
            ".cfi_startproc",
            concat!("movq (%rsp), %", $register),
            concat!("jmp __symbiosis_rt_", stringify!($name)),
            ".cfi_endproc",
            concat!(".size ", stringify!($name), ",.-", stringify!($name)),
            options(att_syntax)
        );
    )*};
}
