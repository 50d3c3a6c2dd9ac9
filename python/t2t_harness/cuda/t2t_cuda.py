"""Loads a CUDA C++ file and launches its kernels. This one file is all there is to it: it needs Python, NVIDIA's driver and nvcc, and may be copied.

    kernels = t2t_cuda.load(__file__)             # the kernels of softmax.cu beside softmax.py
    kernels.scale[(blocks,), (256,)](output, input, n)
    kernels.scale[(blocks,), (256,), shared, stream](output, input, n)

The file is compiled when its first kernel is launched, for the device of the current context; t2t gives what it has compiled before. A tensor is passed as its address, a
whole number as an integer of the parameter's size, a `float` as one of its size, anything of `ctypes` as it is. Launches go to torch's current stream
where torch is there, else to the default stream.
"""

from __future__ import annotations

import ctypes
import glob
import operator
import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HINT = "install it into the environment, as in `uv pip install 't2t[cuda]'`, or set CUDA_HOME"
"""What to do where there is no nvcc."""

FLAGS = ("-std=c++17", "-O3")
"""What nvcc is told of every file."""

DYNAMIC_SHARED = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES (cuda.h)."""

MAJOR, MINOR = 75, 76
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR (cuda.h)."""

INVALID_VALUE = 1
"""CUDA_ERROR_INVALID_VALUE (cuda.h)."""

FREE_SHARED = 48 << 10
"""Bytes of shared memory that a launch may have without asking."""

ALIGNED = 16
"""Bytes at a multiple of which each argument lies: the most that a vector type of CUDA asks for."""

INTEGERS: dict[int, Any] = {1: ctypes.c_int8, 2: ctypes.c_int16, 4: ctypes.c_int32, 8: ctypes.c_int64}
"""Integers by their bytes."""

FLOATS: dict[int, Any] = {4: ctypes.c_float, 8: ctypes.c_double}
"""Floats by their bytes."""

INTEGER_CODES, FLOAT_CODES = {1: "b", 2: "h", 4: "i", 8: "q"}, {4: "f", 8: "d"}
"""What `struct` calls them."""

Launch = Callable[[], None]
"""Does a launch that is ready."""

provider: Callable[[Path, tuple[int, int]], bytes] | None = None
"""Returns the image (cubin or PTX) of a file for a compute capability; None where nvcc makes it here."""

watcher: Callable[[Kernel, tuple[int, ...], int, tuple[object, ...], Launch], None] | None = None
"""Is given each launch, its kernel, grid, stream and arguments, and does it; None where nobody watches."""


class CudaError(RuntimeError):
    """The driver refused a call, or there is no driver."""


def load(file: str, source: str | None = None) -> Module:
    """Returns the module of the CUDA C++ file `source`, relative to the folder of `file`, which is the caller's `__file__`; without `source` that of the same name.

    Nothing is compiled or looked at yet.
    """
    own = Path(file)
    return Module(own.with_suffix(".cu") if source is None else own.parent / source)


class Module:
    """A CUDA C++ file. Its kernels are its attributes, but for names that the module has itself, which `kernel` takes, too."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self._kernels: dict[str, Kernel] = {}
        self._images: dict[tuple[int, int], bytes] = {}
        self._handles: dict[int, ctypes.c_void_p] = {}

    def __getattr__(self, name: str) -> Kernel:
        """Returns the kernel of this name. Whether the file has it is found out at its first launch."""
        if name.startswith("__"):
            raise AttributeError(name)
        kernel = self.kernel(name)
        # Python looks here first the next time.
        self.__dict__[name] = kernel
        return kernel

    def kernel(self, name: str) -> Kernel:
        """Returns the kernel of this name, as an attribute does."""
        kernel = self._kernels.get(name)
        if kernel is None:
            # The first one of several threads.
            kernel = self._kernels.setdefault(name, Kernel(self, name))
        return kernel

    def handle(self, context: int) -> ctypes.c_void_p:
        """Returns the module's handle in the current context. Raises CudaError, and what compiling raises."""
        if context not in self._handles:
            capability = device_capability()
            if capability not in self._images:
                image = compiled if provider is None else provider
                self._images[capability] = image(self.source, capability)
            loaded = ctypes.c_void_p()
            call("cuModuleLoadData", ctypes.byref(loaded), ctypes.c_char_p(self._images[capability]))
            self._handles[context] = loaded
        return self._handles[context]


