"""What t2t and the harness tell each other, as types: requests, declarations, replies, documents.

Made from the types of `crates/protocol`, as docs/design/harness.md says; nobody edits it. It is imported by type checkers alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict, final

if TYPE_CHECKING:
    from typing_extensions import NotRequired

Json: TypeAlias = "None | bool | int | float | str | list[Json] | dict[str, Json]"
"""Any value of JSON."""

Access = TypedDict(
    "Access",
    {
        "class": "str | None",
        "description": "str | None",
        "patterns": "list[str]",
    },
)
"""How an op goes through memory."""


@final
class AdoptRequest(TypedDict):
    """What `adopt.adopt` is told."""

    entry: str | None
    """The wrapper's name, where one is named."""
    file: str | None
    """The wrapper's file, relative to the workspace."""
    lane: Lane
    """Where kernel code would run: it is compiled."""
    module: str | None
    """The installed module that it is in, where no file of the workspace is."""
    name: str
    """The op's name."""
    reference: str | None
    """What stands in its place, as `FILE::NAME`, where one is named."""
    root: str
    """The workspace, absolute."""
    scratch: str
    """Absolute: the child's working directory, and the only folder it may write."""
    torch: str | None
    """The torch function, where one is named."""
    what: str
    """What is adopted, as it was named."""


@final
class AdoptedEntry(TypedDict):
    """What ops.yaml is to say of a wrapper, and how its arguments were mapped."""

    call: str | None
    """How it is called; null where names decide."""
    entry: str
    """The wrapper's name."""
    inputs: list[AdoptedInput]
    """The tensors."""
    kwargs: dict[str, Json]
    """The other arguments."""
    mapped: list[list[str]]
    """Pairs of the wrapper's parameter and the op's argument."""
    mutates: list[str]
    """The inputs that the reference changes."""
    reference: str | None
    """What stands in its place, as `FILE::NAME`."""
    torch: str | None
    """The torch function; null where there is a reference."""


@final
class AdoptedInput(TypedDict):
    """A tensor as ops.yaml is to say it."""

    dtype: NotRequired[str]
    """Its dtype, where it does not follow the tested one."""
    init: NotRequired[dict[str, Json]]
    """How its values are drawn, as ops.yaml writes it, where they are not by default."""
    name: str
    """The argument's name."""
    optional: NotRequired[bool]
    """Whether the op and the wrapper are called without it, too: there only where they are."""
    shape: list[Length]
    """Its shape."""


@final
class Against(TypedDict):
    """The document `against`: two versions of a kernel, in pairs of runs. Ratios are the other version's time over the present one's."""

    clock: str
    """`cuda-events` or `host`."""
    device_s: float
    """Seconds from the first call to the end, which the device was held for."""
    error: float
    """How often the interval of a size may miss."""
    model: str
    """The device class."""
    pairs: int
    """How many pairs of runs were made at each size."""
    sizes: dict[str, AgainstSize]
    """The sizes."""
    telemetry: Snapshot | None
    """What the device was doing."""


@final
class AgainstSize(TypedDict):
    """Two versions of a kernel at a size."""

    binding: dict[str, int]
    """The lengths of its dims."""
    dtype: str
    """Its dtype."""
    high: float
    """The upper bound."""
    low: float
    """The lower bound of its interval."""
    other_ms: float
    """That of the other's."""
    present_ms: float
    """The mean time of the present version's runs, in ms."""
    ratio: float
    """The geometric mean of the ratios of the pairs."""
    verdict: AgainstVerdict
    """What the interval tells."""


AgainstVerdict: TypeAlias = Literal["faster", "slower", "same", "open"]
"""What two versions of a kernel are to each other at a size."""


@final
class Analysis(TypedDict):
    """What an op is and does, as docs/reference/analyze.md says."""

    access: Access
    """How it goes through memory."""
    aten: list[AtenOperation]
    """The aten operations dispatched at the first size."""
    defined_in: str | None
    """The module that says it defines it."""
    definition: str | None
    """From the catalogue: plain text, one line."""
    documentation: Documentation
    """What its docstring says."""
    dtype: str
    """The first declared dtype, in which everything below is counted."""
    growth: Growth
    """How work and memory grow."""
    inputs: list[AnalyzedInput]
    """The tensors that it takes."""
    notes: str | None
    """Likewise."""
    operation: str
    """The dotted name that is called."""
    outputs: list[AnalyzedOutput] | None
    """Those that it returns; null where they depend on values."""
    ridge: Ridge
    """The reference machine."""
    signature: str | None
    """Python's own; a builtin's from the first paragraph of its docstring."""
    sizes: dict[str, AnalyzedSize]
    """What it comes to at each size."""
    unknown: list[NotKnown]
    """The aten operations because of which something is null."""
    version: int
    """The version of the document: 1."""


AnalysisFailure = TypedDict(
    "AnalysisFailure",
    {
        "class": "str",
        "hint": "NotRequired[str]",
        "message": "str",
        "size": "str | None",
    },
)
"""Why an op cannot be analyzed: the document `failure` of an analysis."""


@final
class AnalyzeRequest(TypedDict):
    """What `analyze.analyze` is told."""

    catalogue: str
    """The absolute path of the op catalogue."""
    deadline_s: float
    """How long the action may take, in seconds."""
    devices: list[DeviceRow]
    """The rows of the device table that are compiled for; on the interpreter a wrapper is told the properties of the first."""
    is_told_of_quiet: bool
    """Whether the file `quiet` will say when nothing disturbs a measurement."""
    lane: Lane
    """Where kernel code runs."""
    model: str
    """The device class: `interpreter`, or the model's id."""
    op: Declaration
    """The op."""
    root: str
    """The workspace, absolute."""
    scratch: str
    """Absolute: the child's working directory, `TMPDIR`, and the only folder it may write."""
    timed_until: int | None
    """Until when this build timed the device last, in nanoseconds of the monotonic clock; null where it did not."""
    warm: list[str]
    """Absolute paths of archives of compiled kernels and their launchers, which are unpacked into `TRITON_CACHE_DIR`, on a device each when Triton looks for it; empty but there and in a compile."""


@final
class AnalyzedInput(TypedDict):
    """A tensor that an op takes."""

    description: str | None
    """What the docstring says of it."""
    dtype: str
    """Its dtype."""
    layout: str
    """How it lies in memory."""
    name: str
    """The argument's name."""
    shape: list[Length]
    """Its declared shape."""


@final
class AnalyzedOutput(TypedDict):
    """A tensor that an op returns."""

    dtype: str
    """Its dtype."""
    shape: list[Length | None]
    """Its shape, with dims, declared expressions of dims, or multiples of a dim; null where a length is none of these."""


@final
class AnalyzedSize(TypedDict):
    """What an op comes to at one size."""

    bound: str | None
    """`memory`, `compute` or `none`."""
    bytes: int | None
    """How many bytes it reads and writes at least, likewise."""
    dims: dict[str, int]
    """The lengths of its dims."""
    flops: int | None
    """How many elementary results it computes. A whole number, which may be one beyond 2^64."""
    intensity: float | None
    """Elementary results a byte."""
    outputs: list[ShapedOutput] | None
    """What it returns."""


AnyFailure: TypeAlias = "Failure | AnalysisFailure"
"""The failure of an analysis, or that of anything else."""


@final
class AtenOperation(TypedDict):
    """What of an aten operation was dispatched."""

    access: str | None
    """How it goes through memory."""
    calls: int
    """How often it was called."""
    op: str
    """Its name."""
    schema: str
    """Its schema."""
    work: str | None
    """The rule that counts its work, in words."""


Axes: TypeAlias = "int | list[int]"
"""One dim, or several trailing ones that are counted through together."""


@final
class Baseline(TypedDict):
    """The figures of torch."""

    clock: str
    """`cuda-events` or `host`."""
    compile_ms: float | None
    """How long torch took to compile."""
    device: MeasuredDevice
    """What ran it."""
    finals: dict[str, float | None]
    """The mean over the sizes of each baseline."""
    protocol: Protocol
    """How a size was measured."""
    reasons: dict[str, str]
    """Why a baseline has no figure."""
    sizes: dict[str, BaselineSize]
    """The sizes."""
    telemetry: Telemetry
    """What the device was doing."""
    unstable: bool
    """Whether the figures cannot be relied on."""
    why_unstable: str | None
    """Why."""


@final
class BaselineFunction(TypedDict):
    """A function that is timed in torch's place."""

    ended: NotRequired[str]
    """Why it is not called, where a process that called it ended."""
    file: NotRequired[str]
    """The Python file that has it, relative to the workspace; absent of one of an installed module."""
    function: str
    """Its name in the file, or its dotted name with that of its module."""
    name: str
    """What it is called."""


