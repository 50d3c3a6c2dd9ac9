"""Watches and steers what a wrapper launches: every launch is recorded, and the caller, not a clock, chooses an autotuner's configuration.

One patch serves all lanes. On the compile lane a launch compiles and does not run; on the interpreter and on a GPU it runs.
"""

import contextlib
import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from t2t_harness.counting import counting, queues, streams, written
from t2t_harness.faults import bounds
from t2t_harness.triton import binding, refusals

if TYPE_CHECKING:
    import torch

    from t2t_harness.boundary.documents import DroppedConfig, Json
    from t2t_harness.triton.tuner import Config, Tuner

Choose = Callable[["Tuner", "list[Config]"], "Iterable[Config]"]
"""Takes an Autotuner and its pruned configurations; returns those to run, in order. It is asked for the next after the last has run, so a
generator may look at what was dropped."""


@dataclasses.dataclass
class Launch:
    """One launch of one kernel."""

    kernel: str
    config: "dict[str, Json] | None"
    constants: dict[str, int]
    grid: list[int] | None
    storages: list[int]
    """Addresses of the storages of its tensor arguments, or inside of them; empty on the compile lane."""
    compiled: Any = None
    """Triton's CompiledKernel, on compiled lanes."""
    path: tuple[str, str] = ("", "{}")
    """The kernel, and its constexpr arguments but for those of its configuration, as JSON (cases/reach.py)."""


@dataclasses.dataclass(frozen=True)
class Compilation:
    """What Triton is about to compile, or to find in its cache on disk."""

    function: Any
    """Triton's JITFunction."""
    key: object
    """What distinguishes the launch from others of the function."""
    device: object
    signature: dict[str, str]
    """Parameter → type."""
    constants: dict[object, object]

    @property
    def name(self) -> str:
        """Returns what distinguishes the launch from all others."""
        python = self.function.fn
        return repr((python.__module__, python.__qualname__, self.function.cache_key, self.key, self.device))


@dataclasses.dataclass
class Recorder:
    """What was launched while it was installed, and what Triton's cache answered."""

    launches: list[Launch] = dataclasses.field(default_factory=list)
    hits: int = 0
    misses: list[str] = dataclasses.field(default_factory=list)
    """Names of the kernels that had to be compiled."""
    hashes: list[str] = dataclasses.field(default_factory=list)
    """Triton's hashes of the kernels that its cache on disk was asked for, those of dropped configurations among them."""
    compiled: list[str] = dataclasses.field(default_factory=list)
    """Those that it did not have."""
    compiled_ahead: set[str] = dataclasses.field(default_factory=set)
    """Hashes that another process of this action compiled for this one: the first time that one is asked for, it counts as a miss."""
    dropped: "list[DroppedConfig]" = dataclasses.field(default_factory=list)
    """Configurations that this device cannot hold, each with its reason."""
    faults: list[BaseException] = dataclasses.field(default_factory=list)
    """What Triton itself raised while it compiled or launched, dropped configurations apart."""
    config: "Config | None" = None
    key: tuple[object, ...] = ()
    """What Triton would look the present call's configuration up by, while a configuration is chosen."""
    attempt: "Callable[[Config], object] | None" = None
    """Launches an autotuned kernel's present call with one configuration, as a trial of the autotuner's."""
    is_paused: bool = False
    """Whether launches go through unrecorded: while something is timed."""
    memory: written.Written | None = None
    """Who writes the memory that launches are given, where that is watched."""
    elsewhere: int = 0
    """Launches on another stream than the caller's, each held up (counting/streams.py)."""


def config_facts(config: "Config | None") -> "dict[str, Json] | None":
    """Returns an autotuner's configuration as JSON facts, or None."""
    if config is None:
        return None
    return {name: plain(value) for name, value in sorted(config.all_kwargs().items())}


def plain(value: object) -> "Json":
    """Returns `value` if JSON can hold it, else its text."""
    return value if isinstance(value, (bool, int, float, str)) or value is None else str(value)


def constants_of(constexprs: dict[str, object]) -> dict[str, int]:
    """Returns the integers among the constexpr arguments of a call."""
    return {name: value for name, value in constexprs.items() if isinstance(value, int) and not isinstance(value, bool)}


def path_of(kernel: str, constexprs: dict[str, object], config: "Config | None") -> tuple[str, str]:
    """Returns what distinguishes one way of launching: the kernel, and its constexpr arguments but for those of `config`."""
    chosen = {} if config is None else config.all_kwargs()
    told = {name: plain(value) for name, value in constexprs.items() if name not in chosen}
    return kernel, json.dumps(told, sort_keys=True)


def constexprs_of(function: Any, given: dict[str, object]) -> dict[str, object]:
    """Returns the constexpr arguments among those that a call of the kernel `function` was given, by name."""
    names = binding.form_of(function.fn).constexprs
    return {name: getattr(given[name], "value", given[name]) for name in names if name in given}


