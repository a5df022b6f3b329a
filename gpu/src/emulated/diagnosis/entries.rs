//! Which entries of the matrix a wrong element was computed from.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use sparserl_core::matrix::Scalar;
use sparserl_emulator::trace::{
    Moment, Step, makes_integer, multiplies, rounds_to, uses_of_parameter,
};

use super::formulas::Formula;
use super::{Failure, by_value};
use crate::candidate::executable::Parameter;

/// Entries that are named one by one.
const NAMED: usize = 3;
/// Instructions that used an entry last, in which the loop is looked for that left it out.
const OF_LOOP: usize = 3;
/// Branches that are looked at where nothing was read.
const ENDS: usize = 2;

impl<A: Scalar, D: Scalar> Failure<'_, A, D> {
    /// What is wrong with an element that was computed by these steps.
    pub(super) fn why(&self, element: usize, steps: &[Step], formula: Option<Formula>) -> String {
        let row = element / self.width;
        let mut said = Vec::new();
        if let Some(formula) = formula {
            said.push(formula.text(row, self.matrix.rows()));
        }
        let read = self
            .array(self.matrix.values())
            .map(|array| self.read_of(steps, array, size_of::<A>()));
        if let Some(read) = &read {
            said.extend(self.about_entries(row, read, steps));
        }
        let is_about_entries = !said.is_empty() && formula.is_none();
        if let Some(columns) = self.about_columns(element, steps).filter(|_| !is_about_entries) {
            said.push(columns);
        }
        if let Some(product) = self.about_product(element, read.as_ref(), steps) {
            said.push(product);
        }
        if matches!(formula, Some(Formula::Doubled)) {
            said.extend(self.about_shuffles(steps));
        }
        said.extend(self.about_numbers(steps, formula));
        let factor = match formula {
            Some(Formula::AlphaTwice | Formula::NoAlpha) => Some(Parameter::Alpha),
            Some(formula) if formula.is_of_beta() => Some(Parameter::Beta),
            _ => None,
        };
        if let Some(factor) = factor {
            let parameters = &self.prepared.launch.parameters;
            let place = parameters.iter().position(|&parameter| parameter == factor);
            let uses = place.map(|place| uses_of_parameter(self.kernel, steps, place));
            let lines = self.lines(uses.into_iter().flatten());
            if !lines.is_empty() {
                said.push(format!("{} is used at {lines}", self.name_of(factor)));
            }
        }
        if said.is_empty() && self.repairs.is_empty() {
            // Where entries are and by whom they are added is all that is left.
            said.extend(self.about_way(steps));
        }
        let got = self.output.get(element).map_or(f64::NAN, |got| got.to_f64());
        let right = self.reference.values.get(element).copied().unwrap_or(f64::NAN);
        if let Some(repairs) = self.repairs_in_words() {
            said.insert(0, repairs);
        }
        said.insert(0, format!("{got:e} instead of {right:e}"));
        said.join("; ")
    }

    /// The addresses of the array with these elements.
    fn array<T: bytemuck::NoUninit>(&self, elements: &[T]) -> Option<Range<u64>> {
        let bytes: &[u8] = bytemuck::cast_slice(elements);
        let parameters = self.prepared.launch.parameters.iter().zip(&self.buffers);
        parameters.into_iter().find_map(|(parameter, buffer)| match parameter {
            Parameter::Array(index) => {
                let array = self.prepared.arrays.get(*index)?;
                (array.bytes() == bytes).then(|| buffer.clone()).flatten()
            }
            _ => None,
        })
    }

    /// Elements of an array that went into a value, and when each was read.
    fn read_of(
        &self,
        steps: &[Step],
        array: Range<u64>,
        bytes: usize,
    ) -> BTreeMap<usize, Vec<Moment>> {
        let mut read: BTreeMap<usize, Vec<Moment>> = BTreeMap::new();
        for step in steps.iter().filter(by_value) {
            for (moment, place, size) in self.trace.reads(self.kernel, step) {
                // Copies read more than an element.
                let of = (place..place + u64::from(size)).step_by(bytes);
                for place in of.filter(|place| array.contains(place)) {
                    let index = (place - array.start) as usize / bytes;
                    let moments = read.entry(index).or_default();
                    if !moments.contains(&moment) {
                        moments.push(moment);
                    }
                }
            }
        }
        read
    }

    /// Entries that are missing, are of other rows, or were taken more than once.
    fn about_entries(
        &self,
        row: usize,
        read: &BTreeMap<usize, Vec<Moment>>,
        steps: &[Step],
    ) -> Vec<String> {
        let own = self.entries_of(row);
        let missing: Vec<usize> = own.clone().filter(|entry| !read.contains_key(entry)).collect();
        let foreign: Vec<usize> =
            read.keys().copied().filter(|entry| !own.contains(entry)).collect();
        let twice: Vec<usize> = own
            .clone()
            .filter(|entry| read.get(entry).is_some_and(|moments| moments.len() > 1))
            .collect();
        let mut said = Vec::new();
        if let Some(&first) = missing.first() {
            said.push(format!(
                "row {row} lacks {}{}",
                self.entries_in_words(row, &missing),
                self.where_lost(first, read, steps)
            ));
        }
        if let Some(&first) = foreign.first() {
            let moments = read.get(&first).map_or(&[][..], Vec::as_slice);
            let other = self.row_of(first);
            let path = self.path(moments, steps);
            let gate = moments.first().map(|&moment| self.trace.branches_before(moment, 1));
            let gate = self.lines(gate.into_iter().flatten().filter_map(|m| self.counter_of(m)));
            let gate = if gate.is_empty() { gate } else { format!(", let in at {gate}") };
            said.push(format!(
                "{} of row {other} {} in it, read {path}{gate}",
                self.entries_in_words(other, &foreign),
                if foreign.len() == 1 { "is" } else { "are" }
            ));
        }
        if let Some(&first) = twice.first() {
            let moments = read.get(&first).map_or(&[][..], Vec::as_slice);
            said.push(format!(
                "{} of row {row} {} taken more than once, read {}",
                self.entries_in_words(row, &twice),
                if twice.len() == 1 { "is" } else { "are" },
                self.path(moments, steps)
            ));
        }
        if !foreign.is_empty() || !twice.is_empty() {
            said.extend(self.about_begin(steps));
        }
        if !said.is_empty() {
            let mut choices = self.choices(steps);
            choices.extend(self.ends_of_reading(read, steps));
            said.extend(self.choices_in_words(&choices, steps));
        }
        said
    }

    fn entries_of(&self, row: usize) -> Range<usize> {
        let offset = |row: usize| self.offsets.get(row).map_or(0, |&offset| offset as usize);
        offset(row)..offset(row + 1)
    }

    /// The row that an entry is in.
    fn row_of(&self, entry: usize) -> usize {
        self.offsets.partition_point(|&offset| offset as usize <= entry).saturating_sub(1)
    }

    /// `its last entry (column 40)`, `3 of its 10 entries, from the third on`
    fn entries_in_words(&self, row: usize, entries: &[usize]) -> String {
        let own = self.entries_of(row);
        let (count, all) = (entries.len(), own.len());
        let column = |entry: usize| self.matrix.columns().get(entry).copied().unwrap_or(0);
        let number = |entry: usize| (entry + 1).saturating_sub(own.start);
        let (Some(&first), Some(&last)) = (entries.first(), entries.last()) else {
            return "no entries".to_owned();
        };
        if !own.contains(&first) || !own.contains(&last) {
            return format!("{count} entries");
        }
        let is_run = last - first + 1 == count;
        match count {
            1 if all == 1 => format!("the only entry (column {})", column(first)),
            1 if last + 1 == own.end => {
                format!("the last of {all} entries (column {})", column(last))
            }
            1 if first == own.start => {
                format!("the first of {all} entries (column {})", column(first))
            }
            1 => format!("entry {} of {all} (column {})", number(first), column(first)),
            _ if count == all => format!("all of {all} entries"),
            _ if is_run && last + 1 == own.end => {
                format!("{count} of {all} entries, all after the first {}", first - own.start)
            }
            _ if is_run && first == own.start => {
                format!("{count} of {all} entries, the first {count}")
            }
            _ if is_run => {
                format!("{count} of {all} entries, {} to {}", number(first), number(last))
            }
            _ => {
                let some: Vec<String> =
                    entries.iter().take(NAMED).map(|&e| number(e).to_string()).collect();
                let more = if count > NAMED { ", …" } else { "" };
                format!("{count} of {all} entries ({}{more})", some.join(", "))
            }
        }
    }

    /// Where an entry that is missing was read, and where last used.
    fn where_lost(
        &self,
        entry: usize,
        read: &BTreeMap<usize, Vec<Moment>>,
        steps: &[Step],
    ) -> String {
        let Some(array) = self.array(self.matrix.values()) else { return String::new() };
        let bytes = size_of::<A>() as u64;
        let start = array.start + entry as u64 * bytes;
        let readers = self.trace.accesses(self.kernel, start..start + bytes);
        let reader = readers.filter(|(_, effects)| effects.reads).last().map(|(access, _)| access);
        let Some(reader) = reader else {
            // Those that were read tell where it should have been.
            let others = read.values().flatten().filter_map(|&moment| self.trace.place_of(moment));
            let lines = self.lines(others.map(|(counter, ..)| counter));
            return match lines.is_empty() {
                true => ", read by no thread".to_owned(),
                false => format!(", read by no thread: the others are read at {lines}"),
            };
        };
        let carriers = self.trace.carriers(self.kernel, reader.moment);
        let read_at = self.lines(std::iter::once(reader.counter));
        let Some(&last) = carriers.last() else { return format!(", read at {read_at}") };
        let stored = self.element_stored_by(last);
        let last_line = self.counter_of(last);
        let used = self.lines(last_line.into_iter());
        match stored {
            Some(other) => {
                let before = carriers.iter().rev().skip(1).take(3).rev();
                let way = self.lines(before.filter_map(|&m| self.counter_of(m)));
                let way = if way.is_empty() { way } else { format!(" by {way}") };
                format!(
                    ", read at {read_at} and stored in row {} at {used}{way}",
                    other / self.width
                )
            }
            None => {
                let next = self.replaced_after(last, steps);
                let last_first = carriers.iter().rev().filter_map(|&m| self.counter_of(m));
                let around = self.loop_in_words(last_first.take(OF_LOOP));
                let around = around.map(|text| format!("; {text}")).unwrap_or_default();
                format!(", read at {read_at} and last used at {used}{around}{next}")
            }
        }
    }

    pub(super) fn counter_of(&self, moment: Moment) -> Option<u32> {
        self.trace.place_of(moment).map(|(counter, ..)| counter)
    }

    /// The element of the output that an event has stored.
    fn element_stored_by(&self, moment: Moment) -> Option<usize> {
        let all = self.addresses_of(Parameter::Output, 0, size_of_val(self.output))?;
        let mut of = self.trace.accesses(self.kernel, all.clone());
        let (access, _) = of.find(|(access, effects)| {
            effects.writes
                && access.moment.event == moment.event
                && access.moment.lane == moment.lane
        })?;
        Some((access.place - all.start) as usize / size_of::<D>())
    }

    /// What went into the element next after an event.
    fn replaced_after(&self, moment: Moment, steps: &[Step]) -> String {
        let next = steps.iter().rev().filter(by_value).find(|step| step.event > moment.event);
        let line = self.lines(next.map(|step| step.counter).into_iter());
        if line.is_empty() { line } else { format!("; the sum goes on at {line}") }
    }

    /// Where something was read, and by which lines it came.
    fn path(&self, moments: &[Moment], steps: &[Step]) -> String {
        let Some(&first) = moments.first() else { return String::new() };
        let own: BTreeSet<u32> = steps.iter().filter(by_value).map(|step| step.counter).collect();
        let read = self.lines(moments.iter().filter_map(|&moment| self.counter_of(moment)));
        let carriers = self.trace.carriers(self.kernel, first);
        let on_way = carriers.iter().filter_map(|&moment| self.counter_of(moment));
        let on_way = self.lines(on_way.filter(|counter| own.contains(counter)));
        match on_way.is_empty() || on_way == read {
            true => format!("at {read}"),
            false => format!("at {read} and passed on at {on_way}"),
        }
    }

    /// What the branches depend on that end what is read: the ones after the last entry and after
    /// the last number that the sum was made of, or the last ones of the thread that stores a sum
    /// of none.
    fn ends_of_reading(&self, read: &BTreeMap<usize, Vec<Moment>>, steps: &[Step]) -> Vec<Step> {
        let last = read.last_key_value().and_then(|(_, moments)| moments.last());
        let mut reading = steps.iter().filter(by_value);
        let read_last =
            reading.find_map(|step| self.trace.reads(self.kernel, step).next()).map(|read| read.0);
        let branches = match (last, steps.first()) {
            (Some(&last), _) => {
                let after = [Some(last), read_last.filter(|&read| read != last)];
                let first = |moment| self.trace.branches_after(moment).into_iter().next();
                after.into_iter().flatten().filter_map(first).collect()
            }
            (None, Some(store)) => {
                let lane = (store.value | store.choice).trailing_zeros() as usize;
                self.trace.branches_before(Moment { event: store.event, lane }, ENDS)
            }
            (None, None) => Vec::new(),
        };
        self.decisions(&branches)
    }

    /// What some branches depend on, all of it as a choice.
    pub(super) fn decisions(&self, branches: &[Moment]) -> Vec<Step> {
        let slice = |&branch: &Moment| self.trace.slice_of_branch(self.kernel, branch);
        let decide = |step: Step| Step { choice: step.value | step.choice, value: 0, ..step };
        branches.iter().flat_map(slice).map(decide).collect()
    }

    /// Steps that say where is read or whether.
    pub(super) fn choices(&self, steps: &[Step]) -> Vec<Step> {
        steps.iter().filter(|step| step.choice != 0).copied().collect()
    }

    /// By which lines it is decided what is read: those that cut numbers off first, then those that
    /// pass on numbers of other threads, then those that read any.
    /// Lines by which the value itself came are named already.
    pub(super) fn choices_in_words(&self, choices: &[Step], steps: &[Step]) -> Option<String> {
        if !self.repairs.is_empty() {
            return None;
        }
        let line = |step: &Step| self.kernel.location(step.counter as usize);
        let named: BTreeSet<_> = steps.iter().filter(by_value).filter_map(line).collect();
        // A fraction is cut off as well.
        let cuts = |step: &Step| step.cuts || makes_integer(self.kernel, step.counter);
        let rank = |step: &Step| match () {
            () if cuts(step) => 0,
            () if self.trace.is_passed_on(self.kernel, step) => 1,
            () if self.trace.reads(self.kernel, step).next().is_some() => 2,
            () => 3,
        };
        let choices = choices.iter();
        let mut ranked: Vec<(u8, usize, u32)> = choices
            .filter(|step| cuts(step) || !self.trace.only_moves(self.kernel, step))
            .map(|step| (rank(step), step.event, step.counter))
            .collect();
        ranked.sort_by_key(|&(rank, event, _)| (rank, std::cmp::Reverse(event)));
        let mut seen = BTreeSet::new();
        ranked.retain(|&(rank, _, counter)| seen.insert((rank, counter)));
        let cuts = self.lines(ranked.iter().filter(|r| r.0 == 0).map(|r| r.2));
        let is_news = |counter: &u32| {
            self.kernel.location(*counter as usize).is_some_and(|line| !named.contains(line))
        };
        let deciding = || ranked.iter().filter(|r| r.0 != 0).map(|r| r.2).filter(is_news);
        let lines = self.lines(deciding());
        match (cuts.is_empty(), lines.is_empty()) {
            (false, _) => Some(format!("a number that this depends on is cut off at {cuts}")),
            (true, false) => Some(match self.constants_of(deciding()) {
                Some(constants) => format!("what is taken is decided at {lines}; {constants}"),
                None => format!("what is taken is decided at {lines}"),
            }),
            (true, true) => None,
        }
    }

    /// Elements of the input that its row does not name.
    fn about_columns(&self, element: usize, steps: &[Step]) -> Option<String> {
        let (row, place) = (element / self.width, element % self.width);
        let all = self.matrix.cols() * self.width * size_of::<D>();
        let array = self.addresses_of(Parameter::Input, 0, all)?;
        let mut read = self.read_of(steps, array, size_of::<D>());
        let (columns, _) = self.matrix.row(row);
        let is_named =
            |at: usize| at % self.width == place && columns.contains(&((at / self.width) as u32));
        // Two numbers of 16 bits are read as one word, whichever is used.
        let in_word = |at: usize| size_of::<D>() == 2 && is_named(at ^ 1);
        let whole = read.clone();
        read.retain(|&at, moments| {
            let other = || whole.get(&(at ^ 1)).is_some_and(|other| other == moments);
            is_named(at) || !(in_word(at) && other())
        });
        let input = self.name_of(Parameter::Input);
        let name = |at: usize| self.input_in_words(at);
        let Some((&at, moments)) = read.iter().find(|(at, _)| !is_named(**at)) else {
            // One of its own may stand for another one.
            let mut own = columns.iter().map(|&column| column as usize * self.width + place);
            let missing = own.find(|at| !read.contains_key(at))?;
            let lines = read.values().flatten().filter_map(|&moment| self.counter_of(moment));
            let lines = self.lines(lines);
            let read =
                if lines.is_empty() { lines } else { format!(": others are read at {lines}") };
            let choices = self.choices_in_words(&self.choices(steps), steps);
            let choices = choices.map(|choices| format!("; {choices}")).unwrap_or_default();
            return Some(format!(
                "{}, which row {row} names, does not go into it{read}{choices}",
                name(missing),
            ));
        };
        let lines = self.lines(moments.iter().filter_map(|&moment| self.counter_of(moment)));
        let why = match columns.contains(&((at / self.width) as u32)) {
            true => format!("of another column of {input} than {place}"),
            false => format!("which row {row} does not name"),
        };
        let address = moments.first().and_then(|&moment| self.about_address(moment));
        let address = address.map(|address| format!("; {address}")).unwrap_or_default();
        Some(format!("{}, {why}, is read at {lines}{address}", name(at)))
    }

    /// `x[12]`, `B[12][3]`: an element of the input.
    fn input_in_words(&self, at: usize) -> String {
        let input = self.name_of(Parameter::Input);
        match self.width {
            1 => format!("{input}[{}]", at / self.width),
            _ => format!("{input}[{}][{}]", at / self.width, at % self.width),
        }
    }

    /// The entry of which it is that a product is another one, and where that is computed: its
    /// column's element of the input is not read, or another one in its place gives what is wrong.
    fn about_product(
        &self,
        element: usize,
        read: Option<&BTreeMap<usize, Vec<Moment>>>,
        steps: &[Step],
    ) -> Option<String> {
        let (row, place) = (element / self.width, element % self.width);
        let own = self.entries_of(row);
        let read = read?;
        if own.is_empty() || !own.clone().all(|entry| read.contains_key(&entry)) {
            return None;
        }
        // A store of several elements does not tell what went into which.
        let stored = self.addresses_of(Parameter::Output, element, size_of::<D>())?;
        if self.trace.last_write(self.kernel, stored)?.bytes as usize > size_of::<D>() {
            return None;
        }
        let all = self.matrix.cols() * self.width * size_of::<D>();
        let array = self.addresses_of(Parameter::Input, 0, all)?;
        let inputs = self.read_of(steps, array, size_of::<D>());
        let at = |entry: usize| {
            let column = self.matrix.columns().get(entry).copied().unwrap_or(0);
            column as usize * self.width + place
        };
        let unread = own.clone().find(|&entry| !inputs.contains_key(&at(entry)));
        let (entry, instead) = match unread {
            Some(entry) => (entry, None),
            None => {
                let (entry, instead) = self.product_with_another(element)?;
                (entry, Some(instead))
            }
        };
        let moment = read.get(&entry)?.first()?;
        let by_own: BTreeSet<u32> = steps.iter().filter(by_value).map(|s| s.counter).collect();
        let carriers = self.trace.carriers(self.kernel, *moment);
        let product = carriers.into_iter().filter(|&m| m.event > moment.event).find_map(|m| {
            let counter = self.counter_of(m)?;
            let is_product = by_own.contains(&counter) && multiplies(self.kernel, counter);
            is_product.then_some(counter)
        })?;
        let line = self.lines(std::iter::once(product));
        if line.is_empty() {
            return None;
        }
        let entry = self.entries_in_words(row, &[entry]);
        Some(match instead {
            Some(instead) => {
                format!("{entry} is multiplied with {} at {line}", self.input_in_words(instead))
            }
            None => format!("{entry} is multiplied with something else at {line}"),
        })
    }

    /// The one entry of a row, and the element of the input, whose product in the place of the
    /// right one gives what an element is.
    fn product_with_another(&self, element: usize) -> Option<(usize, usize)> {
        let (row, place) = (element / self.width, element % self.width);
        let own = self.entries_of(row);
        let got = self.output.get(element)?.to_f64();
        let right = *self.reference.values.get(element)?;
        let most = 4.0 * self.reference.bounds.get(element)?.max(f64::MIN_POSITIVE);
        let input = |at: usize| self.input.get(at).map_or(f64::NAN, |x| x.to_f64());
        let column = |entry: usize| self.matrix.columns().get(entry).map_or(0, |&c| c as usize);
        let mut found = None;
        for entry in own.clone() {
            let value = self.matrix.values().get(entry)?.to_f64() * self.alpha.to_f64();
            let at = column(entry) * self.width + place;
            let beside = [place.checked_sub(1), Some(place + 1)].into_iter().flatten();
            let beside = beside.filter(|&other| other < self.width);
            let beside = beside.map(|other| column(entry) * self.width + other);
            let near = entry.saturating_sub(1).max(own.start)..(entry + 2).min(own.end);
            let of_others = near.map(|other| column(other) * self.width + place);
            for other in beside.chain(of_others).filter(|&other| other != at) {
                let change = value * (input(other) - input(at));
                if (right + change - got).abs() <= most && change.abs() > 2.0 * most {
                    if found.is_some_and(|known| known != (entry, other)) {
                        return None;
                    }
                    found = Some((entry, other));
                }
            }
        }
        found
    }

    /// Shuffles that give a lane its own number, which then counts twice.
    fn about_shuffles(&self, steps: &[Step]) -> Option<String> {
        let own = steps.iter().filter(|step| self.trace.gives_back(self.kernel, step));
        let lines = self.lines(own.map(|step| step.counter));
        (!lines.is_empty()).then(|| format!("lanes are given their own number at {lines}"))
    }

    /// Numbers that are rounded to a narrower type on the way.
    fn about_numbers(&self, steps: &[Step], formula: Option<Formula>) -> Option<String> {
        let Some(Formula::Rounded(to)) = formula else { return None };
        let rounds = steps.iter().filter(by_value).map(|step| step.counter);
        let rounds = rounds
            .filter(|&counter| rounds_to(self.kernel, counter).is_some_and(|t| t.starts_with(to)));
        let lines = self.lines(rounds);
        if lines.is_empty() {
            return None;
        }
        let begin = self.about_begin(steps).map(|begin| format!("; {begin}")).unwrap_or_default();
        Some(format!("numbers are rounded to {to} at {lines}{begin}"))
    }

    /// The lines by which its sum came.
    fn about_way(&self, steps: &[Step]) -> Option<String> {
        let lines = self.lines(steps.iter().filter(by_value).map(|step| step.counter));
        (!lines.is_empty()).then(|| format!("it was computed at {lines}"))
    }

    /// The thread that has read where a row begins, if any has.
    pub(super) fn reader_of_row(&self, row: usize) -> Option<Moment> {
        let narrow: Vec<u32> = self.offsets.iter().map(|&offset| offset as u32).collect();
        let (array, bytes) = match (self.array(&narrow), self.array(&self.offsets)) {
            (Some(array), _) => (array, 4),
            (None, Some(array)) => (array, 8),
            (None, None) => return None,
        };
        let readers = |row: usize| {
            let start = array.start + (row * bytes) as u64;
            let accesses = self.trace.accesses(self.kernel, start..start + bytes as u64);
            accesses.map(|(access, _)| access.moment).collect::<Vec<Moment>>()
        };
        let thread = |moment: &Moment| {
            self.trace.place_of(*moment).map(|(_, block, thread)| (block, thread))
        };
        // A thread that reads it as the end of the row before has read that row's beginning, too.
        let before: BTreeSet<_> =
            row.checked_sub(1).map(readers).iter().flatten().filter_map(thread).collect();
        let all = readers(row);
        let own = all.iter().find(|moment| thread(moment).is_some_and(|t| !before.contains(&t)));
        own.or(all.first()).copied()
    }
}
