//! Static analysis of a condition: the variables it reads, and the time and stack it may take.
//!
//! Walks the compiled expression once, so that mistakes which would otherwise fail at every settle
//! are reported when the catalog is read.

use std::sync::Arc;

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue,
};

use super::cost::ConditionCost;
use super::pattern::{PATTERN_MAX, Patterns};

/// The variables of conditions.
const VARIABLES: [&str; 6] =
    ["status", "body", "body_truncated", "body_invalid", "headers", "subject"];

/// The functions of conditions. Operators are functions too, whose names contain `_` or `@` and
/// cannot be written as a call.
const FUNCTIONS: [&str; 9] =
    ["contains", "startsWith", "endsWith", "matches", "size", "string", "int", "uint", "double"];

/// The deepest expression: evaluating recurses once per level, on the stack of the caller's thread.
const DEPTH_MAX: usize = 32;

/// The result of the analysis.
#[derive(Debug, Default)]
pub struct ConditionAnalysis {
    /// The subject's attributes that the condition reads.
    pub attributes: Vec<Arc<str>>,
    /// The attributes whose value it reads; `has(subject.name)` alone does not count.
    pub values: Vec<Arc<str>>,
    /// The variables it reads, of those whose size influences the work.
    pub reads: VariableSet,
    /// The patterns of `matches`.
    pub patterns: Patterns,
    /// Whether it contains a loop, such as `exists` or `filter`.
    pub loops: bool,
    /// How its work grows with the size of its inputs.
    pub cost: ConditionCost,
}

/// A set of variables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VariableSet {
    /// `body`, `body_truncated` or `body_invalid`.
    pub body: bool,
    /// `headers`.
    pub headers: bool,
    /// `subject`.
    pub subject: bool,
}

impl VariableSet {
    fn of(variable: &str) -> Self {
        Self {
            body: matches!(variable, "body" | "body_truncated" | "body_invalid"),
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

    /// The variables that a comparison of two operands may scan. A comparison ends with the shorter
    /// operand: if one of them reads no variable, it is short, and nothing is scanned.
    fn scanned_by_comparison(self, other: Self) -> Self {
        let none = Self::default();
        if self == none || other == none { none } else { self.or(other) }
    }
}

/// Analyses an expression; the error describes a mistake in it.
pub fn analyse(expression: &IdedExpr) -> Result<ConditionAnalysis, String> {
    let mut walk = ExpressionWalk::default();
    walk.visit(expression)?;
    Ok(walk.analysis)
}

#[derive(Default)]
struct ExpressionWalk<'e> {
    analysis: ConditionAnalysis,
    /// The variables of the current loop; empty outside of loops.
    loop_variables: Vec<&'e str>,
    depth: usize,
}

impl<'e> ExpressionWalk<'e> {
    fn visit(&mut self, ided: &'e IdedExpr) -> Result<(), String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("it is more than {DEPTH_MAX} steps deep; split it into rules"));
        }
        self.analysis.cost.steps += u64::from(!self.loop_variables.is_empty());
        self.visit_kind(&ided.expr)?;
        self.depth -= 1;
        Ok(())
    }

    fn visit_kind(&mut self, expr: &'e Expr) -> Result<(), String> {
        match expr {
            Expr::Ident(name) => self.visit_name(name),
            Expr::Select(select) if self.is_variable(&select.operand, "subject") => {
                self.add_attribute(&select.field, !select.test);
                Ok(())
            }
            Expr::Select(select) if self.is_variable(&select.operand, "headers") => {
                self.add_header(&select.field)
            }
            Expr::Select(select) => self.visit(&select.operand),
            Expr::Call(call) => self.visit_call(call),
            Expr::Comprehension(inner) => self.visit_loop(inner),
            Expr::List(list) => {
                self.add_copies(list);
                list.elements.iter().try_for_each(|item| self.visit(item))
            }
            Expr::Map(map) => {
                self.add_scans(self.analysis.reads, map.entries.len() as u64);
                map.entries.iter().try_for_each(|entry| self.visit_entry(&entry.expr))
            }
            Expr::Struct(value) => Err(format!("there is no type `{}`", value.type_name)),
            Expr::Literal(_) | Expr::Unspecified => Ok(()),
        }
    }

    fn visit_entry(&mut self, entry: &'e EntryExpr) -> Result<(), String> {
        match entry {
            EntryExpr::MapEntry(pair) => {
                self.visit(&pair.key)?;
                self.visit(&pair.value)
            }
            EntryExpr::StructField(field) => self.visit(&field.value),
        }
    }

