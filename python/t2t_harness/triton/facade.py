"""Lets unmodified wrappers run where there is no GPU: a fake driver and a fake `torch.cuda` for the compile lane, and CPU tensors that
answer `is_cuda` for the interpreter.

The device is one of the table in `assets/devices.json`; its SM count reaches kernels as a constant.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from t2t_harness.faults import lacking

if TYPE_CHECKING:
    from t2t_harness.boundary.documents import DeviceRow


def properties(device: DeviceRow) -> object:
    """Returns what `torch.cuda.get_device_properties` answers for `device`, a row of the device table."""
    return types.SimpleNamespace(
        name=device["name"],
        major=device["capability"][0],
        minor=device["capability"][1],
        multi_processor_count=device["multiprocessors"],
        total_memory=device["memory"],
        shared_memory_per_block=49152,
        shared_memory_per_block_optin=device["shared_memory"],
        shared_memory_per_multiprocessor=device["shared_memory_per_multiprocessor"],
        max_threads_per_multi_processor=2048,
        regs_per_multiprocessor=65536,
        warp_size=32,
        L2_cache_size=device["l2"],
        is_integrated=0,
    )


class Device(contextlib.nullcontext[None]):
    """In the place of `torch.cuda.device`, which torch's own functions ask for as a class."""

    def __init__(self, device: object) -> None:
        super().__init__()


def nothing(*_: object) -> None:
    """Does nothing."""


class Event:
    """In the place of an event: whatever was launched is over."""

    def __init__(self, *_: object, **__: object) -> None:
        self.cuda_event = 0

    def record(self, stream: object = None) -> None:
        """Marks nothing."""

    def wait(self, stream: object = None) -> None:
        """Waits for nothing."""

    def synchronize(self) -> None:
        """Waits for nothing."""

    def query(self) -> bool:
        """Tells that it is over."""
        return True

    def elapsed_time(self, other: object) -> float:
        """Returns a time. Nothing is measured where there is no device."""
        return 1.0


class Stream:
    """In the place of a stream: what is launched is over when the launch returns, so no order of streams is another one."""

    def __init__(self, *_: object, **__: object) -> None:
        import torch

        self.cuda_stream = self.stream_id = self.device_index = self.priority = 0
        self.device = torch.device("cuda", 0)

    def synchronize(self) -> None:
        """Waits for nothing."""

    def query(self) -> bool:
        """Tells that all is over."""
        return True

    def wait_stream(self, stream: object) -> None:
        """Waits for nothing."""

    def wait_event(self, event: object) -> None:
        """Waits for nothing."""

    def record_event(self, event: Event | None = None) -> Event:
        """Returns the event, or a new one."""
        return Event() if event is None else event

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def patch_torch_cuda(device: DeviceRow) -> None:
    """Makes `torch.cuda` answer for `device`. Never undone: the child ends with its action."""
    import torch

    stream = Stream()
    answers: dict[str, object] = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_properties": lambda device_=None: properties(device),
        "get_device_capability": lambda device_=None: tuple(device["capability"]),
        "get_device_name": lambda device_=None: device["name"],
        "synchronize": lambda device_=None: None,
        "set_device": lambda device_: None,
        "device": Device,
        "current_stream": lambda device_=None: stream,
        "default_stream": lambda device_=None: stream,
        "stream": lambda stream_=None: contextlib.nullcontext(stream_),
        "set_stream": lambda stream_: None,
        "Stream": Stream,
        "Event": Event,
        "is_current_stream_capturing": lambda: False,
        "mem_get_info": lambda device_=None: (device["memory"], device["memory"]),
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
    # They want torch's own kind of stream before any mode is asked.
    for owner, name, own in (
        (torch.accelerator, "current_stream", answers["current_stream"]),
        (torch.Tensor, "record_stream", nothing),
    ):
        setattr(owner, name, own)


def fake_driver(device: DeviceRow, index: int = 0) -> None:
    """Makes `device` Triton's active driver: a target to compile for, and nothing to launch on.

    Triton keeps compiled kernels by the device's `index`: several devices in one process need one each.
    """
    from triton.backends.compiler import GPUTarget
    from triton.backends.driver import DriverBase
    from triton.runtime.driver import driver

    major, minor = device["capability"]
    target = GPUTarget("cuda", major * 10 + minor, 32)

    class CompileOnly(DriverBase):  # type: ignore[misc]
        """A driver with a target and no device."""

        @classmethod
        def is_active(cls) -> bool:
            return True

        def map_python_to_cpp_type(self, ty: str) -> str:
            return ty

        def get_current_target(self) -> object:
            return target

        def get_active_torch_device(self) -> object:
            import torch

            return torch.device("cuda", 0)

        def get_device_interface(self) -> object:
            import torch

            return torch.cuda

        def get_current_device(self) -> int:
            return index

        def get_current_stream(self, device_: int) -> int:
            return 0

        def get_benchmarker(self) -> object:
            return benchmarked

        def get_empty_cache_for_benchmark(self) -> object:
            import torch

            return torch.empty(0, dtype=torch.int)

        def clear_cache(self, cache: object) -> None:
            pass

        def __getattr__(self, name: str) -> object:
            raise lacking.LackingAttribute(f"`{name}` of Triton's driver")

        @property
        def utils(self) -> object:
            shared = {"max_shared_mem": device["shared_memory"], "multiprocessor_count": device["multiprocessors"]}
            return types.SimpleNamespace(
                get_device_properties=lambda device_: shared | {"max_num_regs": 65536, "warpSize": 32}
            )

    driver.set_active(CompileOnly())


