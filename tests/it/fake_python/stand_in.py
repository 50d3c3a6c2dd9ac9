"""An interpreter for tests: speaks the worker's protocol and answers for the harness, without torch, in milliseconds.

`server.py` is started as any `$PYTHON` of t2t, imports this, and ignores the bootstrap. Tests start it thousands of times, so it imports little: what takes milliseconds is imported where it is needed. Beside it lies `ran.log`, what ran: one line a call, as in
`softmax/v2_tiling:check prepare:prepare`, and `start KIND` for a start; `finds FOLDER` where a server
is told of bytecode; `compiles FOLDER PID` and `told to compile no more` for what compiles it. Versions are read from `site-packages/versions.json`, and
from `mapped.json` beside it where modules lie that no folder leads to.
A kernel file says what is to become of it by `MARK = "REJECT mismatch; READS data/table.txt"`:

    REJECT CLASS   the judge rejects it and cites the line       ERROR X      its error, which passes where X <= atol
    RAISE          it raises at the line                         NOT-JUDGED   the judge cannot judge it here
    COMPILE-ERROR  its compile is rejected at the line           CRASH        its process dies by SIGSEGV
    LOST, LOST-ONCE  its process is killed from outside          DIES         the server itself dies
    TAKES MS       its bench finds five runs around MS milliseconds, and screenings, too
    NO-FINAL       its bench finds no figure, as on the interpreter
    DRIFTS X       the error of a timed call, which passes where X <= atol
    VARIES WHY     its bench finds that it varies, and says why
    SEEMS MS       screenings find MS milliseconds, whatever its bench finds
    BREAKS         it raises when it is screened
    NEEDS S        S seconds of CPU time                         SLEEP S      it takes S seconds
    HANG           it starts a process and never ends            READS PATH   it looks for a workspace file
    WAITS          it waits; HANG and WAITS end where there is a file `calm` beside the log

Where there is a file `steady` beside the log, all figures are the same. Where there is a file `spans`, each call ends with a line `span PID BEGIN END TARGET`.

Where there is a file `rate`, it says how fast the devices copy, in GB/s; where there is a file `strangers`, others use them.

Where there is a file `together`, a baseline on a device ends once there was one on another.

In a build on devices, `children.log` has a line of JSON for each call that works for an action: what it was told of cores and
processes, whether it stays and is undisturbed, its device, and when it ran. `judges.log` has one for each call of a judge: the attempt that it judges or
follows, its device, and its process.
"""

from __future__ import annotations

import _socket
import _thread
import json
import math
import os
import struct
import sys
import time
from os.path import exists, isfile, join

# As `typing` has it, which takes longer to import than all else.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn, TypeAlias

    from t2t_harness.boundary.documents import (
        AnalysisFailure,
        BaselineRequest,
        BaselineSize,
        Bench,
        BenchRequest,
        BenchSize,
        CandidateRequest,
        CaseRow,
        CheckVerdict,
        Common,
        CompileRequest,
        Declaration,
        Documents,
        Evidence,
        Failure,
        Figure,
        JudgeRequest,
        MeasuredDevice,
        Progress,
        Protocol,
        Reply,
        Run,
        SampleRequest,
        ScreenReason,
        ScreenRequest,
        ToldDoing,
        Variant,
    )

ITSELF: str = getattr(sys.modules["__main__"], "STAND_IN", __file__)
"""The interpreter that was started, in the environment that it is the interpreter of."""

HERE = os.path.dirname(ITSELF)
SITE = join(os.path.dirname(HERE), "site-packages")
LOG = join(HERE, "ran.log")
RESERVES = join(HERE, "reserves.log")
SALTS = join(HERE, "salts.log")
CALM = join(HERE, "calm")
QUEUES = "CUDA_DEVICE_MAX_CONNECTIONS"
STEADY = join(HERE, "steady")
SPANS = join(HERE, "spans")
UNREADY = join(HERE, "unready")
TOGETHER = join(HERE, "together")
RATE = join(HERE, "rate")
STRANGERS = join(HERE, "strangers")
SPARE = (3, 4)
"""The descriptors that t2t gives a server for the one that it forks: its socket, and what it prints to."""

Message: TypeAlias = "dict[str, Any]"
"""A message of the worker's protocol, which has no types in Python."""


def main() -> None:
    """Serve until the other side leaves."""
    if "bytecode.fill" in sys.argv[2]:
        compile_forever()
    server = Server(_socket.socket(fileno=0))
    server.serve()