@final
class BaselineRequest(TypedDict):
    """What `baseline.baseline` is told."""

    baselines: list[str]
    """What of torch is timed."""
    deadline_s: float
    """How long the action may take, in seconds."""
    devices: list[DeviceRow]
    """The rows of the device table that are compiled for; on the interpreter a wrapper is told the properties of the first."""
    functions: NotRequired[list[BaselineFunction]]
    """The functions that are timed beside it."""
    is_told_of_quiet: bool
    """Whether the file `quiet` will say when nothing disturbs a measurement."""
    lane: Lane
    """Where kernel code runs."""
    model: str
    """The device class: `interpreter`, or the model's id."""
    op: Declaration
    """The op."""
    protocol: Protocol
    """How a size is measured."""
    root: str
    """The workspace, absolute."""
    scratch: str
    """Absolute: the child's working directory, `TMPDIR`, and the only folder it may write."""
    timed_until: int | None
    """Until when this build timed the device last, in nanoseconds of the monotonic clock; null where it did not."""
    warm: list[str]
    """Absolute paths of archives of compiled kernels and their launchers, which are unpacked into `TRITON_CACHE_DIR`, on a device each when Triton looks for it; empty but there and in a compile."""


BaselineSize = TypedDict(
    "BaselineSize",
    {
        "binding": "dict[str, int]",
        "dtype": "str",
        "others": "NotRequired[dict[str, Figure | None]]",
        "stopped": "NotRequired[Stopped]",
        "torch": "NotRequired[Figure | None]",
        "torch.compile": "NotRequired[Figure | None]",
    },
)
"""One size of a baseline. One that was not asked for is absent, one that torch refuses is null."""


@final
class Bench(TypedDict):
    """The figures of a variant beside torch's. One on the interpreter has `clock`, `protocol`, `device`, `judged` and `sizes` alone."""

    clock: str
    """`cuda-events` or `host`."""
    device: MeasuredDevice
    """What ran it."""
    disturbed: NotRequired[list[str]]
    """What disturbed the device, before figures are made."""
    final_ms: NotRequired[float]
    """The mean over the sizes."""
    geomean_speedup: NotRequired[float]
    """The geometric mean of the ratios by size."""
    host_us: NotRequired[float | None]
    """The host's time of a call, in µs."""
    judged: NotRequired[dict[str, JudgedSize]]
    """Of each size, which run was judged."""
    protocol: Protocol
    """How a size was measured."""
    remeasured: NotRequired[bool]
    """Whether something was measured again."""
    sizes: dict[str, BenchSize]
    """The sizes."""
    speedup: NotRequired[float]
    """Their ratio."""
    telemetry: NotRequired[Telemetry]
    """What the device was doing."""
    torch_final_ms: NotRequired[float]
    """Torch's."""
    triton_cache: NotRequired[TritonCache]
    """What Triton's cache had."""
    unstable: NotRequired[bool]
    """Whether the figures cannot be relied on."""
    why_unstable: NotRequired[str | None]
    """Why."""


@final
class BenchRequest(TypedDict):
    """What `bench.bench` and `profile.profile` are told."""

    deadline_s: float
    """How long the action may take, in seconds."""
    devices: list[DeviceRow]
    """The rows of the device table that are compiled for; on the interpreter a wrapper is told the properties of the first."""
    is_told_of_quiet: bool
    """Whether the file `quiet` will say when nothing disturbs a measurement."""
    lane: Lane
    """Where kernel code runs."""
    model: str
    """The device class: `interpreter`, or the model's id."""
    op: Declaration
    """The op."""
    protocol: Protocol
    """How a size is measured."""
    root: str
    """The workspace, absolute."""
    scratch: str
    """Absolute: the child's working directory, `TMPDIR`, and the only folder it may write."""
    timed_until: int | None
    """Until when this build timed the device last, in nanoseconds of the monotonic clock; null where it did not."""
    tune: Tune | None
    """The document `tune`, or null."""
    variant: Variant
    """The variant."""
    warm: list[str]
    """Absolute paths of archives of compiled kernels and their launchers, which are unpacked into `TRITON_CACHE_DIR`, on a device each when Triton looks for it; empty but there and in a compile."""


@final
class BenchSize(TypedDict):
    """One size of a bench."""

    binding: dict[str, int]
    """The lengths of its dims."""
    config: dict[str, Json] | None
    """The configuration of each autotuned kernel, by its name."""
    dtype: str
    """Its dtype."""
    interpreter_ms: NotRequired[float]
    """How long a call took on the interpreter."""
    stopped: NotRequired[Stopped]
    """Why measuring ended, where the number of runs was not fixed."""
    torch: NotRequired[Figure]
    """Torch's."""
    variant: NotRequired[Figure]
    """The variant's figure."""


@final
class CalibrateRequest(TypedDict):
    """What `calibrate.calibrate` is told."""

    deadline_s: float
    """How long the action may take, in seconds."""
    devices: list[DeviceRow]
    """The rows of the device table that are compiled for; on the interpreter a wrapper is told the properties of the first."""
    is_told_of_quiet: bool
    """Whether the file `quiet` will say when nothing disturbs a measurement."""
    lane: Lane
    """Where kernel code runs."""
    model: str
    """The device class: `interpreter`, or the model's id."""
    root: str
    """The workspace, absolute."""
    scratch: str
    """Absolute: the child's working directory, `TMPDIR`, and the only folder it may write."""
    timed_until: int | None
    """Until when this build timed the device last, in nanoseconds of the monotonic clock; null where it did not."""
    warm: list[str]
    """Absolute paths of archives of compiled kernels and their launchers, which are unpacked into `TRITON_CACHE_DIR`, on a device each when Triton looks for it; empty but there and in a compile."""


@final
class Calibration(TypedDict):
    """What a device does at most, in figures whose rates are those of the median."""

    clock: str
    """`cuda-events`."""
    copies: list[CopyFigure]
    """Copies of rising size."""
    copy_gb_per_s: float
    """The ceiling: the rate of the copy of 1 GiB."""
    device: MeasuredDevice
    """What ran it."""
    products: dict[str, ProductFigure | None]
    """Products of square matrices."""
    protocol: Protocol
    """How each was measured."""
    reasons: dict[str, str]
    """Why one has no figure."""
    telemetry: Telemetry
    """What the device was doing."""
    unstable: bool
    """Whether the figures cannot be relied on."""
    why_unstable: str | None
    """Why."""


@final
class CandidateEnd(TypedDict):
    """How the candidate's child ended, as the judge is told."""

    code: int | None
    """The exit code of one that left."""
    error: RaisedError | None
    """What it raised."""
    how: str | None
    """What shows that memory ran out."""
    kind: EndKind
    """Which end it is."""
    left_behind: int
    """How many processes it had left behind; they were killed."""
    message: str
    """The end, for people."""
    seconds: float | None
    """Always null."""
    signal: int | None
    """The signal that it died by."""
    stderr: str
    """What it printed as errors, at most 8 KiB."""
    stdout: str
    """What it printed, at most 8 KiB."""
    truncated: bool
    """Whether either is cut."""


@final
class CandidateRequest(TypedDict):
    """What `candidate.run` is told."""

    deadline_s: float
    """How long the action may take, in seconds."""
    devices: list[DeviceRow]
    """The rows of the device table that are compiled for; on the interpreter a wrapper is told the properties of the first."""
    inputs: str | None
    """The folder made by prepare, or null."""
    is_told_of_quiet: bool
    """Whether the file `quiet` will say when nothing disturbs a measurement."""
    lane: Lane
    """Where kernel code runs."""
    model: str
    """The device class: `interpreter`, or the model's id."""
    op: Declaration
    """The op."""
    root: str
    """The workspace, absolute."""
    salt: str
    """What values of inputs depend on."""
    scratch: str
    """Absolute: the child's working directory, `TMPDIR`, and the only folder it may write."""
    timed_until: int | None
    """Until when this build timed the device last, in nanoseconds of the monotonic clock; null where it did not."""
    variant: Variant
    """The variant."""
    warm: list[str]
    """Absolute paths of archives of compiled kernels and their launchers, which are unpacked into `TRITON_CACHE_DIR`, on a device each when Triton looks for it; empty but there and in a compile."""


CaseRow = TypedDict(
    "CaseRow",
    {
        "bad": "int | None",
        "binding": "dict[str, int]",
        "class": "str | None",
        "configs": "int",
        "dtype": "str",
        "expected": "Json",
        "got": "Json",
        "index": "list[int] | None",
        "kind": "str",
        "launches": "int",
        "max_abs": "Json",
        "max_rel": "Json",
        "name": "str",
        "reason": "str | None",
        "rule": "str | None",
        "torch_max_abs": "Json",
        "total": "int | None",
        "verdict": "CaseVerdict",
    },
)
"""One case of a check."""

