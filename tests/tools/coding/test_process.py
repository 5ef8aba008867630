"""Process rules, without a sandbox and in each: what a command starts ends with it, whatever it tries."""

import asyncio
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from calling import eventually
from tests.counts import MORE, cell_of_more, in_cells

from swink.tools.coding import process
from swink.tools.coding.environment import clean_environment
from swink.tools.coding.process import CannotStart, HeadAndTail, Launch, Limits, build_shell_argv, run
from swink.tools.coding.sandbox import Level, Sandbox

PLACES: list[tuple[Level, str]] = [("none", "none"), ("workspace", "bubblewrap"), ("workspace", "landlock")]
places = pytest.mark.parametrize(("level", "backend"), PLACES, ids=[backend for _, backend in PLACES])
in_one_place = pytest.mark.parametrize(
    ("level", "backend"),
    [*(cell_of_more(*place) for place in PLACES[:-1]), PLACES[-1]],
    ids=[backend for _, backend in PLACES],
)
"""For what the supervisor does, the same one in every place."""


@pytest.fixture
def box(level: Level, backend: str, tmp_path: Path, need) -> Iterator[Sandbox]:
    need(backend)
    box = Sandbox(tmp_path, level, backends=(backend,))
    yield box
    box.close()


async def run_shell(box: Sandbox, command: str, limits: Limits | None = None, size: int = 100_000):
    output = HeadAndTail(size)
    ending = await run(
        await box.launch(build_shell_argv(command), limits=limits or Limits(wall=30)), output.add
    )
    return ending, output


@in_one_place
async def test_a_stop_that_comes_before_the_supervisor_listens_ends_the_command(box: Sandbox):
    stop = asyncio.get_running_loop().create_future()
    stop.set_result(None)
    launch = await box.launch(build_shell_argv("sleep 60"), limits=Limits(wall=5))
    assert (await run(launch, lambda data: None, stop)).reason == "killed"


def alive(mark: str) -> list[str]:
    """Command lines of living processes that carry a mark."""
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes()
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if mark.encode() in line and state != "Z":
                found.append(line.decode(errors="replace"))
    return found


# A family in which every member tries another way to survive: its own session, its own group, a double fork, deaf to TERM and HUP.
SURVIVORS = """
import os, signal, sys, time
MARK = sys.argv[1]
def linger(deaf):
    if deaf:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
    time.sleep(300)
for how in ("plain", "session", "group", "daemon", "deaf", "deaf daemon"):
    if os.fork() == 0:
        if how == "session": os.setsid()
        if how == "group": os.setpgid(0, 0)
        if "daemon" in how:
            os.setsid()
            if os.fork(): os._exit(0)
            os.chdir("/")
        open(os.path.join(MARK, how), "w").close()
        linger("deaf" in how)
if len(sys.argv) > 2: os._exit(0)
linger(False)
"""


def family(tmp_path: Path) -> str:
    (tmp_path / "mark").mkdir()
    (tmp_path / "survivors.py").write_text(textwrap.dedent(SURVIVORS))
    return f"{sys.executable} {tmp_path / 'survivors.py'} {tmp_path / 'mark'}"


def is_family_complete(tmp_path: Path) -> bool:
    return len(list((tmp_path / "mark").iterdir())) == 6


async def wait_for_family(tmp_path: Path) -> None:
    await eventually(lambda: is_family_complete(tmp_path))


PATIENCE = (1.0, 6.0, 36.0)
"""Seconds that a command gets, one after the other until all of it had begun: a machine may be busy."""


@places
async def test_cancellation_leaves_no_descendant_alive(box: Sandbox, tmp_path: Path):
    task = asyncio.create_task(run_shell(box, family(tmp_path)))
    await wait_for_family(tmp_path)
    assert len(alive(str(tmp_path / "mark"))) >= 7
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert alive(str(tmp_path / "mark")) == []


@in_one_place
async def test_impatient_cancellation_still_leaves_nothing(box: Sandbox, tmp_path: Path):
    task = asyncio.create_task(run_shell(box, family(tmp_path)))
    await wait_for_family(tmp_path)
    while not task.done():
        task.cancel()
        await asyncio.sleep(0.005)
    assert task.cancelled()
    assert alive(str(tmp_path / "mark")) == []