    /// Whether an expression is this variable, and not a loop variable of the same name.
    fn is_variable(&self, ided: &IdedExpr, variable: &str) -> bool {
        matches!(&ided.expr, Expr::Ident(name) if name == variable)
            && !self.is_loop_variable(variable)
    }

    fn is_loop_variable(&self, name: &str) -> bool {
        self.loop_variables.contains(&name)
    }

    fn visit_name(&mut self, name: &str) -> Result<(), String> {
        if self.is_loop_variable(name) {
            return Ok(());
        }
        match name {
            "subject" => Err(READ_AN_ATTRIBUTE.to_owned()),
            _ if VARIABLES.contains(&name) => {
                self.add_read(name);
                Ok(())
            }
            _ => Err(format!("there is no variable `{name}`")),
        }
    }

    fn add_read(&mut self, variable: &str) {
        self.analysis.reads = self.analysis.reads.or(VariableSet::of(variable));
    }

    /// Adds the cost of calls that may scan a whole value. Outside a loop each call scans it once.
    /// Inside a loop the values of the loop variable together are one scan of the whole, but a call
    /// on a variable such as `body` scans all of it in every iteration.
    fn add_scans(&mut self, found_in: VariableSet, times: u64) {
        let cost = &mut self.analysis.cost;
        let scans = match self.loop_variables.is_empty() {
            false if found_in.body => &mut cost.repeated,
            false if found_in.headers || found_in.subject => &mut cost.repeated_texts,
            _ => &mut cost.scans,
        };
        *scans += times;
    }

    /// Adds the cost of a list in the condition, which contains copies of its items.
    fn add_copies(&mut self, list: &ListExpr) {
        for item in list.elements.iter().filter(|item| !is_literal(item)) {
            self.add_scans(self.reads_of(item), 1);
        }
    }

    /// Adds the cost of a call. A comparison ends with the shorter of two values, a search scans
    /// one of them, and logical operators scan nothing.
    fn add_call_cost(&mut self, call: &CallExpr) {
        let operands = || call.target.iter().map(|target| &**target).chain(&call.args);
        let found_in = match call.func_name.as_str() {
            "_&&_" | "_||_" | "!_" | "_?_:_" | "-_" | "@not_strictly_false" => return,
            "_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_" | "startsWith" | "endsWith" => {
                if operands().any(is_literal) {
                    return;
                }
                let reads = operands().map(|operand| self.reads_of(operand));
                reads.reduce(VariableSet::scanned_by_comparison).unwrap_or_default()
            }
            "@in" if call.args.last().is_some_and(is_literal) => return,
            "@in" => call.args.last().map(|list| self.reads_of(list)).unwrap_or_default(),
            "contains" => operands().next().map(|text| self.reads_of(text)).unwrap_or_default(),
            _ => operands()
                .map(|operand| self.reads_of(operand))
                .fold(VariableSet::default(), VariableSet::or),
        };
        self.add_scans(found_in, 1);
    }

    /// The variables that an expression reads, without loop variables.
    fn reads_of(&self, ided: &IdedExpr) -> VariableSet {
        let all = |parts: &[IdedExpr]| {
            parts
                .iter()
                .map(|part| self.reads_of(part))
                .fold(VariableSet::default(), VariableSet::or)
        };
        match &ided.expr {
            Expr::Ident(name) if !self.is_loop_variable(name) => VariableSet::of(name),
            Expr::Select(select) => self.reads_of(&select.operand),
            Expr::Call(call) => {
                let target = call.target.as_ref().map(|target| self.reads_of(target));
                all(&call.args).or(target.unwrap_or_default())
            }
            Expr::List(list) => all(&list.elements),
            // Rare inside a loop: all variables that were read so far are an upper bound.
            Expr::Map(_) | Expr::Comprehension(_) => self.analysis.reads,
            _ => VariableSet::default(),
        }
    }

    /// Checks the name of a header: they are in lower case, so another spelling would never match.
    fn add_header(&mut self, name: &str) -> Result<(), String> {
        self.add_read("headers");
        let lower = name.to_lowercase();
        if name == lower {
            return Ok(());
        }
        Err(format!("header names are in lower case: write `{lower}` instead of `{name}`"))
    }

    fn add_attribute(&mut self, name: &str, reads_value: bool) {
        self.add_read("subject");
        add_once(&mut self.analysis.attributes, name);
        if reads_value {
            add_once(&mut self.analysis.values, name);
        }
    }