class Kernel:
    """A kernel of a module. `kernel[grid, block, shared, stream]` says how it is launched: grid and block are numbers or up to three of them, the others may be left out."""

    def __init__(self, module: Module, name: str) -> None:
        self.module, self.name = module, name
        self._functions: dict[int, Function] = {}

    def __getitem__(self, how: tuple[Any, ...]) -> Callable[..., None]:
        """Returns the function that launches the kernel so."""
        if not isinstance(how, tuple) or not 2 <= len(how) <= 4:
            raise TypeError(
                f"`{self.name}` is launched as in `{self.name}[grid, block](…)`, with `shared` and `stream` after them"
            )
        grid, block = axes(how[0]), axes(how[1])
        shared = int(how[2]) if len(how) > 2 else 0
        stream = how[3] if len(how) > 3 else None

        def launch(*args: object) -> None:
            handle = stream_of(stream)
            if watcher is None:
                self.launch(grid, block, shared, handle, args)
            else:
                watcher(self, grid, handle, args, lambda: self.launch(grid, block, shared, handle, args))

        return launch

    def launch(
        self, grid: tuple[int, ...], block: tuple[int, ...], shared: int, stream: int, args: Sequence[object]
    ) -> None:
        """Launches the kernel. Raises TypeError for arguments that it does not take, and CudaError for what the driver refuses. A grid of no blocks launches nothing."""
        function = self.function()
        if len(args) != len(function.sizes):
            raise TypeError(f"`{self.name}` takes {len(function.sizes)} arguments, and is given {len(args)}")
        if 0 in grid:
            return
        if shared > function.shared:
            call("cuFuncSetAttribute", function.handle, ctypes.c_int(DYNAMIC_SHARED), ctypes.c_int(shared))
            function.shared = shared
        types = tuple(map(type, args))
        packing = function.packings.get(types)
        if packing is None:
            packing = function.packings[types] = self.packing(args, function.sizes)
        memory, pointers = self.packed(packing, args, function.sizes)
        # A ctypes function without declared types is the fastest to call.
        result = function.launch(function.handle, *grid, *block, shared, ctypes.c_void_p(stream), pointers, None)
        packing.spare.append((memory, pointers))
        if result != 0:
            require(result, "cuLaunchKernel")

    def function(self) -> Function:
        """Returns the kernel in the current context, loaded. Raises CudaError where the file has no such kernel."""
        context = current_context()
        function = self._functions.get(context)
        if function is None:
            function = self._functions[context] = self.found(self.module.handle(context))
        return function

    def found(self, module: ctypes.c_void_p) -> Function:
        """Returns the kernel of a module's handle. Raises CudaError where the file has no such kernel."""
        handle = ctypes.c_void_p()
        try:
            call("cuModuleGetFunction", ctypes.byref(handle), module, ctypes.c_char_p(self.name.encode()))
        except CudaError as error:
            message = f'{self.module.source.name} has no kernel `{self.name}`; is it `extern "C"`? ({error})'
            raise CudaError(message) from None
        return Function(handle, parameter_sizes(handle))

    def packing(self, args: Sequence[object], sizes: Sequence[int]) -> Packing:
        """Returns how arguments of the types of these are packed. Raises TypeError where one has another size, or no form in C."""
        forms = []
        for place, (value, size) in enumerate(zip(args, sizes, strict=True)):
            form = form_of(value, size)
            if form is None:
                given = type(value).__name__
                raise TypeError(f"argument {place} of `{self.name}` has {size} bytes, and is given {given}")
            forms.append(form)
        return Packing(forms, sizes)

    def packed(self, packing: Packing, args: Sequence[object], sizes: Sequence[int]) -> Buffer:
        """Returns the arguments where the driver reads them. Raises OverflowError for a number that its parameter does not hold."""
        values: list[Any] = list(args)
        for place, make in packing.made:
            values[place] = make(values[place])
        buffer = packing.buffer()
        try:
            packing.pack_into(buffer[0], 0, *values)
        except (struct.error, OverflowError):
            packing.pack_into(buffer[0], 0, *map(self.held, range(len(sizes)), values, args, sizes))
        return buffer

    def held(self, place: int, value: Any, given: object, size: int) -> Any:
        """Returns a number as its parameter holds it: unsigned ones as signed, a float that is too large as an infinity. Raises OverflowError where it does not fit."""
        if isinstance(given, float):
            return FLOATS[size](value).value
        if isinstance(given, int):
            if not -(1 << 8 * size - 1) <= value < 1 << 8 * size:
                raise OverflowError(f"argument {place} of `{self.name}` has {size} bytes, and {value} is too large")
            return INTEGERS[size](value).value
        return value