CaseVerdict: TypeAlias = Literal["passed", "rejected", "not-judged", "dropped"]
"""What becomes of a case."""


@final
class CheckRequest(TypedDict):
    """What every child of a check is told, and `prepare.prepare`."""

    deadline_s: float
    """How long the action may take, in seconds."""
    devices: list[DeviceRow]
    """The rows of the device table that are compiled for; on the interpreter a wrapper is told the properties of the first."""
    is_told_of_quiet: bool
    """Whether the file `quiet` will say when nothing disturbs a measurement."""
    lane: Lane
    """Where kernel code runs."""
    model: str
    """The device class: `interpreter`, or the model's id."""
    op: Declaration
    """The op."""
    root: str
    """The workspace, absolute."""
    salt: str
    """What values of inputs depend on."""
    scratch: str
    """Absolute: the child's working directory, `TMPDIR`, and the only folder it may write."""
    timed_until: int | None
    """Until when this build timed the device last, in nanoseconds of the monotonic clock; null where it did not."""
    variant: Variant
    """The variant."""
    warm: list[str]
    """Absolute paths of archives of compiled kernels and their launchers, which are unpacked into `TRITON_CACHE_DIR`, on a device each when Triton looks for it; empty but there and in a compile."""


CheckVerdict: TypeAlias = Literal["passed", "rejected", "not-judged"]
"""What becomes of a kernel."""


@final
class Choice(TypedDict):
    """The fastest configuration of a kernel at a key."""

    config: dict[str, Json]
    """The configuration."""
    kernel: str
    """The kernel."""
    key: list[str]
    """What the autotuner chooses by."""
    timings: list[Timing]
    """What the others took."""


@final
class Common(TypedDict):
    """What every child of an action is told, whether its function reads it or not."""

    deadline_s: float
    """How long the action may take, in seconds."""
    devices: list[DeviceRow]
    """The rows of the device table that are compiled for; on the interpreter a wrapper is told the properties of the first."""
    is_told_of_quiet: bool
    """Whether the file `quiet` will say when nothing disturbs a measurement."""
    lane: Lane
    """Where kernel code runs."""
    model: str
    """The device class: `interpreter`, or the model's id."""
    root: str
    """The workspace, absolute."""
    scratch: str
    """Absolute: the child's working directory, `TMPDIR`, and the only folder it may write."""
    timed_until: int | None
    """Until when this build timed the device last, in nanoseconds of the monotonic clock; null where it did not."""
    warm: list[str]
    """Absolute paths of archives of compiled kernels and their launchers, which are unpacked into `TRITON_CACHE_DIR`, on a device each when Triton looks for it; empty but there and in a compile."""


@final
class ComparedOutput(TypedDict):
    """An output of torch's."""

    compare: Comparison
    """How it is compared."""
    dim: Axes | None
    """The dims that indices count along."""
    name: str
    """What messages call it."""
    of: str | None
    """The input, or the output, that indices point into."""
    tolerances: dict[str, list[float]]
    """`[atol, rtol]` by dtype, where they are not the op's."""
    unset: NotRequired[Quantity]
    """The number, or `nan`, that torch has where any value is right."""


Comparison: TypeAlias = Literal["close", "exact", "indices", "set", "rows", "ignore"]
"""How an output is compared."""


@final
class CompileCudaRequest(TypedDict):
    """What `compile_cuda.compile_cuda` is told."""

    architectures: list[str]
    """What is compiled for, as in `sm_90a`; `compute_90` is PTX, which drivers compile."""
    deadline_s: float
    """How long the action may take, in seconds."""
    devices: list[DeviceRow]
    """The rows of the device table that are compiled for; on the interpreter a wrapper is told the properties of the first."""
    files: list[str]
    """The `.cu` and what it includes, relative to the workspace."""
    is_told_of_quiet: bool
    """Whether the file `quiet` will say when nothing disturbs a measurement."""
    lane: Lane
    """Where kernel code runs."""
    model: str
    """The device class: `interpreter`, or the model's id."""
    op: Declaration
    """The op."""
    processes: int
    """How many processes may compile at once, at least 1. No document depends on it."""
    root: str
    """The workspace, absolute."""
    scratch: str
    """Absolute: the child's working directory, `TMPDIR`, and the only folder it may write."""
    timed_until: int | None
    """Until when this build timed the device last, in nanoseconds of the monotonic clock; null where it did not."""
    variant: Variant
    """The variant."""
    warm: list[str]
    """Absolute paths of archives of compiled kernels and their launchers, which are unpacked into `TRITON_CACHE_DIR`, on a device each when Triton looks for it; empty but there and in a compile."""


@final
class CompileRequest(TypedDict):
    """What `compile.compile_variant` is told."""

    deadline_s: float
    """How long the action may take, in seconds."""
    devices: list[DeviceRow]
    """The rows of the device table that are compiled for; on the interpreter a wrapper is told the properties of the first."""
    is_every: bool
    """Whether every configuration of an autotuned kernel is compiled, or the first alone."""
    is_told_of_quiet: bool
    """Whether the file `quiet` will say when nothing disturbs a measurement."""
    lane: Lane
    """Where kernel code runs."""
    model: str
    """The device class: `interpreter`, or the model's id."""
    op: Declaration
    """The op."""
    processes: int
    """How many processes may compile at once, at least 1. No document depends on it."""
    root: str
    """The workspace, absolute."""
    scratch: str
    """Absolute: the child's working directory, `TMPDIR`, and the only folder it may write."""
    targets: list[DeviceTarget]
    """The devices that are compiled for."""
    timed_until: int | None
    """Until when this build timed the device last, in nanoseconds of the monotonic clock; null where it did not."""
    variant: Variant
    """The variant."""
    warm: list[str]
    """Absolute paths of archives of compiled kernels and their launchers, which are unpacked into `TRITON_CACHE_DIR`, on a device each when Triton looks for it; empty but there and in a compile."""


@final
class CompiledKernel(TypedDict):
    """A compiled kernel, with the configuration and the constants of its first launch."""

    compiled: str
    """Its folder."""
    config: dict[str, Json] | None
    """Its configuration."""
    constants: dict[str, Json]
    """Its constants."""
    kernel: str
    """The kernel."""
    num_stages: int
    """Stages of its loops."""
    num_warps: int
    """Warps of a program."""
    registers: int | None
    """Registers of a thread."""
    shared: int
    """Bytes of shared memory."""
    spills: int | None
    """Bytes that a thread spills."""
    stages: dict[str, str]
    """Its stages, by the ending of their files."""
    target: str
    """The device."""


@final
class Configurations(TypedDict):
    """The configurations of an autotuned kernel."""

    dropped: list[DroppedConfig]
    """Those that the device cannot hold."""
    least: NotRequired[dict[str, int]]
    """The smallest value of each integer that they set."""
    tried: int
    """How many were tried."""


@final
class CopyFigure(TypedDict):
    """A copy."""

    bytes: int
    """Bytes read plus bytes written."""
    gb_per_s: float
    """Its rate."""
    mean: float
    """The mean."""
    median: float
    """The median."""
    p20: float
    """The 20th percentile."""
    p80: float
    """The 80th percentile."""


Coverage: TypeAlias = Literal["full", "partial"]
"""Whether all launches are known."""


@final
class Declaration(TypedDict):
    """An op under one profile, as the harness is told of it."""

    allow: list[str]
    """The aten operations that torch may compute for a wrapper."""
    backward: bool
    """Whether gradients are checked as well."""
    broadcast: bool
    """Whether broadcast inputs are checked as well."""
    cases: str | None
    """The workspace path of the op's `cases.py`, or null."""
    check_sizes: dict[str, dict[str, int]]
    """The sizes that are checked."""
    deterministic: bool
    """Whether two runs must give the same bits."""
    dtypes: list[str]
    """The tested dtypes, by torch's names without the prefix."""
    edges: dict[str, str | None]
    """The edges that are not asked for, each with its reason or null."""
    fixed: list[str]
    """The dims that `dims` gives a length."""
    inputs: list[Input]
    """The tensors, and the scalars among them, in declared order."""
    kwargs: dict[str, Json]
    """The other arguments. A string that is a dim of the binding stands for its length, in lists too."""
    lengths: NotRequired[dict[str, Taken]]
    """Dim → the lengths that torch takes, of the dims of which it refuses some; checks and compiles are told. ops.yaml does not say so: an analysis finds out."""
    measured: dict[str, dict[str, int]]
    """On the interpreter the sizes that devices measure; empty on a device."""
    mutates: list[str]
    """The inputs that the op may change."""
    name: str
    """The op's name."""
    outputs: list[ComparedOutput] | None
    """How each output is compared, in torch's order; null where all are as the op says."""
    overwrites: list[str]
    """The inputs in which a kernel may leave anything."""
    precision: Precision
    """How exact float32 products must be."""
    random: Random | None
    """What must hold of results that are drawn at random."""
    reference: Reference | None
    """What stands in its place."""
    seeds: int
    """How many seeds a declared case has."""
    sizes: dict[str, dict[str, int]]
    """The sizes that are measured."""
    tolerances: dict[str, list[float]]
    """`[atol, rtol]` by dtype."""
    torch: str | None
    """The torch function, in full; null where there is a reference."""


