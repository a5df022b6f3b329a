//! Makes a kernel's code of its statements.

use std::collections::HashMap;
use std::ops::Range;

use super::guesses;
use super::liveness::{drop_unread_results, read_before_written, read_by};
use super::outlined::{Label, Outlined, Own};
use super::reach::Reach;
use super::scope::{Scope, Variable};
use super::shared::{self, Shared};
use super::syntax::{Declaration, DeclaredSpace, Function, Statement, StatementKind};
use super::{Module, PtxError};
use crate::code::{
    Constant, Guard, Instruction, Kernel, LOCAL_WINDOW, Op, Parameter, Register, RegisterCounts,
    SourceLocation, Space,
};

/// Statements that may be looked at, each once for each place where its function is inlined.
const MOST_STATEMENTS: usize = 1 << 20;
/// Bytes of parameters that a kernel may have.
const MOST_PARAMETER_BYTES: u64 = 32_764;

/// Makes the kernel of that name.
pub(super) fn kernel(module: &Module, name: &str) -> Result<Kernel, PtxError> {
    let number = module.functions.get(name).copied();
    let function = number.and_then(|number| module.source.functions.get(number));
    let Some((number, function)) = number.zip(function).filter(|(_, f)| f.is_kernel) else {
        let reason = format!("no kernel `{name}`; there is {}", module.kernels().join(", "));
        return Err(PtxError::new(0, reason));
    };
    let reach = Reach::of(module, number);
    let mut lowering = Lowering {
        module,
        shared: shared::place(module, &reach.functions)?,
        reach,
        cluster: function.cluster,
        code: Vec::new(),
        labels: Vec::new(),
        constants: HashMap::new(),
        filled: Vec::new(),
        counts: RegisterCounts::default(),
        locations: Vec::new(),
        location_numbers: HashMap::new(),
        local_bytes: 0,
        local_gaps: Vec::new(),
        statements: 0,
        calls: Vec::new(),
        outlined: Vec::new(),
        own: None,
        frame: Frame::default(),
        here: Here { guard: None, line: function.line, location: None },
    };
    let (parameters, scope) = place_parameters(function)?;
    lowering.body(number, function, scope, Label(usize::MAX))?;
    lowering.finish(function, parameters)
}

/// Where a kernel's parameters lie, and their names.
fn place_parameters(function: &Function) -> Result<(Vec<Parameter>, Scope<'_>), PtxError> {
    let (mut parameters, mut scope) = (Vec::new(), Scope::default());
    let mut next = 0_u64;
    for declaration in &function.parameters {
        let (address, bytes) = (next.next_multiple_of(declaration.align), declaration.bytes());
        next = address.saturating_add(bytes);
        let (Ok(start), Ok(end), true) =
            (u32::try_from(address), u32::try_from(next), next <= MOST_PARAMETER_BYTES)
        else {
            let reason = format!("parameters are larger than {MOST_PARAMETER_BYTES} bytes");
            return Err(PtxError::new(declaration.line, reason));
        };
        parameters.push(Parameter { bytes: start..end });
        let variable = Variable { space: Space::Parameter, address, bytes };
        scope.declare_variable(&declaration.name, variable);
    }
    Ok((parameters, scope))
}

/// A kernel in the making.
pub(super) struct Lowering<'m> {
    pub(super) module: &'m Module,
    pub(super) shared: Shared<'m>,
    pub(super) reach: Reach,
    /// Blocks of a cluster, where the kernel says so.
    pub(super) cluster: Option<[u32; 3]>,
    /// Targets of branches are numbers of labels until the end.
    code: Vec<Instruction>,
    /// Where labels stand.
    labels: Vec<Option<u32>>,
    constants: HashMap<(Constant, u32), Register>,
    /// The same, in the order in which they came up.
    filled: Vec<(Register, Constant)>,
    counts: RegisterCounts,
    locations: Vec<SourceLocation>,
    location_numbers: HashMap<(u32, u32, Option<u32>), Option<u32>>,
    local_bytes: u64,
    local_gaps: Vec<Range<u32>>,
    statements: usize,
    /// Functions that are being inlined, the kernel or the function with code of its own first.
    pub(super) calls: Vec<usize>,
    /// Functions with code of their own.
    pub(super) outlined: Vec<Outlined>,
    /// The one whose code is made; none while it is the kernel's.
    pub(super) own: Option<Own>,
    pub(super) frame: Frame<'m>,
    pub(super) here: Here,
}

