//! The mappings of ops.yaml with a closed set of keys, and their names.
//!
//! It does not know their keys.

/// A mapping with a closed set of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// The whole file.
    File,
    /// `defaults`.
    Defaults,
    /// An entry of `ops`.
    Op,
    /// `reference` written as a mapping.
    Reference,
    /// An input written as a mapping.
    Input,
    /// An input's `init` written as a mapping.
    Init,
    /// `init: {sorted: …}`.
    Sorted,
    /// `init: {block_sparse: …}`.
    Blocks,
    /// An output written as a mapping.
    Output,
    /// An op's `random`.
    Random,
    /// A variant written as a mapping.
    Variant,
    /// `methods` of an op or a variant.
    Methods,
    /// `check`.
    Check,
    /// An edge of `check` written as a mapping.
    Edge,
    /// `bench`.
    Bench,
    /// A baseline written as a mapping.
    Baseline,
    /// What holds `sizes`.
    Sizes,
    /// `profiles`.
    Profiles,
    /// `profiles.cpu`.
    Profile,
    /// `log`.
    Log,
    /// `cache`.
    Cache,
    /// An entry of `generators`.
    Generator,
    /// `openai` of a generator.
    Openai,
    /// `jobs`.
    Jobs,
    /// `budget`.
    Budget,
}

/// All sections, in the order in which they are explained.
pub const SECTIONS: [Section; 25] = [
    Section::File,
    Section::Defaults,
    Section::Op,
    Section::Reference,
    Section::Input,
    Section::Init,
    Section::Sorted,
    Section::Blocks,
    Section::Output,
    Section::Random,
    Section::Variant,
    Section::Methods,
    Section::Check,
    Section::Edge,
    Section::Bench,
    Section::Baseline,
    Section::Sizes,
    Section::Profiles,
    Section::Profile,
    Section::Log,
    Section::Cache,
    Section::Generator,
    Section::Openai,
    Section::Jobs,
    Section::Budget,
];

impl Section {
    /// Returns the section's name, as used in JSON Schema's `$defs` and in the headings of the docs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Section::File => "file",
            Section::Defaults => "defaults",
            Section::Op => "op",
            Section::Reference => "reference",
            Section::Input => "input",
            Section::Init => "init",
            Section::Sorted => "sorted",
            Section::Blocks => "block_sparse",
            Section::Output => "output",
            Section::Random => "random",
            Section::Variant => "variant",
            Section::Methods => "methods",
            Section::Check => "check",
            Section::Edge => "edge",
            Section::Bench => "bench",
            Section::Baseline => "baseline",
            Section::Sizes => "sizes",
            Section::Profiles => "profiles",
            Section::Profile => "profile",
            Section::Log => "log",
            Section::Cache => "cache",
            Section::Generator => "generator",
            Section::Openai => "openai",
            Section::Jobs => "jobs",
            Section::Budget => "budget",
        }
    }
}
