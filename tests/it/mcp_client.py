"""Sessions with `t2t mcp`, by the protocol's official client for Python: `mcp_client.py SESSION T2T WORKSPACE`. Each ends with an AssertionError where the server is wrong.

What the server is to find in its environment is that of this process. It knows t2t from outside alone.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters

T2T, WORKSPACE = sys.argv[2], Path(sys.argv[3])
SOON = 120
"""Seconds: longer than anything takes that works."""
EMPTY = '''"""An empty kernel."""
'''

RELU = '''"""ReLU: max(x, 0), a block of elements a program."""

import torch
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x, y, n, BLOCK: tl.constexpr):
    """Store max(x, 0) for one block."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(y + at, tl.where(value <= 0, 0.0, value), mask=at < n)


def triton_clip(input):
    """Return max(input, 0)."""
    x = input.contiguous()
    y = torch.empty_like(x)
    if x.numel():
        relu_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
    return y
'''


@asynccontextmanager
async def session(mode: str = "auto", *options: str) -> AsyncIterator[Client]:
    """Yield a client whose server works in the workspace."""
    arguments = ["mcp", "--workspace", str(WORKSPACE), "--device", "cpu", *options]
    server = StdioServerParameters(command=T2T, args=arguments, env=dict(os.environ), cwd="/")
    async with Client(server, mode=mode) as client:
        yield client


async def ask(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return what a tool answers. Fails where it has no answer."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, (tool, arguments, result.content)
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    """Return why a tool has no answer. Fails where it has one."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, (tool, arguments, result.structured_content)
    return str(result.content[0].text)


def until(found: Callable[[], Any]) -> Any:
    """Return what is found, once it is. Fails where it is not found soon."""
    for _ in range(SOON * 20):
        value = found()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError("it does not happen")


def logged(start: str) -> list[str]:
    """Return the rests of the lines of the stand-in's log that start so."""
    log = WORKSPACE.parent / "python/bin/ran.log"
    lines = log.read_text().splitlines() if log.exists() else []
    return [line.removeprefix(start).strip() for line in lines if line.startswith(start)]


def is_there(process: int) -> bool:
    """Return whether a process runs."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


def of_workspace() -> list[int]:
    """Return the servers of the workspace and all that runs below them, but for what a hanging kernel of the stand-in started: no sandbox ends that."""
    found: list[int] = []
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        try:
            command = (folder / "cmdline").read_bytes().split(b"\0")
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        if command[0] == T2T.encode() and str(WORKSPACE).encode() in command:
            found.append(int(folder.name))
    for process in found:
        found += [child for child, parent in parents.items() if parent == process and str(child) not in logged("pid ")]
    return [process for process in found if is_there(process)]


def kernel(op: str, mark: str) -> str:
    """Return a kernel for the stand-in, as `tests/it/project.rs` writes it."""
    return f'"""{op}."""\nimport triton\n\nMARK = "{mark}"\n\n\ndef triton_{op}(input):\n    """Launch it."""\n    return input + 1\n'


async def author() -> None:
    """Declare an op in an empty folder, submit a wrong kernel, read why, and submit a right one."""
    told: list[tuple[float, float | None, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total, message))

    async with session() as client:
        assert "add_op" in await refusal(client, "list_ops")
        entry = "clip:\n  torch: torch.nn.functional.relu\n  inputs: {input: [M, N]}\n  variants: [mine]\n  bench: {sizes: {small: [16, 16]}}\n"
        assert await ask(client, "declare_op", entry=entry) == {"op": "clip"}
        assert (WORKSPACE / ".gitignore").read_text() == "/cache/\n/logs/\n"
        missing = await refusal(client, "read_kernel", op="clip", variant="mine")
        assert "`kernels/clip/mine.py` is not there" in missing and "submit_kernel" in missing, missing
        assert "hint: `build`" in await refusal(client, "read_log")
        assert "no target is named" in await refusal(client, "explain", targets=[])
        contract = await ask(client, "read_contract", op="clip", variant="mine")
        expected = {"file": "kernels/clip/mine.py", "entry": "triton_clip", "parameters": ["input"], "cases": None}
        assert {name: contract[name] for name in expected} == expected
        assert contract["tolerances"] == {"float32": [1e-5, 1e-5]}
        analysis = await ask(client, "read_analysis", op="clip")
        assert analysis["sizes"]["small"]["bytes"] == 2 * 4 * 16 * 16, analysis["sizes"]

        wrong = RELU.replace("value <= 0", "value <= 1")
        submission = {"op": "clip", "variant": "mine", "source": wrong, "measure": False}
        rejected = (await client.call_tool("submit_kernel", submission, progress_callback=progress)).structured_content
        assert (rejected["verdict"], rejected["class"]) == ("rejected", "mismatch"), rejected
        failure = rejected["failures"][0]
        assert failure["file"] == "kernels/clip/mine.py" and failure["case"] and failure["message"], failure
        assert rejected["cases"]["rejected"] > 0 and rejected["figures"] is None
        assert "what helps" in (await ask(client, "explain", targets=["mismatch"]))["text"]
        assert "mismatch" in (await ask(client, "explain", targets=["clip/mine:check"]))["text"]
        done = [step for step, _, _ in told]
        assert len(done) > 3 and done == sorted(set(done)), done
        assert all(total is None or step <= total for step, total, _ in told), told
        assert any("clip/mine:check" in (message or "") for _, _, message in told), told

        passed = await ask(client, "submit_kernel", op="clip", variant="mine", source=RELU)
        assert (passed["verdict"], passed["failures"], passed["submission"]) == ("passed", [], 2), passed
        assert set(passed["cases"]) <= {"passed", "dropped"} and passed["cases"]["passed"] > 10
        used = passed["resources"][0]
        assert used["kernel"] == "relu_kernel" and used["spills"] == 0 and used["registers"] > 0, used
        assert passed["figures"]["sizes"]["small"]["interpreter_ms"] > 0
        attempts = (await ask(client, "list_attempts", op="clip", variant="mine"))["submitted"]
        assert [row["verdict"] for row in attempts] == ["rejected", "passed"] and attempts[0]["class"] == "mismatch"
        assert (await ask(client, "read_contract", op="clip", variant="mine"))["cases"]
        ptx = await ask(client, "read_ir", op="clip", variant="mine", lines=20)
        assert ".version" in ptx["text"] and ptx["lines"] == 20 < ptx["of_lines"]
        assert "tt.func" in (await ask(client, "read_ir", op="clip", variant="mine", stage="ttir"))["text"]

        built = await ask(client, "build")
        assert built["exit_code"] == 0 and not built["failures"]
        assert "mine" in (await ask(client, "read_log", op="clip"))["text"]
        assert "clip" in (await ask(client, "read_log"))["text"]
        op = (await ask(client, "list_ops"))["ops"][0]
        assert op["variants"][0]["phases"]["check"] == {"state": "fresh", "outcome": "passed"}, op
        names = [str(resource.uri) for resource in (await client.list_resources()).resources]
        assert {"t2t:///ops.yaml", "t2t:///logs/clip_log.md", "t2t:///docs/guide/judging.md"} <= set(names), names
        for name in names:
            read = (await client.read_resource(name)).contents[0]
            assert len(read.text) > 20, name


async def names() -> None:
    """Names that lead elsewhere write nothing, and what a person wrote stays."""
    before = (WORKSPACE / "ops.yaml").read_bytes()
    outside = WORKSPACE.parent / "outside"
    outside.mkdir()
    async with session("legacy") as client:
        for op, variant in [
            ("../outside", "v1_baseline"),
            ("softmax", "../../../outside/x"),
            ("softmax", "/etc/x"),
            ("--help", "x"),
            ("soft*", "v1_baseline"),
        ]:
            for tool, more in [
                ("submit_kernel", {"source": EMPTY}),
                ("read_kernel", {}),
                ("read_contract", {}),
                ("read_ir", {}),
                ("list_attempts", {}),
            ]:
                text = await refusal(client, tool, op=op, variant=variant, **more)
                assert "there is no op" in text or "has no variant" in text, text
        assert "there is no op" in await refusal(client, "read_log", op="../../outside")
        assert "there is no op" in await refusal(client, "read_analysis", op="--force")
        for name in ["--python=/bin/false", "../x", "-q"]:
            assert "error" in await refusal(client, "add_op", names=[name])
            assert "error" in await refusal(client, "build", targets=[name])
        assert "error" in await refusal(
            client, "declare_op", entry="../x:\n  torch: torch.relu\n  inputs: {input: [N]}\n"
        )
        two = "".join(f"{name}:\n  torch: torch.relu\n  inputs: {{input: [M, N]}}\n" for name in "ab")
        assert "2 new ops" in await refusal(client, "declare_op", entry=two)
        assert "unknown field" in await refusal(client, "list_ops", root="/etc")
        for address in ["t2t:///../outside", "t2t:///cache/journal", "file:///etc/passwd", "t2t:///logs/../ops.yaml"]:
            try:
                await client.read_resource(address)
            except Exception as error:
                assert "no resource" in str(error), error
            else:
                raise AssertionError(address)
        assert (WORKSPACE / "ops.yaml").read_bytes() == before

        # What a person wrote is kept, unless it is to be replaced; then there is a way back.
        place = WORKSPACE / "kernels/softmax/v1_baseline.py"
        written = place.read_text()
        own = kernel("softmax", "") + "\n"
        submission: dict[str, Any] = {"op": "softmax", "variant": "v1_baseline", "source": own, "measure": False}
        assert "replace: true" in await refusal(client, "submit_kernel", **submission)
        assert place.read_text() == written
        replaced = await ask(client, "submit_kernel", **submission, replace=True)
        assert replaced["verdict"] == "passed" and (WORKSPACE / replaced["replaced"]).read_text() == written
        submission["source"] += "\n"
        assert (await ask(client, "submit_kernel", **submission))["replaced"] is None

        await replace_generated(client)
        await add_variant(client)

        # No link is followed.
        place.unlink()
        place.symlink_to(outside / "v1_baseline.py")
        assert "link" in await refusal(client, "submit_kernel", **submission, replace=True)
        folder = WORKSPACE / "kernels/softmax"
        folder.rename(WORKSPACE / "kernels/away")
        folder.symlink_to(outside)
        assert "link" in await refusal(client, "submit_kernel", **submission, replace=True)
        assert not list(outside.iterdir())


async def replace_generated(client: Client) -> None:
    """Put a kernel over one that a generator made: that one can be made again."""

    async def is_generated() -> bool:
        op = next(op for op in (await ask(client, "list_ops"))["ops"] if op["op"] == "relu")
        assert op["variants"][0]["phases"]["check"]["outcome"] == "passed", op
        return bool(op["variants"][0]["generated"])

    said = (await ask(client, "add_op", names=["relu"], variants=["v1_baseline"]))["said"]
    assert any("relu" in line for line in said), said
    await ask(client, "build", targets=["relu:check"])
    assert "@triton.jit" in (await ask(client, "read_kernel", op="relu", variant="v1_baseline"))["source"]
    assert await is_generated()
    submission = {"op": "relu", "variant": "v1_baseline", "source": kernel("relu", ""), "measure": False}
    told = await ask(client, "submit_kernel", **submission)
    assert (told["verdict"], told["replaced"]) == ("passed", None), told
    assert not await is_generated()
    attempts = await ask(client, "list_attempts", op="relu", variant="v1_baseline")
    assert [row["verdict"] for row in attempts["submitted"]] == ["passed"] and attempts["generated"] is not None


async def add_variant(client: Client) -> None:
    """Add a variant, and put a kernel over the copy that its file is."""
    said = (await ask(client, "add_variant", op="softmax", variant="v9_mine"))["said"]
    assert any("kernels/softmax/v9_mine.py, a copy of kernels/softmax/v1_baseline.py" in line for line in said), said
    submission = {"op": "softmax", "variant": "v9_mine", "source": kernel("softmax", "mine"), "measure": False}
    told = await ask(client, "submit_kernel", **submission)
    assert (told["verdict"], told["replaced"]) == ("passed", None), told
    assert "v9_mine" in await refusal(client, "add_variant", op="softmax", variant="v9_mine")
    assert "no variant `--help`" in await refusal(
        client, "add_variant", op="softmax", variant="v8", **{"from": "--help"}
    )
    assert "not a valid name" in await refusal(client, "add_variant", op="softmax", variant="../x")
    assert "there is no op" in await refusal(client, "add_variant", op="../outside", variant="x")


async def together() -> None:
    """Two clients submit at once: each gets the verdict on its own kernel, and of one variant only one of them."""
    async with session() as one, session("legacy") as other:
        answers: dict[str, Any] = {}

        async def submit(client: Client, variant: str, mark: str) -> None:
            source = kernel("softmax", mark)
            arguments = {"op": "softmax", "variant": variant, "source": source, "replace": True, "measure": False}
            answers[variant] = await ask(client, "submit_kernel", **arguments)

        async with anyio.create_task_group() as group:
            group.start_soon(submit, one, "v1_baseline", "SLEEP 1")
            group.start_soon(submit, other, "v2_tiling", "SLEEP 1; REJECT mismatch")
        verdicts = {variant: (answer["verdict"], answer["class"]) for variant, answer in answers.items()}
        assert verdicts == {"v1_baseline": ("passed", None), "v2_tiling": ("rejected", "mismatch")}, verdicts

        async with anyio.create_task_group() as group:
            group.start_soon(submit, one, "v1_baseline", "WAITS")
            await anyio.to_thread.run_sync(
                lambda: until(lambda: len(logged("softmax/v1_baseline:check candidate:run")) > 1)
            )
            arguments = {"op": "softmax", "variant": "v1_baseline", "source": kernel("softmax", "")}
            assert "another call" in await refusal(other, "submit_kernel", **arguments)
            (WORKSPACE.parent / "python/bin/calm").write_text("")
        assert answers["v1_baseline"]["verdict"] == "passed"

        async with anyio.create_task_group() as group:
            for client, number in [(one, 1), (other, 2), (one, 3), (other, 4)]:
                entry = (
                    f"op{number}:\n  torch: torch.nn.functional.relu\n  inputs: {{input: [M, N]}}\n  variants: [v1]\n"
                )
                group.start_soon(lambda client=client, entry=entry: ask(client, "declare_op", entry=entry))
        ops = {op["op"] for op in (await ask(one, "list_ops"))["ops"]}
        assert {"op1", "op2", "op3", "op4"} <= ops, ops


async def cancelled() -> None:
    """A call that is taken back ends its build, and the server goes on."""
    for mode in ["legacy", "auto"]:
        await cancel_once(mode)
    until(lambda: not of_workspace())


async def cancel_once(mode: str) -> None:
    """Take back a call that never ends."""
    before = len(logged("pid "))
    source = kernel("softmax", "HANG").replace("+ 1", f"+ {len(mode)}")
    async with session(mode) as client:

        async def submit() -> None:
            arguments = {"op": "softmax", "variant": "v1_baseline", "source": source, "replace": True}
            await client.call_tool("submit_kernel", arguments)

        async with anyio.create_task_group() as group:
            group.start_soon(submit)
            await anyio.to_thread.run_sync(lambda: until(lambda: len(logged("pid ")) > before))
            server, *below = of_workspace()
            assert len(below) > 1, below
            group.cancel_scope.cancel()
        await anyio.to_thread.run_sync(lambda: until(lambda: not any(map(is_there, below))))
        assert is_there(server)
        assert len((await ask(client, "list_ops"))["ops"]) == 2
    end_sleeper()


def end_sleeper() -> None:
    """End what a hanging kernel of the stand-in started: that has no sandbox to end it."""
    with suppress(ProcessLookupError):
        os.kill(int(logged("pid ")[-1]), signal.SIGKILL)


def gone() -> None:
    """A client that vanishes takes its server along, and what that runs; and so does a server that is killed or told to end."""
    vanish(None, 10)
    vanish(signal.SIGKILL, 11)
    vanish(signal.SIGTERM, 12)


def vanish(told: signal.Signals | None, number: int) -> None:
    """Send the server a signal while a kernel hangs; kill the client where none is named."""
    before = len(logged("pid "))
    source = kernel("softmax", "HANG").replace("+ 1", f"+ {number}")
    command = [sys.executable, __file__, "hang", T2T, str(WORKSPACE)]
    client = subprocess.Popen(command, env={**os.environ, "SOURCE": source}, stderr=subprocess.DEVNULL)
    until(lambda: len(logged("pid ")) > before)
    server, *below = of_workspace()
    assert len(below) > 1, below
    if told is None:
        client.kill()
    else:
        os.kill(server, told)
    until(lambda: not any(map(is_there, [server, *below])))
    client.kill()
    client.wait()
    end_sleeper()


async def hang() -> None:
    """Submit what never ends."""
    async with session() as client:
        arguments = {"op": "softmax", "variant": "v1_baseline", "source": os.environ["SOURCE"], "replace": True}
        await client.call_tool("submit_kernel", arguments)


async def tools() -> None:
    """Print each tool: its name, what it takes, whether it changes kernels/ or ops.yaml."""
    async with session() as client:
        for tool in (await client.list_tools()).tools:
            schema = tool.input_schema
            required = schema.get("required", [])
            takes = [name if name in required else f"{name}?" for name in sorted(schema.get("properties", {}))]
            assert tool.annotations is not None and tool.description
            print(tool.name, ",".join(takes), "reads" if tool.annotations.read_only_hint else "writes")


if __name__ == "__main__":
    if sys.argv[1] == "gone":
        gone()
    else:
        anyio.run(
            {
                "author": author,
                "names": names,
                "together": together,
                "cancelled": cancelled,
                "hang": hang,
                "tools": tools,
            }[sys.argv[1]]
        )