/// A function where it is inlined.
#[derive(Default)]
pub(super) struct Frame<'m> {
    pub(super) is_kernel: bool,
    /// Names, the innermost scope last.
    pub(super) scopes: Vec<Scope<'m>>,
    /// Numbers of these scopes, in the order in which they open.
    open: Vec<usize>,
    /// By number of the scope and name.
    labels: HashMap<(usize, &'m str), Label>,
    tables: HashMap<(usize, &'m str), &'m [String]>,
    /// Where `ret` goes.
    pub(super) end: Option<Label>,
    /// Whether the statement is the last of the body.
    pub(super) is_last: bool,
}

/// What the instructions that are emitted have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Here {
    pub(super) guard: Option<Guard>,
    pub(super) line: u32,
    pub(super) location: Option<u32>,
}

impl<'m> Lowering<'m> {
    /// Emits the body of a function, its parameters named in a scope; `ret` goes to a label.
    pub(super) fn body(
        &mut self,
        number: usize,
        function: &'m Function,
        scope: Scope<'m>,
        end: Label,
    ) -> Result<(), PtxError> {
        let body = function.body.as_deref().ok_or_else(|| {
            self.error(format!("`{}` is defined elsewhere and cannot be called", function.name))
        })?;
        self.count_statements(body.len() + 1)?;
        let mut frame = self.labelled(body)?;
        frame.is_kernel = function.is_kernel;
        frame.scopes.push(scope);
        frame.open.push(0);
        frame.end = Some(end);
        let outer = std::mem::replace(&mut self.frame, frame);
        self.calls.push(number);
        let mut scopes = 0;
        for (at, statement) in body.iter().enumerate() {
            self.frame.is_last = at + 1 == body.len();
            self.here.line = statement.line;
            match &statement.kind {
                StatementKind::Open => {
                    scopes += 1;
                    self.frame.open.push(scopes);
                    self.frame.scopes.push(Scope::default());
                }
                StatementKind::Close => {
                    self.frame.open.pop();
                    self.frame.scopes.pop();
                }
                StatementKind::Label(name) => {
                    if let Some(label) = self.label(name) {
                        self.stand(label);
                    }
                }
                StatementKind::BranchTargets { .. } => {}
                StatementKind::Location { places } => {
                    self.here.location = self.location(places);
                }
                StatementKind::Registers { ty, names } => {
                    if let Some(scope) = self.frame.scopes.last_mut() {
                        scope.declare_registers(*ty, names);
                    }
                }
                StatementKind::Variable(declaration) => self.variable(number, at, declaration)?,
                StatementKind::Instruction(instruction) => self.instruction(instruction)?,
            }
        }
        self.calls.pop();
        self.frame = outer;
        Ok(())
    }

    /// Counts what has to be looked at; functions that call others twice multiply it.
    pub(super) fn count_statements(&mut self, count: usize) -> Result<(), PtxError> {
        self.statements = self.statements.saturating_add(count);
        if self.statements > MOST_STATEMENTS {
            return Err(self.error("the kernel and what it calls are too long"));
        }
        Ok(())
    }

