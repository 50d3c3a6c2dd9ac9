//! The files of the generator: families and templates, embedded or given by a workspace.
//!
//! It does not know what the files say.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// Lists a file of assets/generators/ with its text.
macro_rules! embedded {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../assets/generators/", $name)))),*]
    };
}

/// The embedded files by name. A test holds them against the folder.
pub const EMBEDDED: &[(&str, &str)] = embedded![
    "attention.json",
    "attention.py.jinja",
    "binary.json",
    "convolution.json",
    "convolution.py.jinja",
    "convolution_gradient.py.jinja",
    "indexed.json",
    "indexed.py.jinja",
    "indexed_gradient.py.jinja",
    "joining.json",
    "joining.py.jinja",
    "label.json",
    "label.py.jinja",
    "label_gradient.py.jinja",
    "loss.json",
    "loss.py.jinja",
    "loss_gradient.py.jinja",
    "normalization.json",
    "pointwise.py.jinja",
    "product.json",
    "product.py.jinja",
    "reduction.json",
    "reduction.py.jinja",
    "reduction_gradient.py.jinja",
    "row.py.jinja",
    "row_gradient.py.jinja",
    "scan.json",
    "scan.py.jinja",
    "scattering.json",
    "softmax.json",
    "ternary.json",
    "unary.json",
    "window.json",
];

/// The files of a generator by name: `NAME.json` is a family, `NAME.py.jinja` a template.
#[derive(Clone, Debug)]
pub struct Files(BTreeMap<String, Cow<'static, str>>);

impl Default for Files {
    fn default() -> Self {
        Self::with([])
    }
}

impl Files {
    /// Returns the embedded files, with those of a workspace in their place and beside them.
    pub fn with(own: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut files: BTreeMap<_, _> =
            EMBEDDED.iter().map(|(name, text)| ((*name).to_owned(), Cow::Borrowed(*text))).collect();
        files.extend(own.into_iter().map(|(name, text)| (name, Cow::Owned(text))));
        Self(files)
    }

    /// Returns the text of a file, if there is one of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(Cow::as_ref)
    }

    /// Returns names and texts in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, text)| (name.as_str(), text.as_ref()))
    }
}
