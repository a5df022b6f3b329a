//! Kernels that are templates: what a launch such as `spmv<float, 128><<<…>>>(…)` makes of one.
//!
//! NVRTC gives a kernel of a template no name that a launch could know. So the template becomes a
//! device function, and behind the source a kernel of the same name calls it with the launch's
//! arguments.

use super::RawError;
use super::launch::elements;
use super::parameter::Parameter;
use super::source::{Code, Function, Template};
use super::words::{last_name, replaced};

/// A template's parameters, and what each stands for.
#[derive(Debug)]
pub(super) struct Instance<'f> {
    function: &'f Function<'f>,
    arguments: Vec<(&'f str, String)>,
}

impl<'f> Instance<'f> {
    /// What a launch with these arguments of a template makes of a kernel; nothing of one that is
    /// no template.
    pub(super) fn of(
        function: &'f Function<'f>,
        given: Option<&str>,
        functions: &'f [Function<'f>],
    ) -> Result<Option<Self>, RawError> {
        let kernel = || function.name.to_owned();
        let declared = match function.template {
            None => {
                return match given {
                    None => Ok(None),
                    Some(_) => Err(RawError::NoTemplate { kernel: kernel() }),
                };
            }
            Some(Template::Unclear) => {
                return Err(RawError::NoInstance { kernel: kernel(), why: "with a shift" });
            }
            Some(Template::Of(declared)) => elements(declared),
        };
        let given = elements(given.unwrap_or_default());
        if given.len() > declared.len() {
            return Err(RawError::Template { kernel: kernel() });
        }
        // A declaration before the definition may be the one that has them.
        let default = |index: usize| {
            functions.iter().filter(|other| other.is_same(function)).find_map(|other| {
                let Some(Template::Of(parameters)) = other.template else { return None };
                Some(elements(parameters).get(index)?.split_once('=')?.1)
            })
        };
        let mut instance = Self { function, arguments: Vec::new() };
        let mut given = given.into_iter();
        for (index, parameter) in declared.into_iter().enumerate() {
            let parameter = parameter.split('=').next().unwrap_or_default();
            // A default may name the parameters before it.
            let argument = given.next().map(str::to_owned);
            let argument = argument.or_else(|| Some(instance.of_text(default(index)?)));
            match argument {
                Some(argument) if !parameter.contains("...") => {
                    instance.arguments.push((last_name(parameter), argument.trim().to_owned()));
                }
                _ => return Err(RawError::Template { kernel: kernel() }),
            }
        }
        Ok(Some(instance))
    }

    /// A text of the template with the arguments in the place of its parameters.
    pub(super) fn of_text(&self, text: &str) -> String {
        replaced(text, &|word| {
            let argument = self.arguments.iter().find(|(name, _)| *name == word);
            argument.map(|(_, argument)| argument.clone())
        })
    }

    /// The source with the template as a device function, and the kernel that calls it.
    pub(super) fn written(
        &self,
        code: &Code<'_>,
        functions: &[Function<'_>],
        parameters: &[Parameter],
    ) -> Result<String, RawError> {
        let name = self.function.name;
        let refused = |why| Err(RawError::NoInstance { kernel: name.to_owned(), why });
        if code.is_enclosed(self.function) {
            return refused("within braces");
        }
        if code.has_specialization(name) {
            return refused("with a specialization");
        }
        let mut out = code.as_device_function(functions, self.function);
        let attributes: Vec<&str> = self.function.attributes.iter().map(|a| a.1).collect();
        let attributes = self.of_text(&attributes.join(" "));
        let names: Vec<String> = parameters
            .iter()
            .enumerate()
            .map(|(index, parameter)| match parameter.name.as_str() {
                "" => format!("argument_{index}"),
                name => name.to_owned(),
            })
            .collect();
        let declared: Vec<String> = elements(self.function.parameters)
            .iter()
            .zip(parameters.iter().zip(&names))
            .map(|(text, (parameter, name))| {
                let text = self.of_text(text.split('=').next().unwrap_or_default());
                match parameter.name.as_str() {
                    "" => format!("{} {name}", text.trim()),
                    _ => text.trim().to_owned(),
                }
            })
            .collect();
        let arguments: Vec<&str> = self.arguments.iter().map(|(_, text)| text.as_str()).collect();
        // Where the template is, so that names mean the same.
        let namespaces = &self.function.namespaces;
        let opened: String =
            namespaces.iter().map(|name| format!("namespace {name} {{ ")).collect();
        out.push_str(&format!(
            "\n{opened}extern \"C\" __global__ {attributes} void {name}({}) {{ {name}<{}>({}); }}{}\n",
            declared.join(", "),
            arguments.join(", "),
            names.join(", "),
            " }".repeat(namespaces.len())
        ));
        Ok(out)
    }
}