    /// A frame with the labels and branch tables of a body.
    fn labelled(&mut self, body: &'m [Statement]) -> Result<Frame<'m>, PtxError> {
        let mut frame = Frame::default();
        let (mut scopes, mut open) = (0, vec![0]);
        for statement in body {
            let scope = open.last().copied().unwrap_or(0);
            let is_new = match &statement.kind {
                StatementKind::Open => {
                    scopes += 1;
                    open.push(scopes);
                    true
                }
                StatementKind::Close => open.pop().is_some(),
                StatementKind::Label(name) => {
                    let label = self.new_label();
                    frame.labels.insert((scope, name), label).is_none()
                }
                StatementKind::BranchTargets { name, labels } => {
                    frame.tables.insert((scope, name), labels).is_none()
                }
                _ => true,
            };
            if !is_new {
                return Err(PtxError::new(statement.line, "the label is defined a second time"));
            }
        }
        Ok(frame)
    }

    /// A variable in a body.
    fn variable(
        &mut self,
        function: usize,
        at: usize,
        declaration: &'m Declaration,
    ) -> Result<(), PtxError> {
        let bytes = declaration.bytes();
        let variable = match declaration.space {
            DeclaredSpace::Shared => {
                let address = self.shared.of_bodies.get(&(function, at)).copied();
                Variable { space: Space::Shared, address: address.unwrap_or_default(), bytes }
            }
            DeclaredSpace::Local | DeclaredSpace::Parameter => {
                let variable = self.local(declaration)?;
                self.add_gaps(function, declaration, variable.address);
                variable
            }
            DeclaredSpace::Global | DeclaredSpace::Constant => {
                let reason = format!("`{}` has to be outside of the function", declaration.name);
                return Err(self.error(reason));
            }
        };
        if let Some(scope) = self.frame.scopes.last_mut() {
            scope.declare_variable(&declaration.name, variable);
        }
        Ok(())
    }

    /// Room in a thread's own memory.
    pub(super) fn local(&mut self, declaration: &Declaration) -> Result<Variable, PtxError> {
        let (address, bytes) =
            (self.local_bytes.next_multiple_of(declaration.align), declaration.bytes());
        self.local_bytes = address.saturating_add(bytes);
        if self.local_bytes > 512 << 10 {
            return Err(self.error("a thread's own memory is larger than 512 KiB"));
        }
        Ok(Variable { space: Space::Local, address, bytes })
    }

    /// Notes what lies between the arrays of a variable at that address, if it is made of several.
    fn add_gaps(&mut self, function: usize, declaration: &Declaration, address: u64) {
        let Some(function) = self.module.source.functions.get(function) else { return };
        let arrays = &function.local_arrays;
        if arrays.last().is_some_and(|last| last.end == declaration.bytes()) {
            let between = arrays.iter().zip(arrays.iter().skip(1));
            self.local_gaps.extend(
                between.map(|(array, next)| {
                    (address + array.end) as u32..(address + next.start) as u32
                }),
            );
        }
    }

    /// A label of the innermost scope that has one of that name.
    pub(super) fn label(&self, name: &str) -> Option<Label> {
        self.frame.open.iter().rev().find_map(|&s| self.frame.labels.get(&(s, name)).copied())
    }

    /// A branch table, likewise.
    pub(super) fn table(&self, name: &str) -> Option<&'m [String]> {
        self.frame.open.iter().rev().find_map(|&s| self.frame.tables.get(&(s, name)).copied())
    }

    pub(super) fn new_label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Says that a label stands before the next instruction.
    pub(super) fn stand(&mut self, label: Label) {
        let next = self.code.len() as u32;
        if let Some(place) = self.labels.get_mut(label.0) {
            *place = Some(next);
        }
    }

    /// Emits an instruction with the guard, line and location of the statement.
    pub(super) fn emit(&mut self, op: Op) -> Result<(), PtxError> {
        if self.code.len() >= MOST_STATEMENTS {
            return Err(self.error("the kernel and what it calls are too long"));
        }
        let Here { guard, line: ptx_line, location } = self.here;
        self.code.push(Instruction { guard, op, ptx_line, location });
        Ok(())
    }

    /// A register that holds a constant of 1, 8, 16, 32 or 64 bits.
    pub(super) fn constant(&mut self, constant: Constant, bits: u32) -> Result<Register, PtxError> {
        let constant = match constant {
            Constant::Bits(value) if bits == 1 => Constant::Bits(u64::from(value != 0)),
            Constant::Bits(value) if bits < 64 => Constant::Bits(value & ((1 << bits) - 1)),
            constant => constant,
        };
        let bank = if (8..32).contains(&bits) { 32 } else { bits };
        if let Some(&register) = self.constants.get(&(constant, bank)) {
            return Ok(register);
        }
        let register = self.fresh(bank)?;
        self.constants.insert((constant, bank), register);
        self.filled.push((register, constant));
        Ok(register)
    }

    /// A new register of 1, 8, 16, 32 or 64 bits.
    pub(super) fn fresh(&mut self, bits: u32) -> Result<Register, PtxError> {
        let (count, register): (_, fn(u16) -> Register) = match bits {
            1 => (&mut self.counts.predicates, Register::Predicate),
            64 => (&mut self.counts.longs, Register::Long),
            _ => (&mut self.counts.words, Register::Word),
        };
        let Ok(number) = u16::try_from(*count) else {
            return Err(self.error("the kernel and what it calls use too many registers"));
        };
        *count += 1;
        Ok(register(number))
    }

