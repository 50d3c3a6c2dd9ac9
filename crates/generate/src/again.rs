//! Attempts: in which form a kernel is made next, after what became of the forms before.
//!
//! It does not know what was judged, nor how: a failure is a few words to it.

use crate::render::{Form, Generator, Request, TemplateFault};

/// What is known of the failure of an attempt.
#[derive(Clone, Copy, Debug, Default)]
pub struct Failure<'a> {
    /// Its class, as in `mismatch`.
    pub class: &'a str,
    /// Its message.
    pub message: &'a str,
    /// What is said of the case that showed it: its name, and what it is.
    pub case: &'a str,
}

/// Parts of what is said of cases that differ from others by how their inputs lie in memory.
const LAYOUTS: &[&str] = &["layout", "stride", "transposed", "channels", "offset", "broadcast"];

/// Parts of messages that say that a kernel takes more than the device has.
const RESOURCES: &[&str] = &["shared memory", "out of resource", "spill", "registers"];

impl Failure<'_> {
    /// Returns the forms that may help, the most likely first.
    fn remedies(&self) -> [Form; 3] {
        let (class, case, message) = (self.class, self.case.to_lowercase(), self.message.to_lowercase());
        let is_of = |parts: &[&str], text: &str| parts.iter().any(|part| text.contains(part));
        match class {
            _ if is_of(RESOURCES, &message) => [Form::Small, Form::General, Form::Plain],
            "memory" | "timeout" | "compile-error" => [Form::Small, Form::General, Form::Plain],
            "nan" | "mismatch" | "nondeterministic" if !is_of(LAYOUTS, &case) => {
                [Form::Plain, Form::General, Form::Small]
            }
            _ => [Form::General, Form::Plain, Form::Small],
        }
    }
}

impl Generator {
    /// Returns the form in which a kernel that failed in the forms `tried` is made next, and its file: one that differs from all before. None where there is none.
    /// Fails where a template is wrong.
    pub fn next(
        &self,
        request: &Request<'_>,
        tried: &[Form],
        failure: &Failure<'_>,
    ) -> Result<Option<(Form, String)>, TemplateFault> {
        let render = |form: Form| self.render(&Request { form, ..request.clone() });
        let before = tried.iter().map(|form| render(*form)).collect::<Result<Vec<_>, _>>()?;
        let remedies = if tried.is_empty() { vec![Form::Standard] } else { failure.remedies().to_vec() };
        for form in remedies.into_iter().filter(|form| !tried.contains(form)) {
            let text = render(form)?;
            if !before.contains(&text) {
                return Ok(Some((form, text)));
            }
        }
        Ok(None)
    }
}

impl Form {
    /// Returns the form's name: `standard`, `small`, `general`, `plain`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Small => "small",
            Self::General => "general",
            Self::Plain => "plain",
        }
    }

    /// Returns what the form changes, as half a sentence.
    #[must_use]
    pub fn change(self) -> &'static str {
        match self {
            Self::Standard => "the family's own choice",
            Self::Small => "blocks are a half to a quarter as large",
            Self::General => "every operand is written out contiguously first",
            Self::Plain => "neither technique, arithmetic in float64",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Files;
    use crate::render::Variant;

    #[test]
    fn every_failure_leads_to_a_form_that_was_not_tried_until_none_is_left() {
        let generator = Generator::new(&Files::default()).unwrap();
        let op = generator.catalogue.find("softmax").unwrap();
        let request = Request::new(op, Variant::Both, Form::Standard);
        let next = |tried: &[Form], class, case| {
            let found = generator.next(&request, tried, &Failure { class, message: "it is wrong", case }).unwrap();
            found.map(|(form, _)| form)
        };
        let standard = [Form::Standard];
        assert_eq!(next(&[], "", ""), Some(Form::Standard));
        assert_eq!(next(&standard, "memory", ""), Some(Form::Small));
        assert_eq!(next(&standard, "mismatch", "declared/small[float32]"), Some(Form::Plain));
        assert_eq!(next(&standard, "mismatch", "edge/transposed[float32]"), next(&standard, "dtype", ""));
        let mut tried = Vec::new();
        let mut texts = Vec::new();
        let failure = Failure { class: "mismatch", ..Failure::default() };
        while let Some((form, text)) = generator.next(&request, &tried, &failure).unwrap() {
            assert!(!texts.contains(&text), "{form:?}");
            texts.push(text);
            tried.push(form);
        }
        assert_eq!(texts.len(), generator.attempts(&request).unwrap().len(), "{tried:?}");
    }

    #[test]
    fn a_message_about_resources_leads_to_smaller_blocks_whatever_the_class_is() {
        let generator = Generator::new(&Files::default()).unwrap();
        let op = generator.catalogue.find("softmax").unwrap();
        let request = Request::new(op, Variant::Both, Form::Standard);
        let failure = Failure { class: "exception", message: "out of resource: shared memory", case: "" };
        let next = generator.next(&request, &[Form::Standard], &failure).unwrap();
        assert_eq!(next.map(|(form, _)| form), Some(Form::Small));
    }
}
