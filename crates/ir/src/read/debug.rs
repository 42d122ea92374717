//! Places in the source: locations, scopes, global variables.

use super::{Reader, call};
use crate::name;
use crate::types::{
    DebugType, DebugTypeId, DebugVariable, LocId, Location, Scope, ScopeId, Type, TypeId,
};
use llvm::llvm_sys::debuginfo::LLVMMetadataKind as Kind;
use llvm::llvm_sys::prelude::{LLVMMetadataRef, LLVMValueRef};
use std::path::Path;

/// Positions of operands, which the C API has no getters for.
mod operand {
    /// Of a subprogram and of a lexical block: the enclosing scope.
    pub(super) const SCOPE_PARENT: usize = 1;
    /// Of a subprogram.
    pub(super) const SUBPROGRAM_NAME: usize = 2;
    /// Of a subprogram.
    pub(super) const SUBPROGRAM_SYMBOL: usize = 3;
    /// Of a subprogram: the types of its result and parameters.
    pub(super) const SUBPROGRAM_TYPE: usize = 4;
    /// Of a file.
    pub(super) const FILE_CHECKSUM: usize = 2;
    /// Of a compile unit: its global variables, each with an expression.
    pub(super) const UNIT_GLOBALS: usize = 6;
    /// Of a variable.
    pub(super) const VARIABLE_NAME: usize = 1;
    /// Of a variable.
    pub(super) const VARIABLE_TYPE: usize = 3;
}

/// A lexical block nests in a subprogram after so many steps at most; deeper ones are malformed.
const DEEPEST_SCOPE: usize = 4096;

