//! The form of names and other short texts of ops.yaml, and the nearest known name to a misspelt one.
//!
//! It knows no keys and no places. The names that torch has are not listed here.

use std::time::Duration;

use t2t_model::signature::TrustedKey;

use super::executor::{self, Executor};
use super::expression::Expression;
use super::identifier::is_identifier;
use super::remote::{EXAMPLES, RemoteUrl, Server};

/// Names that are devices on Windows in every folder and with every extension, so that no file can have them.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];

/// Torch itself: eager, and as torch.compile makes it, in its default mode and in its others.
pub(crate) const OWN: [&str; 5] = [
    "torch",
    "torch.compile",
    "torch.compile:max-autotune",
    "torch.compile:reduce-overhead",
    "torch.compile:max-autotune-no-cudagraphs",
];

/// Longest name of an op or a variant; both become parts of file names.
const NAME_LIMIT: usize = 64;

/// The form of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A plain path component: what an op, a variant or a size is called.
    Name,
    /// What Python accepts as the name of a parameter or a function.
    Identifier,
    /// A dim, or an expression of dims such as `2*N`.
    Length,
    /// A tensor of a safetensors file, as in `values/x.safetensors::weight`.
    Stored,
    /// A dotted name below torch, as people write it.
    Torch,
    /// A name in a Python file, with dots where it is an attribute of another.
    Entry,
    /// A name in a Python file of the workspace.
    Reference,
    /// A Python call of `entry`.
    Call,
    /// The name of a method, or a Python call of it.
    Method,
    /// One line for people.
    Line,
    /// A file named relative to a folder of the workspace, with `/`.
    Path,
    /// `120s`, `2m`, `500ms`, `1h`.
    Duration,
    /// A device model or an architecture, such as `nvidia-h200` or `sm_90`.
    Target,
    /// The URL of a remote cache.
    Remote,
    /// Which machines perform what depends on a device.
    Executor,
    /// A public ssh key with its holder's name.
    Key,
    /// A word of a command line.
    Word,
    /// The name of a variable of the environment.
    Variable,
    /// The URL of a server, without credentials.
    Server,
    /// What kernels are compared with, in one word.
    Baseline,
    /// A function of an installed module or of a Python file of the workspace.
    Function,
}

