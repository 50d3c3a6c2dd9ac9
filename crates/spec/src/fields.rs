//! Every field of ops.yaml, once: its type, default, merge rule, the phases it keys, its meaning.
//!
//! The strict reader, the built-in defaults, `t2t schema`, the hints for unknown keys and the test that holds docs/reference/ops-yaml.md all
//! read this table. It does not know how a file is read, nor what must hold between two fields.

use t2t_model::action::Phase::{self, Analyze, Baseline, Bench, Check, Compile, Log, Tune};

use super::edges::EDGES;
pub use super::kinds::Kind;
use super::names::Form;
use super::remote::MODES;
pub use super::sections::{SECTIONS, Section};

/// What holds where a field is absent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Absent {
    /// It may not be; with an example.
    Never(&'static str),
    /// This value, as JSON.
    Value(&'static str),
    /// What these words say.
    Words(&'static str),
}

/// What a layer does to the value below it. The layers are: built in, `defaults`, op; on the CPU also `profiles.cpu`, op's `profiles.cpu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// The field has one place only.
    Alone,
    /// The upper value counts.
    Replace,
    /// Keys of the upper mapping are added or replaced one by one.
    ByKey,
}

/// A key of a section.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Where it stands.
    pub section: Section,
    /// Its key.
    pub key: &'static str,
    /// Its type.
    pub kind: Kind,
    /// What holds without it.
    pub absent: Absent,
    /// How layers of it merge.
    pub merge: Merge,
    /// The phases that read it, besides generate.
    pub phases: &'static [Phase],
    /// What it means, for people.
    pub meaning: &'static str,
}