@final
class DeviceRow(TypedDict):
    """A row of the device table."""

    capability: list[int]
    """The compute capability: major, minor."""
    l2: int
    """Bytes of the L2 cache."""
    memory: int
    """Bytes of memory."""
    multiprocessors: int
    """How many multiprocessors it has."""
    name: str
    """The device's name, as its driver has it."""
    shared_memory: int
    """Bytes of shared memory that a block may have."""
    shared_memory_per_multiprocessor: int
    """Bytes of shared memory of a multiprocessor."""


@final
class DeviceTarget(TypedDict):
    """A row of the device table, with its id."""

    capability: list[int]
    """The compute capability: major, minor."""
    id: str
    """The model's id, as `nvidia-h200`."""
    l2: int
    """Bytes of the L2 cache."""
    memory: int
    """Bytes of memory."""
    multiprocessors: int
    """How many multiprocessors it has."""
    name: str
    """The device's name, as its driver has it."""
    shared_memory: int
    """Bytes of shared memory that a block may have."""
    shared_memory_per_multiprocessor: int
    """Bytes of shared memory of a multiprocessor."""


@final
class Documentation(TypedDict):
    """What a docstring says."""

    math: list[str]
    """Its formulas, in LaTeX."""
    summary: str | None
    """Its first paragraph."""


@final
class Documents(TypedDict):
    """The documents of a reply: each function leaves some of them."""

    against: NotRequired[Against]
    """The document `against`."""
    analysis: NotRequired[Analysis]
    """The document `analysis`."""
    baseline: NotRequired[Baseline]
    """The document `baseline`."""
    bench: NotRequired[Bench]
    """The document `bench`."""
    calibration: NotRequired[Calibration]
    """The document `calibration`."""
    entry: NotRequired[AdoptedEntry]
    """The document `entry`."""
    evidence: NotRequired[Evidence]
    """The document `evidence`."""
    failure: NotRequired[AnyFailure]
    """The document `failure`."""
    launches: NotRequired[Launches]
    """The document `launches`."""
    lengths: NotRequired[dict[str, Taken]]
    """The document `lengths`: dim → the lengths that torch takes, of the dims of which it refuses some."""
    modules: NotRequired[ToldModules]
    """The document `modules`."""
    names: NotRequired[list[str]]
    """The document `names`."""
    profile: NotRequired[Profile]
    """The document `profile`."""
    ran: NotRequired[Progress]
    """The document `ran`."""
    repro: NotRequired[Repro]
    """The document `repro`."""
    resources: NotRequired[Resources]
    """The document `resources`."""
    screen: NotRequired[Screen]
    """The document `screen`."""
    signatures: NotRequired[Signatures]
    """The document `signatures`."""
    sweep: NotRequired[Sweep]
    """The document `sweep`."""
    toolchain: NotRequired[dict[str, str | None]]
    """The document `toolchain`."""
    triton_cache: NotRequired[TritonCache]
    """The document `triton_cache`."""
    tune: NotRequired[Tune]
    """The document `tune`."""
    unclear: NotRequired[Unclear]
    """The document `unclear`."""
    verdict: NotRequired[Verdict]
    """The document `verdict`."""


@final
class DroppedConfig(TypedDict):
    """A configuration that the device cannot hold."""

    config: dict[str, Json] | None
    """The configuration."""
    kernel: str
    """The kernel."""
    reason: str
    """Why."""
    target: NotRequired[str]
    """The device, where several are compiled for."""


EndKind: TypeAlias = Literal[
    "reply",
    "raised",
    "exit",
    "signal",
    "timeout",
    "cpu-limit",
    "memory",
    "output-limit",
    "no-reply",
    "bad-reply",
    "refused",
    "cancelled",
]
"""The ways in which a child ends."""


@final
class Evidence(TypedDict):
    """Everything that a check found out beside its verdict."""

    cases: list[CaseRow]
    """A row a case."""
    configurations: Configurations
    """The configurations of an autotuned kernel."""
    constants: dict[str, Json]
    """The constants of the kernel's first launch."""
    failure: Failure | None
    """Why it was rejected."""
    left_out: NotRequired[list[str]]
    """The probes for which the budget was too small."""
    lint: dict[str, list[str]]
    """Wrong results → a case of each dtype that rejects it."""
    notes: list[str]
    """Remarks that change no verdict."""
    output: PrintedOutput
    """What the candidate printed."""
    random: NotRequired[RandomTests | None]
    """What the results of a random op show."""
    repeat: str | None
    """`identical`, `differs`, or `declared run-to-run`."""
    salt: NotRequired[str]
    """What values of inputs depend on."""
    tolerances: dict[str, list[float]]
    """`[atol, rtol]` by dtype."""
    triton_cache: NotRequired[TritonCache]
    """What Triton's cache had."""
    unfit: list[str]
    """The wrong results that all cases of a dtype accept."""
    untried: NotRequired[list[str]]
    """The arguments that were tried at no other value, since none is known to fit the inputs."""
    worst: WorstCase | None
    """The case with the largest error."""


Failure = TypedDict(
    "Failure",
    {
        "bad": "int | None",
        "case": "str | None",
        "class": "str",
        "excerpt": "str | None",
        "expected": "Json",
        "given": "str | None",
        "got": "Json",
        "hint": "str | None",
        "index": "list[int] | None",
        "max_abs": "Json",
        "max_rel": "Json",
        "message": "str",
        "output": "NotRequired[PrintedOutput]",
        "place": "SourcePlace | None",
        "total": "int | None",
        "traceback": "list[str]",
    },
)
"""Why something was rejected: a check's evidence holds it, and it is the document `failure` of a compile, a tune and a bench."""


@final
class Fallback(TypedDict):
    """What torch computes at a measured size."""

    computed: str
    """The operations, in words."""
    size: str
    """The size."""


@final
class Figure(TypedDict):
    """One size of one subject: the mean over the runs of each of their facts."""

    cv: float
    """The coefficient of variation of the runs' means."""
    hidden_us: NotRequired[float]
    """How much of it clearing the cache hides."""
    host_us: NotRequired[float]
    """The host's time of a call in µs, of what torch compiled on a device."""
    mean: float
    """The mean."""
    median: float
    """The median."""
    p20: float
    """The 20th percentile."""
    p80: float
    """The 80th percentile."""
    repeated: int
    """How many runs were made in the place of an interrupted one."""
    runs: list[Run]
    """The runs."""
    within: NotRequired[float]
    """Half the width of the mean's interval, where measuring ended by it."""


@final
class FollowRequest(TypedDict):
    """What `judge.follow` is told."""

    attempt: int
    """Tells this candidate from another that ran in the same folder."""
    candidate: str
    """The folder of the candidate."""
    deadline_s: float
    """How long the action may take, in seconds."""
    devices: list[DeviceRow]
    """The rows of the device table that are compiled for; on the interpreter a wrapper is told the properties of the first."""
    is_told_of_quiet: bool
    """Whether the file `quiet` will say when nothing disturbs a measurement."""
    lane: Lane
    """Where kernel code runs."""
    model: str
    """The device class: `interpreter`, or the model's id."""
    op: Declaration
    """The op."""
    prepared: str | None
    """Always null: the op has no cases of its own."""
    root: str
    """The workspace, absolute."""
    salt: str
    """What values of inputs depend on."""
    scratch: str
    """Absolute: the child's working directory, `TMPDIR`, and the only folder it may write."""
    timed_until: int | None
    """Until when this build timed the device last, in nanoseconds of the monotonic clock; null where it did not."""
    variant: Variant
    """The variant."""
    warm: list[str]
    """Absolute paths of archives of compiled kernels and their launchers, which are unpacked into `TRITON_CACHE_DIR`, on a device each when Triton looks for it; empty but there and in a compile."""


@final
class Growth(TypedDict):
    """The exponents with which something grows in each dim."""

    memory: dict[str, float | None]
    """Of the memory."""
    work: dict[str, float | None]
    """Of the work."""


