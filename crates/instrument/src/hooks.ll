; The hooks that the instrumenter places. They are linked into every instrumented module, made
; internal there, and inlined at every place of use. The layout of the control page is that of
; `Control` in crates/trace-format/src/layout/mod.rs: path_next, path_limit, value_next, value_limit, choices;
; called and called_as from 192 on.
;
; The accesses to the control page and to the streams are volatile, so that they keep their order
; among each other and against the program's own accesses.

@__symbiosis_control = external thread_local(initialexec) global ptr

; Written by the runtime when the module registers: the process-wide number of its first function. It lies in the
; middle, since a program that writes a little past one of its own arrays must not spoil the log.
@__symbiosis_base = externally_initialized global [128 x i32] zeroinitializer

; Filled in when the rest of the module is there. (The last three are given here because a
; declaration that nothing uses does not come along.)
@__symbiosis_module = global { i32, i32, i32, i32, [2 x i64], ptr, i64, ptr, ptr, ptr, ptr, ptr, ptr, ptr } { i32 0, i32 0, i32 0, i32 0, [2 x i64] zeroinitializer, ptr null, i64 0, ptr null, ptr null, ptr null, ptr null, ptr @__start_symbiosis_sites, ptr @__stop_symbiosis_sites, ptr @__symbiosis_gate_thunk }

; The tables that were reported when the module registered.
@__symbiosis_tables = global [3 x ptr] zeroinitializer

@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 0, ptr @__symbiosis_construct, ptr null }]

; The entries of all gates of the executable or library; null when it has none.
@__start_symbiosis_sites = extern_weak hidden global i8
@__stop_symbiosis_sites = extern_weak hidden global i8

declare nonnull ptr @llvm.threadlocal.address.p0(ptr nonnull)
declare i32 @llvm.bswap.i32(i32)

declare void @__symbiosis_register(ptr)
declare void @__symbiosis_grow_path() cold nounwind
declare void @__symbiosis_region_ended() cold nounwind
declare void @__symbiosis_grow_values() cold nounwind
declare void @__symbiosis_round(i32, i64) nounwind
declare ptr @llvm.frameaddress.p0(i32)
declare void @__symbiosis_external_write(ptr, i64) nounwind
declare void @__symbiosis_fallback_write(ptr, ptr, i64) nounwind
declare void @__symbiosis_pointee_write(ptr, ptr, i64) nounwind

define void @__symbiosis_construct() {
  call void @__symbiosis_register(ptr @__symbiosis_module)
  ret void
}

; Where open gates go, within reach of their near calls: at 0 to `__symbiosis_gate`, at 16 to
; `__symbiosis_gate_anchor`, both in the executable.
define void @__symbiosis_gate_thunk() naked noinline nounwind align 16 {
  call void asm sideeffect "jmpq *__symbiosis_gate@GOTPCREL(%rip)\0A.p2align 4\0Ajmpq *__symbiosis_gate_anchor@GOTPCREL(%rip)", ""()
  unreachable
}

; Appends a token of one byte to the thread's path stream.
define void @__symbiosis_hook_path(i8 %token) alwaysinline nounwind {
begin:
  %slot = call nonnull align 8 dereferenceable(8) ptr @llvm.threadlocal.address.p0(ptr @__symbiosis_control)
  %control = load ptr, ptr %slot, align 8, !invariant.load !2
  %next = load volatile ptr, ptr %control, align 8
  %limit.slot = getelementptr inbounds i8, ptr %control, i64 8
  %limit = load volatile ptr, ptr %limit.slot, align 8
  %full = icmp uge ptr %next, %limit
  br i1 %full, label %grow, label %write, !prof !0

grow:
  call void @__symbiosis_grow_path()
  %grown.control = load volatile ptr, ptr %slot, align 8
  %grown.next = load volatile ptr, ptr %grown.control, align 8
  br label %write

write:
  %to.control = phi ptr [ %control, %begin ], [ %grown.control, %grow ]
  %to = phi ptr [ %next, %begin ], [ %grown.next, %grow ]
  store volatile i8 %token, ptr %to, align 1
  %after = getelementptr inbounds i8, ptr %to, i64 1
  store volatile ptr %after, ptr %to.control, align 8
  ret void
}