@in_one_place
async def test_timeout_ends_the_whole_tree(box: Sandbox, tmp_path: Path):
    for wall in PATIENCE:
        root = tmp_path / str(wall)
        root.mkdir()
        ending, _ = await run_shell(box, family(root), Limits(wall=wall))
        assert ending.reason == "timeout"
        assert alive(str(root / "mark")) == []
        if is_family_complete(root):
            return
    pytest.fail("never complete")


@in_one_place
async def test_background_processes_end_with_the_command(box: Sandbox, tmp_path: Path):
    """They hold the pipe, too, so a tool that waited for its end would hang."""
    ending, output = await run_shell(box, f"{family(tmp_path)} parent-leaves; echo done")
    assert (ending.code, output.text()) == (0, "done\n")
    await eventually(lambda: alive(str(tmp_path / "mark")) == [])


# What a command without a sandbox can do to the two processes above it. $guardian is named only where it is ours to name.
ABOVE = 'guardian=$(cut -d" " -f4 /proc/$PPID/stat); grep -q start.py /proc/$guardian/cmdline || exit 3; '
AGAINST = {
    "kill": "kill -9 $PPID",
    "stop": "kill -STOP $PPID",
    "crash": "kill -SEGV $PPID",
    "limit": "prlimit --pid $PPID --nofile=0",
    "time": "prlimit --pid $PPID --cpu=0",
    "guardian": ABOVE + "kill -9 $guardian",
    "guardian stopped": ABOVE + "kill -STOP $guardian",
    "guardian first": ABOVE + "kill -STOP $guardian; kill -9 $PPID",
    "both": ABOVE + "kill -9 $guardian $PPID",
    "both stopped": ABOVE + "kill -STOP $guardian $PPID",
}


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.more
@pytest.mark.parametrize("against", list(AGAINST) if MORE else ["stop", "guardian first"])
async def test_a_command_that_attacks_its_supervisor_is_ended_all_the_same(tmp_path: Path, against: str):
    attack = AGAINST[against]
    for wall in (2.0, *PATIENCE[1:]):
        root = tmp_path / str(wall)
        root.mkdir()
        ready = f"until [ $(ls {root}/mark | wc -l) = 6 ]; do sleep 0.01; done"
        said = 'echo $PPID $(cut -d" " -f4 /proc/$PPID/stat)'
        command = f"{family(root)} & {ready}; {said}; {attack}; sleep 600"
        ending, output = await run_shell(Sandbox(root, "none"), command, Limits(wall=wall))
        assert alive(str(root / "mark")) == []
        if len(output.text().split()) == 2:
            break
    assert is_family_complete(root)
    assert ending.reason in ("supervisor", "killed", "timeout")
    if attack.startswith("kill"):
        assert ending.reason == "supervisor"
    for above in output.text().split():
        line = Path("/proc", above, "cmdline")
        assert not line.exists() or b"start.py" not in line.read_bytes()


async def test_a_supervisor_that_was_killed_is_reported_at_once(tmp_path: Path):
    ending, output = await run_shell(
        Sandbox(tmp_path, "none"), "echo before; kill -9 $PPID; sleep 600; echo after", Limits(wall=300)
    )
    assert (ending.reason, ending.code, output.text()) == ("supervisor", 137, "before\n")


async def test_a_writer_out_of_reach_does_not_hang_the_run(tmp_path: Path):
    """The command hands its output pipe to somebody who is no descendant of it, and who keeps it."""
    held: list[int] = []
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        server.listen()
        server.setblocking(False)

        async def take() -> None:
            connection, _ = await asyncio.get_running_loop().sock_accept(server)
            with connection:
                connection.setblocking(True)
                held.extend(socket.recv_fds(connection, 1, 1)[1])

        taking = asyncio.create_task(take())
        hand_over = "import socket; s = socket.socket(socket.AF_UNIX); s.connect('socket'); socket.send_fds(s, [b'x'], [1])"
        async with asyncio.timeout(20):
            ending, output = await run_shell(
                Sandbox(tmp_path, "none"), f'echo out; {sys.executable} -c "{hand_over}"'
            )
            await taking
    assert (ending.code, output.text()) == (0, "out\n")
    assert len(held) == 1
    os.close(held[0])


