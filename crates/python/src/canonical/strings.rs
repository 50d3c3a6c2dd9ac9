//! The form of the contents of names, numbers and strings.
//!
//! Adjacent strings are one, as in Python. It does not know which node holds them.

use ruff_python_ast as ast;
use ruff_python_ast::name::Name;

use super::{Canonical, Form};

impl Canonical for ast::Identifier {
    fn write(&self, form: &mut Form) {
        let Self { id, range: _, node_index: _ } = self;
        id.write(form);
    }
}

impl Canonical for Name {
    fn write(&self, form: &mut Form) {
        self.as_str().write(form);
    }
}

impl Canonical for ast::Number {
    fn write(&self, form: &mut Form) {
        match self {
            Self::Int(number) => {
                if let Some(small) = number.as_u64() {
                    form.tag("int");
                    form.bytes(&small.to_le_bytes());
                } else {
                    form.tag("large");
                    number.to_string().write(form);
                }
            }
            Self::Float(number) => {
                form.tag("float");
                form.bytes(&number.to_bits().to_le_bytes());
            }
            Self::Complex { real, imag } => {
                form.tag("complex");
                form.bytes(&real.to_bits().to_le_bytes());
                form.bytes(&imag.to_bits().to_le_bytes());
            }
        }
    }
}

impl Canonical for ast::StringLiteralValue {
    fn write(&self, form: &mut Form) {
        self.to_str().write(form);
    }
}

impl Canonical for ast::BytesLiteralValue {
    fn write(&self, form: &mut Form) {
        self.bytes().collect::<Vec<u8>>().write(form);
    }
}

impl Canonical for ast::FStringValue {
    fn write(&self, form: &mut Form) {
        let mut template = Template::default();
        for part in self.as_slice() {
            match part {
                ast::FStringPart::Literal(ast::StringLiteral { value, flags: _, range: _, node_index: _ }) => {
                    template.last.push_str(value);
                }
                ast::FStringPart::FString(ast::FString { elements, flags: _, range: _, node_index: _ }) => {
                    template.add(elements);
                }
            }
        }
        template.write(form);
    }
}

impl Canonical for ast::TStringValue {
    fn write(&self, form: &mut Form) {
        let mut template = Template::default();
        for ast::TString { elements, flags: _, range: _, node_index: _ } in self.as_slice() {
            template.add(elements);
        }
        template.write(form);
    }
}

impl Canonical for ast::InterpolatedStringElements {
    fn write(&self, form: &mut Form) {
        let mut template = Template::default();
        template.add(self);
        template.write(form);
    }
}

impl Canonical for ast::DebugText {
    fn write(&self, form: &mut Form) {
        // Python reads every line end as `\n`.
        self.as_str().replace("\r\n", "\n").replace('\r', "\n").write(form);
    }
}

/// A string with interpolations: the text before each, and the text after the last.
#[derive(Default)]
struct Template<'a> {
    interpolations: Vec<(String, &'a ast::InterpolatedElement)>,
    last: String,
}

impl<'a> Template<'a> {
    fn add(&mut self, elements: &'a ast::InterpolatedStringElements) {
        for element in elements {
            match element {
                ast::InterpolatedStringElement::Literal(literal) => {
                    let ast::InterpolatedStringLiteralElement { value, range: _, node_index: _ } = literal;
                    self.last.push_str(value);
                }
                ast::InterpolatedStringElement::Interpolation(interpolation) => {
                    self.interpolations.push((std::mem::take(&mut self.last), interpolation));
                }
            }
        }
    }

    fn write(&self, form: &mut Form) {
        form.length(self.interpolations.len());
        for (before, interpolation) in &self.interpolations {
            before.write(form);
            interpolation.write(form);
        }
        self.last.write(form);
    }
}