; Appends a token and its number to the thread's path stream.
define void @__symbiosis_hook_path_number(i8 %token, i32 %number) alwaysinline nounwind {
begin:
  %slot = call nonnull align 8 dereferenceable(8) ptr @llvm.threadlocal.address.p0(ptr @__symbiosis_control)
  %control = load volatile ptr, ptr %slot, align 8
  %next = load volatile ptr, ptr %control, align 8
  %limit.slot = getelementptr inbounds i8, ptr %control, i64 8
  %limit = load volatile ptr, ptr %limit.slot, align 8
  %full = icmp uge ptr %next, %limit
  br i1 %full, label %grow, label %write, !prof !0

grow:
  call void @__symbiosis_grow_path()
  %grown.control = load volatile ptr, ptr %slot, align 8
  %grown.next = load volatile ptr, ptr %grown.control, align 8
  br label %write

write:
  %to.control = phi ptr [ %control, %begin ], [ %grown.control, %grow ]
  %to = phi ptr [ %next, %begin ], [ %grown.next, %grow ]
  store volatile i8 %token, ptr %to, align 1
  %behind = getelementptr inbounds i8, ptr %to, i64 1
  store volatile i32 %number, ptr %behind, align 1
  %after = getelementptr inbounds i8, ptr %to, i64 5
  store volatile ptr %after, ptr %to.control, align 8
  ret void
}

; Leaves a mark: who is about to be called, or came back.
define void @__symbiosis_hook_mark(i64 %address, i32 %types) alwaysinline nounwind {
  %slot = call nonnull align 8 dereferenceable(8) ptr @llvm.threadlocal.address.p0(ptr @__symbiosis_control)
  %control = load ptr, ptr %slot, align 8, !invariant.load !2
  %called = getelementptr inbounds i8, ptr %control, i64 192
  store volatile i64 %address, ptr %called, align 8
  %called.as = getelementptr inbounds i8, ptr %control, i64 200
  store volatile i32 %types, ptr %called.as, align 8
  ret void
}

; Is this the mark that was left last?
define i1 @__symbiosis_hook_is_marked(i64 %address, i32 %types) alwaysinline nounwind {
  %slot = call nonnull align 8 dereferenceable(8) ptr @llvm.threadlocal.address.p0(ptr @__symbiosis_control)
  %control = load ptr, ptr %slot, align 8, !invariant.load !2
  %called = getelementptr inbounds i8, ptr %control, i64 192
  %left = load volatile i64, ptr %called, align 8
  %same = icmp eq i64 %left, %address
  %called.as = getelementptr inbounds i8, ptr %control, i64 200
  %left.types = load volatile i32, ptr %called.as, align 8
  %same.types = icmp eq i32 %left.types, %types
  %both = and i1 %same, %same.types
  ret i1 %both
}

; Makes room in the path stream for the entry of a function, and says whether the function's caller has
; left its mark. A thread that gets its streams here finds none in them.
define i1 @__symbiosis_hook_is_called(i64 %address, i32 %types) alwaysinline nounwind {
begin:
  %slot = call nonnull align 8 dereferenceable(8) ptr @llvm.threadlocal.address.p0(ptr @__symbiosis_control)
  %control = load volatile ptr, ptr %slot, align 8
  %next = load volatile ptr, ptr %control, align 8
  %limit.slot = getelementptr inbounds i8, ptr %control, i64 8
  %limit = load volatile ptr, ptr %limit.slot, align 8
  %full = icmp uge ptr %next, %limit
  br i1 %full, label %grow, label %look, !prof !0

grow:
  call void @__symbiosis_grow_path()
  %grown.control = load volatile ptr, ptr %slot, align 8
  br label %look

look:
  %its.control = phi ptr [ %control, %begin ], [ %grown.control, %grow ]
  %called = getelementptr inbounds i8, ptr %its.control, i64 192
  %left = load volatile i64, ptr %called, align 8
  %same = icmp eq i64 %left, %address
  %called.as = getelementptr inbounds i8, ptr %its.control, i64 200
  %left.types = load volatile i32, ptr %called.as, align 8
  %same.types = icmp eq i32 %left.types, %types
  %both = and i1 %same, %same.types
  ret i1 %both
}

; Takes the mark away.
define void @__symbiosis_hook_unmark() alwaysinline nounwind {
  %slot = call nonnull align 8 dereferenceable(8) ptr @llvm.threadlocal.address.p0(ptr @__symbiosis_control)
  %control = load volatile ptr, ptr %slot, align 8
  %called.as = getelementptr inbounds i8, ptr %control, i64 200
  store volatile i32 0, ptr %called.as, align 8
  ret void
}