impl Reader<'_> {
    /// The identifier of a `DILocation`, `None` for none.
    pub(super) fn location(&mut self, node: LLVMMetadataRef) -> Option<LocId> {
        if node.is_null() {
            return None;
        }
        if let Some(&id) = self.locations.get(&node) {
            return Some(id);
        }
        // Chains of inlining are as deep as the inliner went, so recursion is bounded.
        let inlined_at = self.location(call!(self, LLVMDILocationGetInlinedAt(node)));
        let location = Location {
            line: call!(self, LLVMDILocationGetLine(node)),
            column: call!(self, LLVMDILocationGetColumn(node)),
            scope: self.scope(call!(self, LLVMDILocationGetScope(node))),
            inlined_at,
        };
        let id = LocId(u32::try_from(self.module.debug.locations.len()).unwrap_or(u32::MAX));
        self.module.debug.locations.push(location);
        self.locations.insert(node, id);
        Some(id)
    }

    /// The scope of a function's subprogram.
    pub(super) fn function_scope(&mut self, function: LLVMValueRef) -> Option<ScopeId> {
        let subprogram = call!(self, LLVMGetSubprogram(function));
        (!subprogram.is_null()).then(|| self.scope(subprogram))
    }

    /// The type of what a function returns in the source, where that is a pointer or a reference.
    pub(super) fn returned_type(
        &mut self,
        function: LLVMValueRef,
        result: TypeId,
    ) -> Option<DebugTypeId> {
        let pointer = matches!(self.module.types.get(result.index()), Some(Type::Pointer));
        let subprogram = call!(self, LLVMGetSubprogram(function));
        if !pointer || subprogram.is_null() {
            return None;
        }
        let operands = self.operands_of(subprogram);
        let ty = self.node(operands.get(operand::SUBPROGRAM_TYPE).copied())?;
        self.first_of_signature(ty)
    }

    /// The identifier of a scope.
    pub(super) fn scope(&mut self, node: LLVMMetadataRef) -> ScopeId {
        if let Some(&id) = self.scopes.get(&node) {
            return id;
        }
        let (function, line) = self.enclosing_function(node);
        let file = call!(self, LLVMDIScopeGetFile(node));
        let name = self.file(file);
        self.note_checksum(file, &name);
        let scope = Scope { file: name, function, line };
        let id = ScopeId(u32::try_from(self.module.debug.scopes.len()).unwrap_or(u32::MAX));
        self.module.debug.scopes.push(scope);
        self.scopes.insert(node, id);
        id
    }

    /// Name and line of the subprogram around a scope.
    fn enclosing_function(&self, scope: LLVMMetadataRef) -> (String, u32) {
        const SUBPROGRAM: i32 = Kind::LLVMDISubprogramMetadataKind as i32;
        const BLOCK: i32 = Kind::LLVMDILexicalBlockMetadataKind as i32;
        const BLOCK_FILE: i32 = Kind::LLVMDILexicalBlockFileMetadataKind as i32;
        let mut scope = scope;
        for _ in 0..DEEPEST_SCOPE {
            match call!(self, LLVMGetMetadataKind(scope)) {
                SUBPROGRAM => {
                    let operands = self.operands_of(scope);
                    let mut name = self.string(&operands, operand::SUBPROGRAM_NAME);
                    if name.starts_with("operator()") {
                        let symbol = self.string(&operands, operand::SUBPROGRAM_SYMBOL);
                        name = name::call_name(&symbol).unwrap_or(name);
                    } else if name.starts_with('{') {
                        let symbol = self.string(&operands, operand::SUBPROGRAM_SYMBOL);
                        name = name::rust::made_name(&name, &symbol).unwrap_or(name);
                    }
                    return (name, call!(self, LLVMDISubprogramGetLine(scope)));
                }
                BLOCK | BLOCK_FILE => {
                    let operands = self.operands_of(scope);
                    match self.node(operands.get(operand::SCOPE_PARENT).copied()) {
                        Some(parent) => scope = parent,
                        None => break,
                    }
                }
                _ => break,
            }
        }
        (String::new(), 0)
    }

    /// A file's path, with the compilation directory in front of a relative one.
    fn file(&self, file: LLVMMetadataRef) -> String {
        if file.is_null() {
            return String::new();
        }
        let (mut name_length, mut directory_length) = (0, 0);
        // SAFETY: LLVM returns each length with its start.
        let (name, directory) = unsafe {
            let name = self.llvm.LLVMDIFileGetFilename(file, &mut name_length);
            let directory = self.llvm.LLVMDIFileGetDirectory(file, &mut directory_length);
            (
                llvm::bytes_to_string(name, name_length as usize),
                llvm::bytes_to_string(directory, directory_length as usize),
            )
        };
        if directory.is_empty() || name.is_empty() {
            return name;
        }
        Path::new(&directory).join(name).to_string_lossy().into_owned()
    }

    /// Keeps what a file's text is known by.
    fn note_checksum(&mut self, file: LLVMMetadataRef, name: &str) {
        const MD5_DIGITS: usize = 32;
        if file.is_null() || name.is_empty() || self.module.debug.files.contains_key(name) {
            return;
        }
        let sum = self.string(&self.operands_of(file), operand::FILE_CHECKSUM);
        let digits = sum.len() == MD5_DIGITS && sum.chars().all(|c| c.is_ascii_hexdigit());
        let sum = if digits { sum.to_ascii_lowercase() } else { String::new() };
        self.module.debug.files.insert(name.to_owned(), sum);
    }

    /// What the debug information says about a global variable.
    pub(super) fn global_debug(&mut self, global: LLVMValueRef) -> Option<DebugVariable> {
        if let Some((variable, expression)) = self.global_variable_node(global) {
            return Some(self.described(variable, expression, false));
        }
        // An object that is allocated once may have become the global `pointer.body`, and `pointer.init` says whether
        // that was done.
        let name = self.symbol(global);
        let body = name.strip_suffix(".body");
        let pointer = body.or_else(|| name.strip_suffix(".init"))?;
        let variable = self.left_variable(pointer)?;
        let described = self.described(variable, None, body.is_some());
        let ty = described.ty.and_then(|ty| self.module.debug.types.get(ty.index()));
        if !matches!(ty, Some(DebugType::Pointer(_))) {
            return None;
        }
        // What is there is no pointer, but a truth value.
        let ty = described.ty.filter(|_| body.is_some());
        Some(DebugVariable { ty, ..described })
    }

    fn described(
        &mut self,
        variable: LLVMMetadataRef,
        expression: Option<LLVMMetadataRef>,
        points_to_it: bool,
    ) -> DebugVariable {
        let expression = expression
            .map(|node| self.text(call!(self, LLVMMetadataAsValue(self.context, node))))
            .unwrap_or_default();
        let either = two_values(&expression);
        let operands = self.operands_of(variable);
        let file = call!(self, LLVMDIVariableGetFile(variable));
        DebugVariable {
            name: self.string(&operands, operand::VARIABLE_NAME),
            ty: self.debug_type_at(&operands, operand::VARIABLE_TYPE),
            file: self.file(file),
            line: call!(self, LLVMDIVariableGetLine(variable)),
            either,
            offset: part_of(&expression).unwrap_or(0),
            points_to_it,
        }
    }

    /// The only global variable of this name among those that the compile units list, whether or not there is
    /// still such a global.
    fn left_variable(&self, name: &str) -> Option<LLVMMetadataRef> {
        let (raw, units) = (self.source.raw(), c"llvm.dbg.cu".as_ptr());
        let count = call!(self, LLVMGetNamedMetadataNumOperands(raw, units)) as usize;
        let mut operands = vec![std::ptr::null_mut(); count];
        call!(self, LLVMGetNamedMetadataOperands(raw, units, operands.as_mut_ptr()));
        let mut found = None;
        for unit in operands.into_iter().filter_map(|unit| self.node(Some(unit))) {
            let lists = self.operands_of(unit);
            let Some(list) = self.node(lists.get(operand::UNIT_GLOBALS).copied()) else { continue };
            for entry in self.operands_of(list) {
                let Some(entry) = self.node(Some(entry)) else { continue };
                let Some(variable) = self.node(self.operands_of(entry).first().copied()) else {
                    continue;
                };
                let own = self.string(&self.operands_of(variable), operand::VARIABLE_NAME);
                if own == name && found.replace(variable).is_some() {
                    return None;
                }
            }
        }
        found
    }

    /// A global variable's description, and how its value follows from what is stored.
    fn global_variable_node(
        &self,
        global: LLVMValueRef,
    ) -> Option<(LLVMMetadataRef, Option<LLVMMetadataRef>)> {
        const EXPRESSION: i32 = Kind::LLVMDIGlobalVariableExpressionMetadataKind as i32;
        let mut count = 0;
        let entries = call!(self, LLVMGlobalCopyAllMetadata(global, &mut count));
        let count = u32::try_from(count).unwrap_or(0);
        let found = (0..count)
            .map(|index| call!(self, LLVMValueMetadataEntriesGetMetadata(entries, index)))
            .find(|&node| call!(self, LLVMGetMetadataKind(node)) == EXPRESSION)
            .map(|node| {
                let variable = call!(self, LLVMDIGlobalVariableExpressionGetVariable(node));
                (variable, call!(self, LLVMDIGlobalVariableExpressionGetExpression(node)))
            });
        call!(self, LLVMDisposeValueMetadataEntries(entries));
        let (variable, expression) = found.filter(|(variable, _)| !variable.is_null())?;
        Some((variable, Some(expression).filter(|node| !node.is_null())))
    }

    /// The operands of a metadata node; a missing one is null.
    pub(super) fn operands_of(&self, node: LLVMMetadataRef) -> Vec<LLVMValueRef> {
        let value = call!(self, LLVMMetadataAsValue(self.context, node));
        let count = call!(self, LLVMGetMDNodeNumOperands(value)) as usize;
        let mut operands = vec![std::ptr::null_mut(); count];
        call!(self, LLVMGetMDNodeOperands(value, operands.as_mut_ptr()));
        operands
    }

    /// An operand that is a node.
    pub(super) fn node(&self, operand: Option<LLVMValueRef>) -> Option<LLVMMetadataRef> {
        let operand = operand.filter(|operand| !operand.is_null())?;
        if call!(self, LLVMIsAMDNode(operand)).is_null() {
            return None;
        }
        Some(call!(self, LLVMValueAsMetadata(operand)))
    }

    /// An operand that is a string; empty for none.
    pub(super) fn string(&self, operands: &[LLVMValueRef], index: usize) -> String {
        let Some(&operand) = operands.get(index).filter(|operand| !operand.is_null()) else {
            return String::new();
        };
        let mut length = 0;
        let start = call!(self, LLVMGetMDString(operand, &mut length));
        // SAFETY: LLVM returned the length with the start.
        unsafe { llvm::bytes_to_string(start, length as usize) }
    }
}

