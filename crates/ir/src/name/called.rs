//! What a call returned a pointer or a reference to, in the words of who called: `shop.items[i]`,
//! `waiting.back().id`, `find(..)->next`.
//!
//! Unoptimised code has each access to an element of a container behind such a call.

use super::layout::{self, Want};
use super::place::{DEEPEST_INDEX, Namer, Place, Reach, Via, grouped};
use super::{demangle, operand_type, parameter_variable, pointee_size, rust};
use crate::types::{Call, DebugType, DebugTypeId, Function, Type};
use model::names::{is_installed, is_reserved, outside_of_library};

/// Functions of C++'s library that return what they got.
const PASS_ON: [&str; 5] = ["move", "forward", "addressof", "as_const", "__addressof"];

/// Members of C++'s library that return a reference to an element. Of strings they are elsewhere, without a body.
const ELEMENT: [&str; 4] = ["operator[]", "at", "front", "back"];

/// A function that a call names.
struct Called<'m> {
    call: &'m Call,
    function: &'m Function,
    /// As in the source, without the arguments of a template.
    name: String,
    of_library: bool,
    is_method: bool,
    via: Via,
    /// What its result leads to.
    ty: Option<DebugTypeId>,
}

impl Namer<'_> {
    /// The place that a call leads to. What a library does with calls of its own is in nobody's words.
    pub(super) fn called(
        &self,
        call: (&Call, &Function),
        reach: &Reach,
        depth: usize,
    ) -> Option<Place> {
        if self.scope.is_none_or(|scope| is_installed(&scope.file)) {
            return None;
        }
        let called = self.callee(call)?;
        let (name, arguments) = (called.name.as_str(), &called.call.args);
        if called.of_library && PASS_ON.contains(&name) {
            return self.place_within(*arguments.first()?, reach, depth);
        }
        let object = || self.object_of(&called, depth);
        let text = match (name, arguments.get(1..).unwrap_or_default()) {
            ("operator*" | "operator->", []) => {
                return Some(Place::new(object()?, Via::Pointer, called.ty));
            }
            // A smart pointer is written like the pointer that it keeps.
            ("get", []) if called.of_library && called.is_method => object()?,
            ("operator[]", [_]) => {
                format!("{}[{}]", grouped(&object()?), self.argument_text(&called, 1, depth))
            }
            _ if name.starts_with("operator") => return None,
            _ if called.is_method => {
                let (object, arguments) = (object()?, self.arguments_text(&called, 1, depth));
                match object.strip_prefix('*') {
                    Some(pointer) => format!("{}->{name}({arguments})", grouped(pointer)),
                    None => format!("{object}.{name}({arguments})"),
                }
            }
            _ => format!("{name}({})", self.arguments_text(&called, 0, depth)),
        };
        Some(Place::new(text, called.via, called.ty))
    }

    /// What is known of the function that a call names, where it returns a pointer or a reference.
    fn callee<'c>(&self, (call, function): (&'c Call, &'c Function)) -> Option<Called<'c>> {
        let scopes = &self.module.debug.scopes;
        let Some(scope) = function.scope.and_then(|scope| scopes.get(scope.index())) else {
            let name = member_of_library(&function.name)?;
            let (via, ty) = (Via::Reference, None);
            return Some(Called {
                call,
                function,
                name,
                of_library: true,
                is_method: true,
                via,
                ty,
            });
        };
        let kind = layout::strip(self.module, function.returns)?;
        let leads_on = matches!(kind, DebugType::Pointer(_) | DebugType::Reference(_));
        let of_rust = rust::is_librarys(&scope.file) || rust::is_packages(&scope.file);
        if !leads_on || of_rust {
            return None;
        }
        let first = parameter_variable(function, 0);
        let (via, ty) = self.pointee(function.returns);
        Some(Called {
            call,
            function,
            name: without_arguments(&scope.function),
            of_library: is_installed(&scope.file),
            is_method: first.is_some_and(|first| ["this", "self"].contains(&&*first.name)),
            via,
            ty,
        })
    }

    /// What the first argument of a call points to: of a library's object, what the program has it in.
    fn object_of(&self, called: &Called<'_>, depth: usize) -> Option<String> {
        let want = Want::Object(pointee_size(self.module, called.function, 0));
        let place = self.place_within(*called.call.args.first()?, &Reach::here(want), depth)?;
        let text = place.finish(self.module, want)?.text;
        Some(outside_of_library(&text).to_owned())
    }

    /// The arguments from one on.
    fn arguments_text(&self, called: &Called<'_>, first: usize, depth: usize) -> String {
        match called.call.args.len().saturating_sub(first) {
            0 => String::new(),
            1 => self.argument_text(called, first, depth),
            _ => "..".to_owned(),
        }
    }

    /// A number or a variable, which may be passed by reference; `..` for what is longer than that.
    fn argument_text(&self, called: &Called<'_>, position: usize, depth: usize) -> String {
        let Some(&argument) = called.call.args.get(position) else { return String::new() };
        let ty = operand_type(self.module, self.function, argument);
        let ty = ty.and_then(|ty| self.module.types.get(ty.index()));
        let text = match ty {
            Some(Type::Int(_)) => {
                let number = || self.small(argument).map(|number| number.to_string());
                self.index_text(argument, DEEPEST_INDEX).or_else(number)
            }
            _ => self.passed_text(called, position, depth),
        };
        text.unwrap_or_else(|| "..".to_owned())
    }

    /// A variable that is passed by reference or by a pointer.
    fn passed_text(&self, called: &Called<'_>, position: usize, depth: usize) -> Option<String> {
        let argument = *called.call.args.get(position)?;
        let ty = parameter_variable(called.function, position)?.ty;
        let by_reference = matches!(layout::strip(self.module, ty)?, DebugType::Reference(_));
        let want = Want::Object(pointee_size(self.module, called.function, position));
        let place = self.place_within(argument, &Reach::here(want), depth)?;
        let text = place.finish(self.module, want)?.text;
        let text = outside_of_library(&text);
        let told = match (by_reference, text.strip_prefix('*')) {
            // The object of an inlined constructor has no other name.
            (true, Some("this")) => return None,
            (true, _) => text.to_owned(),
            (false, Some(pointer)) => pointer.to_owned(),
            (false, None) => format!("&{text}"),
        };
        (!is_reserved(text.trim_start_matches('*'))).then_some(told)
    }
}

/// The member of a class of C++'s library that a symbol stands for, if it is one of [`ELEMENT`].
fn member_of_library(symbol: &str) -> Option<String> {
    let of_library = ["_ZNSt", "_ZNKSt"].iter().any(|prefix| symbol.starts_with(prefix));
    let name = demangle(of_library.then_some(symbol)?);
    let member = ELEMENT
        .into_iter()
        .find(|member| name.strip_suffix(member).is_some_and(|class| class.ends_with("::")));
    member.map(str::to_owned)
}

/// The name of a function without the arguments of its template, but for the number of the element that `std::get` gets.
fn without_arguments(name: &str) -> String {
    if name.starts_with("operator") {
        return name.to_owned();
    }
    let Some((plain, arguments)) = name.split_once('<') else { return name.to_owned() };
    let number: String = arguments.chars().take_while(char::is_ascii_digit).collect();
    match plain == "get" && !number.is_empty() {
        true => format!("get<{number}>"),
        false => plain.to_owned(),
    }
}