; Appends the entry of a function, for which there is room.
define void @__symbiosis_hook_entry(i8 %token, i32 %number) alwaysinline nounwind {
  %slot = call nonnull align 8 dereferenceable(8) ptr @llvm.threadlocal.address.p0(ptr @__symbiosis_control)
  %control = load volatile ptr, ptr %slot, align 8
  %next = load volatile ptr, ptr %control, align 8
  store volatile i8 %token, ptr %next, align 1
  %behind = getelementptr inbounds i8, ptr %next, i64 1
  store volatile i32 %number, ptr %behind, align 1
  %after = getelementptr inbounds i8, ptr %next, i64 5
  store volatile ptr %after, ptr %control, align 8
  ret void
}

; Leaves the choices of a region where they are found when the process ends.
define void @__symbiosis_hook_choices(i32 %choices) alwaysinline nounwind {
  %slot = call nonnull align 8 dereferenceable(8) ptr @llvm.threadlocal.address.p0(ptr @__symbiosis_control)
  %control = load ptr, ptr %slot, align 8, !invariant.load !2
  %there = getelementptr inbounds i8, ptr %control, i64 32
  store volatile i32 %choices, ptr %there, align 8
  ret void
}

; Ends a region of choices that fit into a short token. There is room for it; afterwards there has to be
; room for the next one.
define void @__symbiosis_hook_end_short(i32 %choices) alwaysinline nounwind {
begin:
  %slot = call nonnull align 8 dereferenceable(8) ptr @llvm.threadlocal.address.p0(ptr @__symbiosis_control)
  %control = load ptr, ptr %slot, align 8, !invariant.load !2
  %next = load volatile ptr, ptr %control, align 8
  %token = trunc i32 %choices to i8
  store volatile i8 %token, ptr %next, align 1
  %there = getelementptr inbounds i8, ptr %control, i64 32
  store volatile i32 0, ptr %there, align 8
  %after = getelementptr inbounds i8, ptr %next, i64 1
  store volatile ptr %after, ptr %control, align 8
  %limit.slot = getelementptr inbounds i8, ptr %control, i64 8
  %limit = load volatile ptr, ptr %limit.slot, align 8
  %full = icmp uge ptr %after, %limit
  br i1 %full, label %grow, label %done, !prof !0

grow:
  call void @__symbiosis_region_ended()
  br label %done

done:
  ret void
}

; Ends a region. A short token takes the first one of four bytes; the others are zeros, as they were.
define void @__symbiosis_hook_end(i32 %choices) alwaysinline nounwind {
begin:
  %slot = call nonnull align 8 dereferenceable(8) ptr @llvm.threadlocal.address.p0(ptr @__symbiosis_control)
  %control = load ptr, ptr %slot, align 8, !invariant.load !2
  %next = load volatile ptr, ptr %control, align 8
  %marked = or i32 %choices, -1073741824
  %big = call i32 @llvm.bswap.i32(i32 %marked)
  %long = icmp uge i32 %choices, 128
  %token = select i1 %long, i32 %big, i32 %choices
  %bytes = select i1 %long, i64 4, i64 1
  store volatile i32 %token, ptr %next, align 1
  %there = getelementptr inbounds i8, ptr %control, i64 32
  store volatile i32 0, ptr %there, align 8
  %after = getelementptr inbounds i8, ptr %next, i64 %bytes
  store volatile ptr %after, ptr %control, align 8
  %limit.slot = getelementptr inbounds i8, ptr %control, i64 8
  %limit = load volatile ptr, ptr %limit.slot, align 8
  %full = icmp uge ptr %after, %limit
  br i1 %full, label %grow, label %done, !prof !0

grow:
  call void @__symbiosis_region_ended()
  br label %done

done:
  ret void
}

; Ends a region when its choices are not below `%most`, and returns the choices of the region that
; goes on.
define i32 @__symbiosis_hook_check(i32 %choices, i32 %most) alwaysinline nounwind {
begin:
  %many = icmp uge i32 %choices, %most
  br i1 %many, label %end, label %done, !prof !3

end:
  call void @__symbiosis_hook_end(i32 %choices)
  br label %done

done:
  %left = phi i32 [ %choices, %begin ], [ 1, %end ]
  ret i32 %left
}