/// What 0 and 1 stand for under an expression of the form `stored * factor + base`. The C API does not
/// show an expression's operations, but prints them.
fn two_values(text: &str) -> Option<[i64; 2]> {
    let (_, rest) = text.trim().split_once("!DIExpression(DW_OP_deref_size, 1, DW_OP_constu, ")?;
    let (factor, rest) = rest.split_once(", DW_OP_mul, DW_OP_constu, ")?;
    let base = rest.strip_suffix(", DW_OP_plus, DW_OP_stack_value)")?;
    let (factor, base): (u64, u64) = (factor.parse().ok()?, base.parse().ok()?);
    Some([base, base.wrapping_add(factor)].map(u64::cast_signed))
}

/// Which byte of the variable the part begins at that an expression ends with.
fn part_of(text: &str) -> Option<i64> {
    let (_, part) = text.rsplit_once("DW_OP_LLVM_fragment, ")?;
    let (bits, _) = part.split_once(", ")?;
    bits.parse::<i64>().ok().map(|bits| bits / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_tells_which_part_of_a_variable_is_meant() {
        assert_eq!(part_of("!DIExpression(DW_OP_LLVM_fragment, 32, 64)"), Some(4));
        assert_eq!(
            part_of("!DIExpression(DW_OP_plus_uconst, 8, DW_OP_LLVM_fragment, 0, 8)"),
            Some(0)
        );
        assert_eq!(part_of("!DIExpression()"), None);
    }

    #[test]
    fn an_expression_tells_what_a_truth_value_stands_for() {
        let expression = |factor: u64, base: u64| {
            format!(
                "!DIExpression(DW_OP_deref_size, 1, DW_OP_constu, {factor}, DW_OP_mul, \
                 DW_OP_constu, {base}, DW_OP_plus, DW_OP_stack_value)"
            )
        };
        assert_eq!(two_values(&expression(u64::MAX, 1)), Some([1, 0]));
        assert_eq!(two_values(&expression(10, u64::MAX)), Some([-1, 9]));
        assert_eq!(two_values("!DIExpression()"), None);
        assert_eq!(two_values("!DIExpression(DW_OP_deref_size, 1, DW_OP_constu, 3"), None);
    }
}
