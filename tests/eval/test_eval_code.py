"""Code checks: what an agent produced is run in the sandbox, and nothing of it is left."""

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from tests.counts import MORE, in_cells

from swink.errors import InvalidInput
from swink.eval import Case, Evaluator, Metric, Trajectory
from swink.eval.scorers import score
from swink.eval.scorers.coderun import extract_code, run_python

FENCED = "Here you are:\n```python\ndef add(a, b):\n    return a + b\n```\nUse it like this:\n```\nadd(1, 2)\n```\n"


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield
    assert not [path.name for path in place.iterdir() if path.name.startswith("swink-code-")]


async def checked(response: str, case: Case | None = None, **options: Any) -> Metric:
    use = (Evaluator("code", options={"sandbox": "none", **options}),)
    given = Case(id="a", evaluators=use, workspace=case.workspace if case else None)
    (metric,) = await score(given, Trajectory(response=response))
    return metric


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (FENCED, "def add(a, b):\n    return a + b\n"),
        ("print(1)", "print(1)"),
        ("```py\nx = 1\n```", "x = 1\n"),
        ("~~~python\nx = 1\n~~~", "x = 1\n"),
        ("```bash\nls\n```", ""),
        ("```python\nx = 1", ""),
        ("```python\na\n```\n```python\nlonger\n```", "longer\n"),
    ],
)
def test_code_is_found_in_a_reply(text: str, code: str):
    assert extract_code(text) == code


async def test_code_that_passes_its_tests_passes():
    assert (await checked(FENCED, tests="assert add(1, 2) == 3")).passed


async def test_code_that_fails_its_tests_says_where():
    metric = await checked(FENCED, tests="assert add(1, 2) == 4")
    assert not metric.passed
    assert metric.error is None
    assert "AssertionError" in metric.why
    assert str(tempfile.gettempdir()) not in metric.why


async def test_code_that_exits_early_has_not_passed():
    metric = await checked("import os\nos._exit(0)", tests="assert False")
    assert not metric.passed
    assert "before its last line" in metric.why


PRINT = """
import os, re, sys
def tell(*texts):
    for text in texts:
        text = text.decode("latin-1") if isinstance(text, bytes) else str(text)
        for mark in set(re.findall("[0-9a-f]{32}", text)):
            os.write(1, f"\\n{mark}\\n".encode())
"""
TRACE = """
last = len(open(__file__).read().splitlines())
def jump(frame, event, value):
    if event == 'line' and frame.f_lineno < last:
        frame.f_lineno = last
    return jump
sys._getframe().f_trace = jump
sys.settrace(jump)
"""
CHEATS = {
    "its own file": "tell(open(__file__).read(), *(open(x, 'rb').read() for x in os.listdir('.') if os.path.isfile(x)))",
    "its directory": "tell(*(open(os.path.join(d, x), 'rb').read() for d, _, xs in os.walk(os.path.dirname(__file__)) for x in xs))",
    "arguments": "tell(sys.argv, sys.orig_argv)",
    "environment": "tell(os.environ, open('/proc/self/environ', 'rb').read(), open('/proc/self/cmdline', 'rb').read())",
    "open files": """
for fd in range(200):
    try:
        os.set_blocking(fd, False)
        os.lseek(fd, 0, 0)
    except OSError:
        pass
    try:
        tell(os.read(fd, 100_000))
    except OSError:
        pass
""",
    "parents": """
for pid in os.listdir('/proc'):
    for name in ('cmdline', 'environ'):
        try:
            tell(open(f'/proc/{pid}/{name}', 'rb').read())
        except OSError:
            pass
""",
    "frames": """
import gc
frame = sys._getframe()
while frame:
    tell(frame.f_locals, frame.f_globals, frame.f_code.co_consts, *gc.get_referents(frame))
    frame = frame.f_back
""",
    "objects": """
import gc
gc.unfreeze()
for thing in gc.get_objects():
    try:
        tell(repr(thing))
        tell(*(repr(inner) for inner in gc.get_referents(thing)))
    except Exception:
        pass
""",
    "modules": "tell(*(vars(module) for module in list(sys.modules.values())))",
    "a frame in a signal": """
import signal
def look(number, frame):
    while frame:
        tell(frame.f_locals, frame.f_code.co_consts)
        frame = frame.f_back
signal.signal(signal.SIGALRM, look)
signal.setitimer(signal.ITIMER_REAL, 0.01)
import time
time.sleep(0.2)
""",
    "at exit": "import atexit\natexit.register(lambda: (tell(*map(repr, vars(sys.modules['__main__']).values())), os._exit(0)))",
    "excepthook": "sys.excepthook = lambda *error: (tell(error, error[2].tb_frame.f_locals), os._exit(0))",
    "builtins": "import builtins\nbuiltins.AssertionError = builtins.RuntimeError = ValueError\nos.write = print = builtins.print = lambda *_: tell(_)",
    "os.write": "real = os.write\nos.write = lambda fd, data: (tell(data), real(fd, data))[1]",
    "a fork": "if os.fork():\n    os.wait()\n    os._exit(0)",
    "a fork that goes on": "if not os.fork():\n    os._exit(0)",
    "a trace function": TRACE,
    "the code of the guard": """
import gc
for thing in gc.get_objects():
    if getattr(thing, '__name__', '') == 'refuse':
        thing.__code__ = (lambda event, args: None).__code__
"""
    + TRACE,
    "exit": "sys.exit(0)",
    "replaced exit": "sys.exit = os._exit = lambda *_: None\nraise SystemExit",
}  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.more
@in_cells("cheat", CHEATS, every=5)
async def test_a_program_that_looks_for_the_proof_of_its_end_does_not_pass(cheat: str):
    endings = ["os._exit(0)", "pass"]
    for ending in endings if MORE else [endings[list(CHEATS).index(cheat) % 2]]:
        done = await run_python(
            f"{PRINT}{CHEATS[cheat]}\n{ending}\nassert len(sys.argv) > 9\nlast = 1", sandbox="none"
        )
        assert not done.passed, done