; Appends a number of 8 bits to the thread's values stream.
define void @__symbiosis_hook_value8(i8 %number) alwaysinline nounwind {
begin:
  %slot = call nonnull align 8 dereferenceable(8) ptr @llvm.threadlocal.address.p0(ptr @__symbiosis_control)
  %control = load ptr, ptr %slot, align 8, !invariant.load !2
  %next.slot = getelementptr inbounds i8, ptr %control, i64 16
  %next = load volatile ptr, ptr %next.slot, align 8
  %limit.slot = getelementptr inbounds i8, ptr %control, i64 24
  %limit = load volatile ptr, ptr %limit.slot, align 8
  %full = icmp uge ptr %next, %limit
  br i1 %full, label %grow, label %write, !prof !0

grow:
  call void @__symbiosis_grow_values()
  %grown.control = load volatile ptr, ptr %slot, align 8
  %grown.next.slot = getelementptr inbounds i8, ptr %grown.control, i64 16
  %grown.next = load volatile ptr, ptr %grown.next.slot, align 8
  br label %write

write:
  %to.slot = phi ptr [ %next.slot, %begin ], [ %grown.next.slot, %grow ]
  %to = phi ptr [ %next, %begin ], [ %grown.next, %grow ]
  store volatile i8 %number, ptr %to, align 1
  %after = getelementptr inbounds i8, ptr %to, i64 1
  store volatile ptr %after, ptr %to.slot, align 8
  ret void
}

; The same behind one that found room for this one too.
define void @__symbiosis_hook_more8(i8 %number) alwaysinline nounwind {
  %slot = call nonnull align 8 dereferenceable(8) ptr @llvm.threadlocal.address.p0(ptr @__symbiosis_control)
  %control = load ptr, ptr %slot, align 8, !invariant.load !2
  %next.slot = getelementptr inbounds i8, ptr %control, i64 16
  %next = load volatile ptr, ptr %next.slot, align 8
  store volatile i8 %number, ptr %next, align 1
  %after = getelementptr inbounds i8, ptr %next, i64 1
  store volatile ptr %after, ptr %next.slot, align 8
  ret void
}

; Appends a number of 16 bits to the thread's values stream.
define void @__symbiosis_hook_value16(i16 %number) alwaysinline nounwind {
begin:
  %slot = call nonnull align 8 dereferenceable(8) ptr @llvm.threadlocal.address.p0(ptr @__symbiosis_control)
  %control = load ptr, ptr %slot, align 8, !invariant.load !2
  %next.slot = getelementptr inbounds i8, ptr %control, i64 16
  %next = load volatile ptr, ptr %next.slot, align 8
  %limit.slot = getelementptr inbounds i8, ptr %control, i64 24
  %limit = load volatile ptr, ptr %limit.slot, align 8
  %full = icmp uge ptr %next, %limit
  br i1 %full, label %grow, label %write, !prof !0

grow:
  call void @__symbiosis_grow_values()
  %grown.control = load volatile ptr, ptr %slot, align 8
  %grown.next.slot = getelementptr inbounds i8, ptr %grown.control, i64 16
  %grown.next = load volatile ptr, ptr %grown.next.slot, align 8
  br label %write

write:
  %to.slot = phi ptr [ %next.slot, %begin ], [ %grown.next.slot, %grow ]
  %to = phi ptr [ %next, %begin ], [ %grown.next, %grow ]
  store volatile i16 %number, ptr %to, align 1
  %after = getelementptr inbounds i8, ptr %to, i64 2
  store volatile ptr %after, ptr %to.slot, align 8
  ret void
}

; The same behind one that found room for this one too.
define void @__symbiosis_hook_more16(i16 %number) alwaysinline nounwind {
  %slot = call nonnull align 8 dereferenceable(8) ptr @llvm.threadlocal.address.p0(ptr @__symbiosis_control)
  %control = load ptr, ptr %slot, align 8, !invariant.load !2
  %next.slot = getelementptr inbounds i8, ptr %control, i64 16
  %next = load volatile ptr, ptr %next.slot, align 8
  store volatile i16 %number, ptr %next, align 1
  %after = getelementptr inbounds i8, ptr %next, i64 2
  store volatile ptr %after, ptr %next.slot, align 8
  ret void
}