class Function:
    """A kernel in a context: its handle, the bytes of each parameter, and what its launches have found out."""

    def __init__(self, handle: ctypes.c_void_p, sizes: list[int]) -> None:
        self.handle, self.sizes = handle, sizes
        self.launch: Callable[..., int] = driver().cuLaunchKernel
        self.shared = FREE_SHARED
        """Bytes of dynamic shared memory that a launch may have."""
        self.packings: dict[tuple[type, ...], Packing] = {}
        """How arguments are packed, by their types."""


Buffer = tuple[Any, Any]
"""Memory for the arguments of a launch, and pointers to each."""

Form = tuple[str, Callable[[Any], Any] | None]
"""What `struct` calls an argument, and what makes a value for it of the argument where it is none itself."""


class Packing:
    """How arguments of certain types lie in memory. A launch takes a buffer and puts it back, so that threads share none."""

    def __init__(self, forms: Sequence[Form], sizes: Sequence[int]) -> None:
        codes = [f"{code}{-size % ALIGNED}x" for (code, _), size in zip(forms, sizes, strict=True)]
        self.layout = struct.Struct("=" + "".join(codes))
        self.pack_into = self.layout.pack_into
        slots = [size + -size % ALIGNED for size in sizes]
        self.starts = [sum(slots[:place]) for place in range(len(slots))]
        self.made = [(place, make) for place, (_, make) in enumerate(forms) if make is not None]
        self.spare: list[Buffer] = []

    def buffer(self) -> Buffer:
        """Returns a buffer that no launch has."""
        try:
            return self.spare.pop()
        except IndexError:
            memory = ctypes.create_string_buffer(max(self.layout.size, 1))
            first = ctypes.addressof(memory)
            return memory, (ctypes.c_void_p * len(self.starts))(*(first + start for start in self.starts))


def form_of(value: object, size: int) -> Form | None:
    """Returns the form in C of an argument of so many bytes; None where it has none. Its type decides, not its value."""
    if isinstance(value, (ctypes._SimpleCData, ctypes.Structure, ctypes.Array)):
        return (f"{size}s", bytes) if ctypes.sizeof(value) == size else None
    if hasattr(value, "data_ptr"):
        return ("Q", operator.methodcaller("data_ptr")) if size == ctypes.sizeof(ctypes.c_void_p) else None
    if value is None:
        return ("Q", lambda _: 0) if size == ctypes.sizeof(ctypes.c_void_p) else None
    if isinstance(value, float) and size in FLOAT_CODES:
        return FLOAT_CODES[size], None
    if isinstance(value, int) and size in INTEGER_CODES:
        return INTEGER_CODES[size], None
    return None


def axes(given: Any) -> tuple[int, ...]:
    """Returns a grid or a block as three numbers. Raises TypeError where it is none."""
    if type(given) is int:
        return given, 1, 1
    sides = tuple(map(int, given)) if isinstance(given, (tuple, list)) else (int(given),)
    if not 1 <= len(sides) <= 3:
        raise TypeError(f"a grid and a block have one to three sides, and {given} has {len(sides)}")
    return (*sides, 1, 1)[:3]


def stream_of(stream: Any) -> int:
    """Returns the handle of a stream: a number, or what torch has; without one that of torch's current stream, else the default one."""
    return current_stream() if stream is None else int(getattr(stream, "cuda_stream", stream))