Init: TypeAlias = "InitNormal | InitUniform | InitRandint | InitConstant | InitOnes | InitPermutation | InitDistinct | InitOffsets | InitUnique | InitUniqueBetween | InitSorted | InitMask | InitTriangular | InitBlockSparse | InitLowRank | InitIllConditioned | InitFile"
"""How the values of an input are drawn."""


@final
class InitBlockSparse(TypedDict):
    """Normal values in some square blocks, zeros in the others."""

    block: Quantity
    """The side of a block."""
    density: Quantity
    """The share of blocks that are not zero."""
    kind: Literal["block_sparse"]


@final
class InitConstant(TypedDict):
    """The same everywhere."""

    kind: Literal["constant"]
    value: Quantity
    """The value."""


@final
class InitDistinct(TypedDict):
    """In each row some of the integers between two, none twice, in random order."""

    high: Quantity
    """One above the greatest."""
    kind: Literal["distinct"]
    low: Quantity
    """The least."""


@final
class InitFile(TypedDict):
    """A tensor of a safetensors file."""

    kind: Literal["file"]
    name: str
    """The tensor's name in it."""
    path: str
    """The file, absolute in requests and relative to the workspace in keys."""


@final
class InitIllConditioned(TypedDict):
    """Matrices of this condition."""

    condition: Quantity
    """The largest singular value over the smallest."""
    kind: Literal["ill_conditioned"]


@final
class InitLowRank(TypedDict):
    """A sum of so many outer products."""

    kind: Literal["low_rank"]
    rank: Quantity
    """How many."""


@final
class InitMask(TypedDict):
    """True with this probability."""

    kind: Literal["mask"]
    p: Quantity
    """The probability."""


@final
class InitNormal(TypedDict):
    """Normally distributed."""

    kind: Literal["normal"]
    mean: Quantity
    """Its mean."""
    std: Quantity
    """Its standard deviation."""


@final
class InitOffsets(TypedDict):
    """In each row integers in ascending order, of which the first is 0 and the last the total: where segments of so many rows begin and end."""

    kind: Literal["offsets"]
    total: Quantity
    """The last of them."""


@final
class InitOnes(TypedDict):
    """One everywhere."""

    kind: Literal["ones"]


@final
class InitPermutation(TypedDict):
    """In each row the integers below its length, in random order."""

    kind: Literal["permutation"]


@final
class InitRandint(TypedDict):
    """Evenly distributed integers."""

    high: Quantity
    """One above the greatest."""
    kind: Literal["randint"]
    low: Quantity
    """The least."""


@final
class InitSorted(TypedDict):
    """What another init draws, each row in ascending order."""

    kind: Literal["sorted"]
    of: Init
    """What is sorted."""


@final
class InitTriangular(TypedDict):
    """Normal values on one side of the diagonal and on it, zeros on the other."""

    kind: Literal["triangular"]
    side: str
    """`lower` or `upper`."""


@final
class InitUniform(TypedDict):
    """Evenly distributed floats."""

    high: Quantity
    """Above the greatest."""
    kind: Literal["uniform"]
    low: Quantity
    """The least."""


@final
class InitUnique(TypedDict):
    """No two equal, as far as the dtype has so many."""

    kind: Literal["unique"]


@final
class InitUniqueBetween(TypedDict):
    """Some of the integers between two, no two of the whole tensor equal, in random order."""

    high: Quantity
    """One above the greatest."""
    kind: Literal["unique_between"]
    low: Quantity
    """The least."""


Input: TypeAlias = "TensorInput | ScalarInput"
"""What stands in an input's place."""


@final
class JudgeRequest(TypedDict):
    """What `judge.judge` is told."""

    attempt: int
    """Tells this candidate from another that ran in the same folder."""
    candidate: str
    """The folder of the candidate."""
    deadline_s: float
    """How long the action may take, in seconds."""
    devices: list[DeviceRow]
    """The rows of the device table that are compiled for; on the interpreter a wrapper is told the properties of the first."""
    end: CandidateEnd
    """How the candidate's child ended."""
    is_told_of_quiet: bool
    """Whether the file `quiet` will say when nothing disturbs a measurement."""
    lane: Lane
    """Where kernel code runs."""
    model: str
    """The device class: `interpreter`, or the model's id."""
    op: Declaration
    """The op."""
    prepared: str | None
    """The folder made by prepare, or null."""
    root: str
    """The workspace, absolute."""
    salt: str
    """What values of inputs depend on."""
    scratch: str
    """Absolute: the child's working directory, `TMPDIR`, and the only folder it may write."""
    timed_until: int | None
    """Until when this build timed the device last, in nanoseconds of the monotonic clock; null where it did not."""
    variant: Variant
    """The variant."""
    warm: list[str]
    """Absolute paths of archives of compiled kernels and their launchers, which are unpacked into `TRITON_CACHE_DIR`, on a device each when Triton looks for it; empty but there and in a compile."""


@final
class JudgedSize(TypedDict):
    """What became of an output of a timed call."""

    run: int | None
    """The run."""
    verdict: CaseVerdict
    """Its verdict; `not-judged` only beside a `failure`."""


Lane: TypeAlias = Literal["interpreter", "cuda", "compile"]
"""Where kernel code runs."""


@final
class Launch(TypedDict):
    """One launch."""

    case: str
    """The case."""
    compiled: str
    """The folder of the compiled kernel."""
    config: dict[str, Json] | None
    """The configuration of an autotuned kernel."""
    constants: dict[str, Json]
    """The constants."""
    grid: list[int] | None
    """The grid."""
    kernel: str
    """The kernel."""
    target: str
    """The device."""


@final
class Launches(TypedDict):
    """What a device will launch."""

    autotuned: bool
    """Whether a kernel is autotuned; of a document that does not say so it may be."""
    configurations: str
    """`all`, or `first` where one configuration of an autotuned kernel was compiled."""
    coverage: Coverage
    """Whether that is all."""
    dropped: list[DroppedConfig]
    """Configurations that a device cannot hold."""
    launches: list[Launch]
    """The launches."""
    reasons: list[str]
    """Why it is not."""
    targets: list[str]
    """The devices that were compiled for."""


Layout: TypeAlias = "str | list[str]"
"""One layout, or several: `contiguous`, `transposed` (the last two dims are swapped in memory), `strided` (every second element of a twice as long last dim), `channels_last` (four dims); in probes also `padded` and `swapped`."""

Length: TypeAlias = "int | str"
"""A length: a number, or a dim, or an expression of dims."""


@final
class LoadFault(TypedDict):
    """Why a kernel did not load: a failure, or a reason why nothing is known."""

    failure: NotRequired[Failure]
    """Its failure."""
    not_judged: NotRequired[str]
    """The reason."""


@final
class MeasuredDevice(TypedDict):
    """What ran a measurement."""

    capability: list[int] | None
    """Its compute capability."""
    driver: str | None
    """Its driver."""
    model: str
    """`interpreter`, or the model's id."""
    name: str | None
    """Its name."""
    uuid: str | None
    """Its UUID."""


@final
class Methods(TypedDict):
    """The methods of an operator: each the name of one, or a call of it."""

    backward: str
    """That of the backward pass, as in `backward` or `backward(grad, output, dim)`."""
    forward: str
    """That of the forward pass, as in `forward` or `forward(input, dim)`."""


@final
class Missed(TypedDict):
    """What is launched at a measured size and in no judged case."""

    constants: dict[str, Json] | None
    """Its constants."""
    kernel: str | None
    """The kernel."""
    reason: str
    """Why."""
    size: str
    """The size."""


@final
class Misses(TypedDict):
    """What a cache had, and what was compiled."""

    hits: int
    """How many it had."""
    misses: list[str]
    """Those that were compiled."""


@final
class NotKnown(TypedDict):
    """An aten operation because of which something is not known."""

    op: str
    """Which."""
    why: str
    """Why."""


@final
class OpRequest(TypedDict):
    """What every child of an op's action is told."""

    deadline_s: float
    """How long the action may take, in seconds."""
    devices: list[DeviceRow]
    """The rows of the device table that are compiled for; on the interpreter a wrapper is told the properties of the first."""
    is_told_of_quiet: bool
    """Whether the file `quiet` will say when nothing disturbs a measurement."""
    lane: Lane
    """Where kernel code runs."""
    model: str
    """The device class: `interpreter`, or the model's id."""
    op: Declaration
    """The op."""
    root: str
    """The workspace, absolute."""
    scratch: str
    """Absolute: the child's working directory, `TMPDIR`, and the only folder it may write."""
    timed_until: int | None
    """Until when this build timed the device last, in nanoseconds of the monotonic clock; null where it did not."""
    warm: list[str]
    """Absolute paths of archives of compiled kernels and their launchers, which are unpacked into `TRITON_CACHE_DIR`, on a device each when Triton looks for it; empty but there and in a compile."""