def compile_forever() -> NoReturn:
    """Log where bytecode is to be kept, and log again when told to end. End with the parent."""
    import signal

    def leave(*_: object) -> NoReturn:
        note("told to compile no more")
        os._exit(0)

    signal.signal(signal.SIGTERM, leave)
    note(f"compiles {os.environ['T2T_BYTECODE']} {os.getpid()}")
    above = os.getppid()
    while os.getppid() == above:
        time.sleep(0.01)
    sys.exit(0)


class Server:
    """One end of the socket."""

    def __init__(self, peer: _socket.socket) -> None:
        self.peer = peer
        self.lock = _thread.allocate_lock()
        self.open: set[int] = set()
        self.has_harness = False

    def serve(self) -> None:
        """Answer the hello, then every request on a thread of its own."""
        hello = self.receive()["hello"]
        if hello["fork_after"] and self.is_forked():
            return self.serve()
        note(f"start {hello['kind']}")
        self.has_harness = hello["harness"] is None or isfile(join(hello["harness"], "t2t_harness/__init__.py"))
        if hello["preload"][0] == "t2t_harness.server.bytecode:use":
            note(f"finds {os.environ['T2T_BYTECODE']}")
        self.send({"hello": introduction(hello)})
        while True:
            message = self.receive()
            if message == "shutdown":
                os._exit(0)
            if "cancel" in message:
                self.finish(message["cancel"]["id"], "cancelled", [])
            if "dismiss" in message:
                with open(join(HERE, "dismissed.log"), "a") as file:
                    file.write(message["dismiss"]["device"] + "\n")
            if "prepare" in message:
                self.prepare(message["prepare"])
            if "run" in message:
                self.open.add(message["run"]["id"])
                _thread.start_new_thread(self.run, (message["run"],))

    def is_forked(self) -> bool:
        """Fork the server of the other kind, as the worker does after the imports that both have, and return whether this is that one."""
        own, output = SPARE
        try:
            between = os.fork()
        except OSError:
            # As the worker does at a limit on processes: whoever asks for a child is told of it.
            between = -1
        if between:
            if between > 0:
                os.waitpid(between, 0)
            os.close(own)
            os.close(output)
            return False
        try:
            is_between = os.fork() > 0
        except OSError:
            is_between = True
        if is_between:
            os._exit(0)
        os.setpgid(0, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        self.peer = _socket.socket(fileno=own)
        self.send({"forked": {"pid": os.getpid()}})
        return True

    def prepare(self, reserve: Mapping[str, Any]) -> None:
        """Log how a child is to get ready, and say that it is, unless children are to take long."""
        with open(RESERVES, "a") as file:
            file.write(json.dumps(reserve) + "\n")
        if not exists(UNREADY):
            self.send({"prepared": {"key": reserve["key"]}})

    def run(self, request: Mapping[str, Any]) -> None:
        """Answer one request."""
        self.send({"started": {"id": request["id"], "pid": os.getpid()}})
        call = Call(request)
        try:
            if not self.has_harness:
                raise ModuleNotFoundError("No module named 't2t_harness'")
            end = call.end()
        except Exception as error:
            end = {"raised": {"kind": type(error).__name__, "message": str(error), "traceback": str(error)}}
        self.finish(request["id"], end, call.opened)

    def finish(self, number: int, end: Any, opened: list[str]) -> None:
        """Tell how a request ended, once."""
        with self.lock:
            if number not in self.open:
                return
            self.open.remove(number)
        nothing = {"head": "", "tail": "", "total": 0, "dropped": 0}
        used = {"wall_ms": 1, "cpu_ms": 1, "max_rss_kib": 1, "grown_kib": 0}
        finished = {"id": number, "end": end, "stdout": nothing, "stderr": nothing, "usage": used}
        self.send({"finished": {**finished, "opened": opened, "left_behind": 0, "stayed": False}})

    def receive(self) -> Any:
        """Return the next message, or leave where there is none."""
        (length,) = struct.unpack(">I", self.exactly(4))
        return json.loads(self.exactly(length))

    def exactly(self, count: int) -> bytes:
        """Return the next bytes."""
        parts = b""
        while len(parts) < count:
            part = self.peer.recv(count - len(parts))
            if not part:
                os._exit(0)
            parts += part
        return parts

    def send(self, message: Message | str) -> None:
        """Send one message."""
        body = json.dumps(message).encode()
        with self.lock:
            self.peer.sendall(struct.pack(">I", len(body)) + body)


def introduction(hello: Mapping[str, Any]) -> Message:
    """Return the answer to a hello."""
    told = versions()
    missing = [{"module": name, "reason": "ImportError: none"} for name in ("torch", "triton") if name not in told]
    return {
        "version": 10,
        "kind": hello["kind"],
        "worker": "0.1.0",
        "pid": os.getpid(),
        "python": "3.12.1",
        "executable": ITSELF,
        "path": [SITE],
        "packages": {name: told[name] for name in ("torch", "triton") if name in told},
        "missing": missing,
        "landlock": 0,
        "namespaces": False,
    }


def versions() -> dict[str, str]:
    """Return the versions that this environment has."""
    told: dict[str, str] = json.loads(text_of(join(SITE, "versions.json")))
    return told


def text_of(path: str) -> str:
    """Return what a file holds."""
    with open(path) as file:
        return file.read()


def note(line: str) -> None:
    """Add a line to the log of what ran."""
    descriptor = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(descriptor, (line + "\n").encode())
    os.close(descriptor)


class Call:
    """One call of a function of the harness."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self.function = request["function"].removeprefix("t2t_harness.phases.")
        self.request = request["arguments"]
        """What the function is told. Each casts it to its own request."""
        self.limits = request["limits"]
        self.stays: bool = request["stays"]
        self.undisturbed: bool = request["undisturbed"]
        self.environment: dict[str, str] = request["environment"]
        self.opened: list[str] = []
        self.own_variant: Variant | None = self.request.get("variant")
        self.own_op: Declaration | None = self.request.get("op")
        self.marks = self.read_marks(self.own_variant) if self.own_variant else {}

    @property
    def common(self) -> Common:
        """Return what every child of an action is told."""
        told: Common = self.request
        return told

    @property
    def op(self) -> Declaration:
        """Return the op of a function that is told of one."""
        assert self.own_op is not None
        return self.own_op

    @property
    def variant(self) -> Variant:
        """Return the variant of a function that is told of one."""
        assert self.own_variant is not None
        return self.own_variant

    def end(self) -> Any:
        """Return how the call ends."""
        if self.function.startswith("judge:"):
            self.log_judge()
        if self.function == "judge:follow":
            if "FOLLOWED" not in self.marks:
                # There is nothing that it could judge before the candidate ends. Somebody else judges then.
                return {"reply": passed({})}
            self.request["end"] = self.end_of_candidate()
        note(f"{self.target()} {self.function}")
        if self.function == "judge:judge" and "JUDGE-SPENT" in self.marks:
            return {"memory": "killed by the kernel, out of memory"}
        answer = ANSWERS[self.function]
        began = time.monotonic_ns()
        if self.device():
            time.sleep(0.02)
        if self.function in ("candidate:run", "compile:compile_variant", "bench:bench"):
            early = self.runs_kernel()
            if early is not None:
                return early
        reply = answer(self)
        span = [began, time.monotonic_ns()]
        if self.device():
            doing: ToldDoing = "timing" if self.function == "bench:bench" else "work"
            # One that is no span does not count.
            reply["device_spans"] = [[*span, doing], [0]]
        self.log_child(span)
        if exists(SPANS):
            note(f"span {os.getpid()} {began} {time.monotonic_ns()} {self.target()}")
        return {"reply": reply}

    def end_of_candidate(self) -> object:
        """Return how the candidate has ended, once it has."""
        over = join(self.common["scratch"], "over")
        while not exists(over):
            time.sleep(0.005)
        return json.loads(text_of(over))

    def device(self) -> str:
        """Return the UUID of the device that this call sees, or nothing."""
        device: str = self.environment.get("CUDA_VISIBLE_DEVICES", "")
        return device

    def log_child(self, span: list[int]) -> None:
        """Log what this call was told, where it is part of a build on devices."""
        if self.request.get("model", "interpreter") == "interpreter":
            return
        told: dict[str, object] = {
            "target": self.target(),
            "function": self.function,
            "device": self.device(),
            "span": span,
        }
        told |= {
            "cores": self.limits["cores"],
            "server_cores": sorted(os.sched_getaffinity(0)),
            "nice": self.limits["nice"],
            "processes": self.request.get("processes"),
        }
        told |= {"stays": self.stays, "undisturbed": self.undisturbed}
        told |= {"queues": self.environment.get(QUEUES)}
        told |= {"timed_until": self.common["timed_until"]}
        told |= {"threads": self.environment["OMP_NUM_THREADS"]}
        told |= {"ready": text_of(RESERVES).count(f'"key": "{self.device()}"') if exists(RESERVES) else 0}
        with open(join(HERE, "children.log"), "a") as file:
            file.write(json.dumps(told) + "\n")

    def log_judge(self) -> None:
        """Log of which attempt of a candidate a judge was told, and on which device."""
        told: JudgeRequest = self.request
        line = {
            "target": self.target(),
            "function": self.function,
            "attempt": told["attempt"],
            "device": self.device(),
            "pid": os.getpid(),
        }
        with open(join(HERE, "judges.log"), "a") as file:
            file.write(json.dumps(line) + "\n")

    def target(self) -> str:
        """Return the action that this call is part of."""
        if PHASES[self.function] == "calibrate":
            return "calibrate"
        op = "" if self.own_op is None else self.own_op["name"]
        place = op + ("" if self.own_variant is None else f"/{self.own_variant['name']}")
        return f"{place}:{PHASES[self.function]}"

    def read_marks(self, variant: Variant) -> dict[str, str]:
        """Return what the kernel file of a variant says is to become of it."""
        for line in self.text(variant).splitlines():
            if line.startswith('MARK = "'):
                words = [mark.strip().partition(" ") for mark in line[8:-1].split(";")]
                return {name: value for name, _, value in words}
        return {}

    def text(self, variant: Variant) -> str:
        """Return the kernel file of a variant."""
        return text_of(join(self.common["root"], variant["file"]))

    def runs_kernel(self) -> Any:
        """Return how the kernel's process ends, or None where it replies."""
        marks, is_check = self.marks, self.function == "candidate:run"
        if "READS" in marks:
            self.opened.append(marks["READS"])
        if "STREAMS" in marks and QUEUES in self.environment:
            self.log_child([0, 0])
            again: Reply = {"outcome": "again", "class": None, "cites": False, "documents": {}, "files": {}}
            return {"reply": again}
        if is_check and "SLEEP" in marks:
            time.sleep(float(marks["SLEEP"]))
        if is_check and "HANG" in marks and not exists(CALM):
            self.hang()
        while is_check and "WAITS" in marks and not exists(CALM):
            time.sleep(0.01)
        if is_check and "DIES" in marks:
            os._exit(9)
        if is_check and ("LOST" in marks or ("LOST-ONCE" in marks and self.is_first())):
            return {"signal": 9}
        if is_check and "CRASH" in marks:
            return {"signal": 11}
        if is_check and float(marks.get("NEEDS", 0)) * 1000 > (self.limits["cpu_ms"] or math.inf):
            return "cpu_limit"
        return None

    def hang(self) -> None:
        """Start a process in a session of its own, as the worker's children are, and wait for ever."""
        import subprocess

        child = subprocess.Popen(["/bin/sleep", "600"], start_new_session=True)
        note(f"pid {child.pid}")
        child.wait()
        time.sleep(600)

    def is_first(self) -> bool:
        """Return whether this function was not called for this action before."""
        return text_of(LOG).splitlines().count(f"{self.target()} {self.function}") < 2

    def code(self) -> str:
        """Return a digest of the kernel file and what it imports, without comments and docstrings."""
        import ast
        import hashlib

        path = join(self.common["root"], self.variant["file"])
        tree = ast.parse(text_of(path))
        texts = [bare(tree)]
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                names = [name.name for name in node.names] + [(node.module or "").rpartition(".")[2]]
                beside = os.path.dirname(path)
                files = [join(at, f"{name}.py") for name in names for at in (beside, os.path.dirname(beside))]
                texts += [bare(ast.parse(text_of(file))) for file in files if isfile(file)]
        read = join(self.common["root"], self.marks.get("READS", "none"))
        texts += [text_of(read)] if isfile(read) else []
        return hashlib.sha256("\n".join(texts).encode()).hexdigest()

    def rejection(self, kind: str, message: str) -> Failure:
        """Return the failure at the line of the mark."""
        lines = self.text(self.variant).splitlines()
        number = next(at for at, line in enumerate(lines, 1) if line.startswith("MARK"))
        found = placeless(kind, message)
        found["case"] = None if kind == "compile-error" else "small/float32/0"
        found["place"] = {"file": self.variant["file"], "line": number, "column": 1}
        found["excerpt"] = lines[number - 1]
        return found


def placeless(kind: str, message: str) -> Failure:
    """Return a failure that names no line."""
    return {
        "class": kind,
        "case": None,
        "given": None,
        "message": message,
        "place": None,
        "excerpt": None,
        "hint": None,
        "traceback": [],
        "index": None,
        "got": None,
        "expected": None,
        "max_abs": None,
        "max_rel": None,
        "bad": None,
        "total": None,
    }


def bare(tree: Any) -> str:
    """Return the code of a module without docstrings."""
    import ast

    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            body.pop(0)
    return ast.dump(tree)


def passed(documents: Documents, files: dict[str, str] | None = None) -> Reply:
    """Return the reply of a function that is content."""
    return {"outcome": "passed", "class": None, "cites": False, "documents": documents, "files": files or {}}


def rejected(kind: str, documents: Documents, cites: bool) -> Reply:
    """Return the reply of a function that found fault with the kernel."""
    return {"outcome": "rejected", "class": kind, "cites": cites, "documents": documents, "files": {}}


def not_judged(reason: str) -> Reply:
    """Return the reply of a function that can say nothing."""
    return {**passed({}), "outcome": "not-judged", "reason": reason}


def probe(_: Call) -> Reply:
    """Say what this environment has."""
    told: dict[str, str | None] = {"python": "3.12.1", "numpy": "2.3.5", "ptxas": "12.8.93", **versions()}
    names = ["torch.nn.functional.softmax", "torch.nn.functional.gelu", "torch.nn.functional.relu", "torch.add"]
    mapped = json.loads(text_of(join(SITE, "mapped.json"))) if exists(join(SITE, "mapped.json")) else {}
    return passed({"toolchain": told, "names": names, "modules": {"suffixes": [".so"], "mapped": mapped}})


def analyze(call: Call) -> Reply:
    """Say what there is to say of an op: its name and the torch that told it. It refuses the kwarg `refused`."""
    if "refused" in call.op["kwargs"]:
        failure: AnalysisFailure = {"class": "ValueError", "message": "torch refuses the call", "size": None}
        return rejected("exception", {"failure": failure}, cites=False)
    return passed(
        {
            "analysis": {
                "version": 1,
                "operation": str(call.op["torch"]),
                # What no page shows: the document is another one for another torch and other dtypes.
                "defined_in": f"torch {versions()['torch']}",
                "dtype": ", ".join(call.op["dtypes"]),
                "signature": "(input)",
                "documentation": {"summary": "an op", "math": []},
                "definition": None,
                "notes": None,
                "inputs": [],
                "outputs": None,
                "aten": [],
                "sizes": {},
                "growth": {"work": {}, "memory": {}},
                "access": {"class": None, "patterns": [], "description": None},
                "ridge": {"device": "none", "flops_per_second": None, "bytes_per_second": None, "flops_per_byte": None},
                "unknown": [],
            },
            "lengths": {},
        }
    )


def compile_variant(call: Call) -> Reply:
    """Make one kernel of the code."""
    if "COMPILE-ERROR" in call.marks:
        return rejected("compile-error", {"failure": call.rejection("compile-error", "cannot compile")}, cites=True)
    request: CompileRequest = call.request
    target = request["targets"][0]["id"]
    code = call.code()[:16]
    stages = {stage: f"{code}/kernel.{stage}" for stage in ("ttir", "ttgir", "llir", "ptx", "cubin")}
    make_archive(join(call.common["scratch"], "triton.tar.gz"), stages, code)
    documents: Documents = {
        "launches": {
            "targets": [target],
            "coverage": "full",
            "reasons": [],
            "configurations": "all",
            "autotuned": False,
            "dropped": [],
            "launches": [
                {
                    "compiled": code,
                    "target": target,
                    "kernel": "kernel",
                    "config": None,
                    "constants": {"BLOCK": 16},
                    "case": "small/float32",
                    "grid": [1, 1, 1],
                }
            ],
        },
        "resources": {
            "kernels": [
                {
                    "compiled": code,
                    "target": target,
                    "kernel": "kernel",
                    "config": None,
                    "constants": {"BLOCK": 16},
                    "num_warps": 4,
                    "num_stages": 3,
                    "registers": 32,
                    "spills": 0,
                    "shared": 0,
                    "stages": stages,
                }
            ]
        },
    }
    return passed(documents, {"triton.tar.gz": "triton.tar.gz"})


def make_archive(path: str, stages: Mapping[str, str], code: str) -> None:
    """Write Triton's cache folder of one kernel."""
    import gzip
    import io
    import tarfile

    with (
        open(path, "wb") as file,
        gzip.GzipFile("", "wb", 1, file, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as archive,
    ):
        for stage, name in stages.items():
            body = f"// {stage} of {code}\n".encode()
            member = tarfile.TarInfo(name)
            member.size = len(body)
            archive.addfile(member, io.BytesIO(body))


def judge(call: Call) -> Reply:
    """Judge the candidate by its marks and the way it ended."""
    request: JudgeRequest = call.request
    end, marks = request["end"], call.marks
    atol = call.op["tolerances"]["float32"][0]
    error = float(marks.get("ERROR", 1e-7))
    if end["kind"] in ("timeout", "cpu-limit"):
        return verdict(call, "timeout", end["message"], error, cites=False)
    if end["kind"] == "signal":
        return verdict(call, "crash", end["message"], error, cites=False)
    if "RAISE" in marks:
        return verdict(call, "exception", f"ValueError: {marks['RAISE'] or 'raised'}", error, cites=True)
    if "REJECT" in marks:
        return verdict(call, marks["REJECT"], "2 of 256 elements differ", error, cites=True)
    if error > atol:
        return verdict(call, "mismatch", f"off by {error}, allowed are {atol}", error, cites=True)
    return verdict(call, None, None, error, cites=False)


def verdict(call: Call, kind: str | None, message: str | None, error: float, cites: bool) -> Reply:
    """Return the two documents of a check."""
    word: CheckVerdict = "rejected" if kind else "not-judged" if "NOT-JUDGED" in call.marks else "passed"
    names = [f"{size}/{dtype}/0" for size in call.op["check_sizes"] for dtype in call.op["dtypes"]]
    failure = None
    if kind and message:
        failure = call.rejection(kind, message) if cites else placeless(kind, message)
    evidence: Evidence = {
        "cases": [row(name, word, error) for name in names],
        "tolerances": call.op["tolerances"],
        "lint": {},
        "unfit": [],
        "repeat": "identical",
        "constants": {},
        "configurations": {"tried": 1, "dropped": []},
        "worst": {"case": names[0], "max_abs": error, "max_rel": error},
        "notes": [f"code {call.code()[:8]}"],
        "failure": failure,
        "output": {"stdout": "", "stderr": "", "truncated": False},
    }
    if "LEFT-OUT" in call.marks:
        evidence["left_out"] = [
            f"edge/zeros[input,N={number}]/float32" for number in range(int(call.marks["LEFT-OUT"]))
        ]
    if "UNTRIED" in call.marks:
        evidence["untried"] = [call.marks["UNTRIED"]]
        evidence["notes"] += [f"arguments tried at no other value: {call.marks['UNTRIED']}"]
    reason = "not here" if word == "not-judged" else None
    documents: Documents = {
        "verdict": {"verdict": word, "class": kind, "reason": reason, "cases": dict.fromkeys(names, word)},
        "evidence": evidence,
    }
    if "UNJUDGED" in call.marks:
        evidence["cases"].append(row(call.marks["UNJUDGED"], "not-judged", error))
        documents["verdict"]["not_judged"] = [
            {"dtype": "float32", "cases": 1, "of": len(evidence["cases"]), "reason": "it lacks that"}
        ]
    if kind:
        return rejected(kind, documents, cites)
    reply = passed(documents)
    reply["outcome"], reply["reason"] = word, reason
    return reply


def row(name: str, word: CheckVerdict, error: float) -> CaseRow:
    """Return the row of a case."""
    return {
        "name": name,
        "kind": "declared",
        "dtype": name.split("/")[-1 if name.startswith("edge/") else 1],
        "binding": {},
        "verdict": word,
        "reason": None,
        "class": None,
        "rule": "allclose",
        "max_abs": error,
        "max_rel": error,
        "torch_max_abs": None,
        "bad": 0,
        "total": 0,
        "index": None,
        "got": None,
        "expected": None,
        "launches": 1,
        "configs": 0,
    }


def figure() -> Figure:
    """Return a time; no two are the same, but where all are."""
    if exists(STEADY):
        return steady_figure(1.0)
    took = time.time_ns() % 1_000_000_007 / 1e9 + 0.001
    return figure_of([run_of(took)], run_of(took), 0.0)


def run_of(took: float) -> Run:
    """Return a run in which every call took as long."""
    return {"mean": took, "median": took, "p20": took, "p80": took}


def steady_figure(took: float) -> Figure:
    """Return a time that five runs agree on to 0.2 %."""
    runs = [run_of(took * part) for part in (0.998, 0.999, 1, 1.001, 1.002)]
    return figure_of(runs, runs[2], 0.001)


def figure_of(runs: list[Run], middle: Run, cv: float) -> Figure:
    """Return the figure of runs that vary by `cv`."""
    return {
        "runs": runs,
        "mean": middle["mean"],
        "median": middle["median"],
        "p20": middle["p20"],
        "p80": middle["p80"],
        "cv": cv,
        "repeated": 0,
    }


NO_ROOM = "torch's own call at N=8 needs more memory than the device has"
"""Why nothing is measured of an op whose reference is too large; its baseline is that of the op that the file `no-room` names."""


def bench(call: Call) -> Reply:
    """Measure the variant."""
    if "NO-ROOM" in call.marks:
        return not_judged(NO_ROOM)
    sizes: dict[str, BenchSize] = {}
    request: BenchRequest = call.request
    protocol = request["protocol"]
    for name, binding in call.op["sizes"].items():
        took = steady_figure(float(call.marks["TAKES"])) if "TAKES" in call.marks else figure()
        # Of a device's document and of the interpreter's, what either is read for.
        sizes[name] = {"binding": binding, "dtype": "float32", "variant": took, "torch": figure(), "config": None}
        sizes[name]["interpreter_ms"] = took["median"]
        if "stop" in protocol:
            took["within"] = sizes[name]["torch"]["within"] = took["mean"] / 100
            sizes[name]["stopped"] = {"runs": 6, "most": 10 * protocol["runs"], "why": "precise"}
    final = next(iter(sizes.values()))["variant"]["mean"]
    document: Bench = {
        "clock": "host",
        "protocol": protocol,
        "device": device_of(call),
        "telemetry": {"before": None, "after": None},
        "final_ms": final,
        "torch_final_ms": 2 * final,
        "speedup": 2.0,
        "geomean_speedup": 2.0,
        "host_us": 1.0,
        "unstable": "VARIES" in call.marks,
        "why_unstable": call.marks.get("VARIES"),
        "remeasured": False,
        "triton_cache": {"hits": 0, "misses": []},
        "sizes": sizes,
    }
    if "NO-FINAL" in call.marks:
        del document["final_ms"]
    return passed({"bench": document})


def device_of(call: Call) -> MeasuredDevice:
    """Return what ran a measurement."""
    model = call.common["model"]
    return {"model": model, "name": None, "uuid": call.device() or None, "driver": None, "capability": None}


def calibrate(call: Call) -> Reply:
    """Have measured the device."""
    rate = float(text_of(RATE)) if exists(RATE) else 4000.0
    protocol: Protocol = {"runs": 0, "warmup_ms": 0, "rep_ms": 0}
    return passed(
        {
            "calibration": {
                "clock": "host",
                "protocol": protocol,
                "device": device_of(call),
                "telemetry": {"before": None, "after": None},
                "copies": [{"bytes": 1 << 30, "gb_per_s": rate, "mean": 0.5, "median": 0.5, "p20": 0.5, "p80": 0.5}],
                "copy_gb_per_s": rate,
                "products": {},
                "reasons": {},
                "unstable": exists(STRANGERS),
                "why_unstable": "other processes on the GPU: 1" if exists(STRANGERS) else None,
            }
        }
    )


def tune(call: Call) -> Reply:
    """Choose nothing."""
    return passed({"tune": {"device": call.common["model"], "choices": []}})


def judge_sample(call: Call) -> Reply:
    """Judge a timed call's output."""
    request: SampleRequest = call.request
    document = request["bench"].copy()
    error, (atol, _) = float(call.marks.get("DRIFTS", 0)), call.op["tolerances"]["float32"]
    document["judged"] = {"small": {"run": 0, "verdict": "rejected" if error > atol else "passed"}}
    if error > atol:
        failure = placeless("mismatch", f"a timed call is off by {error}, allowed are {atol}")
        return rejected("mismatch", {"bench": document, "failure": failure}, cites=False)
    return passed({"bench": document})


def screen(call: Call) -> Reply:
    """Hold a candidate against the kernel that it is to replace, by what their files say that they take."""
    request: ScreenRequest = call.request
    marks = [call.read_marks(request["incumbent"]), call.read_marks(request["candidate"])]
    if "BREAKS" in marks[1]:
        return rejected("exception", {"failure": placeless("exception", "RuntimeError: it breaks")}, cites=False)
    before, own = (float(one.get("SEEMS", one.get("TAKES", 1))) for one in marks)
    ratio = own / before
    why: ScreenReason = "faster" if ratio < 0.99 else "no-gain" if ratio < 1.01 else "slower"
    return passed(
        {
            "screen": {
                "clock": "host",
                "model": call.common["model"],
                "pairs": 3,
                "why": why,
                "may_win": why == "faster",
                "ratio": ratio,
                "low": ratio * 0.99,
                "high": ratio * 1.01,
                "error": 0.05,
                "incumbent_ms": [before] * 3,
                "candidate_ms": [own] * 3,
                "device_s": 0.25,
                "telemetry": None,
            }
        }
    )


def baseline(call: Call) -> Reply:
    """Measure torch."""
    if exists(join(SITE, "no-room")) and text_of(join(SITE, "no-room")) == call.op["name"]:
        return not_judged(NO_ROOM)
    if call.device() and exists(TOGETHER):
        note(f"on {call.device()}")
        while len({line for line in text_of(LOG).splitlines() if line.startswith("on ")}) < 2:
            time.sleep(0.01)
    figures = {name: figure() for name in call.op["sizes"]}
    sizes: dict[str, BaselineSize] = {
        name: {"binding": binding, "dtype": "float32", "torch": figures[name]}
        for name, binding in call.op["sizes"].items()
    }
    torch_ms = next(iter(figures.values()))["mean"]
    finals: dict[str, float | None] = {"torch": torch_ms}
    request: BaselineRequest = call.request
    named = [name for name in request["baselines"] if ":" in name]
    reasons: dict[str, str] = {}
    for one in request.get("functions", []):
        text = text_of(join(call.common["root"], one["file"])) if "file" in one else ""
        if "# ENDS" in text and "ended" not in one:
            raise ValueError(f"{one['name']} takes the process along")
        if "# WRONG" in text or "file" not in one or "ended" in one:
            reasons[one["name"]] = one.get("ended", "its result is not torch's")
        named.append(one["name"])
    for name in named:
        finals[name] = None if name in reasons else torch_ms
        for size, own in sizes.items():
            own.setdefault("others", {})[name] = None if name in reasons else figures[size]
    return passed(
        {
            "baseline": {
                "clock": "host",
                "protocol": request["protocol"],
                "device": device_of(call),
                "telemetry": {"before": None, "after": None},
                "sizes": sizes,
                "finals": finals,
                "compile_ms": None,
                "reasons": reasons,
                "unstable": False,
                "why_unstable": None,
            }
        }
    )


def prepare(call: Call) -> Reply:
    """Keep inputs, which the op's `cases.py` makes of a file that it names."""
    cases = str(call.op["cases"])
    text = text_of(join(call.common["root"], cases))
    if text.startswith("# READS "):
        call.opened.append(text.split()[2])
    with open(join(call.common["scratch"], "cases.json"), "w") as file:
        file.write(cases)
    return passed({})


def candidate(call: Call) -> Reply:
    """Run on what was prepared, and tell of a launch."""
    request: CandidateRequest = call.request
    inputs = request["inputs"]
    if (None if inputs is None else text_of(join(inputs, "cases.json"))) != call.op["cases"]:
        raise ValueError("these are not the op's cases")
    # Behind the walls of the real worker nothing is written there.
    try:
        with open(SALTS, "a") as file:
            file.write(json.dumps({"target": call.target(), "salt": request["salt"]}) + "\n")
    except OSError:
        pass
    told: Progress = {
        "running": None,
        "listed": 0,
        "is_over": True,
        "constants": {f"BLOCK{number or ''}": 64 for number in range(int(call.marks.get("CONSTANTS", 1)))},
        "reach": {"cases": [], "missed": [], "fallbacks": []},
        "load": None,
        "configurations": {"tried": 1, "dropped": []},
        "triton_cache": {"hits": 0, "misses": [], "launchers": {"hits": 0, "misses": []}},
    }
    return passed({"ran": told})


ANSWERS = {
    "calibrate:calibrate": calibrate,
    "probe:probe": probe,
    "analyze:analyze": analyze,
    "compile:compile_variant": compile_variant,
    "prepare:prepare": prepare,
    "candidate:run": candidate,
    "judge:judge": judge,
    "judge:follow": judge,
    "tune:tune": tune,
    "bench:bench": bench,
    "sample:judge_sample": judge_sample,
    "baseline:baseline": baseline,
    "screen:screen": screen,
}

PHASES = {
    "calibrate:calibrate": "calibrate",
    "probe:probe": "probe",
    "analyze:analyze": "analyze",
    "compile:compile_variant": "compile",
    "prepare:prepare": "check",
    "candidate:run": "check",
    "judge:follow": "check",
    "judge:judge": "check",
    "tune:tune": "tune",
    "bench:bench": "bench",
    "sample:judge_sample": "bench",
    "baseline:baseline": "baseline",
    "screen:screen": "screen",
}
