"""What a command wants of the network is asked about by name, then by address, and never reached before the yes."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from calling import call, named
from hypothesis import given
from hypothesis import strategies as st
from tests.patience import until

from swink.tools.coding import bash_tools
from swink.tools.coding.background import Background
from swink.tools.coding.domainquestions import CommandNetwork
from swink.tools.coding.egress import Egress
from swink.tools.coding.process import ExitStatus
from swink.tools.coding.sandbox import Sandbox
from swink.tools.coding.wishes import Wish, parse_pattern
from swink.tools.coding.workspace import Workspace

linux = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is a program of Linux")
FAILED = ExitStatus(1)


class Person:
    """A gate that asks a person: each wish waits until it is answered."""

    def __init__(self, answer: Callable[[Wish], str | None] = lambda wish: None) -> None:
        self.asked: list[Wish] = []
        self.commands: list[str] = []
        self.withdrawn: list[Wish] = []
        self.waiting: dict[Wish, asyncio.Future[str]] = {}
        self._answer = answer

    async def refuses(self, wish: Wish, command: str) -> str:
        self.asked.append(wish)
        self.commands.append(command)
        if (known := self._answer(wish)) is not None:
            return known
        self.waiting[wish] = asyncio.get_running_loop().create_future()
        try:
            return await self.waiting[wish]
        except asyncio.CancelledError:
            self.withdrawn.append(wish)
            raise
        finally:
            del self.waiting[wish]

    def describe(self) -> str:
        return "ask"

    async def say(self, answer: str) -> None:
        """Answer the first wish as soon as there is one."""
        async with asyncio.timeout(30):
            while not self.waiting:
                await asyncio.sleep(0.01)
        next(iter(self.waiting.values())).set_result(answer)


async def late(network: CommandNetwork, person: Person, host: str = "a.test") -> None:
    """A client that leaves before the person has said yes."""
    asking = asyncio.create_task(network.refuses(host, 80))
    await person.say("")
    assert await asking == ""
    network.notice_leaving(host)


@asynccontextmanager
async def page() -> AsyncIterator[tuple[int, list[str]]]:
    reached: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.append(str(writer.get_extra_info("sockname")[0]))
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1], reached


async def request(path: str, host: str, port: int) -> str:
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(f"GET http://{host}:{port}/ HTTP/1.1\r\n\r\n".encode())
    try:
        async with asyncio.timeout(20):
            return (await reader.read()).decode()
    finally:
        writer.close()


async def test_a_name_is_resolved_only_after_the_yes(tmp_path: Path):
    person, resolved = Person(), list[str]()

    async def resolve(host: str, port: int) -> list[str]:
        resolved.append(host)
        return ["127.0.0.1"]

    network = CommandNetwork(person, "curl")
    async with page() as (port, _), Egress(str(tmp_path / "p"), network, (), resolve):
        asking = asyncio.create_task(request(str(tmp_path / "p"), "data.test", port))
        await until(lambda: person.asked)
        assert (person.asked, resolved) == ([Wish("data.test", port)], [])
        await person.say("no")
        assert "403" in await asking
        assert resolved == []
    await network.close()


async def test_a_private_address_is_asked_about_and_another_one_again(tmp_path: Path):
    person, address = Person(lambda wish: ""), ["127.0.0.1"]

    async def resolve(host: str, port: int) -> list[str]:
        return address

    path = str(tmp_path / "p")
    network = CommandNetwork(person, "curl")
    async with page() as (port, reached), Egress(path, network, (), resolve):
        for _ in range(2):
            assert "hello" in await request(path, "index.test", port)
        address[:] = ["127.0.0.2"]
        await request(path, "index.test", port)
    wishes = [Wish("index.test", port, at) for at in ((), ("127.0.0.1",), ("127.0.0.2",))]
    assert person.asked == wishes
    assert reached == ["127.0.0.1", "127.0.0.1"]
    await network.close()


@pytest.mark.parametrize(
    "address",
    ["169.254.169.254", "100.100.100.200", "fd00:ec2::254", "::ffff:169.254.169.254", "224.0.0.1", "0.0.0.0"],
)
async def test_metadata_services_are_never_asked_about(tmp_path: Path, address: str):
    person = Person(lambda wish: "")

    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1", address]

    async with Egress(str(tmp_path / "p"), CommandNetwork(person, "curl"), (), resolve):
        assert "never reached" in await request(str(tmp_path / "p"), "kind.test", 80)
        assert "never reached" in await request(str(tmp_path / "p"), "metadata.google.internal", 80)
    assert person.asked == [Wish("kind.test", 80)]


async def test_a_question_is_withdrawn_when_the_command_ends_well_and_awaited_when_it_failed():
    for status, is_withdrawn in (
        (ExitStatus(0), True),
        (ExitStatus(1, reason="timeout"), True),
        (FAILED, False),
    ):
        person = Person()
        network = CommandNetwork(person, "curl http://a.test")
        asking = asyncio.create_task(network.refuses("a.test", 80))
        while not person.waiting:
            await asyncio.sleep(0.01)
        asking.cancel()  # the proxy goes with the command
        await asyncio.wait([asking])
        settling = asyncio.create_task(network.settle(status))
        await asyncio.sleep(0.05)
        assert settling.done() == is_withdrawn
        if not is_withdrawn:
            await person.say("")
        assert await settling is not is_withdrawn
        assert bool(person.withdrawn) == is_withdrawn


async def test_a_settling_that_is_stopped_or_cancelled_leaves_no_question():
    for how in ("stop", "cancel"):
        person = Person()
        network = CommandNetwork(person, "curl http://a.test")
        asking = asyncio.create_task(network.refuses("a.test", 80))
        await asyncio.sleep(0.05)
        stop = asyncio.get_running_loop().create_future()
        settling = asyncio.create_task(network.settle(FAILED, stop))
        await asyncio.sleep(0.05)
        _ = stop.set_result(None) if how == "stop" else settling.cancel()
        await asyncio.wait([settling])
        await network.close()
        await asyncio.wait([asking])
        assert person.withdrawn == [Wish("a.test", 80)]


@pytest.mark.parametrize(
    "command", ["curl http://a.test && rm -r x", "cd x; curl http://a.test", "x=1 curl http://a.test"]
)
async def test_a_line_of_more_than_one_command_is_not_started_again(command: str):
    network = CommandNetwork(person := Person(), command)
    await late(network, person)
    assert not await network.settle(FAILED)
    assert network.notes() == ["[a.test: allowed now, but the command did not wait for that; call it again]"]


async def test_a_command_that_reached_something_or_was_refused_is_not_started_again():
    for refused in (False, True):
        person = Person(lambda wish: "no" if wish.name == "b.test" else None)
        network = CommandNetwork(person, "curl http://a.test")
        await late(network, person)
        if refused:
            await network.refuses("b.test", 80)
        else:
            network.notice_connection("c.test")
        assert not await network.settle(FAILED)


async def test_a_command_is_started_again_once_and_only_if_somebody_was_asked():
    network = CommandNetwork(person := Person(), "curl http://a.test")
    await late(network, person)
    assert await network.settle(FAILED)
    network.begin_again()
    await network.refuses("a.test", 80)
    network.notice_leaving("a.test")
    assert not await network.settle(FAILED)
    await late(network, person, "b.test")
    assert not await network.settle(FAILED)
    unasked = CommandNetwork(Person(lambda wish: ""), "curl http://a.test")
    await unasked.refuses("a.test", 80)
    unasked.notice_leaving("a.test")
    assert not await unasked.settle(FAILED)
    assert unasked.notes() == []


@linux
async def test_a_command_that_leaves_an_allowed_host_and_fails_runs_once(tmp_path: Path, need):
    need("bubblewrap")
    box = Sandbox(tmp_path, "workspace+net", approve_domain=Person(lambda wish: ""))
    bash = named(bash_tools(Workspace(tmp_path), box), "bash")
    (tmp_path / "leave.py").write_text(
        "import os, socket, urllib.parse\n"
        "open('runs', 'a').write('x')\n"
        "proxy = urllib.parse.urlsplit(os.environ['http_proxy'])\n"
        "to = socket.create_connection((proxy.hostname, proxy.port))\n"
        "to.sendall(b'CONNECT localhost:443 HTTP/1.1\\r\\n\\r\\n')\n"
        "to.close()\n"
        "raise SystemExit(1)\n"
    )
    await call(bash, command=f"{sys.executable} leave.py", timeout=60)
    assert (tmp_path / "runs").read_text() == "x"


# The client waits a second, as pip waits fifteen.
FETCH = '-c "import urllib.request as r, sys; print(r.urlopen(sys.argv[1], timeout=1).read().decode())"'


@linux
@pytest.mark.parametrize("with_background", [False, True])
async def test_a_client_that_gave_up_is_started_again_after_the_yes(
    tmp_path: Path, need, with_background: bool
):
    need("bubblewrap")
    person, background = Person(), Background()
    box = Sandbox(tmp_path, "workspace+net", approve_domain=person, net_from=["127.0.0.0/8"])
    bash = named(
        bash_tools(Workspace(tmp_path), box, background=background if with_background else None), "bash"
    )
    async with page() as (port, reached):
        # By name through the proxy: the usual exception for localhost is taken away.
        (tmp_path / "fetch.sh").write_text(
            f"no_proxy= NO_PROXY= {sys.executable} {FETCH} http://localhost:{port}/\n"
        )
        running = asyncio.create_task(call(bash, command="bash fetch.sh", timeout=60))
        async with asyncio.timeout(30):
            while not person.waiting:
                await asyncio.sleep(0.01)
        await asyncio.sleep(1.7)
        assert not running.done()
        await person.say("")
        result = await running
    assert "hello" in result.text, result.text
    assert "[exit code 0]" in result.text
    assert len(person.asked) == len(reached) == 1
    assert person.commands == ["bash fetch.sh"]
    await background.aclose()


@linux
async def test_an_aborted_call_withdraws_its_question(tmp_path: Path, need):
    need("bubblewrap")
    person = Person()
    box = Sandbox(tmp_path, "workspace+net", approve_domain=person)
    bash = named(bash_tools(Workspace(tmp_path), box), "bash")
    running = asyncio.create_task(call(bash, command=f"{sys.executable} {FETCH} http://a.test/; sleep 60"))
    async with asyncio.timeout(30):
        while not person.waiting:
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.wait([running])
    assert person.withdrawn == [Wish("a.test", 80)]


NAMES = st.sampled_from(["a.test", "b.test"])
ADDRESSES = st.lists(
    st.sampled_from(["127.0.0.1", "127.0.0.2", "127.0.0.3", "169.254.169.254"]), min_size=1, max_size=2
)


@given(
    st.lists(st.tuples(NAMES, ADDRESSES), min_size=1, max_size=6),
    st.sets(st.tuples(NAMES, st.frozensets(st.sampled_from(["127.0.0.1", "127.0.0.2", "127.0.0.3"])))),
)
async def test_nothing_is_reached_that_was_not_allowed_by_name_and_address(
    visits: list[tuple[str, list[str]]], allowed: set[tuple[str, frozenset[str]]]
):
    person = Person(lambda wish: "" if (wish.name, frozenset(wish.addresses)) in allowed else "no")
    network = CommandNetwork(person, "curl")
    for name, addresses in visits:
        refused = await network.refuses(name, 80) or await network.refuses_at(name, 80, addresses)
        granted = [given for other, given in allowed if other == name]
        may = frozenset() in granted and any({*addresses} <= given for given in granted)
        assert not refused or not may or frozenset(addresses) not in granted
        assert refused or may
        assert refused or "169.254.169.254" not in addresses
    await network.close()


@pytest.mark.parametrize(
    "text", ["index.corp@8.8.8.8", "index.corp@169.254.169.254", "*.corp@10.0.0.1", "a b", "10.0.0.5"]
)
def test_a_pattern_names_hosts_and_private_addresses_only(text: str):
    with pytest.raises(ValueError, match=r"no private address|no domain|belongs to one name"):
        parse_pattern(text)


def test_a_pattern_covers_its_addresses_and_a_denial_every_port():
    pattern = parse_pattern("index.corp:8080@10.0.0.5,::1")
    assert pattern.allows(Wish("index.corp", 8080, ("10.0.0.5",)))
    assert not pattern.allows(Wish("index.corp", 8080, ("10.0.0.6",)))
    assert not pattern.allows(Wish("index.corp", 80))
    assert parse_pattern("*.evil.test").denies(Wish("x.evil.test", 8443, ("10.0.0.5",)))
    assert parse_pattern(Wish("index.corp", 8080, ("10.0.0.5",)).pattern).allows(
        Wish("index.corp", 8080, ("10.0.0.5",))
    )