Passes: TypeAlias = Literal["backward", "both"]
"""Which passes of a call are timed beside, or in the place of, the forward pass."""

Precision: TypeAlias = Literal["ieee", "tf32"]
"""The precision in which float32 products are meant."""


@final
class PrintedOutput(TypedDict):
    """What a process printed, each stream at most 8 KiB."""

    stderr: str
    """Its errors."""
    stdout: str
    """Its output."""
    truncated: bool
    """Whether either is cut."""


@final
class ProbeRequest(TypedDict):
    """What `probe.probe` is told."""

    lane: Lane
    """Where kernel code would run: it is compiled."""
    root: str
    """The workspace, absolute."""
    scratch: str
    """Absolute: the child's working directory, and the only folder it may write."""


@final
class ProductFigure(TypedDict):
    """A product of square matrices."""

    mean: float
    """The mean."""
    median: float
    """The median."""
    p20: float
    """The 20th percentile."""
    p80: float
    """The 80th percentile."""
    side: int
    """Their side."""
    tflop_per_s: float
    """Its rate."""


@final
class Profile(TypedDict):
    """The document `profile`: the work of the device, as CUPTI recorded it."""

    binding: dict[str, int]
    """The lengths of its dims."""
    calls: list[list[ProfiledLaunch]]
    """Of each call what the device did, in the order of its beginning."""
    dtype: str
    """Its dtype."""
    host_us: float
    """The host's time of a call, the device not waited for."""
    limits: ProfileLimits
    """What a multiprocessor holds."""
    model: str
    """The device class."""
    profiler: str
    """What recorded it: `cupti`."""
    size: str
    """The name of the size."""
    telemetry: Snapshot | None
    """What the device was doing."""
    version: str
    """The version of torch, whose profiler reads CUPTI's records."""


@final
class ProfileLimits(TypedDict):
    """What a device holds, as its driver says."""

    capability: list[int]
    """The compute capability: major, minor."""
    multiprocessors: int
    """How many multiprocessors it has."""
    registers: int
    """Registers of a multiprocessor."""
    shared: int
    """Bytes of shared memory of a multiprocessor."""
    threads: int
    """Threads of a multiprocessor."""


@final
class ProfiledLaunch(TypedDict):
    """One piece of work of the device: a launch, or a copy or a fill of memory, which has no grid."""

    block: list[int] | None
    """Threads of a program along each axis."""
    grid: list[int] | None
    """Programs along each axis."""
    kernel: str
    """The name of the kernel."""
    registers: int | None
    """Registers of a thread."""
    shared: int | None
    """Bytes of shared memory of a program."""
    us: float
    """How long it took."""


@final
class Progress(TypedDict):
    """What a candidate tells of itself; it is the document `ran`."""

    configurations: Configurations
    """The configurations of an autotuned kernel."""
    constants: dict[str, int]
    """The constants of the kernel's first launch."""
    is_over: bool
    """Whether all have run."""
    listed: int
    """How many cases are known."""
    load: LoadFault | None
    """Why the kernel did not load."""
    reach: Reach
    """What is launched at measured sizes."""
    running: str | None
    """The case that runs."""
    triton_cache: TritonCache
    """What Triton's cache had."""


@final
class Protocol(TypedDict):
    """How a size is measured."""

    passes: NotRequired[Passes]
    """Which passes of a call are timed, where that is not the forward pass alone."""
    rep_ms: int
    """How long a run samples, in milliseconds."""
    runs: int
    """How many runs a figure has."""
    stop: NotRequired[StopRule]
    """When measuring ends, where that is not after so many runs."""
    warmup_ms: int
    """How long a run warms up, in milliseconds."""


Quantity: TypeAlias = "int | float | str"
"""A number, or an expression of dims."""


@final
class RaisedError(TypedDict):
    """What a child raised."""

    message: str
    """`str()` of it."""
    traceback: str
    """Python's own text."""
    type: str
    """The exception's type."""


@final
class Random(TypedDict):
    """What is drawn at random, with the parameters of its kind: each is a number, or the name of the argument that has it."""

    by: NotRequired[str]
    """The function of the op's `cases.py` that says what must hold."""
    high: NotRequired[Quantity]
    """Above the greatest."""
    kind: RandomKind
    """Which distribution, or that a function of `cases.py` judges."""
    low: NotRequired[Quantity]
    """The least."""
    mean: NotRequired[Quantity]
    """The mean."""
    p: NotRequired[Quantity]
    """The probability."""
    seed: str | None
    """The parameter of the wrapper that takes the seed; null where torch's generator is seeded."""
    std: NotRequired[Quantity]
    """The standard deviation."""


RandomKind: TypeAlias = Literal["dropout", "bernoulli", "uniform", "normal", "multinomial", "judged"]
"""What is drawn."""


@final
class RandomTest(TypedDict):
    """One test."""

    dtype: str
    """The dtype."""
    samples: int
    """How many samples it had."""
    test: str
    """The test's name."""
    verdict: str
    """`passed` or `off`."""


@final
class RandomTests(TypedDict):
    """The tests of the results of a random op."""

    level: float
    """The level of each test."""
    tests: list[RandomTest]
    """The tests."""


@final
class Reach(TypedDict):
    """What is launched at measured sizes."""

    cases: list[Reached]
    """The cases that reach it."""
    fallbacks: list[Fallback]
    """What torch computes there for the wrapper."""
    missed: list[Missed]
    """What none reaches."""


@final
class Reached(TypedDict):
    """A case that reaches what a measured size launches."""

    binding: dict[str, int]
    """The case's own, smaller one."""
    size: str
    """The measured size."""


@final
class Reference(TypedDict):
    """What is right by definition where no torch function is."""

    file: str
    """Relative to the workspace, with `/`."""
    init: dict[str, Json]
    """The keyword arguments of the class's constructor."""
    name: str
    """A function, or a class that is constructed and then called."""
    root: NotRequired[str]
    """The workspace, absolute. In requests alone, and in no key."""


@final
class RehearsalRequest(TypedDict):
    """What `ready.rehearse` is told of the check that is likely to come."""

    constants: dict[str, int]
    """The constants of the kernel's first launch."""
    deadline_s: float
    """How long the action may take, in seconds."""
    devices: list[DeviceRow]
    """The rows of the device table that are compiled for; on the interpreter a wrapper is told the properties of the first."""
    is_told_of_quiet: bool
    """Whether the file `quiet` will say when nothing disturbs a measurement."""
    lane: Lane
    """Where kernel code runs."""
    least: dict[str, int] | None
    """The smallest integers of its autotuner's configurations, or null."""
    model: str
    """The device class: `interpreter`, or the model's id."""
    op: Declaration
    """The op."""
    reached: list[Reached]
    """The cases that reach what measured sizes launch."""
    root: str
    """The workspace, absolute."""
    salt: str
    """What values of inputs depend on."""
    scratch: str
    """Absolute: the child's working directory, `TMPDIR`, and the only folder it may write."""
    timed_until: int | None
    """Until when this build timed the device last, in nanoseconds of the monotonic clock; null where it did not."""
    variant: Variant
    """The variant."""
    warm: list[str]
    """Absolute paths of archives of compiled kernels and their launchers, which are unpacked into `TRITON_CACHE_DIR`, on a device each when Triton looks for it; empty but there and in a compile."""


Reply = TypedDict(
    "Reply",
    {
        "cites": "bool",
        "class": "str | None",
        "device_spans": "NotRequired[list[ToldSpan]]",
        "documents": "Documents",
        "files": "dict[str, str]",
        "outcome": "ReplyOutcome",
        "reason": "NotRequired[str | None]",
    },
)
"""The reply of a phase's function."""

ReplyOutcome: TypeAlias = Literal["passed", "rejected", "not-judged", "again"]
"""How a function ended."""


@final
class Repro(TypedDict):
    """What was written of a case."""

    case: str | None
    """The case; null where there is none of the name."""
    cases: list[str]
    """The names of all cases."""
    refused: str | None
    """Why torch refuses it."""