def current_stream() -> int:
    """Returns the handle of torch's current stream, that of the default one where there is no torch."""
    torch = sys.modules.get("torch")
    if torch is None:
        return 0
    try:
        # As Triton asks: no object is made.
        own = torch._C
        return int(own._cuda_getCurrentRawStream(own._cuda_getDevice()))
    except AttributeError:
        return int(torch.cuda.current_stream().cuda_stream)


def parameter_sizes(function: ctypes.c_void_p) -> list[int]:
    """Returns how many bytes each parameter of a kernel has."""
    sizes: list[int] = []
    offset, size = ctypes.c_size_t(), ctypes.c_size_t()
    while True:
        arguments = (function, ctypes.c_size_t(len(sizes)), ctypes.byref(offset), ctypes.byref(size))
        result = int(driver().cuFuncGetParamInfo(*arguments))
        if result == INVALID_VALUE:
            return sizes
        require(result, "cuFuncGetParamInfo")
        sizes.append(size.value)


_driver: Any = None


def driver() -> Any:
    """Returns NVIDIA's driver, started. Raises CudaError where there is none."""
    global _driver
    if _driver is None:
        try:
            found = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise CudaError(f"this machine has no CUDA driver ({error})") from None
        require(found.cuInit(0), "cuInit")
        _driver = found
    return _driver


def call(name: str, *arguments: Any) -> None:
    """Calls a function of the driver. Raises CudaError where it fails."""
    require(int(getattr(driver(), name)(*arguments)), name)


def require(result: int, name: str) -> None:
    """Raises CudaError for a result that is no success."""
    if result != 0:
        raise CudaError(f"{name} failed with CUDA error {result}")


def current_context() -> int:
    """Returns the current context of this thread, that of the first device where there was none."""
    context = ctypes.c_void_p()
    result = driver().cuCtxGetCurrent(ctypes.byref(context))
    if result != 0:
        require(result, "cuCtxGetCurrent")
    if not context.value:
        device = ctypes.c_int()
        call("cuDeviceGet", ctypes.byref(device), 0)
        call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        call("cuCtxSetCurrent", context)
    return int(context.value or 0)


def device_capability() -> tuple[int, int]:
    """Returns the compute capability of the current context's device: major, minor."""
    device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    call("cuCtxGetDevice", ctypes.byref(device))
    call("cuDeviceGetAttribute", ctypes.byref(major), MAJOR, device)
    call("cuDeviceGetAttribute", ctypes.byref(minor), MINOR, device)
    return major.value, minor.value


def architecture(capability: tuple[int, int]) -> str:
    """Returns what nvcc calls the architecture of a device, with what that device alone has, as in `sm_90a`."""
    major, minor = capability
    return f"sm_{major}{minor}{'a' if major >= 9 else ''}"


def find_nvcc() -> Path | None:
    """Returns the nvcc of the environment, else that of `$CUDA_HOME`, `$CUDA_PATH` or `/usr/local/cuda`; None where there is none."""
    wheels = [found for folder in sys.path for found in sorted(glob.glob(f"{glob.escape(folder)}/nvidia/cu*/bin/nvcc"))]
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    others = [f"{home}/bin/nvcc" for home in (*homes, "/usr/local/cuda")]
    return next((Path(place) for place in (*wheels, *others) if os.access(place, os.X_OK)), None)


def compiled(source: Path, capability: tuple[int, int]) -> bytes:
    """Returns the cubin of a file for a compute capability. Raises FileNotFoundError without an nvcc, and RuntimeError with what nvcc says of a file that it refuses."""
    nvcc = find_nvcc()
    if nvcc is None:
        raise FileNotFoundError(f"there is no nvcc to compile {source}: {HINT}")
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "module.cubin")
        command = [str(nvcc), "-cubin", f"-arch={architecture(capability)}", *FLAGS, "-o", str(made), str(source)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            raise RuntimeError(f"nvcc cannot compile {source}:\n{ran.stdout}{ran.stderr}")
        return made.read_bytes()