async def test_death_of_the_program_around_ends_the_command(tmp_path: Path):
    program = f"""
import asyncio
from swink.tools.coding.process import Launch, run
asyncio.run(run(Launch({build_shell_argv(family(tmp_path))!r}, "/", {{"PATH": {os.environ["PATH"]!r}}}), lambda data: None))
"""
    around = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
    await wait_for_family(tmp_path)
    around.kill()
    await around.wait()
    await eventually(lambda: alive(str(tmp_path / "mark")) == [])


async def test_term_comes_before_kill(tmp_path: Path):
    command = f"trap 'echo terminated > {tmp_path}/said; exit 0' TERM; touch {tmp_path}/ready; while :; do sleep 0.02; done"
    task = asyncio.create_task(run_shell(Sandbox(tmp_path, "none"), command))
    await eventually((tmp_path / "ready").exists)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (tmp_path / "said").read_text() == "terminated\n"


@in_cells("moment", [0, 0.001, 0.005, 0.01, 0.02, 0.03, 0.05], every=2)
async def test_cancellation_at_any_moment_of_the_start_leaves_nothing(tmp_path: Path, moment: float):
    mark = f"sleep 4{int(moment * 1000):03d}.{os.getpid()}"
    task = asyncio.create_task(run_shell(Sandbox(tmp_path, "none"), mark))
    await asyncio.sleep(moment)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert alive(mark) == []


@pytest.mark.more
@in_one_place
async def test_a_flood_of_output_takes_little_memory(box: Sandbox):
    flood = 1_000_000_000 if MORE else 200_000_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ending, output = await run_shell(
        box, f"echo first; head -c {flood} /dev/zero; echo; echo last", size=1000
    )
    assert ending.code == 0
    assert output.size == flood + 12
    assert output.text().startswith("first\n")
    assert output.text().endswith("\nlast\n")
    assert f"[... {flood + 12 - 1000:,} bytes of {flood + 12:,} cut here ...]" in output.text()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


async def test_the_event_loop_stays_awake_while_output_floods(tmp_path: Path):
    task = asyncio.create_task(run_shell(Sandbox(tmp_path, "none"), "head -c 300000000 /dev/zero"))
    beats = 0
    while not task.done():
        await asyncio.sleep(0.005)
        beats += 1
    assert (await task)[0].code == 0
    assert beats > 2, "the event loop stood still"


async def test_stdout_and_stderr_come_in_the_order_written(tmp_path: Path):
    _, output = await run_shell(Sandbox(tmp_path, "none"), "echo 1; echo 2 >&2; echo 3; echo 4 >&2")
    assert output.text() == "1\n2\n3\n4\n"


@in_one_place
async def test_there_is_no_input(box: Sandbox):
    ending, output = await run_shell(box, "cat; read x; echo $?")
    assert (ending.code, output.text()) == (0, "1\n")


@in_cells(
    ("level", "backend", "command", "code", "number"),
    [
        (*place, *ending)
        for place in PLACES
        for ending in (("kill -9 $$", 137, 9), ("kill -TERM $$", 143, 15), ("exit 7", 7, None))
    ],
    every=4,
)
async def test_exit_codes_are_those_of_a_shell(box: Sandbox, command: str, code: int, number: int | None):
    ending, _ = await run_shell(box, command)
    assert ending.code == code
    if box.level == "none":
        assert ending.signal == number


async def test_a_broken_pipe_ends_a_program_quietly(tmp_path: Path):
    """Python ignores SIGPIPE and what is ignored is inherited: the command must get it back."""
    ending, output = await run_shell(Sandbox(tmp_path, "none"), "yes | head -n 1; echo ${PIPESTATUS[0]}")
    assert (ending.code, output.text()) == (0, "y\n141\n")


