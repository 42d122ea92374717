//! Local variables: which value or which memory holds which variable of the source.
//!
//! LLVM 19 and newer keep this in records beside the instructions. LLVM 22 lets the C API read
//! them; before that, they are turned into the intrinsics of old for a moment.
//!
//! Of a scalar whose address is taken an optimising compiler only says where its value is, now and then. Where it begins
//! stands on the line that declares it.

use super::instructions::opcode;
use super::{Reader, call};
use crate::types::{LocalVariable, Operand};
use llvm::llvm_sys::debuginfo::LLVMMetadataKind as Kind;
use llvm::llvm_sys::prelude::{LLVMDbgRecordRef, LLVMMetadataRef, LLVMValueRef};
use llvm::llvm_sys::{LLVMDbgRecordKind as RecordKind, LLVMTypeKind as TypeKind};
use rustc_hash::FxHashSet;

/// The types of scalars, as `LLVMGetTypeKind` gives them.
const SCALARS: [i32; 4] = [
    TypeKind::LLVMIntegerTypeKind as i32,
    TypeKind::LLVMPointerTypeKind as i32,
    TypeKind::LLVMFloatTypeKind as i32,
    TypeKind::LLVMDoubleTypeKind as i32,
];

/// How the variable is found from the value of a record.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// The value itself.
    Plain,
    /// What the value points to.
    Dereferenced,
    /// The value and so many bytes more.
    Moved(i64),
    /// The value is what lies so many bytes from the variable's beginning on.
    Piece(i64),
    /// By a computation.
    Computed,
}

/// What a record or an intrinsic call says.
struct Description {
    /// The value is the address of the variable.
    declares: bool,
    value: LLVMValueRef,
    variable: LLVMMetadataRef,
    expression: LLVMMetadataRef,
}

/// A scalar in memory begins.
struct Begin {
    alloca: LLVMValueRef,
    scope: LLVMMetadataRef,
    line: u32,
}

/// The getters that LLVM 22 brought.
#[derive(Clone, Copy)]
struct Getters {
    first: unsafe extern "C" fn(LLVMValueRef) -> LLVMDbgRecordRef,
    next: unsafe extern "C" fn(LLVMDbgRecordRef) -> LLVMDbgRecordRef,
    kind: unsafe extern "C" fn(LLVMDbgRecordRef) -> i32,
    value: unsafe extern "C" fn(LLVMDbgRecordRef, u32) -> LLVMValueRef,
    variable: unsafe extern "C" fn(LLVMDbgRecordRef) -> LLVMMetadataRef,
    expression: unsafe extern "C" fn(LLVMDbgRecordRef) -> LLVMMetadataRef,
}

impl Getters {
    fn of(llvm: &llvm::Llvm) -> Option<Self> {
        Some(Self {
            first: llvm.LLVMGetFirstDbgRecord()?,
            next: llvm.LLVMGetNextDbgRecord()?,
            kind: llvm.LLVMDbgRecordGetKind()?,
            value: llvm.LLVMDbgVariableRecordGetValue()?,
            variable: llvm.LLVMDbgVariableRecordGetVariable()?,
            expression: llvm.LLVMDbgVariableRecordGetExpression()?,
        })
    }
}