impl Form {
    /// Returns the form in words, to stand after "expected" or "is no".
    #[must_use]
    pub(crate) fn words(self) -> &'static str {
        match self {
            Form::Name => "plain path component",
            Form::Identifier => "Python identifier",
            Form::Length => "expression of dims",
            Form::Stored => "tensor of a file",
            Form::Torch => "dotted name",
            Form::Entry => "dotted Python name",
            Form::Reference => "`FILE.py::NAME`",
            Form::Call => "call of `entry`",
            Form::Method => "method",
            Form::Line => "line of text",
            Form::Path => "path inside the workspace",
            Form::Duration => "duration",
            Form::Target => "device model or architecture",
            Form::Remote => "URL of a remote cache",
            Form::Executor => "address of a cluster",
            Form::Key => "public ssh key with a name",
            Form::Word => "word of a command line",
            Form::Variable => "name of a variable",
            Form::Server => "URL of a server",
            Form::Baseline => "baseline",
            Form::Function => "function",
        }
    }

    /// Returns how to write such a text.
    #[must_use]
    pub fn hint(self, text: &str) -> String {
        match self {
            Form::Name if is_device(text) => format!("`{text}` is a device on Windows: choose another name"),
            Form::Name if text.len() > NAME_LIMIT => format!("use at most {NAME_LIMIT} characters"),
            Form::Name => "use ASCII letters, digits, `_` and `-`, and begin with a letter or a digit".to_owned(),
            Form::Identifier => "use ASCII letters, digits and `_`, and do not begin with a digit".to_owned(),
            Form::Length => {
                "write a dim, or dims with `+`, `-`, `*`, `//` and brackets: `N`, `2*N`, `(M+1)//G`".to_owned()
            }
            Form::Stored => "write the file and the tensor's name in it: `values/x.safetensors::weight`".to_owned(),
            Form::Torch => "write it as in Python: `softmax`, `F.softmax` or `torch.nn.functional.softmax`".to_owned(),
            Form::Entry => "write it as in Python: `softmax`, or `Softmax.apply`".to_owned(),
            Form::Reference => {
                "write a file of the workspace and a name in it: `kernels/geglu/reference.py::geglu`".to_owned()
            }
            Form::Call => "write it as in `entry(input, dim)`".to_owned(),
            Form::Method => "write its name, or a call of it as in `backward(grad, output, dim)`".to_owned(),
            Form::Line => "write a few words on one line".to_owned(),
            Form::Path => "write it relative, with `/` and without `..`".to_owned(),
            Form::Duration => "write a whole number and a unit: `120s`, `2m`, `500ms` or `1h`".to_owned(),
            Form::Target => "write it like `nvidia-h200` or `sm_90`".to_owned(),
            Form::Remote => EXAMPLES.to_owned(),
            Form::Executor => executor::EXAMPLES.to_owned(),
            Form::Key => TrustedKey::parse(text).err().map(|bad| bad.to_string()).unwrap_or_default(),
            Form::Word => "write at least one letter".to_owned(),
            Form::Baseline => baseline_hint(text),
            Form::Function => {
                "write `MODULE.FUNCTION` of an installed module, or `FILE.py::NAME` of the workspace".to_owned()
            }
            Form::Server => "write `https://HOST/PATH` or `http://HOST:PORT/PATH`, without credentials".to_owned(),
            Form::Variable => {
                "write the name alone, as in `ANTHROPIC_API_KEY`: what it holds does not belong here".to_owned()
            }
        }
    }

    /// Returns the regular expression that JSON Schema gives to editors. It may accept more than `fits`.
    #[must_use]
    pub(crate) fn pattern(self) -> &'static str {
        match self {
            Form::Name => "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$",
            Form::Identifier | Form::Variable => "^[A-Za-z_][A-Za-z0-9_]*$",
            Form::Length => "^[A-Za-z0-9_+*/() -]+$",
            Form::Stored => r"^[^/\\:][^\\:]*\.safetensors::.+$",
            Form::Torch | Form::Entry => r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$",
            Form::Reference => r"^[^/\\:][^\\:]*\.py::[A-Za-z_][A-Za-z0-9_.]*$",
            Form::Baseline => {
                r"^(torch(\.compile(:(max-autotune|reduce-overhead|max-autotune-no-cudagraphs))?)?|[^/\\:][^\\:]*\.py::[A-Za-z_][A-Za-z0-9_.]*)$"
            }
            Form::Function => {
                r"^([A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)+|[^/\\:][^\\:]*\.py::[A-Za-z_][A-Za-z0-9_.]*)$"
            }
            Form::Call => r"^entry\(.*\)$",
            Form::Method => r"^[A-Za-z_][A-Za-z0-9_]*(\(.*\))?$",
            Form::Line => r"\S",
            Form::Path => r"^[^/\\:][^\\:]*$",
            Form::Duration => "^[0-9]+(ms|s|m|h)$",
            Form::Target => "^[a-z][a-z0-9_-]*$",
            Form::Server => r"^https?://[^@\s]+$",
            Form::Remote => r"^(s3|https?|rediss?|file)://[^@\s]+$",
            Form::Executor => r"^(local|auto|ray://\S+:[0-9]+)$",
            Form::Word => r"^[^\x00]+$",
            Form::Key => r"^ssh-ed25519\s+[A-Za-z0-9+/=]+\s+\S.*$",
        }
    }

    /// Returns whether `text` has this form.
    pub fn fits(self, text: &str) -> bool {
        match self {
            Form::Name => is_name(text),
            Form::Identifier => is_identifier(text),
            Form::Word => !text.is_empty() && !text.contains('\0'),
            Form::Variable => is_variable(text),
            Form::Length => Expression::parse(text).is_some(),
            Form::Stored => stored(text).is_some(),
            Form::Torch | Form::Entry => text.split('.').all(is_identifier),
            Form::Reference => text.split_once("::").is_some_and(|(file, name)| {
                file.strip_suffix(".py").is_some() && is_path(file) && Form::Entry.fits(name)
            }),
            Form::Call => text.starts_with("entry(") && text.ends_with(')'),
            Form::Method => match text.split_once('(') {
                Some((name, rest)) => is_identifier(name) && rest.ends_with(')'),
                None => is_identifier(text),
            },
            Form::Line => !text.trim().is_empty() && !text.contains(char::is_control),
            Form::Baseline => OWN.contains(&text) || Form::Reference.fits(text),
            Form::Function => Form::Reference.fits(text) || (text.contains('.') && Form::Entry.fits(text)),
            Form::Path => is_path(text),
            Form::Duration => duration(text).is_some(),
            Form::Target => text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(is_target_character),
            Form::Remote => RemoteUrl::parse(text).is_some(),
            Form::Executor => Executor::parse(text).is_some(),
            Form::Server => RemoteUrl::parse(text).is_some_and(|url| matches!(url.server, Server::Http { .. })),
            Form::Key => TrustedKey::parse(text).is_ok(),
        }
    }
}

/// Reads the path of a safetensors file and the name of a tensor in it.
#[must_use]
pub(crate) fn stored(text: &str) -> Option<(&str, &str)> {
    let (path, name) = text.split_once("::")?;
    (is_path(path) && path.ends_with(".safetensors") && !name.is_empty()).then_some((path, name))
}