def grid_of(grid: Any, given: dict[str, object]) -> list[int] | None:
    """Returns the launch grid as integers, or None where it is unknown; a function of the arguments is asked with those that were `given`."""
    try:
        if callable(grid):
            grid = grid({**given})
        return [int(axis) for axis in grid]
    except Exception:
        return None


def storages_of(values: Iterator[object]) -> list[int]:
    """Returns the storage addresses of the tensors among `values`, and where other things point that Triton takes for tensors."""
    import torch

    found = []
    # Past torch's modes, which would take longer than the answer.
    with torch._C.DisableTorchFunction():
        for value in values:
            tensor = value if isinstance(value, torch.Tensor) else getattr(value, "base", value)
            if isinstance(tensor, torch.Tensor):
                found.append(tensor.untyped_storage().data_ptr())
            elif hasattr(value, "data_ptr"):
                found.append(int(value.data_ptr()))
    return found


class FakePointer:
    """Stands for a fake tensor in a compile: its dtype, and the alignment that its storage offset implies.

    A real allocation starts at a multiple of 16 bytes, so the offset alone decides what Triton specializes on.
    """

    def __init__(self, tensor: "torch.Tensor") -> None:
        self.dtype = tensor.dtype
        self.shape = tensor.shape
        self.strides = tensor.stride()
        self.offset = int(tensor.storage_offset()) * tensor.element_size()
        self.bytes = tensor.numel() * tensor.element_size()

    def stride(self) -> tuple[int, ...]:
        """Returns the strides in elements."""
        return tuple(self.strides)

    def data_ptr(self) -> int:
        """Returns an address with the alignment that the real one will have."""
        return int(self.offset)

    def ptr_range(self) -> int:
        """Returns the size of the storage in bytes."""
        return int(self.bytes)


def pointer(value: object) -> object:
    """Returns the stand-in for `value` in a compile."""
    import torch

    return FakePointer(value) if isinstance(value, torch.Tensor) else value


@contextlib.contextmanager
def recording(lane: str, choose: Choose, *, runs: bool = True) -> Iterator[Recorder]:
    """Installs the patches for `lane` (`compile`, `interpreter`, `cuda`) and yields the recorder. Removes them at the end. Unless it `runs`, launches are noted alone."""
    from triton import knobs
    from triton.runtime import autotuner, interpreter, jit

    recorder = Recorder()
    home = streams.current() if lane == "cuda" else None
    kernel = interpreter.InterpretedFunction if lane == "interpreter" else jit.JITFunction
    run_kernel = kernel.run
    run_autotuner = autotuner.Autotuner.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if recorder.is_paused:
            return run_kernel(self, *args, grid=grid, warmup=warmup, **kwargs)
        bound = binding.given_of(self.fn, args, binding.known_of(self.fn, kwargs))
        constexprs = constexprs_of(self, bound)
        launch = Launch(
            kernel=self.fn.__name__,
            config=config_facts(recorder.config),
            constants=constants_of(constexprs),
            path=path_of(self.fn.__name__, constexprs, recorder.config),
            grid=grid_of(grid, bound),
            storages=[] if lane == "compile" else storages_of(iter([*args, *kwargs.values()])),
        )
        if not runs:
            recorder.launches.append(launch)
            return None
        try:
            refusals.require_grid(launch.grid)
            if lane == "compile":
                mocked = [pointer(value) for value in args]
                mocked_kwargs = {name: pointer(value) for name, value in kwargs.items()}
                launch.compiled = run_kernel(self, *mocked, grid=grid, warmup=True, **mocked_kwargs)
                refusals.require_fit(launch.compiled)
            else:
                with unwatched(), counting.accounted():
                    if home is not None and streams.current() != home:
                        queues.want()
                        # Loaded before: it may take longer than a launch is held up.
                        load(run_kernel(self, *args, grid=grid, warmup=True, **kwargs))
                        streams.hold_up()
                        recorder.elsewhere += 1
                    given = [*args, *kwargs.values()]
                    # What another stream does is not over when this one reads it.
                    noted = recorder.memory if recorder.elsewhere == 0 else None
                    if lane == "interpreter":
                        bounds.launching(self.fn.__name__, self.arg_names, args, kwargs)
                    if noted is not None:
                        noted.launching(given)
                    with counting.accounted() as names:
                        launch.compiled = run_kernel(self, *args, grid=grid, warmup=warmup, **kwargs)
                    counting.launched(names, launch.compiled)
                    if noted is not None:
                        noted.launched(given)
        except Exception as error:
            recorder.faults.append(error)
            raise
        recorder.launches.append(launch)
        return launch.compiled

    def run_chosen(self: Any, *args: Any, **kwargs: Any) -> Any:
        # As Triton does it: hooks reset and restore arguments around each trial, and reset them once when all trials are over; the call itself, and all later ones, have none but the configuration's own.
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        was_tried = False

        def launch(config: "Config") -> object:
            recorder.config = self.best_config = config
            try:
                return self.fn.run(*args, **kwargs, **config.all_kwargs())
            finally:
                recorder.config = None

        def known(config: "Config") -> dict[str, object]:
            return {**self.nargs, **kwargs, **config.all_kwargs()}

        def attempt(config: "Config") -> object:
            nonlocal was_tried
            was_tried = True
            if config.pre_hook is not None:
                config.pre_hook(known(config))
            self.pre_hook(known(config))
            try:
                result = launch(config)
            except Exception as error:
                self.post_hook(known(config), exception=error)
                raise
            self.post_hook(known(config), exception=None)
            return result

        def call(config: "Config") -> object:
            nonlocal was_tried
            if was_tried:
                self.pre_hook(known(config), reset_only=True)
                was_tried = False
            if config.pre_hook is not None:
                config.pre_hook(known(config))
            return launch(config)

        recorder.key, recorder.attempt = tuning_key(self, kwargs), attempt
        results: list[object] = []
        misfit: Exception | None = None
        for config in choose(self, self.prune_configs(kwargs)):
            try:
                results.append(call(config))
            except refusals.misfits() as error:
                misfit = error
                note_dropped(self, recorder, config, error)
        if misfit is not None and not results:
            recorder.faults.append(misfit)
            raise misfit
        return results[-1] if results else None

    def listen(*, src: Any, metadata: Any, metadata_group: Any, times: Any, cache_hit: bool) -> None:
        hash_ = metadata["hash"]
        recorder.hashes.append(hash_)
        if not cache_hit:
            recorder.compiled.append(hash_)
        if cache_hit and hash_ not in recorder.compiled_ahead:
            recorder.hits += 1
        else:
            recorder.compiled_ahead.discard(hash_)
            recorder.misses.append(src.name)

    listener = knobs.compilation.listener
    kernel.run = run
    autotuner.Autotuner.run = run_chosen
    knobs.compilation.listener = listen
    try:
        yield recorder
    finally:
        kernel.run = run_kernel
        autotuner.Autotuner.run = run_autotuner
        knobs.compilation.listener = listener