impl Reader<'_> {
    /// Fills in the variables of every function; everything has been numbered before.
    pub(super) fn fill_variables(&mut self, functions: &[LLVMValueRef]) {
        let getters = Getters::of(self.llvm);
        let change = getters.is_none().then(|| self.llvm.LLVMSetIsNewDbgInfoFormat()).flatten();
        let raw = self.source.raw();
        if let Some(change) = change {
            // SAFETY: the module is alive; only debug records become instructions.
            unsafe { change(raw, 0) };
        }
        for (index, &function) in functions.iter().enumerate() {
            let (variables, pieces) = self.variables(function, getters);
            if let Some(converted) =
                self.module.functions.get_mut(index).filter(|f| !f.is_declaration())
            {
                converted.variables = variables;
                converted.pieces = pieces;
            }
        }
        if let Some(change) = change {
            // SAFETY: as above, and back.
            unsafe { change(raw, 1) };
        }
    }

    fn variables(
        &mut self,
        function: LLVMValueRef,
        getters: Option<Getters>,
    ) -> (Vec<LocalVariable>, Vec<LocalVariable>) {
        let mut found = Vec::new();
        let mut begins: Vec<Begin> = Vec::new();
        // SAFETY: the function and its blocks are alive.
        unsafe {
            for block in self.llvm.blocks(function) {
                for instruction in self.llvm.instructions(block) {
                    begins.extend(self.begin(instruction));
                    match getters {
                        Some(getters) => self.records(instruction, getters, &mut found),
                        None => found.extend(self.intrinsic(instruction)),
                    }
                }
            }
        }
        let pieces: Vec<LocalVariable> = found.iter().filter_map(|it| self.piece(it)).collect();
        let variables = found.iter().filter_map(|description| self.variable(description));
        let mut variables: Vec<LocalVariable> = variables.collect();
        variables.extend(self.declared_where_they_begin(&found, &begins));
        (without_repetition(variables), without_repetition(pieces))
    }

    fn records(&self, instruction: LLVMValueRef, get: Getters, found: &mut Vec<Description>) {
        const LABEL: i32 = RecordKind::LLVMDbgRecordLabel as i32;
        const DECLARE: i32 = RecordKind::LLVMDbgRecordDeclare as i32;
        // SAFETY: the instruction is alive, and so are its records.
        unsafe {
            let mut record = (get.first)(instruction);
            while !record.is_null() {
                let kind = (get.kind)(record);
                // Records of unknown kinds are left alone: the getters may not fit them.
                if kind != LABEL && (0..=3).contains(&kind) {
                    found.push(Description {
                        declares: kind == DECLARE,
                        value: (get.value)(record, 0),
                        variable: (get.variable)(record),
                        expression: (get.expression)(record),
                    });
                }
                record = (get.next)(record);
            }
        }
    }

    /// The same from a call of a debug intrinsic.
    fn intrinsic(&self, instruction: LLVMValueRef) -> Option<Description> {
        const LIST: i32 = Kind::LLVMDIArgListMetadataKind as i32;
        if call!(self, LLVMIsADbgVariableIntrinsic(instruction)).is_null() {
            return None;
        }
        let location = call!(self, LLVMGetOperand(instruction, 0));
        let node = call!(self, LLVMValueAsMetadata(location));
        if call!(self, LLVMGetMetadataKind(node)) == LIST {
            return None;
        }
        let metadata = |index| {
            let operand = call!(self, LLVMGetOperand(instruction, index));
            call!(self, LLVMValueAsMetadata(operand))
        };
        Some(Description {
            declares: !call!(self, LLVMIsADbgDeclareInst(instruction)).is_null(),
            value: self.operands_of(node).first().copied().unwrap_or(std::ptr::null_mut()),
            variable: metadata(1),
            expression: metadata(2),
        })
    }

    /// A call that says that a scalar in memory begins.
    fn begin(&self, instruction: LLVMValueRef) -> Option<Begin> {
        if call!(self, LLVMIsACallInst(instruction)).is_null() {
            return None;
        }
        let callee = call!(self, LLVMGetCalledValue(instruction));
        // SAFETY: the callee is alive.
        let name = unsafe { self.llvm.value_name(callee) };
        let last = call!(self, LLVMGetNumArgOperands(instruction)).checked_sub(1)?;
        if !name.starts_with("llvm.lifetime.start") {
            return None;
        }
        let mut alloca = call!(self, LLVMGetOperand(instruction, last));
        if call!(self, LLVMIsAInstruction(alloca)).is_null() {
            return None;
        }
        if call!(self, LLVMGetInstructionOpcode(alloca)) == opcode::BIT_CAST {
            alloca = call!(self, LLVMGetOperand(alloca, 0));
        }
        if call!(self, LLVMIsAAllocaInst(alloca)).is_null() {
            return None;
        }
        let ty = call!(self, LLVMGetAllocatedType(alloca));
        let scalar = SCALARS.contains(&call!(self, LLVMGetTypeKind(ty)));
        let location = call!(self, LLVMInstructionGetDebugLoc(instruction));
        if !scalar || location.is_null() {
            return None;
        }
        let line = call!(self, LLVMDILocationGetLine(location));
        Some(Begin { alloca, scope: call!(self, LLVMDILocationGetScope(location)), line })
    }

    /// The variables that are declared where exactly one scalar begins, and no other variable is.
    fn declared_where_they_begin(
        &mut self,
        found: &[Description],
        begins: &[Begin],
    ) -> Vec<LocalVariable> {
        let declared: FxHashSet<LLVMMetadataRef> = found.iter().map(|it| it.variable).collect();
        let mut named = Vec::new();
        for begin in begins {
            let here = |variable: &&LLVMMetadataRef| {
                call!(self, LLVMDIVariableGetScope(**variable)) == begin.scope
                    && call!(self, LLVMDIVariableGetLine(**variable)) == begin.line
            };
            let mut variables = declared.iter().filter(here);
            let (Some(&variable), None) = (variables.next(), variables.next()) else { continue };
            let alone = begins.iter().all(|other| {
                other.alloca == begin.alloca
                    || (other.scope, other.line) != (begin.scope, begin.line)
            });
            let Some(&value) = self.values.get(&begin.alloca).filter(|_| alone) else { continue };
            named.push(self.local(variable, value, (true, 0)));
        }
        named
    }

    fn variable(&mut self, description: &Description) -> Option<LocalVariable> {
        let shape = self.shape(description.expression);
        let (address, offset) = match (description.declares, shape) {
            (true, Shape::Plain) | (false, Shape::Dereferenced) => (true, 0),
            (false, Shape::Plain) => (false, 0),
            (false, Shape::Moved(bytes)) => (false, bytes),
            _ => return None,
        };
        let value = *self.values.get(&description.value)?;
        let value = Some(value).filter(|v| matches!(v, Operand::Inst(_) | Operand::Param(_)))?;
        Some(self.local(description.variable, value, (address, offset)))
    }

    /// A value that is a part of a variable.
    fn piece(&mut self, description: &Description) -> Option<LocalVariable> {
        let Shape::Piece(at) = self.shape(description.expression) else { return None };
        let value = *self.values.get(&description.value).filter(|_| !description.declares)?;
        let is_value = matches!(value, Operand::Inst(_) | Operand::Param(_));
        is_value.then(|| self.local(description.variable, value, (false, at)))
    }

    fn local(
        &mut self,
        variable: LLVMMetadataRef,
        value: Operand,
        (address, offset): (bool, i64),
    ) -> LocalVariable {
        let operands = self.operands_of(variable);
        let scope = self.node(operands.first().copied());
        LocalVariable {
            name: self.string(&operands, 1),
            ty: self.debug_type_at(&operands, 3),
            value,
            address,
            offset,
            scope: scope.map(|scope| self.scope(scope)),
        }
    }

    /// The C API does not show an expression's operations, but prints them.
    fn shape(&mut self, expression: LLVMMetadataRef) -> Shape {
        if let Some(&shape) = self.shapes.get(&expression) {
            return shape;
        }
        let text = self.text(call!(self, LLVMMetadataAsValue(self.context, expression)));
        let shape = match text.trim() {
            text if text.ends_with("!DIExpression()") => Shape::Plain,
            text if text.ends_with("!DIExpression(DW_OP_deref)") => Shape::Dereferenced,
            text => match (piece_at(text), moved_by(text)) {
                (Some(at), _) => Shape::Piece(at),
                (None, Some(bytes)) => Shape::Moved(bytes),
                (None, None) => Shape::Computed,
            },
        };
        self.shapes.insert(expression, shape);
        shape
    }
}

