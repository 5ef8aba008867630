"""Domain questions: what one command wants of the network, who decides about it, and what became of it.

client ─▶ Egress ─▶ CommandNetwork ─▶ DomainGate.refuses(wish, command)    may ask a person
the client gives up, the command fails    the answer is still awaited, and after a yes it is started again
the command ends well, or is aborted      the question is withdrawn
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Protocol

from swink.system.threads import in_thread
from swink.tools.coding.addresses import find_in_hosts, is_metadata_name, is_private, parse_address
from swink.tools.coding.process import ExitStatus
from swink.tools.coding.syntax import read_commands
from swink.tools.coding.wishes import Wish

log = logging.getLogger("swink.tools")

_METADATA = "it is, or may be, a service that gives out credentials of this machine, and is never reached"


class DomainGate(Protocol):
    """Decides about the network of commands; pass it to `Sandbox(approve_domain=…)`."""

    async def refuses(self, wish: Wish, command: str) -> str:
        """Empty if a command may reach a host, else the reason; it is asked once for each host and command.

        Cancelled when the command has no use for the answer any more.
        """
        ...

    def describe(self) -> str:
        """What commands reach, as a model is told."""
        ...


class CommandNetwork:
    """The network of one command: the `Admission` of its proxy."""

    def __init__(self, gate: DomainGate, command: str) -> None:
        self._gate = gate
        self._command = command
        self._answers: dict[Wish, asyncio.Task[str]] = {}
        self._connected: set[str] = set()
        self._given_up: set[str] = set()
        self._has_asked = False
        self._questions: set[str] = set()
        """Hosts about which the gate did not know its answer at once."""
        self._is_second = False

    async def refuses(self, host: str, port: int) -> str:
        if is_metadata_name(host):
            return f"{host}: {_METADATA}"
        known = [text for text in await in_thread(find_in_hosts, host) if _can_be_admitted(text)]
        return await self._answer(Wish(host, port, tuple(sorted(known))))

    async def refuses_at(self, host: str, port: int, addresses: Sequence[str]) -> str:
        if never := [text for text in addresses if not _can_be_admitted(text)]:
            return f"{host} ({never[0]}): {_METADATA}"
        wish = Wish(host, port, tuple(sorted({*addresses})))
        for other, answer in self._answers.items():
            covers = (other.name, other.port) == (host, port) and {*addresses} <= {*other.addresses}
            if covers and answer.done() and not answer.cancelled() and not answer.result():
                return ""
        return await self._answer(wish)

    def notice_connection(self, host: str) -> None:
        self._connected.add(host)

    def notice_leaving(self, host: str) -> None:
        self._given_up.add(host)

    def take_asked(self) -> bool:
        """Whether a question is open, or was since the last time."""
        has_asked, self._has_asked = self._has_asked, False
        return has_asked or any(not answer.done() for answer in self._answers.values())

    async def settle(self, status: ExitStatus, stop: asyncio.Future[None] | None = None) -> bool:
        """After the end of the command: whether it failed only since it did not wait for a yes.

        If it failed, and nothing was refused, the open answers are awaited until `stop` is done.
        """
        failed = status.code != 0 and status.reason is None
        while failed and (waiting := [task for task in self._answers.values() if not task.done()]):
            if (stop is not None and stop.done()) or any(self._refusals().values()):
                break
            watched = waiting if stop is None else [*waiting, stop]
            await asyncio.wait(watched, return_when="FIRST_COMPLETED")
        await self.close()
        is_alone = not self._connected and not any(self._refusals().values())
        is_late = bool(self._given_up & self._questions)
        return failed and is_late and not self._is_second and is_alone and _is_simple(self._command)

    def notes(self) -> list[str]:
        """What a model is told of it, once it is settled."""
        found = [f"[{wish} was not reached: {why}]" for wish, why in self._refusals().items() if why]
        given_up = (self._given_up & self._questions) - self._connected
        late = sorted(name for name in given_up if self._is_allowed(name))
        if late:
            names = ", ".join(late)
            found.append(f"[{names}: allowed now, but the command did not wait for that; call it again]")
        return found

    def begin_again(self) -> None:
        """The command is started once more, and no third time; the answers stay."""
        self._connected, self._given_up, self._questions, self._is_second = set(), set(), set(), True

    async def close(self) -> None:
        """Withdraw the questions that are open."""
        waiting = [task for task in self._answers.values() if not task.done()]
        for task in waiting:
            task.cancel()
        if waiting:
            await asyncio.wait(waiting)

    def _is_allowed(self, name: str) -> bool:
        answers = [why for wish, why in self._refusals().items() if wish.name == name]
        return bool(answers) and not any(answers)

    def _refusals(self) -> dict[Wish, str]:
        """The answers that there are: empty, or the reason of a refusal."""
        found: dict[Wish, str] = {}
        for wish, task in self._answers.items():
            if task.cancelled():
                found[wish] = "the question about it had no answer when the command ended"
            elif task.done():
                found[wish] = task.result()
        return found

    async def _answer(self, wish: Wish) -> str:
        task = self._answers.get(wish)
        if task is None or task.cancelled():
            task = self._answers[wish] = asyncio.create_task(self._decide(wish), name=f"swink-{wish.host}")
            await asyncio.sleep(0)
        if not task.done():
            self._has_asked = True
            self._questions.add(wish.name)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._given_up.add(wish.name)  # the command has ended
            raise

    async def _decide(self, wish: Wish) -> str:
        try:
            return await self._gate.refuses(wish, self._command)
        except Exception:  # somebody else's code: a failure is no approval
            log.warning("the gate failed, so %s is not reached", wish, exc_info=True)
            return "it could not be decided about"


def _can_be_admitted(text: str) -> bool:
    address = parse_address(text)
    return address is not None and is_private(address)


def _is_simple(command: str) -> bool:
    """Whether a line is one command, so that nothing of it has been done when its client gave up."""
    return len(read_commands(command) or ()) == 1