/// Reads a duration such as `120s`, `2m`, `500ms` or `1h`. None for anything else, and for no time at all.
pub fn duration(text: &str) -> Option<Duration> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit())?;
    let (count, unit) = text.split_at(unit_at);
    let count: u64 = count.parse().ok().filter(|count| *count > 0)?;
    match unit {
        "ms" => Some(Duration::from_millis(count)),
        "s" => Some(Duration::from_secs(count)),
        "m" => count.checked_mul(60).map(Duration::from_secs),
        "h" => count.checked_mul(3600).map(Duration::from_secs),
        _ => None,
    }
}

/// Returns the one of `known` that `word` was probably meant to be: the nearest, if it is near enough. The first wins a tie.
pub fn nearest<'known>(word: &str, known: impl IntoIterator<Item = &'known str>) -> Option<&'known str> {
    let lower = word.to_lowercase();
    let near = known.into_iter().filter_map(|candidate| {
        let distance = strsim::damerau_levenshtein(&lower, &candidate.to_lowercase());
        // A third of the letters may differ; of one letter none, for any letter is as near as another.
        let limit = word.chars().count().max(candidate.chars().count()) / 3;
        (distance <= limit).then_some((distance, candidate))
    });
    near.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

/// Returns "did you mean" for the nearest of `known`, or else what there is to choose from.
pub fn suggestion<'known>(word: &str, known: impl IntoIterator<Item = &'known str> + Clone) -> String {
    match nearest(word, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known: {}", quoted(known)),
    }
}

/// Returns how to write the baseline that `text` was meant to be.
fn baseline_hint(text: &str) -> String {
    if text.contains("::") {
        return Form::Reference.hint(text);
    }
    match nearest(text, OWN) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known: {}; of a function write `FILE.py::NAME`, or `{{name: …, function: …}}`", quoted(OWN)),
    }
}

/// Returns the words in backticks with commas between them, each once.
pub(crate) fn quoted<'word>(words: impl IntoIterator<Item = &'word str>) -> String {
    let mut told: Vec<String> = Vec::new();
    for word in words {
        let word = format!("`{word}`");
        if !told.contains(&word) {
            told.push(word);
        }
    }
    told.join(", ")
}

/// ASCII alone, so that a name is the same bytes on every file system, in a URL and in an import.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.len() <= NAME_LIMIT
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        && !is_device(text)
}

fn is_variable(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_digit())
        && !text.is_empty()
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn is_device(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let port = ["com", "lpt"].iter().find_map(|port| lower.strip_prefix(port));
    DEVICES.contains(&lower.as_str()) || matches!(port.map(str::as_bytes), Some([b'1'..=b'9']))
}

fn is_path(text: &str) -> bool {
    let is_odd = |c: char| c.is_control() || c == '\\' || c == ':';
    !text.contains(is_odd) && text.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

fn is_target_character(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_plain_path_component() {
        for name in ["softmax", "v1_baseline", "layer-norm", "Conv2d", "com", "com10", "console", "3d"] {
            assert!(Form::Name.fits(name), "{name}");
        }
        for name in [
            "", ".", "..", "../x", "a/b", "a\\b", ".hidden", "a b", " a", "a.b", "a:b", "CON", "nul", "Com1", "lpt9",
            "é", "_x", "-x",
        ] {
            assert!(!Form::Name.fits(name), "{name}");
        }
        assert!(!Form::Name.fits(&"a".repeat(65)));
    }

    #[test]
    fn a_path_stays_inside() {
        assert!(Form::Path.fits("kernels/mha/cases.py"));
        for path in ["", "/etc/passwd", "../x", "a/../b", "a//b", "a/", "./a", "a\\b", "C:x"] {
            assert!(!Form::Path.fits(path), "{path}");
        }
    }

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(duration("120s"), Some(Duration::from_mins(2)));
        assert_eq!(duration("2m"), Some(Duration::from_mins(2)));
        assert_eq!(duration("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(duration("1h"), Some(Duration::from_hours(1)));
        for text in ["", "120", "s", "0s", "-1s", "1.5s", "2 m", "2d", "99999999999999999999s", "18446744073709551615h"]
        {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn the_nearest_word_is_near() {
        assert_eq!(nearest("inptus", ["torch", "inputs", "kwargs"]), Some("inputs"));
        assert_eq!(nearest("Torch", ["torch", "inputs"]), Some("torch"));
        assert_eq!(nearest("shape", ["torch", "inputs"]), None);
        assert_eq!(nearest("m", ["K", "M"]), Some("M"));
        assert_eq!(nearest("L", ["K", "M"]), None);
        assert_eq!(suggestion("shape", ["torch", "inputs"]), "known: `torch`, `inputs`");
    }
}