/// Each of them once.
fn without_repetition(variables: Vec<LocalVariable>) -> Vec<LocalVariable> {
    let mut seen = FxHashSet::default();
    let all = variables.into_iter();
    all.filter(|v| seen.insert((v.name.clone(), v.value, v.address, v.offset, v.scope))).collect()
}

/// Where in its variable the part begins that a value is, where the expression says no more than that.
fn piece_at(text: &str) -> Option<i64> {
    let (_, part) = text.split_once("!DIExpression(DW_OP_LLVM_fragment, ")?;
    let (first, size) = part.strip_suffix(')')?.split_once(", ")?;
    let (first, size) = (first.parse::<i64>().ok()?, size.parse::<i64>().ok()?);
    (first % 8 == 0 && size % 8 == 0).then_some(first / 8)
}

/// By how much an expression moves a pointer, where it does nothing else: a reference to a member, say.
fn moved_by(text: &str) -> Option<i64> {
    let (_, operations) = text.split_once("!DIExpression(")?;
    let mut rest = operations.strip_suffix("DW_OP_stack_value)")?;
    let mut sum = 0_i64;
    while !rest.is_empty() {
        let (bytes, behind) = rest.strip_prefix("DW_OP_plus_uconst, ")?.split_once(", ")?;
        sum = sum.checked_add(bytes.parse().ok()?)?;
        rest = behind;
    }
    (sum != 0).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_may_be_a_part_of_a_variable() {
        for (operations, expected) in [
            ("DW_OP_LLVM_fragment, 64, 64", Some(8)),
            ("DW_OP_LLVM_fragment, 0, 32", Some(0)),
            ("DW_OP_LLVM_fragment, 3, 5", None),
            ("DW_OP_plus_uconst, 8, DW_OP_stack_value, DW_OP_LLVM_fragment, 64, 64", None),
            ("", None),
        ] {
            assert_eq!(piece_at(&format!("!DIExpression({operations})")), expected, "{operations}");
        }
    }

    #[test]
    fn a_pointer_to_a_member_is_another_one_moved() {
        for (operations, expected) in [
            ("DW_OP_plus_uconst, 8, DW_OP_plus_uconst, 32, DW_OP_stack_value", Some(40)),
            ("DW_OP_plus_uconst, 8, DW_OP_stack_value", Some(8)),
            ("DW_OP_plus_uconst, 8, DW_OP_deref, DW_OP_stack_value", None),
            ("DW_OP_plus_uconst, 8", None),
            ("DW_OP_stack_value", None),
            ("", None),
        ] {
            assert_eq!(moved_by(&format!("!DIExpression({operations})")), expected, "{operations}");
        }
    }
}