async def test_a_program_runs_as_a_script_does():
    program = """
import sys, dataclasses, pickle, multiprocessing
from collections import namedtuple
Point = namedtuple("Point", "x y")
@dataclasses.dataclass
class Thing:
    size: int
def main():
    assert __name__ == "__main__" and sys.modules["__main__"].main is main
    assert pickle.loads(pickle.dumps(Thing(1))) == Thing(1) and Point(1, 2).x == 1
    assert sys.argv == [__file__] and __file__.endswith("program.py")
    print("done", end="")
if __name__ == "__main__":
    main()
"""
    done = await run_python(program, sandbox="none")
    assert (done.passed, done.output) == (True, "done")


async def test_what_a_program_may_not_do_is_said():
    done = await run_python("import sys\nsys.settrace(print)", sandbox="none")
    assert "may not trace" in done.why


async def test_no_code_is_no_pass():
    assert (await checked("```bash\nls\n```")).why == "there is no code in the response"


async def test_code_that_takes_too_long_is_ended():
    metric = await checked("while True: pass", timeout=0.3)
    assert (metric.passed, metric.why) == (False, "it took longer than 0.3 s")


async def test_the_output_can_be_checked():
    assert (await checked("print('hi')", expected_output="hi\n")).passed
    assert not (await checked("print('ho')", expected_output="hi")).passed


async def test_a_file_of_the_workspace_is_run(tmp_path: Path):
    tmp_path.joinpath("add.py").write_text("def add(a, b):\n    return a + b\n", "utf-8")
    case = Case(id="a", workspace=tmp_path)
    assert (await checked("", case, file="add.py", tests="assert add(1, 1) == 2")).passed
    assert (await checked("", case, file="none.py")).why == "none.py is empty"
    assert "not inside" in ((await checked("", case, file="../../etc/passwd")).error or "")


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), True, "1"])
async def test_a_timeout_is_a_number_of_seconds(timeout: Any):
    with pytest.raises(InvalidInput, match="seconds"):
        await run_python("", timeout=timeout)


async def test_files_beside_a_program_stay_inside():
    done = await run_python("print(open('data/a.txt').read())", files={"data/a.txt": "hi"}, sandbox="none")
    assert (done.passed, done.output) == (True, "hi")
    with pytest.raises(InvalidInput, match="not inside"):
        await run_python("", files={"../a": ""}, sandbox="none")


async def test_cancelling_ends_the_program():
    task = asyncio.ensure_future(run_python("import time; time.sleep(3600)", sandbox="none"))
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_sandbox_keeps_code_in_its_directory(tmp_path: Path):
    from swink.tools import SandboxUnavailable

    outside = tmp_path / "outside.txt"
    program = f"import pathlib\npathlib.Path('inside.txt').write_text('x')\npathlib.Path({str(outside)!r}).write_text('x')\n"
    try:
        done = await run_python(program)
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    assert not outside.exists()
    assert "inside.txt" not in done.output
