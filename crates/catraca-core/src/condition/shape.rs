//! The shape of a condition: what it reads, and whether it can be judged in little time and stack.
//!
//! Walks the compiled expression once, so that a slip which could only ever fail at settle is found
//! when the catalog is read. Must not evaluate anything.

use std::sync::Arc;

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue};

/// The names a condition may read.
const VARIABLES: [&str; 4] = ["status", "body", "headers", "subject"];

/// The functions a condition may call; operators have names that nobody can write.
const FUNCTIONS: [&str; 9] =
    ["contains", "startsWith", "endsWith", "matches", "size", "string", "int", "uint", "double"];

/// How deep an expression may be: judging descends once per level, on the caller's own stack.
const DEPTH_MAX: usize = 32;

/// The longest pattern of `matches`.
const PATTERN_MAX: usize = 256;

/// What a condition reads.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// The subject's attributes.
    pub attributes: Vec<Arc<str>>,
    /// Those of them whose value is looked at, not only whether they are there.
    pub values: Vec<Arc<str>>,
    /// Whether it goes through a list.
    pub loops: bool,
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
            Expr::Select(select) if self.is(&select.operand, "headers") => header(&select.field),
            Expr::Select(select) => self.visit(&select.operand),
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(inner) => self.comprehension(inner),
            Expr::List(list) => list.elements.iter().try_for_each(|item| self.visit(item)),
            Expr::Map(map) => map.entries.iter().try_for_each(|entry| self.entry(&entry.expr)),
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

    fn name(&self, name: &str) -> Result<(), String> {
        if self.binds(name) {
            return Ok(());
        }
        match name {
            "subject" => Err(READ_AN_ATTRIBUTE.to_owned()),
            _ if VARIABLES.contains(&name) => Ok(()),
            _ => Err(format!("`{name}` is not known here")),
        }
    }

    fn attribute(&mut self, name: &str, value: bool) {
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
        if call.func_name == "matches" {
            self.pattern(call)?;
        }
        call.target.iter().try_for_each(|target| self.visit(target))?;
        call.args.iter().try_for_each(|arg| self.visit(arg))
    }

    /// A pattern is made ready anew each time: at most once per answer, and never a stranger's.
    fn pattern(&self, call: &CallExpr) -> Result<(), String> {
        if !self.bound.is_empty() {
            return Err("`matches` inside a loop may take too long; use contains, startsWith or \
                        endsWith"
                .to_owned());
        }
        match call.args.last().map(|arg| &arg.expr) {
            Some(Expr::Literal(LiteralValue::String(text)))
                if text.inner().len() <= PATTERN_MAX =>
            {
                let ready = regex::Regex::new(text.inner());
                ready.map(drop).map_err(|error| {
                    let why = error.to_string();
                    let why = why.lines().last().unwrap_or_default();
                    format!("the pattern of `matches` cannot be used: {why}")
                })
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
            Some(name) if self.is(from, "headers") => header(name),
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

/// Header names come in lower case, so any other spelling would never be found.
fn header(name: &str) -> Result<(), String> {
    let lower = name.to_lowercase();
    if name == lower {
        return Ok(());
    }
    Err(format!("headers have lower-case names here: write `{lower}` instead of `{name}`"))
}

fn known(function: &str) -> Result<(), String> {
    let operator = function.starts_with(|c: char| !c.is_alphabetic());
    if operator || FUNCTIONS.contains(&function) {
        return Ok(());
    }
    let all = FUNCTIONS.join(", ");
    Err(format!("there is no function `{function}` here; there are {all}, has and loops"))
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