; Appends a number of 32 bits to the thread's values stream.
define void @__symbiosis_hook_value32(i32 %number) alwaysinline nounwind {
begin:
  %slot = call nonnull align 8 dereferenceable(8) ptr @llvm.threadlocal.address.p0(ptr @__symbiosis_control)
  %control = load ptr, ptr %slot, align 8, !invariant.load !2
  %next.slot = getelementptr inbounds i8, ptr %control, i64 16
  %next = load volatile ptr, ptr %next.slot, align 8
  %limit.slot = getelementptr inbounds i8, ptr %control, i64 24
  %limit = load volatile ptr, ptr %limit.slot, align 8
  %full = icmp uge ptr %next, %limit
  br i1 %full, label %grow, label %write, !prof !0

grow:
  call void @__symbiosis_grow_values()
  %grown.control = load volatile ptr, ptr %slot, align 8
  %grown.next.slot = getelementptr inbounds i8, ptr %grown.control, i64 16
  %grown.next = load volatile ptr, ptr %grown.next.slot, align 8
  br label %write

write:
  %to.slot = phi ptr [ %next.slot, %begin ], [ %grown.next.slot, %grow ]
  %to = phi ptr [ %next, %begin ], [ %grown.next, %grow ]
  store volatile i32 %number, ptr %to, align 1
  %after = getelementptr inbounds i8, ptr %to, i64 4
  store volatile ptr %after, ptr %to.slot, align 8
  ret void
}

; The same behind one that found room for this one too.
define void @__symbiosis_hook_more32(i32 %number) alwaysinline nounwind {
  %slot = call nonnull align 8 dereferenceable(8) ptr @llvm.threadlocal.address.p0(ptr @__symbiosis_control)
  %control = load ptr, ptr %slot, align 8, !invariant.load !2
  %next.slot = getelementptr inbounds i8, ptr %control, i64 16
  %next = load volatile ptr, ptr %next.slot, align 8
  store volatile i32 %number, ptr %next, align 1
  %after = getelementptr inbounds i8, ptr %next, i64 4
  store volatile ptr %after, ptr %next.slot, align 8
  ret void
}

; Appends a number of 64 bits to the thread's values stream.
define void @__symbiosis_hook_value64(i64 %number) alwaysinline nounwind {
begin:
  %slot = call nonnull align 8 dereferenceable(8) ptr @llvm.threadlocal.address.p0(ptr @__symbiosis_control)
  %control = load ptr, ptr %slot, align 8, !invariant.load !2
  %next.slot = getelementptr inbounds i8, ptr %control, i64 16
  %next = load volatile ptr, ptr %next.slot, align 8
  %limit.slot = getelementptr inbounds i8, ptr %control, i64 24
  %limit = load volatile ptr, ptr %limit.slot, align 8
  %full = icmp uge ptr %next, %limit
  br i1 %full, label %grow, label %write, !prof !0

grow:
  call void @__symbiosis_grow_values()
  %grown.control = load volatile ptr, ptr %slot, align 8
  %grown.next.slot = getelementptr inbounds i8, ptr %grown.control, i64 16
  %grown.next = load volatile ptr, ptr %grown.next.slot, align 8
  br label %write

write:
  %to.slot = phi ptr [ %next.slot, %begin ], [ %grown.next.slot, %grow ]
  %to = phi ptr [ %next, %begin ], [ %grown.next, %grow ]
  store volatile i64 %number, ptr %to, align 1
  %after = getelementptr inbounds i8, ptr %to, i64 8
  store volatile ptr %after, ptr %to.slot, align 8
  ret void
}

; The same behind one that found room for this one too.
define void @__symbiosis_hook_more64(i64 %number) alwaysinline nounwind {
  %slot = call nonnull align 8 dereferenceable(8) ptr @llvm.threadlocal.address.p0(ptr @__symbiosis_control)
  %control = load ptr, ptr %slot, align 8, !invariant.load !2
  %next.slot = getelementptr inbounds i8, ptr %control, i64 16
  %next = load volatile ptr, ptr %next.slot, align 8
  store volatile i64 %number, ptr %next, align 1
  %after = getelementptr inbounds i8, ptr %next, i64 8
  store volatile ptr %after, ptr %next.slot, align 8
  ret void
}

; A load whose value of 8 bits is guessed to be what is kept: adds a bit to the choices, and logs the
; value when it is another. Returns the choices.
define i32 @__symbiosis_hook_guess8(i32 %choices, i8 %number, ptr %kept) alwaysinline nounwind {
begin:
  %guess = load i8, ptr %kept, align 8
  %right = mul i32 %choices, 2
  %same = icmp eq i8 %guess, %number
  br i1 %same, label %done, label %differs, !prof !1

differs:
  %wrong = or i32 %right, 1
  call void @__symbiosis_hook_choices(i32 %wrong)
  call void @__symbiosis_hook_value8(i8 %number)
  store i8 %number, ptr %kept, align 8
  br label %done

done:
  %after = phi i32 [ %right, %begin ], [ %wrong, %differs ]
  ret i32 %after
}

