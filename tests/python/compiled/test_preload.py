"""What a fork server for CUDA devices imports, part by part, must leave it able to fork: one thread, and CUDA not asked for anything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HARNESS = Path(__file__).resolve().parents[3] / "python"

TRIAL = """
import os, sys
import torch, triton, torch._dynamo

def refuse(*_):
    asked.append(1)
    raise RuntimeError("CUDA was asked")

asked = []
for name in ("_cuda_getDeviceCount", "_cuda_init"):
    if hasattr(torch._C, name):
        setattr(torch._C, name, refuse)
available = torch.cuda.is_available
from t2t_harness.server import preload
asks = [torch.cuda.is_available is available for part in (preload.device, preload.compiler) for _ in part()]
import torch._inductor.config
print(len(os.listdir("/proc/self/task")), len(asked), torch._inductor.config.compile_threads)
print("torch._inductor.compile_fx" in sys.modules, torch.cuda.is_available is available)
print(all(asks), len(asks) > len(preload.COMPILING))
print(open(f"/proc/self/task/{os.getpid()}/children").read().split())
"""


def test_it_leaves_one_thread_no_process_and_cuda_alone() -> None:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(HARNESS), "TRITON_INTERPRET": "0"}
    told = subprocess.run([sys.executable, "-c", TRIAL], env=environment, capture_output=True, text=True, check=False)
    assert told.stdout.splitlines() == ["1 0 1", "True True", "True True", "[]"], told.stderr


ASKED = """
from t2t_harness.measuring import nvml, telemetry
from t2t_harness.server import preload, ready
from triton.backends.nvidia import driver
from triton.compiler import compiler

said = []
driver.compile_module_from_src = lambda *args, **kwargs: said.append("compiles")
telemetry.device_uuid = lambda: "GPU-1"
nvml.device = said.append
compiler.max_shared_mem = lambda device: said.append(f"asks {device}")
ready.ask_device()
print(said)
said.clear()
preload._loaded[preload.UTILITIES] = None


def fail():
    raise RuntimeError("no device")


telemetry.device_uuid = fail
class Driver:
    get_current_device = staticmethod(lambda: 0)
    get_current_target = staticmethod(fail)
from triton import runtime
runtime.driver = type("Drivers", (), {"active": Driver})
ready.ask_device()
print(said)
"""


def test_a_device_is_asked_ahead_where_nothing_has_to_be_compiled_for_it_and_what_fails_is_left() -> None:
    environment = {**os.environ, "PYTHONPATH": str(HARNESS), "TRITON_INTERPRET": "0"}
    told = subprocess.run([sys.executable, "-c", ASKED], env=environment, capture_output=True, text=True, check=False)
    assert told.stdout.splitlines() == ["['GPU-1']", "['asks 0']"], told.stderr