async def test_a_program_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(CannotStart, match="/no/such/program"):
        await run(Launch(("/no/such/program",), str(tmp_path), {}), lambda data: None)
    with pytest.raises(CannotStart, match="No such file"):
        await run(Launch(("/bin/sh", "-c", "true"), str(tmp_path / "gone"), {}), lambda data: None)


async def test_a_command_longer_than_a_pipe_arrives_whole(tmp_path: Path):
    words = " ".join(["word"] * 24_000)  # 120 kB: past the pipe's 64, below what exec takes
    ending, output = await run_shell(Sandbox(tmp_path, "none"), f"set -- {words}; echo $#")
    assert (ending.code, output.text()) == (0, "24000\n")


@in_one_place
async def test_limit_of_processor_time(box: Sandbox):
    ending, _ = await run_shell(box, f"exec {sys.executable} -c 'while True: pass'", Limits(wall=20, cpu=1))
    assert ending.code in (128 + signal.SIGXCPU, 137)
    assert ending.reason is None


@in_one_place
async def test_limit_of_memory_of_one_process(box: Sandbox):
    ending, output = await run_shell(
        box, f"{sys.executable} -c 'x = bytearray(300 << 20); print(len(x))'", Limits(memory=200 << 20)
    )
    assert "MemoryError" in output.text() or ending.reason == "memory"
    assert ending.code != 0


@in_one_place
async def test_limit_of_memory_of_many_processes_together(box: Sandbox):
    hog = f"{sys.executable} -c 'import time; x = b\"x\" * (60 << 20); time.sleep(20)'"
    ending, _ = await run_shell(box, " & ".join([hog] * 4) + " & wait", Limits(wall=20, memory=150 << 20))
    assert ending.reason == "memory"


# Memory that is in no process's resident size: never mapped, mapped for one page only, or touched by a child that has gone.
HOARDERS = {
    "file": "fds = [os.memfd_create('x') for _ in range(8)]\nfor fd in fds:\n for _ in range(40): os.write(fd, bytes(1 << 20))",
    "closed file": (
        "maps = []\nfor _ in range(8):\n fd = os.memfd_create('x')\n for _ in range(40): os.write(fd, bytes(1 << 20))\n"
        " maps.append(mmap.mmap(fd, 4096)); os.close(fd)"
    ),
    "shared": (
        "maps = [mmap.mmap(-1, 40 << 20) for _ in range(8)]\nfor one in maps:\n if os.fork() == 0:\n  one.write(bytes(40 << 20)); os._exit(0)\n os.wait()"
    ),
}