    fn visit_call(&mut self, call: &'e CallExpr) -> Result<(), String> {
        if let [from, at] = call.args.as_slice()
            && call.func_name == "_[_]"
        {
            return self.visit_index(from, at);
        }
        check_function(&call.func_name)?;
        match call.func_name.as_str() {
            "matches" => self.compile_pattern(call)?,
            _ => self.add_call_cost(call),
        }
        call.target.iter().try_for_each(|target| self.visit(target))?;
        call.args.iter().try_for_each(|arg| self.visit(arg))
    }

    /// Compiles the pattern of a `matches`. Not allowed inside a loop, where the weight of a
    /// pattern would be multiplied by the number of values in the body.
    fn compile_pattern(&mut self, call: &CallExpr) -> Result<(), String> {
        if !self.loop_variables.is_empty() {
            return Err("`matches` inside a loop may take too long; use contains, startsWith or \
                        endsWith"
                .to_owned());
        }
        match call.args.last().map(|arg| &arg.expr) {
            Some(Expr::Literal(LiteralValue::String(text)))
                if text.inner().len() <= PATTERN_MAX =>
            {
                self.analysis.cost.scans += self.analysis.patterns.compile(text.inner())?;
                Ok(())
            }
            _ => {
                Err(format!("`matches` needs its pattern as a text of at most {PATTERN_MAX} bytes"))
            }
        }
    }

    fn visit_index(&mut self, from: &'e IdedExpr, at: &'e IdedExpr) -> Result<(), String> {
        let text = match &at.expr {
            Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
            _ => None,
        };
        match text {
            Some(name) if self.is_variable(from, "subject") => {
                self.add_attribute(name, true);
                Ok(())
            }
            Some(name) if self.is_variable(from, "headers") => self.add_header(name),
            _ => {
                self.visit(from)?;
                self.visit(at)
            }
        }
    }

    /// Allows only loops whose time is linear in the body. Nested loops and `map`, which may build
    /// ever longer texts, are not.
    fn visit_loop(&mut self, inner: &'e ComprehensionExpr) -> Result<(), String> {
        if !self.loop_variables.is_empty() {
            return Err("a loop inside a loop may take too long; split it into rules".to_owned());
        }
        if is_map(inner) {
            return Err("`map` is not allowed; use exists, all, exists_one or filter".to_owned());
        }
        self.visit(&inner.iter_range)?;
        self.analysis.loops = true;
        // Every value is copied for its iteration, which together is one scan.
        self.analysis.cost.scans += 1;
        self.loop_variables.extend([&*inner.iter_var, &*inner.accu_var]);
        self.loop_variables.extend(inner.iter_var2.as_deref());
        for part in [&inner.accu_init, &inner.loop_cond, &inner.loop_step, &inner.result] {
            self.visit(part)?;
        }
        self.loop_variables.clear();
        Ok(())
    }
}

const READ_AN_ATTRIBUTE: &str =
    "read an attribute as `subject.name`, or test it with `has(subject.name)`";

fn add_once(names: &mut Vec<Arc<str>>, name: &str) {
    if !names.iter().any(|other| **other == *name) {
        names.push(name.into());
    }
}

fn check_function(function: &str) -> Result<(), String> {
    let is_operator = function.starts_with(|c: char| !c.is_alphabetic());
    if is_operator || FUNCTIONS.contains(&function) {
        return Ok(());
    }
    let all = FUNCTIONS.join(", ");
    Err(format!("there is no function `{function}`; there are {all}, has and loops"))
}

/// Whether an expression is a literal, or a list of literals.
fn is_literal(ided: &IdedExpr) -> bool {
    match &ided.expr {
        Expr::Literal(_) => true,
        Expr::List(list) => list.elements.iter().all(is_literal),
        _ => false,
    }
}

/// Whether a loop is a `map`: it collects something else than the items themselves, which `filter`
/// does.
fn is_map(inner: &ComprehensionExpr) -> bool {
    collected_item(&inner.loop_step)
        .is_some_and(|item| !matches!(&item.expr, Expr::Ident(name) if *name == inner.iter_var))
}

/// The item that an iteration adds to a list. The CEL compiler expands loops to steps such as
/// `@result + [item]`, or `condition ? @result + [item] : @result`.
fn collected_item(step: &IdedExpr) -> Option<&IdedExpr> {
    let Expr::Call(call) = &step.expr else { return None };
    match (call.func_name.as_str(), call.args.as_slice()) {
        ("_?_:_", [_, then, _]) => collected_item(then),
        ("_+_", [_, added]) => match &added.expr {
            Expr::List(list) => list.elements.first(),
            _ => None,
        },
        _ => None,
    }
}