@final
class ReproRequest(TypedDict):
    """What `repro.write` is told."""

    bindings: dict[str, dict[str, int]]
    """The lengths that cases had, by name."""
    case: str | None
    """The name of the case; null where only the names are asked for."""
    constants: dict[str, int]
    """The constants of the kernel's first launch."""
    deadline_s: float
    """How long the action may take, in seconds."""
    devices: list[DeviceRow]
    """The rows of the device table that are compiled for; on the interpreter a wrapper is told the properties of the first."""
    is_told_of_quiet: bool
    """Whether the file `quiet` will say when nothing disturbs a measurement."""
    lane: Lane
    """Where kernel code runs."""
    least: dict[str, int] | None
    """The smallest integers of its autotuner's configurations, or null."""
    model: str
    """The device class: `interpreter`, or the model's id."""
    op: Declaration
    """The op."""
    prepared: str | None
    """The folder made by prepare, or null."""
    reached: list[Reached]
    """The cases that reach what measured sizes launch."""
    root: str
    """The workspace, absolute."""
    salt: str
    """What values of inputs depend on."""
    scratch: str
    """Absolute: the child's working directory, `TMPDIR`, and the only folder it may write."""
    timed_until: int | None
    """Until when this build timed the device last, in nanoseconds of the monotonic clock; null where it did not."""
    variant: Variant
    """The variant."""
    warm: list[str]
    """Absolute paths of archives of compiled kernels and their launchers, which are unpacked into `TRITON_CACHE_DIR`, on a device each when Triton looks for it; empty but there and in a compile."""


@final
class Resources(TypedDict):
    """What compiled kernels use."""

    compiler: NotRequired[str]
    """What compiled them, where that is not Triton."""
    kernels: list[CompiledKernel]
    """The kernels."""


@final
class Ridge(TypedDict):
    """The reference machine's rates."""

    bytes_per_second: float | None
    """Its memory."""
    device: str
    """The machine."""
    flops_per_byte: float | None
    """The intensity at which they balance."""
    flops_per_second: float | None
    """Its arithmetic."""


@final
class Run(TypedDict):
    """The times of one run."""

    mean: float
    """The mean."""
    median: float
    """The median."""
    p20: float
    """The 20th percentile."""
    p80: float
    """The 80th percentile."""


@final
class SampleRequest(TypedDict):
    """What `sample.judge_sample` is told."""

    bench: Bench
    """The document of the bench, without figures."""
    deadline_s: float
    """How long the action may take, in seconds."""
    devices: list[DeviceRow]
    """The rows of the device table that are compiled for; on the interpreter a wrapper is told the properties of the first."""
    is_told_of_quiet: bool
    """Whether the file `quiet` will say when nothing disturbs a measurement."""
    lane: Lane
    """Where kernel code runs."""
    model: str
    """The device class: `interpreter`, or the model's id."""
    op: Declaration
    """The op."""
    protocol: Protocol
    """How a size is measured."""
    root: str
    """The workspace, absolute."""
    sample: str
    """The folder of the bench."""
    scratch: str
    """Absolute: the child's working directory, `TMPDIR`, and the only folder it may write."""
    timed_until: int | None
    """Until when this build timed the device last, in nanoseconds of the monotonic clock; null where it did not."""
    tune: Tune | None
    """The document `tune`, or null."""
    variant: Variant
    """The variant."""
    warm: list[str]
    """Absolute paths of archives of compiled kernels and their launchers, which are unpacked into `TRITON_CACHE_DIR`, on a device each when Triton looks for it; empty but there and in a compile."""


@final
class ScalarInput(TypedDict):
    """An argument that is no tensor."""

    name: str
    """The argument's name in torch."""
    scalar: Json
    """The value."""


@final
class Screen(TypedDict):
    """The document `screen`: a candidate beside the kernel that it is to replace. Ratios are the candidate's Final over the incumbent's."""

    candidate_ms: list[float]
    """The candidate's."""
    clock: str
    """`cuda-events` or `host`."""
    device_s: float
    """Seconds from the first call to the end, which the device was held for."""
    error: float
    """How often an interval of a screening may miss."""
    high: float | None
    """The upper bound, likewise."""
    incumbent_ms: list[float]
    """The incumbent's Final of each pair in ms, a sum over the sizes."""
    low: float | None
    """The lower bound of its interval; null where one pair was made."""
    may_win: bool
    """Whether the candidate is worth a bench."""
    model: str
    """The device class."""
    pairs: int
    """How many pairs of runs were made."""
    ratio: float
    """The geometric mean of the ratios of the pairs."""
    telemetry: Snapshot | None
    """What the device was doing."""
    why: ScreenReason
    """Why it ended."""


ScreenReason: TypeAlias = Literal["faster", "slower", "no-gain", "pairs", "time"]
"""Why a screening ended."""


@final
class ScreenRequest(TypedDict):
    """What `screen.screen` and `against.against` are told."""

    candidate: Variant
    """The kernel that may take its place."""
    deadline_s: float
    """How long the action may take, in seconds."""
    devices: list[DeviceRow]
    """The rows of the device table that are compiled for; on the interpreter a wrapper is told the properties of the first."""
    incumbent: Variant
    """The kernel that is to be replaced."""
    is_told_of_quiet: bool
    """Whether the file `quiet` will say when nothing disturbs a measurement."""
    lane: Lane
    """Where kernel code runs."""
    model: str
    """The device class: `interpreter`, or the model's id."""
    op: Declaration
    """The op."""
    protocol: Protocol
    """How a size is measured by a bench: a run of a screening is a part of one."""
    root: str
    """The workspace, absolute."""
    scratch: str
    """Absolute: the child's working directory, `TMPDIR`, and the only folder it may write."""
    timed_until: int | None
    """Until when this build timed the device last, in nanoseconds of the monotonic clock; null where it did not."""
    tune: Tune | None
    """The document `tune` of the incumbent, or null."""
    warm: list[str]
    """Absolute paths of archives of compiled kernels and their launchers, which are unpacked into `TRITON_CACHE_DIR`, on a device each when Triton looks for it; empty but there and in a compile."""


@final
class ShapedOutput(TypedDict):
    """A tensor with its lengths."""

    dtype: str
    """Its dtype."""
    shape: list[int]
    """The lengths."""


@final
class Signature(TypedDict):
    """By which names a function takes arguments."""

    parameters: list[str]
    """All of them but the common ones."""
    text: str
    """As people read it: `(input, dim=None, dtype=None)`."""


@final
class Signatures(TypedDict):
    """What torch's functions take, as far as torch says so for certain."""

    common: list[str]
    """Names that any of them may take."""
    functions: dict[str, Signature]
    """What each takes, by its full dotted name."""


@final
class Snapshot(TypedDict):
    """What a device was doing."""

    driver: str | None
    """Its driver."""
    memory_clock_mhz: float | None
    """The clock of its memory."""
    name: str | None
    """Its name."""
    other_processes: int | None
    """How many processes of others use it."""
    power_w: float | None
    """Its power."""
    sm_clock_mhz: float | None
    """The clock of its multiprocessors."""
    temperature_c: float | None
    """Its temperature."""
    throttle: list[str] | None
    """What slows it down."""


@final
class SourcePlace(TypedDict):
    """A place in a file of the workspace."""

    column: int | None
    """From 1."""
    file: str
    """Relative to the workspace."""
    line: int | None
    """From 1."""


StopReason: TypeAlias = Literal["precise", "decided", "varies", "runs"]
"""Why a size was measured enough."""

StopRule: TypeAlias = Literal["auto"]
"""A rule by which measuring ends."""


@final
class Stopped(TypedDict):
    """The end of a size whose number of runs was not fixed."""

    most: int
    """How many there would have been at most."""
    runs: int
    """How many runs, each a tenth of one of the protocol, were made of each subject."""
    why: StopReason
    """Why there were no more."""


@final
class Sweep(TypedDict):
    """All variants of an op over many sizes."""

    clock: str
    """`cuda-events` or `host`."""
    model: str
    """The device class."""
    op: str
    """The op."""
    points: list[SweepPoint]
    """The sizes."""
    protocol: Protocol
    """How a size was measured."""
    reasons: dict[str, str]
    """Why one has no figure."""
    subjects: list[str]
    """Baselines, then variants."""
    telemetry: Snapshot | None
    """What the device was doing."""
    unit: str
    """`GB/s`, `TFLOP/s`, or `ms in the interpreter`."""


@final
class SweepPoint(TypedDict):
    """One size of a sweep."""

    binding: dict[str, int]
    """The lengths of its dims."""
    bytes: int
    """Bytes that are read and written at least."""
    dtype: str
    """Its dtype."""
    flop: int
    """Operations of products."""
    ms: dict[str, SweepTime | None]
    """The times of each subject; null where it could not be called."""
    rate: dict[str, float | None]
    """Its rate."""