@pytest.fixture
def only_hoarder() -> Iterator[None]:
    """Memory of no process is measured for the whole machine, so that one test at a time may take much of it."""
    import fcntl

    with open(Path(tempfile.gettempdir(), f"swink-test-hoarder-{os.getuid()}"), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.usefixtures("only_hoarder")
@in_one_place
@in_cells("how", HOARDERS, every=3)
async def test_limit_of_memory_outside_of_any_process(box: Sandbox, tmp_path: Path, how: str):
    (tmp_path / "hoard.py").write_text(f"import mmap, os, time\n{HOARDERS[how]}\ntime.sleep(20)\n")
    ending, _ = await run_shell(box, f"{sys.executable} hoard.py", Limits(wall=10, memory=150 << 20))
    assert ending.reason == "memory"


@pytest.mark.usefixtures("only_hoarder")
@in_cells("place", ["/tmp", "/dev/shm", "/dev", "$TMPDIR", "/run"], every=5)
async def test_limit_of_memory_in_file_systems_of_the_sandbox(tmp_path: Path, place: str, need):
    need("bubblewrap")
    fill = f"for i in $(seq 8); do head -c 40000000 /dev/zero > {place}/fill$i || exit 9; done; stat -f -c %T {place}; sleep 1"
    ending, output = await run_shell(Sandbox(tmp_path), fill, Limits(wall=10, memory=150 << 20))
    assert ending.reason == "memory" or ending.code == 9 or "tmpfs" not in output.text()


@places
async def test_limit_of_file_size(box: Sandbox, tmp_path: Path):
    ending, _ = await run_shell(box, "head -c 3000000 /dev/zero > big", Limits(file_size=1_000_000))
    assert ending.code == 128 + signal.SIGXFSZ
    assert (tmp_path / "big").stat().st_size == 1_000_000


@in_one_place
async def test_limit_of_disk_space(box: Sandbox, tmp_path: Path):
    command = "for i in $(seq 100); do head -c 20000000 /dev/zero > file$i; sleep 0.05; done"
    ending, _ = await run_shell(box, command, Limits(disk=60_000_000))
    assert ending.reason == "disk"
    assert sum(path.stat().st_size for path in tmp_path.glob("file*")) < 500_000_000


@places
async def test_a_fork_bomb_is_ended(box: Sandbox):
    ending, _ = await run_shell(
        box, "bomb() { bomb | bomb & }; bomb; sleep 600", Limits(wall=10, processes=60)
    )
    assert ending.reason in ("processes", "timeout") or ending.code != 0


async def test_the_environment_carries_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    secrets = {
        "OPENAI_API_KEY": "a", "GITHUB_TOKEN": "b", "DB_PASSWORD": "c", "MY_SECRET_THING": "d", "AWS_SESSION_X": "e", "GOOGLE_APPLICATION_CREDENTIALS": "f",
        "HARMLESS": "sk-abcdefghijklmnop", "DATABASE_URL": "postgres://me:hunter2@db/x", "SSH_AUTH_SOCK": "/tmp/agent", "SWINK_ANYTHING": "g", "NPM_TOKEN": "h",
        "STRIPE_KEY": "i", "KUBECONFIG": "/k", "PGPASSWORD": "j",
    }  # fmt: skip
    for name, value in {**secrets, "EDITOR": "vi", "MY_SETTING": "blue"}.items():
        monkeypatch.setenv(name, value)
    _, output = await run_shell(
        Sandbox(tmp_path, "none", environment={"GIVEN_TOKEN": "on purpose"}),
        "env; cat /proc/$PPID/environ | tr '\\0' '\\n'",
    )
    for name in secrets:
        assert f"{name}=" not in output.text()
    for kept in ("EDITOR=vi", "MY_SETTING=blue", "GIVEN_TOKEN=on purpose", "PATH="):
        assert kept in output.text()


SECRET_NAMES = [
    "GITHUB_TOKEN",
    "MYTOKEN",
    "TOKENFILE",
    "TOKEN",
    "token",
    "MyToken",
    "TOKENS",
    "NPM_TOKEN_2",
    "DBPASS",
    "PASSFILE",
    "PGPASSWORD",
    "PGPASSFILE",
    "PASS",
    "PASSWD",
    "SSHPASS",
    "MYSQL_PWD",
    "KEYFILE",
    "SSHKEY",
    "KEY",
    "apikey",
    "ApiKey",
    "API_KEY_FILE",
    "APIKEYFILE",
    "KEYRING",
    "keyring_backend",
    "STRIPE_KEY",
    "KEY_ID",
    "AUTHTOKEN",
    "AUTH",
    "AUTH_HEADER",
    "HTTP_AUTHORIZATION",
    "NPM_CONFIG__AUTH",
    "npm_config__authToken",
    "OAUTH2",
    "DOCKER_AUTH_CONFIG",
    "SSH_AUTH_SOCK",
    "SECRET",
    "CLIENTSECRET",
    "SECRETS_DIR",
    "CREDENTIAL",
    "CREDENTIALS",
    "GITCREDENTIALS",
    "GIT_ASKPASS",
    "SUDO_ASKPASS",
    "ENCRYPTIONKEY",
    "KEYSTORE",
    "AUTHOR_TOKEN",
    "MONKEY_KEY",
    "KEYBOARD_PASS",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_KEY_0",
    "GIT_CONFIG_VALUE_0",
    "GIT_CONFIG_PARAMETERS",
    "authentication",
    "PASSPHRASE",
    "SIGNKEY2",
    "X-AUTH",
]
HARMLESS_NAMES = [
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "EDITOR",
    "SHELL",
    "USER",
    "PWD",
    "OLDPWD",
    "TZ",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_DATE",
    "AUTHOR",
    "AUTHORS",
    "KEYBOARD_LAYOUT",
    "MONKEY",
    "KEYMAP",
    "TOKENIZERS_PARALLELISM",
    "FTP_PASSIVE",
    "BYPASS",
    "COMPASS_HOME",
    "KEYWORDS",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "JAVA_HOME",
    "SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "XDG_DATA_DIRS",
    "CARGO_HOME",
    "GOPATH",
    "CI",
    "COLUMNS",
]


def test_no_variable_named_like_a_secret_is_in_the_environment():
    assert clean_environment(dict.fromkeys(SECRET_NAMES, "value")) == {}
    assert list(clean_environment(dict.fromkeys(HARMLESS_NAMES, "value"))) == HARMLESS_NAMES


def test_a_variable_with_a_secret_for_a_value_is_not_in_the_environment():
    values = (
        "sk-ant-api03-abcdefghijklmnopqrstuvwxyz",
        "https://me:hunter2@example.org/simple",
        "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    )
    assert clean_environment({f"NAME{index}": value for index, value in enumerate(values)}) == {}


async def test_children_of_the_program_itself_are_left_alone(tmp_path: Path):
    """The supervisor adopts orphans, not this process: an ordinary child and its exit code stay the program's own."""
    own = await asyncio.create_subprocess_exec("sh", "-c", "sleep 0.3; exit 5")
    await run_shell(Sandbox(tmp_path, "none"), "sleep 100 & true")
    assert await own.wait() == 5


async def test_many_commands_at_once(tmp_path: Path):
    box = Sandbox(tmp_path, "none")
    endings = await asyncio.gather(*[run_shell(box, f"echo {number}; exit {number}") for number in range(12)])
    assert [(ending.code, output.text()) for ending, output in endings] == [
        (number, f"{number}\n") for number in range(12)
    ]


async def test_no_file_descriptor_leaks(tmp_path: Path):
    box = Sandbox(tmp_path, "none")
    await run_shell(box, "true")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5 if MORE else 2):
        await run_shell(box, "ls /proc/self/fd")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(run_shell(box, "sleep 5"), 0.05)
    assert len(os.listdir("/proc/self/fd")) == before
    _, output = await run_shell(box, "ls /proc/self/fd")
    assert output.text().split() == ["0", "1", "2", "3"], "the command got a descriptor that is not its own"


def test_head_and_tail_keep_what_they_promise():
    kept = HeadAndTail(10)
    for chunk in (b"ab", b"cdefgh", b"ijklmnopqrstuvwxyz" * 10, b"THEND"):
        kept.add(chunk)
    assert kept.text().startswith("abcde\n[... ")
    assert kept.text().endswith(" cut here ...]\nTHEND")
    assert kept.cut == kept.size - 10
    short = HeadAndTail(10)
    short.add(b"0123456789")
    assert (short.text(), short.cut) == ("0123456789", 0)


def test_without_a_list_of_children_from_the_kernel_ps_is_asked(tmp_path: Path):
    """As on macOS: the tree is found and ended all the same, with the process group of the command in place of adopted orphans."""
    program = f"""
import os, subprocess, sys, time
sys.path.insert(0, {str(Path(process.__file__).with_name("supervisor"))!r})
import tree
tree._LISTED_BY_KERNEL = False
child = subprocess.Popen(["sh", "-c", "sleep 71 & sh -c 'sleep 72' & (sleep 73 &) ; wait"], start_new_session=True)
deadline = time.monotonic() + 5
while len(tree.list_descendants(child.pid)) < 4 and time.monotonic() < deadline:
    time.sleep(0.02)
print(len(tree.list_descendants(child.pid)))
print(tree.end_all(child.pid, 0, 0.2), len(tree.list_descendants(child.pid)))
"""
    done = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True, timeout=30
    )
    found, left = done.stdout.splitlines()
    assert int(found) >= 4
    assert left == "0 0"
