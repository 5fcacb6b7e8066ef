//! The shape of a condition: what it reads, and how much time and stack it may take.
//!
//! Walks the compiled expression once, so that a slip which could only ever fail at settle is found
//! when the catalog is read. Must not evaluate anything.

use std::sync::Arc;

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue,
};

use super::cost::Cost;
use super::pattern::{PATTERN_MAX, Patterns};

/// The names a condition may read.
const VARIABLES: [&str; 5] = ["status", "body", "body_truncated", "headers", "subject"];

/// The functions a condition may call; operators have names that nobody can write.
const FUNCTIONS: [&str; 9] =
    ["contains", "startsWith", "endsWith", "matches", "size", "string", "int", "uint", "double"];

/// How deep an expression may be: judging descends once per level, on the caller's own stack.
const DEPTH_MAX: usize = 32;

/// What a condition reads, and what it does with that.
#[derive(Debug, Default)]
pub struct Shape {
    /// The subject's attributes.
    pub attributes: Vec<Arc<str>>,
    /// Those of them whose value is looked at, not only whether they are there.
    pub values: Vec<Arc<str>>,
    /// The variables whose size matters.
    pub reads: Reads,
    /// The patterns of `matches`.
    pub patterns: Patterns,
    /// Whether it goes through a list.
    pub loops: bool,
    /// How its work grows with what it reads.
    pub cost: Cost,
}

/// Which variables a condition reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// `body` or `body_truncated`.
    pub body: bool,
    /// `headers`.
    pub headers: bool,
    /// `subject`.
    pub subject: bool,
}

impl Reads {
    fn of(variable: &str) -> Self {
        Self {
            body: matches!(variable, "body" | "body_truncated"),
            headers: variable == "headers",
            subject: variable == "subject",
        }
    }

    fn or(self, other: Self) -> Self {
        Self {
            body: self.body || other.body,
            headers: self.headers || other.headers,
            subject: self.subject || other.subject,
        }
    }

    /// What both together may go through, if it ends with the shorter: nothing if one reads none.
    fn both(self, other: Self) -> Self {
        let none = Self::default();
        if self == none || other == none { none } else { self.or(other) }
    }
}

/// Finds the shape of an expression, or what is wrong with it.
pub fn shape(expression: &IdedExpr) -> Result<Shape, String> {
    let mut walk = Walk::default();
    walk.visit(expression)?;
    Ok(walk.shape)
}

#[derive(Default)]
struct Walk<'e> {
    shape: Shape,
    /// The variables of the loop, if inside one.
    bound: Vec<&'e str>,
    depth: usize,
}