; A load whose value of 16 bits is guessed to be what is kept: adds a bit to the choices, and logs the
; value when it is another. Returns the choices.
define i32 @__symbiosis_hook_guess16(i32 %choices, i16 %number, ptr %kept) alwaysinline nounwind {
begin:
  %guess = load i16, ptr %kept, align 8
  %right = mul i32 %choices, 2
  %same = icmp eq i16 %guess, %number
  br i1 %same, label %done, label %differs, !prof !1

differs:
  %wrong = or i32 %right, 1
  call void @__symbiosis_hook_choices(i32 %wrong)
  call void @__symbiosis_hook_value16(i16 %number)
  store i16 %number, ptr %kept, align 8
  br label %done

done:
  %after = phi i32 [ %right, %begin ], [ %wrong, %differs ]
  ret i32 %after
}

; A load whose value of 32 bits is guessed to be what is kept: adds a bit to the choices, and logs the
; value when it is another. Returns the choices.
define i32 @__symbiosis_hook_guess32(i32 %choices, i32 %number, ptr %kept) alwaysinline nounwind {
begin:
  %guess = load i32, ptr %kept, align 8
  %right = mul i32 %choices, 2
  %same = icmp eq i32 %guess, %number
  br i1 %same, label %done, label %differs, !prof !1

differs:
  %wrong = or i32 %right, 1
  call void @__symbiosis_hook_choices(i32 %wrong)
  call void @__symbiosis_hook_value32(i32 %number)
  store i32 %number, ptr %kept, align 8
  br label %done

done:
  %after = phi i32 [ %right, %begin ], [ %wrong, %differs ]
  ret i32 %after
}

; A load whose value of 64 bits is guessed to be what is kept: adds a bit to the choices, and logs the
; value when it is another. Returns the choices.
define i32 @__symbiosis_hook_guess64(i32 %choices, i64 %number, ptr %kept) alwaysinline nounwind {
begin:
  %guess = load i64, ptr %kept, align 8
  %right = mul i32 %choices, 2
  %same = icmp eq i64 %guess, %number
  br i1 %same, label %done, label %differs, !prof !1

differs:
  %wrong = or i32 %right, 1
  call void @__symbiosis_hook_choices(i32 %wrong)
  call void @__symbiosis_hook_value64(i64 %number)
  store i64 %number, ptr %kept, align 8
  br label %done

done:
  %after = phi i32 [ %right, %begin ], [ %wrong, %differs ]
  ret i32 %after
}

; Reads the clock behind an atomic instruction, which empties the store buffer; the fence waits for it. Notes
; where the reading is, for rounds that are compared.
define void @__symbiosis_hook_reading() alwaysinline nounwind {
  %tsc = call i64 asm sideeffect "lfence\0Ardtsc\0Ashlq $$32, %rdx\0Aorq %rdx, %rax", "={rax},~{rdx},~{memory},~{dirflag},~{fpsr},~{flags}"()
  call void @__symbiosis_hook_value64(i64 %tsc)
  %slot = call nonnull align 8 dereferenceable(8) ptr @llvm.threadlocal.address.p0(ptr @__symbiosis_control)
  %control = load ptr, ptr %slot, align 8, !invariant.load !2
  %next.slot = getelementptr inbounds i8, ptr %control, i64 16
  %next = load volatile i64, ptr %next.slot, align 8
  %at = sub i64 %next, 8
  %count.slot = getelementptr inbounds i8, ptr %control, i64 240
  %count = load volatile i64, ptr %count.slot, align 8
  %index = and i64 %count, 3
  %offset = mul i64 %index, 8
  %first = getelementptr inbounds i8, ptr %control, i64 248
  %place = getelementptr inbounds i8, ptr %first, i64 %offset
  store volatile i64 %at, ptr %place, align 8
  %more = add i64 %count, 1
  store volatile i64 %more, ptr %count.slot, align 8
  ret void
}