@final
class SweepRequest(TypedDict):
    """What `sweep.sweep` is told."""

    baselines: list[str]
    """What of torch is timed."""
    deadline_s: float
    """How long the action may take, in seconds."""
    devices: list[DeviceRow]
    """The rows of the device table that are compiled for; on the interpreter a wrapper is told the properties of the first."""
    is_told_of_quiet: bool
    """Whether the file `quiet` will say when nothing disturbs a measurement."""
    lane: Lane
    """Where kernel code runs."""
    model: str
    """The device class: `interpreter`, or the model's id."""
    op: Declaration
    """The op."""
    protocol: Protocol
    """How a size is measured."""
    root: str
    """The workspace, absolute."""
    scratch: str
    """Absolute: the child's working directory, `TMPDIR`, and the only folder it may write."""
    timed_until: int | None
    """Until when this build timed the device last, in nanoseconds of the monotonic clock; null where it did not."""
    variants: list[Variant]
    """The variants that are timed."""
    warm: list[str]
    """Absolute paths of archives of compiled kernels and their launchers, which are unpacked into `TRITON_CACHE_DIR`, on a device each when Triton looks for it; empty but there and in a compile."""


@final
class SweepTime(TypedDict):
    """The times of one subject."""

    median: float
    """The median."""
    p20: float
    """The 20th percentile."""
    p80: float
    """The 80th percentile."""


@final
class Taken(TypedDict):
    """The lengths of a dim that torch takes."""

    divides: str | None
    """The dim whose length they divide, or null."""
    least: int
    """The least."""
    only: list[int]
    """All that were found where they are not evenly apart; empty where they are."""
    step: int
    """Further ones are this much apart, from the least on."""
    within: str | None
    """The dim that must be as long at least, or null."""


@final
class Telemetry(TypedDict):
    """What a device was doing before and after."""

    after: Snapshot | None
    """After."""
    before: Snapshot | None
    """Before."""


@final
class TensorInput(TypedDict):
    """A tensor argument. Each member of a list of tensors is one of its own, as `tensors.0`."""

    dtype: str | None
    """One of torch's names without the prefix; null where it follows the tested dtype."""
    init: Init
    """How its values are drawn."""
    layout: Layout
    """How it lies in memory. Of several, declared cases take one after the other."""
    list: str | None
    """The name of the list that it is a member of."""
    name: str
    """The argument's name in torch; of a member of a list with its number."""
    optional: bool
    """Whether it is absent in some cases."""
    requires_grad: bool
    """Whether its gradient is checked where the op is checked backward."""
    shape: list[Length]
    """The lengths of its dims: integers, dims, or expressions of dims."""


Timing: TypeAlias = "list[dict[str, Json] | float]"
"""A configuration, and how long a launch took with it."""


@final
class TimingRequest(TypedDict):
    """What whatever times an op is told."""

    deadline_s: float
    """How long the action may take, in seconds."""
    devices: list[DeviceRow]
    """The rows of the device table that are compiled for; on the interpreter a wrapper is told the properties of the first."""
    is_told_of_quiet: bool
    """Whether the file `quiet` will say when nothing disturbs a measurement."""
    lane: Lane
    """Where kernel code runs."""
    model: str
    """The device class: `interpreter`, or the model's id."""
    op: Declaration
    """The op."""
    protocol: Protocol
    """How a size is measured."""
    root: str
    """The workspace, absolute."""
    scratch: str
    """Absolute: the child's working directory, `TMPDIR`, and the only folder it may write."""
    timed_until: int | None
    """Until when this build timed the device last, in nanoseconds of the monotonic clock; null where it did not."""
    warm: list[str]
    """Absolute paths of archives of compiled kernels and their launchers, which are unpacked into `TRITON_CACHE_DIR`, on a device each when Triton looks for it; empty but there and in a compile."""


ToldDoing: TypeAlias = Literal["timing", "work"]
"""What the device worked for."""


@final
class ToldModules(TypedDict):
    """How modules are found beside `sys.path`."""

    mapped: dict[str, str]
    """Module to file or folder, of editable installs that no folder of `sys.path` leads to."""
    suffixes: list[str]
    """The endings of compiled modules, in order."""


ToldSpan: TypeAlias = "list[int | ToldDoing]"
"""When the device worked: begin and end in nanoseconds of `CLOCK_MONOTONIC`, and for what."""


@final
class TritonCache(TypedDict):
    """What Triton's cache had, and what was compiled."""

    hits: int
    """How many kernels it had."""
    launchers: NotRequired[Misses]
    """The same of Triton's C modules."""
    launchers_missing: NotRequired[str | None]
    """Why some launchers could not be made: of a compile alone."""
    misses: list[str]
    """Those that were compiled."""


@final
class Tune(TypedDict):
    """The configurations that were fastest."""

    choices: list[Choice]
    """A choice a kernel and key; empty where nothing is autotuned."""
    device: str
    """The device's model."""
    dropped: NotRequired[list[DroppedConfig]]
    """Configurations that the device cannot hold."""
    triton_cache: NotRequired[TritonCache]
    """What Triton's cache had."""


@final
class TuneRequest(TypedDict):
    """What `tune.tune` is told."""

    deadline_s: float
    """How long the action may take, in seconds."""
    devices: list[DeviceRow]
    """The rows of the device table that are compiled for; on the interpreter a wrapper is told the properties of the first."""
    is_told_of_quiet: bool
    """Whether the file `quiet` will say when nothing disturbs a measurement."""
    lane: Lane
    """Where kernel code runs."""
    model: str
    """The device class: `interpreter`, or the model's id."""
    op: Declaration
    """The op."""
    protocol: Protocol
    """How a size is measured."""
    root: str
    """The workspace, absolute."""
    scratch: str
    """Absolute: the child's working directory, `TMPDIR`, and the only folder it may write."""
    timed_until: int | None
    """Until when this build timed the device last, in nanoseconds of the monotonic clock; null where it did not."""
    variant: Variant
    """The variant."""
    warm: list[str]
    """Absolute paths of archives of compiled kernels and their launchers, which are unpacked into `TRITON_CACHE_DIR`, on a device each when Triton looks for it; empty but there and in a compile."""


@final
class Unclear(TypedDict):
    """Why it cannot be told what ops.yaml is to say."""

    hint: str
    """What to add."""
    message: str
    """What is unclear."""


@final
class UnjudgedDtype(TypedDict):
    """Cases of one dtype that were not judged."""

    cases: int
    """How many."""
    dtype: str
    """The dtype."""
    of: int
    """Of how many."""
    reason: str | None
    """Why most were not."""


@final
class Variant(TypedDict):
    """A kernel of an op: a wrapper in a file of the workspace, or in an installed module."""

    call: str | None
    """How it is called, as in `entry(input, dim)`; null where names decide."""
    cuda: NotRequired[str]
    """The file with the kernels in CUDA C++ that the wrapper launches, relative to the workspace; absent where they are in Triton."""
    deterministic: bool
    """Whether two runs must give the same bits."""
    entry: str
    """The wrapper that the file must define, as in `softmax` or `Softmax.apply`."""
    file: str
    """Relative to the workspace, with `/`; of an installed module its name."""
    lanes: list[str]
    """Of `interpreter` and `cuda`, those on which it can be judged."""
    methods: NotRequired[Methods]
    """The methods of an entry that is an operator; absent where nothing is said of them."""
    module: str | None
    """The installed module that defines the wrapper, where no file of the workspace does."""
    name: str
    """The name under `variants`."""


@final
class VariantRequest(TypedDict):
    """What every child of a variant's action is told."""

    deadline_s: float
    """How long the action may take, in seconds."""
    devices: list[DeviceRow]
    """The rows of the device table that are compiled for; on the interpreter a wrapper is told the properties of the first."""
    is_told_of_quiet: bool
    """Whether the file `quiet` will say when nothing disturbs a measurement."""
    lane: Lane
    """Where kernel code runs."""
    model: str
    """The device class: `interpreter`, or the model's id."""
    op: Declaration
    """The op."""
    root: str
    """The workspace, absolute."""
    scratch: str
    """Absolute: the child's working directory, `TMPDIR`, and the only folder it may write."""
    timed_until: int | None
    """Until when this build timed the device last, in nanoseconds of the monotonic clock; null where it did not."""
    variant: Variant
    """The variant."""
    warm: list[str]
    """Absolute paths of archives of compiled kernels and their launchers, which are unpacked into `TRITON_CACHE_DIR`, on a device each when Triton looks for it; empty but there and in a compile."""


Verdict = TypedDict(
    "Verdict",
    {
        "allowed": "NotRequired[list[str]]",
        "cases": "dict[str, CaseVerdict]",
        "class": "str | None",
        "missed": "NotRequired[list[Missed]]",
        "not_judged": "NotRequired[list[UnjudgedDtype]]",
        "reason": "str | None",
        "verdict": "CheckVerdict",
    },
)
"""What bench and select depend on; it holds no tolerance, figure or time."""


@final
class WorstCase(TypedDict):
    """The case with the largest error."""

    case: str
    """Its name."""
    max_abs: Json
    """The largest absolute difference."""
    max_rel: Json
    """The largest relative difference."""