/// The dtypes a tensor can have here.
pub(crate) const DTYPES: &[&str] =
    &["float32", "float16", "bfloat16", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"];

/// The dtypes that an input can have: beside those that an op is tested in, the two float8 that torch computes nothing in, which are made wider first.
pub(crate) const INPUT_DTYPES: &[&str] = &[
    "float32",
    "float16",
    "bfloat16",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "bool",
    "float8_e4m3fn",
    "float8_e5m2",
];

const DTYPE: Kind = Kind::OneOf("dtype", DTYPES);
const INPUT_DTYPE: Kind = Kind::OneOf("dtype", INPUT_DTYPES);
const IDENTIFIER: Kind = Kind::Form(Form::Identifier);
const NAME: Kind = Kind::Form(Form::Name);
const DURATION: Kind = Kind::Form(Form::Duration);
const WORDS: Kind = Kind::List { of: &Kind::Form(Form::Word), least: 1, most: usize::MAX };
const LENGTH: Kind = Kind::Whole(1);
const DIM: Kind = Kind::Either(&[LENGTH, Kind::Form(Form::Length)]);
const SHAPE: Kind = Kind::List { of: &DIM, least: 0, most: usize::MAX };
const QUANTITY: Kind = Kind::Either(&[Kind::Number, Kind::Form(Form::Length)]);
const LAYOUT: Kind = Kind::OneOf("layout", &["contiguous", "transposed", "strided", "channels_last"]);
const INIT: Kind = Kind::Either(&[
    Kind::OneOf("init", &["normal", "uniform", "ones", "permutation", "unique"]),
    Kind::Section(Section::Init),
]);
const COMPARISON: Kind = Kind::OneOf("comparison", &["close", "exact", "indices", "set", "rows", "ignore"]);
const OUTPUT: Kind = Kind::Either(&[COMPARISON, Kind::Section(Section::Output)]);
const PARAMETER: Kind = Kind::Either(&[Kind::Number, IDENTIFIER]);
const AXIS: Kind = Kind::Whole(-64);
const PAIR: Kind = Kind::List { of: &QUANTITY, least: 2, most: 2 };
const TOLERANCE: Kind = Kind::List { of: &Kind::Amount, least: 2, most: 2 };
const DIMS: Kind = Kind::Map { what: "dim", key: &IDENTIFIER, of: &LENGTH, least: 0 };
const SIZE: Kind = Kind::Either(&[LENGTH, Kind::List { of: &LENGTH, least: 0, most: usize::MAX }, DIMS]);
const VARIANTS: Kind =
    Kind::List { of: &Kind::Either(&[NAME, Kind::Section(Section::Variant)]), least: 1, most: usize::MAX };
const EDGES_OFF: Kind = Kind::Map {
    what: "edge",
    key: &Kind::OneOf("edge", EDGES),
    of: &Kind::Either(&[Kind::OneOf("edge", &["off", "on"]), Kind::Section(Section::Edge)]),
    least: 0,
};
const SET_OF_DTYPES: Kind = Kind::Set { of: &DTYPE, least: 1 };
const BASELINE: Kind = Kind::Either(&[Kind::Form(Form::Baseline), Kind::Section(Section::Baseline)]);
const PRECISION: Kind = Kind::OneOf("precision", &["ieee", "tf32"]);

/// Who runs kernel code.
const RUNS_CODE: &[Phase] = &[Compile, Check, Tune, Bench];
/// Who calls the op in any way.
const CALLS: &[Phase] = &[Analyze, Compile, Check, Tune, Bench, Baseline];
/// Who reads what is random: who calls a wrapper gives it a seed.
const RANDOM: &[Phase] = &[Analyze, Compile, Check, Tune, Bench];
const JUDGES_PRECISION: &[Phase] = &[Analyze, Check, Bench, Baseline];
const MEASURES: &[Phase] = &[Bench, Baseline];
const FOUR_VARIANTS: &str = r#"["v1_baseline", "v2_tiling", "v3_coalesced", "v4_optimized"]"#;
const SIZES: &str = r#"{"small": [256, 256], "medium": [1024, 1024], "large": [4096, 4096]}"#;

/// What the CPU profile is before anybody writes one. A number binds every free dim, so it suits every op.
const CPU_PROFILE: &str = r#"{"bench": {"sizes": {"small": 16, "medium": 32, "large": 64}, "runs": 3, "warmup_ms": 0, "rep_ms": 20, "baselines": ["torch"]}}"#;

/// Everything that can be written in ops.yaml. One line each, as a table.
#[rustfmt::skip]
pub const FIELDS: &[Field] = &[
    field(Section::File, "version", Kind::Whole(1), Absent::Never("version: 1"), Merge::Alone, &[], "the version of this format"),
    field(Section::File, "targets", Kind::Set { of: &Kind::Form(Form::Target), least: 1 }, Absent::Words("the present GPU's, or `sm_90`"), Merge::Alone, &[Compile], "device models or architectures to compile for"),
    field(Section::File, "sources", Kind::Set { of: &Kind::Form(Form::Path), least: 1 }, Absent::Words("none"), Merge::Alone, RUNS_CODE, "further folders of the workspace that kernels import from and read, beside its root and `src`"),
    field(Section::File, "log", Kind::Section(Section::Log), Absent::Value("{}"), Merge::ByKey, &[Log], "how the logs look"),
    field(Section::File, "cache", Kind::Section(Section::Cache), Absent::Words("no remote cache"), Merge::Alone, &[], "where results are shared with other machines"),
    field(Section::File, "executor", Kind::Form(Form::Executor), Absent::Value(r#""local""#), Merge::Alone, &[], "which machines perform what depends on a device: `ray://HOST:PORT` or `auto` for the nodes of a Ray cluster, `local` for this one; `--on` and `$T2T_EXECUTOR` go before it"),
    field(Section::File, "trust", Kind::Set { of: &Kind::Form(Form::Key), least: 1 }, Absent::Words("nobody"), Merge::Alone, &[], "the keys whose signatures count under `--require-signed`, a line of a `.pub` file each: `ssh-ed25519 AAAA… ada@example.org`"),
    field(Section::File, "generators", Kind::Map { what: "generator", key: &NAME, of: &Kind::Section(Section::Generator), least: 0 }, Absent::Words("`template` alone"), Merge::Alone, &[], "the authors of kernels by name: programs and servers that are asked for one"),
    field(Section::File, "jobs", Kind::Section(Section::Jobs), Absent::Value("{}"), Merge::Alone, &[], "how much runs at once of what takes no core"),
    field(Section::File, "budget", Kind::Section(Section::Budget), Absent::Words("no limit"), Merge::Alone, &[], "how much authors may take of a build; what is missing then is skipped"),
    field(Section::File, "defaults", Kind::Section(Section::Defaults), Absent::Value("{}"), Merge::ByKey, &[], "what holds for every op that does not say otherwise"),
    field(Section::File, "profiles", Kind::Section(Section::Profiles), Absent::Value("{}"), Merge::ByKey, &[], "what is different on a lane, for every op"),
    field(Section::File, "ops", Kind::Map { what: "op", key: &NAME, of: &Kind::Section(Section::Op), least: 1 }, Absent::Never("ops: {softmax: {torch: F.softmax, inputs: {input: [M, N]}, kwargs: {dim: -1}}}"), Merge::Alone, &[], "the ops by name"),
    field(Section::Defaults, "variants", VARIANTS, Absent::Value(FOUR_VARIANTS), Merge::Replace, &[], "see op"),
    field(Section::Defaults, "dtypes", SET_OF_DTYPES, Absent::Value(r#"["float32"]"#), Merge::Replace, CALLS, "see op"),
    field(Section::Defaults, "precision", PRECISION, Absent::Value(r#""ieee""#), Merge::Replace, JUDGES_PRECISION, "see op"),
    field(Section::Defaults, "check", Kind::Section(Section::Check), Absent::Value("{}"), Merge::ByKey, &[], "see check"),
    field(Section::Defaults, "bench", Kind::Section(Section::Bench), Absent::Value("{}"), Merge::ByKey, &[], "see bench"),
    field(Section::Op, "torch", Kind::Form(Form::Torch), Absent::Words("`reference`"), Merge::Alone, &[Analyze, Check, Bench, Baseline], "the torch function that the kernels replace: `softmax`, `F.softmax` or the full name"),
    field(Section::Op, "reference", Kind::Either(&[Kind::Form(Form::Reference), Kind::Section(Section::Reference)]), Absent::Words("`torch`"), Merge::Alone, CALLS, "what the kernels replace where no torch function is it: a function of a Python file, or a class with `forward`; every op has this or `torch`"),
    field(Section::Op, "inputs", Kind::Map { what: "input", key: &IDENTIFIER, of: &Kind::Either(&[SHAPE, Kind::Section(Section::Input)]), least: 0 }, Absent::Never("inputs: {input: [M, N]}"), Merge::Alone, CALLS, "the tensors by parameter name, in torch's order: a shape, or a mapping for more; `{}` where there are none"),
    field(Section::Op, "outputs", Kind::Map { what: "output", key: &IDENTIFIER, of: &OUTPUT, least: 1 }, Absent::Words("compared as `close`"), Merge::Alone, &[Analyze, Check], "the outputs by any names, in torch's order: how each is compared, or a mapping for more"),
    field(Section::Op, "random", Kind::Section(Section::Random), Absent::Words("nothing is drawn"), Merge::Alone, RANDOM, "what must hold of results that are drawn at random"),
    field(Section::Op, "kwargs", Kind::Map { what: "kwarg", key: &IDENTIFIER, of: &Kind::Any, least: 0 }, Absent::Value("{}"), Merge::Alone, CALLS, "the other arguments; a string that is a dim, or an expression of dims, stands for a length, in lists too, and `torch.float64` for the dtype"),
    field(Section::Op, "dims", DIMS, Absent::Value("{}"), Merge::ByKey, CALLS, "dims with a fixed length; the others are free, and the sizes bind them"),
    field(Section::Op, "dtypes", SET_OF_DTYPES, Absent::Words("`defaults`"), Merge::Replace, CALLS, "the dtypes in which the op is tested and measured"),
    field(Section::Op, "entry", Kind::Form(Form::Entry), Absent::Words("`triton_<op>`"), Merge::Alone, RUNS_CODE, "the wrapper in each kernel file: a function, a class, or `Softmax.apply`"),
    field(Section::Op, "call", Kind::Form(Form::Call), Absent::Words("inputs by name or in order, kwargs by name"), Merge::Alone, RUNS_CODE, "how wrappers are called, as in `entry(input, dim, keepdim=True)`: names of inputs and kwargs, and literals"),
    field(Section::Op, "methods", Kind::Section(Section::Methods), Absent::Words("found out"), Merge::Alone, RUNS_CODE, "of entries that are operators, with methods for the two passes"),
    field(Section::Op, "variants", VARIANTS, Absent::Words("`defaults`"), Merge::Replace, &[], "the kernel files: names, or mappings for more"),
    field(Section::Op, "generator", NAME, Absent::Value(r#""none""#), Merge::Alone, &[], "what writes the kernel files that are not there: `template`, a name of `generators`, or `none`; a file that a person wrote or changed stays"),
    field(Section::Op, "cases", Kind::Form(Form::Path), Absent::Words("no further cases"), Merge::Alone, &[Check, Bench], "a file, relative to the workspace, with `cases(spec, generator)`; its code is in the keys of compile, check and bench"),
    field(Section::Op, "precision", PRECISION, Absent::Words("`defaults`"), Merge::Replace, JUDGES_PRECISION, "`tf32` judges by relative error and lets torch use TF32 as well; `atol` and `rtol` stay as they are, and 1e-2 goes with it"),
    field(Section::Op, "mutates", Kind::Set { of: &IDENTIFIER, least: 0 }, Absent::Value("[]"), Merge::Alone, &[Compile, Check, Tune], "the inputs that the op changes, and a kernel as it does"),
    field(Section::Op, "overwrites", Kind::Set { of: &IDENTIFIER, least: 0 }, Absent::Value("[]"), Merge::Alone, &[Check], "the inputs in which a kernel may leave anything: what they hold after the call counts for nothing"),
    field(Section::Op, "allow", Kind::Set { of: &IDENTIFIER, least: 0 }, Absent::Value("[]"), Merge::Alone, &[Check], "aten operations that torch may compute for a wrapper beside what it always may, as in `[sum, mul]`; logs say so"),
    field(Section::Op, "backward", Kind::Flag, Absent::Value("false"), Merge::Alone, &[Compile, Check], "judge the gradients too"),
    field(Section::Op, "broadcast", Kind::Flag, Absent::Value("false"), Merge::Alone, &[Compile, Check], "add cases in which inputs broadcast"),
    field(Section::Op, "deterministic", Kind::Flag, Absent::Value("true"), Merge::Alone, &[Check], "two runs must give the same bits; `false` allows atomics"),
    field(Section::Op, "check", Kind::Section(Section::Check), Absent::Words("`defaults`"), Merge::ByKey, &[], "see check"),
    field(Section::Op, "bench", Kind::Section(Section::Bench), Absent::Words("`defaults`"), Merge::ByKey, &[], "see bench"),
    field(Section::Op, "log", Kind::Section(Section::Log), Absent::Words("the file's `log`"), Merge::ByKey, &[Log], "see log"),
    field(Section::Op, "profiles", Kind::Section(Section::Profiles), Absent::Words("the file's `profiles`"), Merge::ByKey, &[], "what is different on a lane, for this op"),
    field(Section::Reference, "file", Kind::Form(Form::Path), Absent::Never("file: kernels/geglu/reference.py"), Merge::Alone, CALLS, "the Python file, relative to the workspace; its code is in the keys of analyze, check, bench and baseline"),
    field(Section::Reference, "name", Kind::Form(Form::Entry), Absent::Never("name: geglu"), Merge::Alone, CALLS, "the function, or the class"),
    field(Section::Reference, "init", Kind::Map { what: "argument", key: &IDENTIFIER, of: &Kind::Any, least: 0 }, Absent::Value("{}"), Merge::Alone, CALLS, "keyword arguments of the class's constructor, and of that of an entry which is a class; a string that is a dim stands for its length"),
    field(Section::Input, "shape", SHAPE, Absent::Words("`list` or `scalar` instead"), Merge::Alone, CALLS, "lengths, dims, and expressions of dims such as `2*N`"),
    field(Section::Input, "list", Kind::List { of: &SHAPE, least: 1, most: usize::MAX }, Absent::Words("one tensor"), Merge::Alone, CALLS, "the shapes of a list of tensors, which is one argument; messages call its members `NAME.0`, `NAME.1`"),
    field(Section::Input, "scalar", Kind::Any, Absent::Words("a tensor"), Merge::Alone, CALLS, "a value that is no tensor, in an input's place; nothing else stands beside it"),
    field(Section::Input, "optional", Kind::Flag, Absent::Value("false"), Merge::Alone, CALLS, "each size is checked without it, too: the argument is None"),
    field(Section::Input, "dtype", INPUT_DTYPE, Absent::Words("the tested dtype"), Merge::Alone, CALLS, "a dtype that does not follow the tested one"),
    field(Section::Input, "init", INIT, Absent::Value(r#""normal""#), Merge::Alone, CALLS, "how values are drawn; integer dtypes need one that draws integers, such as `randint`"),
    field(Section::Input, "requires_grad", Kind::Flag, Absent::Value("false"), Merge::Alone, CALLS, "whether the tensor asks for a gradient; where no input has it, all that can do"),
    field(Section::Input, "layout", Kind::Either(&[LAYOUT, Kind::Set { of: &LAYOUT, least: 1 }]), Absent::Value(r#""contiguous""#), Merge::Alone, CALLS, "`transposed`: last two dims swapped in memory; `strided`: every second element; `channels_last`: four dims; of several, the seeds of a size take one after the other"),
    field(Section::Init, "normal", PAIR, Absent::Value("[0.0, 1.0]"), Merge::Alone, CALLS, "mean and standard deviation"),
    field(Section::Init, "uniform", PAIR, Absent::Value("[0.0, 1.0]"), Merge::Alone, CALLS, "low and high"),
    field(Section::Init, "randint", PAIR, Absent::Words("—"), Merge::Alone, CALLS, "integers from low up to, but not including, high"),
    field(Section::Init, "distinct", PAIR, Absent::Words("—"), Merge::Alone, CALLS, "the same, none twice in a row of the last dim, which is at most as long as there are such integers"),
    field(Section::Init, "unique", PAIR, Absent::Words("—"), Merge::Alone, CALLS, "the same, none twice in the whole tensor, as of a table of pages: `tables: {shape: [B, P], dtype: int32, init: {unique: [0, B*P]}}`"),
    field(Section::Init, "offsets", QUANTITY, Absent::Words("—"), Merge::Alone, CALLS, "in each row 0, integers in ascending order, and this number: where segments of so many rows begin and end, as of `cu_seqlens: {shape: [B+1], dtype: int32, init: {offsets: T}}`"),
    field(Section::Init, "constant", QUANTITY, Absent::Words("—"), Merge::Alone, CALLS, "one value everywhere"),
    field(Section::Init, "sorted", Kind::Section(Section::Sorted), Absent::Words("—"), Merge::Alone, CALLS, "each row in ascending order"),
    field(Section::Init, "mask", QUANTITY, Absent::Words("—"), Merge::Alone, CALLS, "true, or 1, with this probability"),
    field(Section::Init, "triangular", Kind::OneOf("side", &["lower", "upper"]), Absent::Words("—"), Merge::Alone, CALLS, "normal values on this side of the diagonal of the last two dims and on it, zeros on the other; of integers and booleans, ones"),
    field(Section::Init, "block_sparse", Kind::Section(Section::Blocks), Absent::Words("—"), Merge::Alone, CALLS, "normal values in some square blocks of the last two dims, zeros in the others; of integers and booleans, ones"),
    field(Section::Init, "low_rank", QUANTITY, Absent::Words("—"), Merge::Alone, CALLS, "matrices of this rank"),
    field(Section::Init, "ill_conditioned", QUANTITY, Absent::Words("—"), Merge::Alone, CALLS, "matrices of this condition: singular values from 1 to its inverse"),
    field(Section::Init, "file", Kind::Form(Form::Stored), Absent::Words("—"), Merge::Alone, CALLS, "a tensor of a safetensors file, relative to the workspace: `values/x.safetensors::weight`; a shorter dim ends earlier, a longer one begins again"),
    field(Section::Sorted, "of", INIT, Absent::Never("of: normal"), Merge::Alone, CALLS, "what is sorted"),
    field(Section::Blocks, "block", QUANTITY, Absent::Value("16"), Merge::Alone, CALLS, "the side of a block"),
    field(Section::Blocks, "density", QUANTITY, Absent::Value("0.25"), Merge::Alone, CALLS, "the share of blocks that are not zero"),
    field(Section::Output, "compare", COMPARISON, Absent::Value(r#""close""#), Merge::Alone, &[Analyze, Check], "`close`: within the tolerance; `exact`: equal; `indices`: the values that they point to must be right; `set`: one dim in any order; `rows`: rows along the first dim in any order; `ignore`: not at all"),
    field(Section::Output, "of", IDENTIFIER, Absent::Words("required by `indices`"), Merge::Alone, &[Analyze, Check], "the input, or the output, that indices point into"),
    field(Section::Output, "dim", Kind::Either(&[AXIS, Kind::Set { of: &AXIS, least: 1 }]), Absent::Words("all of it, flattened"), Merge::Alone, &[Analyze, Check], "the dim that indices count along; of several trailing dims, which they count through together, all"),
    field(Section::Output, "tolerances", Kind::Map { what: "dtype", key: &DTYPE, of: &TOLERANCE, least: 1 }, Absent::Words("the op's"), Merge::Alone, &[Analyze, Check], "`[atol, rtol]` by dtype, of this output"),
    field(Section::Output, "unset", Kind::Either(&[Kind::Number, Kind::OneOf("value", &["nan"])]), Absent::Words("nothing"), Merge::Alone, &[Analyze, Check], "what torch has where any value is right: a number, or `nan`"),
    field(Section::Random, "kind", Kind::OneOf("kind", &["dropout", "bernoulli", "uniform", "normal", "multinomial", "judged"]), Absent::Never("kind: dropout"), Merge::Alone, RANDOM, "what is drawn; `judged` is what a function of the op's `cases.py` says"),
    field(Section::Random, "seed", IDENTIFIER, Absent::Words("torch's generator is seeded"), Merge::Alone, RANDOM, "the parameter of the wrapper that takes the seed"),
    field(Section::Random, "p", PARAMETER, Absent::Words("required by `dropout`; of `bernoulli` the first input"), Merge::Alone, RANDOM, "the probability: a number, or the argument that has it"),
    field(Section::Random, "low", PARAMETER, Absent::Words("0"), Merge::Alone, RANDOM, "the least, of `uniform`"),
    field(Section::Random, "high", PARAMETER, Absent::Words("1"), Merge::Alone, RANDOM, "above the greatest, of `uniform`"),
    field(Section::Random, "mean", PARAMETER, Absent::Words("0"), Merge::Alone, RANDOM, "the mean, of `normal`"),
    field(Section::Random, "std", PARAMETER, Absent::Words("1"), Merge::Alone, RANDOM, "the standard deviation, of `normal`"),
    field(Section::Random, "by", IDENTIFIER, Absent::Words("required by `judged`"), Merge::Alone, RANDOM, "the function of the op's `cases.py` that says what must hold"),
    field(Section::Variant, "name", NAME, Absent::Never("name: v1_baseline"), Merge::Alone, &[], "the variant's name"),
    field(Section::Variant, "file", Kind::Form(Form::Path), Absent::Words("`<name>.py`"), Merge::Alone, &[], "the kernel file, relative to `kernels/<op>/`; with `lang: cuda` the `.cu`, of itself `<name>.cu`, or the Python file that calls `load_inline`"),
    field(Section::Variant, "path", Kind::Form(Form::Path), Absent::Words("`file`"), Merge::Alone, &[], "the kernel file in the place of `file`, relative to the workspace; several ops may name it"),
    field(Section::Variant, "module", Kind::Form(Form::Entry), Absent::Words("`file`"), Merge::Alone, RUNS_CODE, "an installed module in the place of a file, as in `liger_kernel.ops.geglu`"),
    field(Section::Variant, "lang", Kind::OneOf("lang", &["triton", "cuda"]), Absent::Value(r#""triton""#), Merge::Alone, RUNS_CODE, "`cuda`: the kernels are in a `.cu` that nvcc compiles, and a Python file launches them; or in a Python file that has torch build them"),
    field(Section::Variant, "operator", Kind::Form(Form::Path), Absent::Words("the `.cu` with `.py`"), Merge::Alone, &[], "with `lang: cuda`, the Python file that has the wrapper: relative to `kernels/<op>/`, where `path` names the `.cu` to the workspace"),
    field(Section::Variant, "entry", Kind::Form(Form::Entry), Absent::Words("the op's `entry`"), Merge::Alone, RUNS_CODE, "the wrapper"),
    field(Section::Variant, "call", Kind::Form(Form::Call), Absent::Words("the op's `call`"), Merge::Alone, RUNS_CODE, "how it is called"),
    field(Section::Variant, "methods", Kind::Section(Section::Methods), Absent::Words("the op's `methods`"), Merge::Alone, RUNS_CODE, "of an entry that is an operator"),
    field(Section::Variant, "lanes", Kind::Set { of: &Kind::OneOf("lane", &["interpreter", "cuda"]), least: 1 }, Absent::Value(r#"["interpreter", "cuda"]"#), Merge::Alone, &[Compile, Check], "where it can be judged; elsewhere it is not judged"),
    field(Section::Variant, "deterministic", Kind::Flag, Absent::Words("the op's `deterministic`"), Merge::Alone, &[Check], "as the op's, for this variant"),
    field(Section::Variant, "generator", NAME, Absent::Words("the op's `generator`"), Merge::Alone, &[], "as the op's, for this variant"),
    field(Section::Methods, "forward", Kind::Form(Form::Method), Absent::Value(r#""forward""#), Merge::Alone, RUNS_CODE, "the method of the forward pass, or a call of it: `forward(input, dim)`"),
    field(Section::Methods, "backward", Kind::Form(Form::Method), Absent::Value(r#""backward""#), Merge::Alone, RUNS_CODE, "the method of the backward pass, or a call of it: `backward(grad, output, dim)`"),
    field(Section::Check, "atol", Kind::Amount, Absent::Value("1e-5"), Merge::Replace, &[Check], "absolute tolerance, of float32 only"),
    field(Section::Check, "rtol", Kind::Amount, Absent::Value("1e-5"), Merge::Replace, &[Check], "relative tolerance, of float32 only"),
    field(Section::Check, "tolerances", Kind::Map { what: "dtype", key: &DTYPE, of: &TOLERANCE, least: 0 }, Absent::Value(r#"{"float16": [1e-3, 1e-3], "bfloat16": [1.6e-2, 1e-2], "float64": [1e-7, 1e-7]}"#), Merge::ByKey, &[Check], "`[atol, rtol]` by dtype; other dtypes are exact"),
    field(Section::Check, "seeds", Kind::Whole(1), Absent::Value("2"), Merge::Replace, &[Compile, Check], "how often each case is drawn"),
    field(Section::Check, "sizes", Kind::Map { what: "size", key: &NAME, of: &SIZE, least: 1 }, Absent::Words("bench's `small`; on CUDA `medium` too"), Merge::Replace, &[Compile, Check], "the sizes that are checked, by any name"),
    field(Section::Check, "edges", EDGES_OFF, Absent::Value("{}"), Merge::ByKey, &[Compile, Check], "which edges are not asked for; logs say so"),
    field(Section::Check, "max_retries", Kind::Whole(0), Absent::Value("3"), Merge::Replace, &[], "how often a generated variant is written anew"),
    field(Section::Check, "timeout", DURATION, Absent::Value(r#""120s""#), Merge::Replace, &[], "the longest a check or an analysis may take"),
    field(Section::Edge, "off", Kind::Form(Form::Line), Absent::Never("off: the launcher asks for dense rows"), Merge::Alone, &[Compile, Check], "why the edge is not asked for"),
    field(Section::Bench, "sizes", Kind::Section(Section::Sizes), Absent::Value(SIZES), Merge::Replace, CALLS, "the sizes that are measured"),
    field(Section::Bench, "runs", Kind::Whole(1), Absent::Value("10"), Merge::Replace, MEASURES, "how often each size is measured"),
    field(Section::Bench, "warmup_ms", Kind::Whole(0), Absent::Value("25"), Merge::Replace, MEASURES, "warm-up of a run"),
    field(Section::Bench, "rep_ms", Kind::Whole(1), Absent::Value("100"), Merge::Replace, MEASURES, "measured time of a run"),
    field(Section::Bench, "stop", Kind::OneOf("rule", &["runs", "auto"]), Absent::Value(r#""runs""#), Merge::Replace, MEASURES, "when a size is measured enough on a device: after all `runs`, or as soon as the figures are known closely or it is decided which is faster (`auto`)"),
    field(Section::Bench, "pass", Kind::OneOf("pass", &["forward", "backward", "both"]), Absent::Value(r#""forward""#), Merge::Replace, &[Tune, Bench, Baseline], "what is timed, of kernels and of torch: the forward pass, the backward pass, or both one after the other; the latter two need `backward: true`"),
    field(Section::Bench, "baselines", Kind::Set { of: &BASELINE, least: 1 }, Absent::Value(r#"["torch", "torch.compile"]"#), Merge::Replace, &[Baseline], "what the kernels are compared with on a device; `torch` is always among them"),
    field(Section::Bench, "timeout", DURATION, Absent::Value(r#""600s""#), Merge::Replace, &[], "the longest a compile, tune, bench or baseline may take"),
    field(Section::Baseline, "name", NAME, Absent::Never("name: flaggems"), Merge::Alone, &[Baseline], "what it is called in tables and documents"),
    field(Section::Baseline, "function", Kind::Form(Form::Function), Absent::Never("function: flag_gems.ops.softmax"), Merge::Alone, &[Baseline], "the function: `MODULE.FUNCTION` of an installed module, or `FILE.py::NAME` of the workspace; their code is in the key"),
    field(Section::Sizes, "small", SIZE, Absent::Words("not measured"), Merge::Alone, CALLS, "a number for every free dim, a list in the order of the free dims, or numbers by dim"),
    field(Section::Sizes, "medium", SIZE, Absent::Words("not measured"), Merge::Alone, CALLS, "likewise"),
    field(Section::Sizes, "large", SIZE, Absent::Words("not measured"), Merge::Alone, CALLS, "likewise"),
    field(Section::Profiles, "cpu", Kind::Section(Section::Profile), Absent::Value(CPU_PROFILE), Merge::ByKey, &[], "on the interpreter, which is slow: small sizes, few runs"),
    field(Section::Profile, "dims", DIMS, Absent::Words("as without the profile"), Merge::ByKey, CALLS, "dims fixed on this lane"),
    field(Section::Profile, "dtypes", SET_OF_DTYPES, Absent::Words("as without the profile"), Merge::Replace, CALLS, "see op"),
    field(Section::Profile, "check", Kind::Section(Section::Check), Absent::Words("as without the profile"), Merge::ByKey, &[], "see check"),
    field(Section::Profile, "bench", Kind::Section(Section::Bench), Absent::Words("as without the profile"), Merge::ByKey, &[], "see bench"),
    field(Section::Log, "template", Kind::Form(Form::Path), Absent::Value(r#""assets/log_template.md""#), Merge::Replace, &[Log], "the template of the op's log, relative to the workspace"),
    field(Section::Cache, "remote", Kind::Form(Form::Remote), Absent::Never("remote: https://cache.example.org/kernels"), Merge::Alone, &[], "the server: `s3://BUCKET/FOLDER`, `http(s)://HOST/FOLDER`, `redis://HOST:PORT` or `file:///FOLDER`, without credentials"),
    field(Section::Cache, "mode", Kind::OneOf("mode", MODES), Absent::Value(r#""read-write""#), Merge::Alone, &[], "`read-only` takes results and leaves none"),
    field(Section::Generator, "command", WORDS, Absent::Words("`openai`"), Merge::Alone, &[], "the program and its arguments; the prompt is its standard input"),
    field(Section::Generator, "openai", Kind::Section(Section::Openai), Absent::Words("`command`"), Merge::Alone, &[], "a server that speaks the chat-completions protocol"),
    field(Section::Generator, "timeout", DURATION, Absent::Value(r#""600s""#), Merge::Alone, &[], "the longest an attempt may take"),
    field(Section::Generator, "env", Kind::Set { of: &Kind::Form(Form::Variable), least: 0 }, Absent::Value("[]"), Merge::Alone, &[], "the variables of the environment that it gets beside `PATH`, `HOME` and the like; what they hold is in no key and in nothing that is kept"),
    field(Section::Openai, "base_url", Kind::Form(Form::Server), Absent::Never("base_url: http://localhost:8000/v1"), Merge::Alone, &[], "where the server is, without `/chat/completions` and without credentials"),
    field(Section::Openai, "model", Kind::Form(Form::Line), Absent::Never("model: NAME"), Merge::Alone, &[], "the model that is asked"),
    field(Section::Openai, "key_env", Kind::Form(Form::Variable), Absent::Words("no key"), Merge::Alone, &[], "the variable of the environment that holds the key; in no key of the cache"),
    field(Section::Openai, "max_tokens", Kind::Whole(1), Absent::Words("the server's"), Merge::Alone, &[], "how many tokens an answer may have"),
    field(Section::Openai, "temperature", Kind::Amount, Absent::Words("the server's"), Merge::Alone, &[], "how freely an answer is drawn"),
    field(Section::Jobs, "generate", Kind::Whole(1), Absent::Value("4"), Merge::Alone, &[], "how many authors work at once"),
    field(Section::Budget, "max_attempts", Kind::Whole(1), Absent::Words("no limit"), Merge::Alone, &[], "how many attempts authors are asked for"),
    field(Section::Budget, "max_tokens", Kind::Whole(1), Absent::Words("no limit"), Merge::Alone, &[], "how many tokens they may say that they took, before no further attempt begins"),
    field(Section::Budget, "max_minutes", Kind::Whole(1), Absent::Words("no limit"), Merge::Alone, &[], "how long attempts may begin, counted from the first"),
];

impl Section {
    /// Returns the fields of this section in the order of the table.
    pub fn fields(self) -> impl Iterator<Item = &'static Field> + Clone {
        FIELDS.iter().filter(move |field| field.section == self)
    }
}

#[rustfmt::skip]
const fn field(section: Section, key: &'static str, kind: Kind, absent: Absent, merge: Merge, phases: &'static [Phase], meaning: &'static str) -> Field {
    Field { section, key, kind, absent, merge, phases, meaning }
}