@contextlib.contextmanager
def before_compiling(skips: Callable[[Compilation], bool]) -> Iterator[None]:
    """Asks `skips`, for the length of the context, before Triton compiles what no earlier launch of this process had; a launch that is skipped returns None.

    Triton's own hook for this describes each launch as JSON first, which a function among the constants is not (triton 3.6, `JITFunction._do_compile`).
    """
    from triton.runtime import jit

    compile_ = jit.JITFunction._do_compile

    def do_compile(self: Any, key: Any, signature: Any, device: Any, constexprs: Any, *rest: Any) -> Any:
        if skips(Compilation(self, key, device, signature, constexprs)):
            return None
        return compile_(self, key, signature, device, constexprs, *rest)

    jit.JITFunction._do_compile = do_compile
    try:
        yield
    finally:
        jit.JITFunction._do_compile = compile_


def load(compiled: Any) -> None:
    """Loads a compiled kernel on the present device, as its first launch would."""
    ready = compiled.result() if hasattr(compiled, "result") else compiled
    _ = ready.run


def first_that_fits(recorder: Recorder, tuner: "Tuner", configs: "list[Config]") -> "list[Config]":
    """Chooses the first configuration that the device can hold, by launching the present call with one after another.

    Raises the last one's error where none fits.
    """
    misfit: Exception | None = None
    for config in configs:
        try:
            if recorder.attempt is not None:
                recorder.attempt(config)
            return [config]
        except refusals.misfits() as found:
            misfit = found
            note_dropped(tuner, recorder, config, found)
    error = misfit or ValueError(f"`{kernel_name(tuner)}` has no configuration")
    recorder.faults.append(error)
    raise error


def note_dropped(tuner: "Tuner", recorder: Recorder, config: "Config", error: Exception) -> None:
    """Adds `config` to the dropped ones: its error is no fault of the kernel."""
    recorder.dropped.append(
        {"kernel": kernel_name(tuner), "config": config_facts(config), "reason": refusals.misfit_reason(error)}
    )
    recorder.faults = [fault for fault in recorder.faults if fault is not error]


def kernel_name(tuner: "Tuner") -> str:
    """Returns the name of the kernel that an Autotuner, or what it wraps, launches."""
    return str(tuner.base_fn.__name__)


def tuning_key(tuner: "Tuner", kwargs: dict[str, object]) -> tuple[object, ...]:
    """Returns what an Autotuner keeps the winner of this call under, in `tuner.cache` (triton 3.6, `Autotuner.run`)."""
    given = {name: value for name, value in {**tuner.nargs, **kwargs}.items() if name in tuner.arg_names}
    key = [given[name] for name in tuner.keys if name in given]
    return (*key, *(str(value.dtype) for value in given.values() if hasattr(value, "dtype")))


@contextlib.contextmanager
def unwatched() -> Iterator[None]:
    """Suspends torch's function and dispatch modes: what Triton does inside a launch is not the wrapper's doing."""
    import torch

    # To take torch's modes off their stack and put them back takes as long as a small launch.
    with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
        yield