    /// How many registers there are so far.
    pub(super) fn counts(&self) -> RegisterCounts {
        self.counts
    }

    /// Where a label stands.
    pub(super) fn place_of(&self, label: Label) -> u32 {
        self.labels.get(label.0).copied().flatten().unwrap_or_default()
    }

    /// Begins the frame of a function, and its code at that line.
    pub(super) fn begin_frame(&mut self, line: u32) {
        (self.local_bytes, self.local_gaps) = (0, Vec::new());
        self.here = Here { guard: None, line, location: None };
    }

    /// The size of the frame, and what lies between its arrays.
    pub(super) fn end_frame(&mut self) -> (u32, Vec<Range<u32>>) {
        (self.local_bytes as u32, std::mem::take(&mut self.local_gaps))
    }

    /// The innermost of some places that is in no header; a header's functions are named by the
    /// line that calls them.
    fn location(&mut self, places: &[(u32, u32)]) -> Option<u32> {
        let (module, locations) = (self.module, &mut self.locations);
        let is_header = |file| {
            let name: Option<&String> = module.source.files.get(file);
            name.is_some_and(|name| name.ends_with(".h"))
        };
        let own = places.iter().find(|(file, _)| !is_header(file));
        let (file, line) = own.or(places.first()).copied()?;
        let outermost = places.last().filter(|place| **place != (file, line) && place.0 == file);
        let called_at = outermost.map(|&(_, line)| line);
        *self.location_numbers.entry((file, line, called_at)).or_insert_with(|| {
            let file = module.source.files.get(&file).filter(|_| line > 0)?.clone();
            locations.push(SourceLocation { file, line, called_at });
            u32::try_from(locations.len() - 1).ok()
        })
    }

    pub(super) fn error(&self, reason: impl Into<String>) -> PtxError {
        PtxError::new(self.here.line, reason)
    }

    fn finish(
        mut self,
        function: &Function,
        parameters: Vec<Parameter>,
    ) -> Result<Kernel, PtxError> {
        let end = self.code.len() as u32;
        let ends = self.code.last().is_some_and(|last| {
            last.guard.is_none() && matches!(last.op, Op::Exit | Op::Trap | Op::Branch { .. })
        });
        if !ends || self.labels.contains(&Some(end)) {
            self.here.guard = None;
            self.emit(Op::Exit)?;
        }
        let (local_bytes, local_gaps) = self.end_frame();
        let functions = self.outlined()?;
        let place = |label: &mut u32| {
            *label = self.labels.get(*label as usize).copied().flatten().unwrap_or(end);
        };
        for instruction in &mut self.code {
            match &mut instruction.op {
                Op::Branch { target } => place(target),
                Op::BranchIndexed { targets, .. } => targets.iter_mut().for_each(place),
                _ => {}
            }
        }
        guesses::relax(&mut self.code);
        drop_unread_results(&mut self.code);
        debug_assert!(u64::from(local_bytes) <= LOCAL_WINDOW.end - LOCAL_WINDOW.start);
        let filled = |register: &Register| {
            self.filled.iter().any(|(other, _)| other == register)
                || functions.iter().any(|function| function.frame == *register)
        };
        let entries: Vec<usize> = functions.iter().map(|f| f.entry as usize).collect();
        let unwritten =
            read_before_written(&self.code, &entries).into_iter().filter(|r| !filled(r));
        let undefined = unwritten.map(|r| (r, first_reader(&self.code, r))).collect();
        Ok(Kernel {
            name: function.name.clone(),
            undefined,
            code: self.code,
            registers: self.counts,
            machine_registers: None,
            constants: self.filled,
            parameter_bytes: parameters.last().map_or(0, |parameter| parameter.bytes.end),
            parameters,
            shared_bytes: self.shared.bytes as u32,
            shared_dynamic: self.shared.dynamic as u32,
            shared_arrays: self.shared.arrays,
            local_bytes,
            local_gaps,
            functions,
            variables: self.module.variables.clone(),
            locations: self.locations,
            most_threads: function.most_threads,
            cluster: function.cluster,
        })
    }
}

/// Number of the first instruction that reads a register.
fn first_reader(code: &[Instruction], register: Register) -> u32 {
    let reads = |instruction: &Instruction| read_by(instruction).any(|other| other == register);
    code.iter().position(reads).unwrap_or_default() as u32
}