impl<'e> Walk<'e> {
    fn visit(&mut self, ided: &'e IdedExpr) -> Result<(), String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("it is more than {DEPTH_MAX} steps deep; split it into rules"));
        }
        self.shape.cost.steps += u64::from(!self.bound.is_empty());
        self.look(&ided.expr)?;
        self.depth -= 1;
        Ok(())
    }

    fn look(&mut self, expr: &'e Expr) -> Result<(), String> {
        match expr {
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) if self.is(&select.operand, "subject") => {
                self.attribute(&select.field, !select.test);
                Ok(())
            }
            Expr::Select(select) if self.is(&select.operand, "headers") => {
                self.header(&select.field)
            }
            Expr::Select(select) => self.visit(&select.operand),
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(inner) => self.comprehension(inner),
            Expr::List(list) => {
                self.copies(list);
                list.elements.iter().try_for_each(|item| self.visit(item))
            }
            Expr::Map(map) => {
                self.scan(self.shape.reads, map.entries.len() as u64);
                map.entries.iter().try_for_each(|entry| self.entry(&entry.expr))
            }
            Expr::Struct(made) => Err(format!("there is no type `{}` here", made.type_name)),
            Expr::Literal(_) | Expr::Unspecified => Ok(()),
        }
    }

    fn entry(&mut self, entry: &'e EntryExpr) -> Result<(), String> {
        match entry {
            EntryExpr::MapEntry(pair) => {
                self.visit(&pair.key)?;
                self.visit(&pair.value)
            }
            EntryExpr::StructField(field) => self.visit(&field.value),
        }
    }

    /// Whether an expression is this variable, and not a loop's of the same name.
    fn is(&self, ided: &IdedExpr, variable: &str) -> bool {
        matches!(&ided.expr, Expr::Ident(name) if name == variable) && !self.binds(variable)
    }

    fn binds(&self, name: &str) -> bool {
        self.bound.contains(&name)
    }

    fn name(&mut self, name: &str) -> Result<(), String> {
        if self.binds(name) {
            return Ok(());
        }
        match name {
            "subject" => Err(READ_AN_ATTRIBUTE.to_owned()),
            _ if VARIABLES.contains(&name) => {
                self.reads(name);
                Ok(())
            }
            _ => Err(format!("`{name}` is not known here")),
        }
    }

    fn reads(&mut self, variable: &str) {
        self.shape.reads = self.shape.reads.or(Reads::of(variable));
    }

    /// Adds the cost of calls that may read a whole value. Outside a loop each call reads it once.
    /// Inside a loop, the parts of the loop's own values together are one reading of the whole, but
    /// a call on a variable such as `body` reads all of it in every iteration.
    fn scan(&mut self, found_in: Reads, times: u64) {
        let cost = &mut self.shape.cost;
        let scans = match self.bound.is_empty() {
            false if found_in.body => &mut cost.repeated,
            false if found_in.headers || found_in.subject => &mut cost.repeated_texts,
            _ => &mut cost.scans,
        };
        *scans += times;
    }

    /// A list in the condition holds copies of its items.
    fn copies(&mut self, list: &ListExpr) {
        for item in list.elements.iter().filter(|item| !is_literal(item)) {
            self.scan(self.reads_of(item), 1);
        }
    }

    /// A comparison ends with the shorter of two values, a search goes through one of them.
    fn scan_call(&mut self, call: &CallExpr) {
        let operands = || call.target.iter().map(|target| &**target).chain(&call.args);
        let found_in = match call.func_name.as_str() {
            "_&&_" | "_||_" | "!_" | "_?_:_" | "-_" | "@not_strictly_false" => return,
            "_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_" | "startsWith" | "endsWith" => {
                if operands().any(is_literal) {
                    return;
                }
                let reads = operands().map(|operand| self.reads_of(operand));
                reads.reduce(Reads::both).unwrap_or_default()
            }
            "@in" if call.args.last().is_some_and(is_literal) => return,
            "@in" => call.args.last().map(|list| self.reads_of(list)).unwrap_or_default(),
            "contains" => operands().next().map(|text| self.reads_of(text)).unwrap_or_default(),
            _ => operands().map(|operand| self.reads_of(operand)).fold(Reads::default(), Reads::or),
        };
        self.scan(found_in, 1);
    }

    /// The variables that a part of a loop reads beside the loop's own.
    fn reads_of(&self, ided: &IdedExpr) -> Reads {
        let all = |parts: &[IdedExpr]| {
            parts.iter().map(|part| self.reads_of(part)).fold(Reads::default(), Reads::or)
        };
        match &ided.expr {
            Expr::Ident(name) if !self.binds(name) => Reads::of(name),
            Expr::Select(select) => self.reads_of(&select.operand),
            Expr::Call(call) => {
                let target = call.target.as_ref().map(|target| self.reads_of(target));
                all(&call.args).or(target.unwrap_or_default())
            }
            Expr::List(list) => all(&list.elements),
            // Rare inside a loop, and not worth telling apart.
            Expr::Map(_) | Expr::Comprehension(_) => self.shape.reads,
            _ => Reads::default(),
        }
    }

    /// Header names come in lower case, so any other spelling would never be found.
    fn header(&mut self, name: &str) -> Result<(), String> {
        self.reads("headers");
        let lower = name.to_lowercase();
        if name == lower {
            return Ok(());
        }
        Err(format!("headers have lower-case names here: write `{lower}` instead of `{name}`"))
    }

    fn attribute(&mut self, name: &str, value: bool) {
        self.reads("subject");
        note(&mut self.shape.attributes, name);
        if value {
            note(&mut self.shape.values, name);
        }
    }

    fn call(&mut self, call: &'e CallExpr) -> Result<(), String> {
        if let [from, at] = call.args.as_slice()
            && call.func_name == "_[_]"
        {
            return self.index(from, at);
        }
        known(&call.func_name)?;
        match call.func_name.as_str() {
            "matches" => self.pattern(call)?,
            _ => self.scan_call(call),
        }
        call.target.iter().try_for_each(|target| self.visit(target))?;
        call.args.iter().try_for_each(|arg| self.visit(arg))
    }

    /// Compiles the pattern of a `matches`. Not inside a loop: the weight of a pattern times the
    /// values of a body is too much.
    fn pattern(&mut self, call: &CallExpr) -> Result<(), String> {
        if !self.bound.is_empty() {
            return Err("`matches` inside a loop may take too long; use contains, startsWith or \
                        endsWith"
                .to_owned());
        }
        match call.args.last().map(|arg| &arg.expr) {
            Some(Expr::Literal(LiteralValue::String(text)))
                if text.inner().len() <= PATTERN_MAX =>
            {
                self.shape.cost.scans += self.shape.patterns.compile(text.inner())?;
                Ok(())
            }
            _ => {
                Err(format!("`matches` needs its pattern as a text of at most {PATTERN_MAX} bytes"))
            }
        }
    }

    fn index(&mut self, from: &'e IdedExpr, at: &'e IdedExpr) -> Result<(), String> {
        let text = match &at.expr {
            Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
            _ => None,
        };
        match text {
            Some(name) if self.is(from, "subject") => {
                self.attribute(name, true);
                Ok(())
            }
            Some(name) if self.is(from, "headers") => self.header(name),
            _ => {
                self.visit(from)?;
                self.visit(at)
            }
        }
    }

    /// One loop is linear in the body; one inside another, or one that makes texts, is not.
    fn comprehension(&mut self, inner: &'e ComprehensionExpr) -> Result<(), String> {
        if !self.bound.is_empty() {
            return Err("a loop inside a loop may take too long; split it into rules".to_owned());
        }
        if maps(inner) {
            return Err("`map` is not allowed; use exists, all, exists_one or filter".to_owned());
        }
        self.visit(&inner.iter_range)?;
        self.shape.loops = true;
        // Every value is copied for its step.
        self.shape.cost.scans += 1;
        self.bound.extend([&*inner.iter_var, &*inner.accu_var]);
        self.bound.extend(inner.iter_var2.as_deref());
        for part in [&inner.accu_init, &inner.loop_cond, &inner.loop_step, &inner.result] {
            self.visit(part)?;
        }
        self.bound.clear();
        Ok(())
    }
}