; The header of a waiting loop: `%again`, coming from within, it ends the region, and the runtime looks at
; the round; otherwise there is no round yet. `%loop` is `loop_number`, to tell this loop of this
; call from others. Returns the choices of the region that goes on.
define i32 @__symbiosis_hook_round(i32 %choices, i1 %again, i64 %loop) alwaysinline nounwind {
begin:
  br i1 %again, label %round, label %first

first:
  %slot = call nonnull align 8 dereferenceable(8) ptr @llvm.threadlocal.address.p0(ptr @__symbiosis_control)
  %control = load ptr, ptr %slot, align 8, !invariant.load !2
  %there = getelementptr inbounds i8, ptr %control, i64 208
  store volatile i64 0, ptr %there, align 8
  br label %done

round:
  %frame = call ptr @llvm.frameaddress.p0(i32 0)
  %address = ptrtoint ptr %frame to i64
  %high = shl i64 %address, 16
  %which = or i64 %high, %loop
  call void @__symbiosis_round(i32 %choices, i64 %which)
  br label %done

done:
  %left = phi i32 [ %choices, %first ], [ 1, %round ]
  ret i32 %left
}

; Behind an atomic update in a waiting loop: did it change memory?
define void @__symbiosis_hook_changed(i1 %changed) alwaysinline nounwind {
  %slot = call nonnull align 8 dereferenceable(8) ptr @llvm.threadlocal.address.p0(ptr @__symbiosis_control)
  %control = load ptr, ptr %slot, align 8, !invariant.load !2
  %there = getelementptr inbounds i8, ptr %control, i64 232
  %before = load volatile i32, ptr %there, align 8
  %bit = zext i1 %changed to i32
  %after = or i32 %before, %bit
  store volatile i32 %after, ptr %there, align 8
  ret void
}

; Reports that uninstrumented code wrote `%length` bytes, or none when the place is null or the
; length negative.
define void @__symbiosis_hook_write(ptr %place, i64 %length) alwaysinline nounwind {
  %null = icmp eq ptr %place, null
  %negative = icmp slt i64 %length, 0
  %nothing = or i1 %null, %negative
  %bytes = select i1 %nothing, i64 0, i64 %length
  call void @__symbiosis_external_write(ptr %place, i64 %bytes)
  ret void
}

; Reports that uninstrumented code wrote a text with its zero byte. The length is counted here: the
; program may have a `strlen` of its own.
define void @__symbiosis_hook_write_text(ptr %place) noinline nounwind {
begin:
  %null = icmp eq ptr %place, null
  br i1 %null, label %done, label %count

count:
  %index = phi i64 [ 0, %begin ], [ %length, %count ]
  %at = getelementptr inbounds i8, ptr %place, i64 %index
  %byte = load volatile i8, ptr %at, align 1
  %length = add i64 %index, 1
  %end = icmp eq i8 %byte, 0
  br i1 %end, label %write, label %count

write:
  call void @__symbiosis_external_write(ptr %place, i64 %length)
  br label %done

done:
  ret void
}

; As `__symbiosis_hook_write_text`, for characters of 32 bits.
define void @__symbiosis_hook_write_wide(ptr %place) noinline nounwind {
begin:
  %null = icmp eq ptr %place, null
  br i1 %null, label %done, label %count

count:
  %index = phi i64 [ 0, %begin ], [ %length, %count ]
  %at = getelementptr inbounds i32, ptr %place, i64 %index
  %character = load volatile i32, ptr %at, align 1
  %length = add i64 %index, 1
  %end = icmp eq i32 %character, 0
  br i1 %end, label %write, label %count

write:
  %bytes = mul i64 %length, 4
  call void @__symbiosis_external_write(ptr %place, i64 %bytes)
  br label %done

done:
  ret void
}

; Reports an array of texts that a null pointer follows, and the texts.
define void @__symbiosis_hook_write_texts(ptr %array, i64 %count) noinline nounwind {
begin:
  %null = icmp eq ptr %array, null
  br i1 %null, label %done, label %entries

entries:
  %all = add i64 %count, 1
  %bytes = mul i64 %all, 8
  call void @__symbiosis_hook_write(ptr %array, i64 %bytes)
  br label %next

next:
  %index = phi i64 [ 0, %entries ], [ %after, %report ]
  %more = icmp slt i64 %index, %count
  br i1 %more, label %report, label %done

report:
  %slot = getelementptr inbounds ptr, ptr %array, i64 %index
  %text = load volatile ptr, ptr %slot, align 1
  call void @__symbiosis_hook_write_text(ptr %text)
  %after = add i64 %index, 1
  br label %next

done:
  ret void
}

