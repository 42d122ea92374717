//! Modules: what the instrumenter puts into them, their gates, and their records in `modules.bin`.

/// What the instrumenter emits once per module, as constant data named
/// `__symbiosis_module`, and passes to `__symbiosis_register` from a constructor.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ModuleDescriptor {
    /// [`INSTRUMENTATION_VERSION`](super::INSTRUMENTATION_VERSION).
    pub version: u32,
    /// Number of entries of `functions`.
    pub function_count: u32,
    /// Number of entries of `globals`.
    pub global_count: u32,
    /// Bit 0 ([`DESCRIPTOR_HAS_DEFINED`]): `defined` is there.
    pub reserved: u32,
    /// Hash of the bitcode (FNV-1a 128, little end first).
    pub hash: [u64; 2],
    /// The bitcode, zstd-compressed.
    pub bitcode: *const u8,
    /// Its length in bytes.
    pub bitcode_length: u64,
    /// The addresses of the module's functions in IR order, declarations included; 0 where the
    /// address must not be taken (intrinsics, unresolved weak symbols).
    pub functions: *const u64,
    /// The addresses of the module's global variables in IR order; 0 where it cannot be taken
    /// (thread-local ones, `llvm.*`).
    pub globals: *const u64,
    /// Where the runtime writes the module's base: the process-wide number of its first function.
    pub base: *mut u32,
    /// Only read when bit 0 of `reserved` is set: one byte per function, 1 where this module
    /// defines it and 0 for a declaration. Without it the runtime takes every function whose
    /// address lies in the descriptor's own executable or library for defined.
    pub defined: *const u8,
    /// The gates of the executable or library that the module is linked into: where its section
    /// `symbiosis_sites` begins; null when it has none. All of its modules say the same.
    pub sites_begin: *const SiteEntry,
    /// Where the section ends.
    pub sites_end: *const SiteEntry,
    /// Code within reach of a near call: it jumps to `__symbiosis_gate`, and [`GATE_ANCHOR`] bytes
    /// further to `__symbiosis_gate_anchor`, for the gates that a schedule names.
    pub gate: *const u8,
}

/// Where behind [`ModuleDescriptor::gate`] the jump to `__symbiosis_gate_anchor` is, in bytes.
pub const GATE_ANCHOR: usize = 16;

/// One gate of a module, in the section `symbiosis_sites` (see `ir::gates`).
///
/// A gate is a five-byte `nop` right before an instruction that other threads may observe. A
/// process that runs under a scheduler or with noise turns it into a call of the module's
/// [`ModuleDescriptor::gate`] when the module registers; otherwise it costs next to nothing. The
/// function must not use the red zone, and the call keeps all registers and flags.
#[repr(C, packed(4))]
#[derive(Clone, Copy, Debug)]
pub struct SiteEntry {
    /// The gate's address minus the address of this field.
    pub offset: i32,
    /// [`site_hash`] of the site's name.
    pub site: u64,
}

/// The `nop` at a gate, before it is opened.
pub const GATE_NOP: [u8; 5] = [0x0f, 0x1f, 0x44, 0x00, 0x00];

/// The number that stands for a site's name, such as `bank.c:deposit:write:balance/2`, in tables
/// and while the program runs: FNV-1a, 64 bits.
#[must_use]
pub const fn site_hash(name: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut index = 0;
    while index < name.len() {
        hash ^= name[index] as u64;
        hash = hash.wrapping_mul(0x0100_0000_01b3);
        index += 1;
    }
    hash
}

/// In [`ModuleDescriptor::reserved`]: the field `defined` is there.
pub const DESCRIPTOR_HAS_DEFINED: u32 = 1;

/// A module's record in `modules.bin`: this header, then `function_count` and `global_count`
/// words of addresses. Appended once per module at registration.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ModuleRecordHeader {
    /// The bytes `SYMBMOD1`.
    pub magic: u64,
    /// As in the descriptor.
    pub hash: [u64; 2],
    /// As in the descriptor.
    pub function_count: u32,
    /// As in the descriptor.
    pub global_count: u32,
    /// The process-wide number of the module's first function.
    pub base: u32,
    /// [`INSTRUMENTATION_VERSION`](super::INSTRUMENTATION_VERSION) of the module.
    pub version: u32,
}

/// First word of a record in `modules.bin`.
pub const MODULE_MAGIC: u64 = u64::from_le_bytes(*b"SYMBMOD1");