const READ_AN_ATTRIBUTE: &str =
    "read an attribute as `subject.name`, or test it with `has(subject.name)`";

fn note(names: &mut Vec<Arc<str>>, name: &str) {
    if !names.iter().any(|known| **known == *name) {
        names.push(name.into());
    }
}

fn known(function: &str) -> Result<(), String> {
    let operator = function.starts_with(|c: char| !c.is_alphabetic());
    if operator || FUNCTIONS.contains(&function) {
        return Ok(());
    }
    let all = FUNCTIONS.join(", ");
    Err(format!("there is no function `{function}` here; there are {all}, has and loops"))
}

/// Whether an expression is written out, or is a list of what is.
fn is_literal(ided: &IdedExpr) -> bool {
    match &ided.expr {
        Expr::Literal(_) => true,
        Expr::List(list) => list.elements.iter().all(is_literal),
        _ => false,
    }
}

/// Whether a loop gathers anything but the items themselves.
fn maps(inner: &ComprehensionExpr) -> bool {
    gathered(&inner.loop_step)
        .is_some_and(|item| !matches!(&item.expr, Expr::Ident(name) if *name == inner.iter_var))
}

/// The item that a loop's step adds to a list: `@result + [item]`, maybe on a condition.
fn gathered(step: &IdedExpr) -> Option<&IdedExpr> {
    let Expr::Call(call) = &step.expr else { return None };
    match (call.func_name.as_str(), call.args.as_slice()) {
        ("_?_:_", [_, then, _]) => gathered(then),
        ("_+_", [_, added]) => match &added.expr {
            Expr::List(list) => list.elements.first(),
            _ => None,
        },
        _ => None,
    }
}