; Reports `%bytes` bytes that were written one after the other to what `%count` entries of
; `struct iovec` describe; none when the number is negative.
define void @__symbiosis_hook_write_vector(ptr %array, i64 %count, i64 %bytes) noinline nounwind {
begin:
  %null = icmp eq ptr %array, null
  br i1 %null, label %done, label %next

next:
  %index = phi i64 [ 0, %begin ], [ %after, %report ]
  %left = phi i64 [ %bytes, %begin ], [ %rest, %report ]
  %more = icmp slt i64 %index, %count
  %some = icmp sgt i64 %left, 0
  %go = and i1 %more, %some
  br i1 %go, label %report, label %done

report:
  %entry = getelementptr inbounds { ptr, i64 }, ptr %array, i64 %index
  %place = load volatile ptr, ptr %entry, align 1
  %length.at = getelementptr inbounds i8, ptr %entry, i64 8
  %length = load volatile i64, ptr %length.at, align 1
  %short = icmp ult i64 %left, %length
  %written = select i1 %short, i64 %left, i64 %length
  call void @__symbiosis_hook_write(ptr %place, i64 %written)
  %rest = sub i64 %left, %written
  %after = add i64 %index, 1
  br label %next

done:
  ret void
}

; Reports a table that never changes, unless it was reported when the module registered. (Later
; only another locale has other tables.)
define void @__symbiosis_hook_table(ptr %result, i64 %index, i64 %before, i64 %length) noinline nounwind {
  %slot = getelementptr inbounds ptr, ptr @__symbiosis_tables, i64 %index
  %table = load ptr, ptr %result, align 8
  %seen = load atomic ptr, ptr %slot monotonic, align 8
  %same = icmp eq ptr %table, %seen
  br i1 %same, label %done, label %report

report:
  store atomic ptr %table, ptr %slot monotonic, align 8
  %offset = sub i64 0, %before
  %start = getelementptr i8, ptr %table, i64 %offset
  call void @__symbiosis_external_write(ptr %start, i64 %length)
  br label %done

done:
  ret void
}

; Reports the program's arguments, which the C library put there before `main`.
define void @__symbiosis_hook_arguments(i32 %count, ptr %arguments) noinline nounwind {
begin:
  %wide = sext i32 %count to i64
  %entries = add i64 %wide, 1
  %bytes = mul i64 %entries, 8
  call void @__symbiosis_hook_write(ptr %arguments, i64 %bytes)
  br label %next

next:
  %index = phi i64 [ 0, %begin ], [ %after, %report ]
  %more = icmp slt i64 %index, %wide
  br i1 %more, label %report, label %done

report:
  %slot = getelementptr inbounds ptr, ptr %arguments, i64 %index
  %text = load ptr, ptr %slot, align 8
  call void @__symbiosis_hook_write_text(ptr %text)
  %after = add i64 %index, 1
  br label %next

done:
  ret void
}

; Reports that a callee of which nothing is known may have written an object; not one that came back,
; whose own log says it.
define void @__symbiosis_hook_fallback(ptr %callee, ptr %object, i64 %size, i1 %back) alwaysinline nounwind {
  br i1 %back, label %done, label %report

report:
  call void @__symbiosis_fallback_write(ptr %callee, ptr %object, i64 %size)
  br label %done

done:
  ret void
}

; The same, where only the type of a pointer says that there is an object.
define void @__symbiosis_hook_pointee(ptr %callee, ptr %object, i64 %size, i1 %back) alwaysinline nounwind {
  br i1 %back, label %done, label %report

report:
  call void @__symbiosis_pointee_write(ptr %callee, ptr %object, i64 %size)
  br label %done

done:
  ret void
}

; The word `%offset` bytes behind `%place`; 0 when there is no place.
define i64 @__symbiosis_hook_word(ptr %place, i64 %offset) alwaysinline nounwind {
begin:
  %null = icmp eq ptr %place, null
  br i1 %null, label %done, label %read

read:
  %at = getelementptr i8, ptr %place, i64 %offset
  %there = load volatile i64, ptr %at, align 1
  br label %done

done:
  %word = phi i64 [ 0, %begin ], [ %there, %read ]
  ret i64 %word
}

; The 32-bit number behind `%place`, or 0.
define i64 @__symbiosis_hook_number(ptr %place) alwaysinline nounwind {
begin:
  %null = icmp eq ptr %place, null
  br i1 %null, label %done, label %read

read:
  %there = load volatile i32, ptr %place, align 1
  %wide = zext i32 %there to i64
  br label %done

done:
  %number = phi i64 [ 0, %begin ], [ %wide, %read ]
  ret i64 %number
}

!0 = !{!"branch_weights", i32 1, i32 1048575}
!1 = !{!"branch_weights", i32 255, i32 1}
!2 = !{}
!3 = !{!"branch_weights", i32 1, i32 31}
