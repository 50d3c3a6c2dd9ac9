"""Kernel code in CUDA C++ on a device: what compile made is given to it, and its launches are watched as Triton's are.

torch is imported only inside functions.
"""

from __future__ import annotations

import contextlib
import functools
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_harness.counting import counting, queues, streams
from t2t_harness.cuda import files, images, inline, modules, noting, providing, t2t_cuda
from t2t_harness.faults import failure
from t2t_harness.triton import launchers, launching, refusals, stage, warm

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Common, Variant

PUBLIC = "t2t_cuda"
"""The name by which kernel code imports the module that loads."""


@contextlib.contextmanager
def lane(request: Common) -> Iterator[launchers.Counted]:
    """Makes the process what a wrapper expects of the lane, as `stage.lane` does, and gives it what was compiled of CUDA C++."""
    with stage.lane(request) as count, contextlib.ExitStack() as replaced:
        # Whatever lies in the workspace under that name.
        sys.modules[PUBLIC] = t2t_cuda
        if request["lane"] == "cuda" and (held := provide(request)):
            folder, of_files = Path(request["scratch"]) / "modules", functools.partial(files.called, request["root"])
            load_inline, load = providing.provider(held, folder), providing.provider(held, folder, of_files)
            replaced.enter_context(noting.replaced(load_inline, load))
        yield count


def provide(request: Common) -> dict[str, modules.Held]:
    """Gives kernel code what the archives of the request hold of `.cu` files, and refuses any other. Returns their modules of torch's. Archives without CUDA C++ are left alone."""
    of_torch: dict[str, modules.Held] = {}
    held: dict[Path, Mapping[str, bytes]] = {}
    for archive in request.get("warm") or []:
        files = warm.read(Path(archive)).get(images.FOLDER)
        if files is not None:
            index: images.Index = json.loads(files[images.INDEX])
            of_torch |= modules.held_in(index, files)
            if "modules" not in index:
                held[(Path(request["root"]) / index["file"]).resolve()] = files

    def provided(source: Path, capability: tuple[int, int]) -> bytes:
        files = held.get(source.resolve())
        if files is None:
            names = ", ".join(sorted(path.name for path in held)) or "nothing"
            raise FileNotFoundError(f"`{source.name}` is not the `.cu` of this variant: what is compiled is {names}")
        return images.image(files, capability)

    t2t_cuda.provider = provided
    return of_torch


def not_judged(lane_name: str, variant: Variant) -> str | None:
    """Returns why a variant cannot be judged on a lane, or None."""
    if lane_name in variant["lanes"]:
        return None
    if variant.get("cuda") is not None:
        return "CUDA C++ runs on a CUDA device alone"
    return f"the variant is not for the {lane_name} lane"


def class_of(error: BaseException) -> str:
    """Returns the class of what kernel code raised: `architecture` where nothing that was compiled runs on the device, `abi` where it is for another torch, else that of `failure.class_of`."""
    last = failure.chain(error)[-1]
    if isinstance(last, inline.AbiMismatch):
        return "abi"
    return "architecture" if isinstance(last, images.NoImage) else failure.class_of(error)


@contextlib.contextmanager
def recording(lane_name: str, choose: launching.Choose, *, runs: bool = True) -> Iterator[launching.Recorder]:
    """Records launches of both languages, as `launching.recording` does those of Triton."""
    with launching.recording(lane_name, choose, runs=runs) as recorder:
        if lane_name != "cuda":
            yield recorder
            return
        home, before, before_modules = streams.current(), t2t_cuda.watcher, modules.watcher

        def watch(
            kernel: t2t_cuda.Kernel, grid: tuple[int, ...], stream: int, args: Sequence[object], launch: t2t_cuda.Launch
        ) -> None:
            if recorder.is_paused:
                launch()
            else:
                watched(recorder, kernel, grid, None if stream == home else stream, args, launch)

        def watch_module(
            name: str, kernels: frozenset[str], args: tuple[object, ...], call: Callable[[], object]
        ) -> object:
            return call() if recorder.is_paused else called(recorder, name, kernels, args, call)

        t2t_cuda.watcher, modules.watcher = watch, watch_module
        try:
            yield recorder
        finally:
            t2t_cuda.watcher, modules.watcher = before, before_modules


def watched(
    recorder: launching.Recorder,
    kernel: t2t_cuda.Kernel,
    grid: tuple[int, ...],
    elsewhere: int | None,
    args: Sequence[object],
    launch: t2t_cuda.Launch,
) -> None:
    """Does a launch and records it; `elsewhere` is its stream where that is not the one that the wrapper was called on. Raises what the launch raises."""
    facts = launching.Launch(
        kernel=kernel.name,
        config=None,
        constants={},
        grid=list(grid),
        storages=launching.storages_of(iter(args)),
        path=(kernel.name, "{}"),
    )
    try:
        refusals.require_grid(facts.grid)
        with launching.unwatched(), counting.accounted():
            if elsewhere is not None:
                import torch

                queues.want()
                # Loaded before: it may take longer than a launch is held up.
                kernel.function()
                with torch.cuda.stream(torch.cuda.ExternalStream(elsewhere)):  # type: ignore[no-untyped-call]
                    streams.hold_up()
                recorder.elsewhere += 1
            noted = recorder.memory if recorder.elsewhere == 0 else None
            if noted is not None:
                noted.launching(args)
            with counting.accounted() as names:
                launch()
            counting.launched_as(names, kernel.name)
            if noted is not None:
                noted.launched(args)
    except Exception as error:
        recorder.faults.append(error)
        raise
    recorder.launches.append(facts)


def called(
    recorder: launching.Recorder,
    name: str,
    kernels: frozenset[str],
    args: tuple[object, ...],
    call: Callable[[], object],
) -> object:
    """Calls a function of a module of torch's, records the call as a launch where it launched one of the module's `kernels`, and returns what it returns.

    Torch operations that the function calls are seen as those of a wrapper are. What it launches beside them and its own kernels is unaccounted. Its results may
    be memory that it allocated, which it is taken to have given its kernels. Raises what the function raises.
    """
    given = modules.flat(args)
    try:
        if recorder.memory is not None:
            recorder.memory.launching(given)
        with counting.accounted() as names:
            result = call()
    except Exception as error:
        recorder.faults.append(error)
        raise
    for one in names:
        counting.launched_as([one], one if one in kernels else None)
    if names and not kernels.intersection(names):
        return result
    touched = [*given, *modules.flat([result])]
    if recorder.memory is not None:
        recorder.memory.launched(touched)
    recorder.launches.append(
        launching.Launch(
            kernel=name,
            config=None,
            constants={},
            grid=None,
            storages=launching.storages_of(iter(touched)),
            path=(name, "{}"),
        )
    )
    return result
