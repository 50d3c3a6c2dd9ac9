"""Kernel code in CUDA C++ on a device: what compile made is given to it, and its launches are watched as Triton's are.

torch is imported only inside functions.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_harness.counting import counting, queues, streams
from t2t_harness.cuda import images, t2t_cuda
from t2t_harness.faults import failure
from t2t_harness.triton import launchers, launching, refusals, stage, warm

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import Common, Variant

PUBLIC = "t2t_cuda"
"""The name by which kernel code imports the module that loads."""


@contextlib.contextmanager
def lane(request: Common) -> Iterator[launchers.Counted]:
    """Makes the process what a wrapper expects of the lane, as `stage.lane` does, and gives it what was compiled of CUDA C++."""
    with stage.lane(request) as count:
        # Whatever lies in the workspace under that name.
        sys.modules[PUBLIC] = t2t_cuda
        if request["lane"] == "cuda":
            provide(request)
        yield count


def provide(request: Common) -> None:
    """Gives kernel code what the archives of the request hold, and refuses any other file. Archives without CUDA C++ are left alone."""
    held: dict[Path, Mapping[str, bytes]] = {}
    for archive in request.get("warm") or []:
        files = warm.read(Path(archive)).get(images.FOLDER)
        if files is not None:
            index: images.Index = json.loads(files[images.INDEX])
            held[(Path(request["root"]) / index["file"]).resolve()] = files

    def provided(source: Path, capability: tuple[int, int]) -> bytes:
        files = held.get(source.resolve())
        if files is None:
            names = ", ".join(sorted(path.name for path in held)) or "nothing"
            raise FileNotFoundError(f"`{source.name}` is not the `.cu` of this variant: what is compiled is {names}")
        return images.image(files, capability)

    t2t_cuda.provider = provided


def not_judged(lane_name: str, variant: Variant) -> str | None:
    """Returns why a variant cannot be judged on a lane, or None."""
    if lane_name in variant["lanes"]:
        return None
    if variant.get("cuda") is not None:
        return "CUDA C++ runs on a CUDA device alone"
    return f"the variant is not for the {lane_name} lane"


def class_of(error: BaseException) -> str:
    """Returns the class of what kernel code raised: `architecture` where nothing that was compiled runs on the device, else that of `failure.class_of`."""
    return "architecture" if isinstance(failure.chain(error)[-1], images.NoImage) else failure.class_of(error)


@contextlib.contextmanager
def recording(lane_name: str, choose: launching.Choose, *, runs: bool = True) -> Iterator[launching.Recorder]:
    """Records launches of both languages, as `launching.recording` does those of Triton."""
    with launching.recording(lane_name, choose, runs=runs) as recorder:
        if lane_name != "cuda":
            yield recorder
            return
        home, before = streams.current(), t2t_cuda.watcher

        def watch(
            kernel: t2t_cuda.Kernel, grid: tuple[int, ...], stream: int, args: Sequence[object], launch: t2t_cuda.Launch
        ) -> None:
            if recorder.is_paused:
                launch()
            else:
                watched(recorder, kernel, grid, None if stream == home else stream, args, launch)

        t2t_cuda.watcher = watch
        try:
            yield recorder
        finally:
            t2t_cuda.watcher = before


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