def patch_benchmarks() -> None:
    """Keeps tuners of a library's own from timing where there is no device. Never undone: the child ends with its action."""
    from triton import testing

    testing.do_bench = testing.do_bench_cudagraph = benchmarked


def benchmarked(call: Callable[[], Any], *_: Any, quantiles: Any = None, **__: Any) -> Any:
    """Calls what a tuner of a library's own would time, once. Nothing is measured where there is no device: all takes as long."""
    call()
    return 1.0 if quantiles is None else [1.0 for _ in quantiles]


def on_cpu(value: Any, device: type[Any]) -> Any:
    """Returns `value` with every mention of a CUDA device replaced by the CPU; `device` is torch's class of them."""
    if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
        return "cpu"
    if isinstance(value, device) and value.type == "cuda":
        return device("cpu")
    return value


@contextlib.contextmanager
def cpu_as_cuda() -> Iterator[Callable[..., object]]:
    """Makes CPU tensors answer as CUDA tensors do, and `device="cuda"` mean the CPU, for the length of the context."""
    with mode_of_cuda()() as mode:
        yield mode


@functools.cache
def mode_of_cuda() -> type[Any]:
    """Returns the class of torch function modes that answer for the device."""
    import torch
    from torch.overrides import TorchFunctionMode

    is_cuda = vars(torch._C.TensorBase)["is_cuda"].__get__
    device_of, kind = torch.Tensor.device.__get__, torch.device
    getter, cuda = type(is_cuda), torch.device("cuda", 0)

    class CpuAsCuda(TorchFunctionMode):
        """Answers for the device; everything else goes through."""

        def __torch_function__(self, func: Any, types_: Any, args: Any = (), kwargs: Any = None) -> Any:
            if type(func) is getter:
                # A property's, as most calls of a small wrapper are.
                if func == is_cuda:
                    return True
                # Torch itself asks inside of an autograd function, whose `apply` no mode sees.
                if func == device_of and asked_from() != "torch":
                    return cuda
                return func(*args, **(kwargs or {}))
            if func is kind:
                # Its place in an argument is where it becomes the CPU: as a value it is compared.
                return func(*args, **(kwargs or {}))
            called = getattr(func, "__name__", "")
            if called == "cuda":
                return args[0]
            if called == "get_device":
                return 0
            moved = {name: on_cpu(value, kind) for name, value in kwargs.items()} if kwargs else {}
            return func(*[on_cpu(value, kind) for value in args], **moved)

    return CpuAsCuda


def launched_as_they_are() -> contextlib.AbstractContextManager[None]:
    """Returns the context in which kernels behind `torch.library.wrap_triton` are launched as they are: what torch makes of a launch to trace it, no mode but its own takes (torch 2.11)."""
    from torch._library.triton import set_wrap_triton_enabled

    return set_wrap_triton_enabled(False)


@contextlib.contextmanager
def fake_cuda() -> Iterator[object]:
    """Enters fake tensors that answer as CUDA tensors, and yields the fake mode.

    They are fake CPU tensors underneath: a fake tensor on a CUDA device meets device guards in C++ (in `contiguous`, in slicing) that start CUDA.
    """
    import torch
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

    # A Python property, which no function mode sees. Torch itself must see the CPU.
    own = FakeTensor.device
    cuda = torch.device("cuda", 0)
    told = property(lambda tensor: cuda if asked_by_wrapper() else own.__get__(tensor))
    with FakeTensorMode(allow_non_fake_inputs=True) as mode, cpu_as_cuda(), launched_as_they_are():
        setattr(FakeTensor, "device", told)  # noqa: B010 - a property has another type than its value
        try:
            yield mode
        finally:
            setattr(FakeTensor, "device", own)  # noqa: B010


def asked_by_wrapper() -> bool:
    """Tells whether the caller's caller is neither torch nor the harness."""
    return asked_from(3) not in ("torch", "t2t_harness")


def asked_from(depth: int = 2) -> str:
    """Returns the package of the code so many frames above, by default that of the caller's caller."""
    return str(sys._getframe(depth).f_globals.get("__name__", "")).partition(".")[0]
