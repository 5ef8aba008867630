"""The conformance kit for session stores: whether a store keeps the promises of `swink.memory`.

    await check_session_store(lambda: MyStore(…))

Both doors are checked. Each check makes sessions of its own, so the store may be in use; they are deleted.
"""

import asyncio
import inspect
import math
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from secrets import token_hex
from typing import Any

from swink.errors import InvalidInput, SessionConflict, SessionError, SessionNotFound
from swink.messages import (
    AssistantMessage,
    CustomMessage,
    Message,
    ToolCall,
    ToolResult,
    ToolResultMessage,
    UserMessage,
)
from swink.messages.modelspec import ModelSpec
from swink.messages.records import (
    CallEnded,
    CallStarted,
    Compaction,
    Label,
    ModelChange,
    TurnOpened,
    UnknownRecord,
)

BAD_IDS = ("", " ", "a/b", "a\\b", "..", "a..b", "a:b", "a\nb", "a\x00b", "x" * 200)
GOOD_IDS = ("a", "with space", "Ünïcode-1", "20260101_000000_" + "0" * 32, "x" * 100)
_SIGNS = ('"', '""', "*", "(", "^", "'", ";--", "🎈", "漢字", "\x00", "\ud800")
ODD_QUERIES = (*_SIGNS, "AND", "NOT x", "foo-bar", "a:b")


async def check_session_store(make: Callable[[], Any]) -> None:
    """Assert that the stores of `make` keep their promises; the `AssertionError` lists every one that is
    broken.
    """
    problems: list[str] = []
    for door in ("async", "sync"):
        store = make()
        probe = _Probe(store if door == "async" else store.sync, store.sync)
        for check in _CHECKS:
            what = check.__name__.strip("_").replace("_", " ")
            try:
                await check(probe)
            except AssertionError as error:
                problems.append(f"{what} ({door}): {error}")
            except Exception as error:
                # A store of the user's own: whatever it raises is a finding.
                problems.append(f"{what} ({door}): it raises {type(error).__name__}: {error}")
        await probe.clean()
        await store.aclose()
    if problems:  # not assert, which pytest would write out once more
        listed = "\n".join(f"- {problem}" for problem in problems)
        raise AssertionError(f"the store breaks its promises:\n{listed}")


class _Probe:
    """One door of a store: calls it, and waits if it has to."""

    def __init__(self, face: Any, sync: Any) -> None:
        self.face = face
        self.sync = sync
        self.made: list[str] = []

    async def do(self, name: str, *args: Any, **keywords: Any) -> Any:
        result = await _done(getattr(self.face, name)(*args, **keywords))
        if name in ("create", "fork"):
            self.made.append(result.id)
        return result

    async def said(self, *texts: str, **keywords: Any) -> Any:
        session = await self.do("create", **keywords)
        if texts:
            await _done(session.append([UserMessage(text) for text in texts]))
        return session

    async def texts(self, id: str) -> list[str]:
        return [message.text for message in (await self.do("open", id)).messages]

    async def refuses(self, error: type[Exception], name: str, *args: Any, **keywords: Any) -> None:
        """Whether a call raises that."""
        await _raises(error, f"{name}{args}", lambda: self.do(name, *args, **keywords))

    async def clean(self) -> None:
        for id in self.made:
            with suppress(SessionError):  # a check has deleted it
                self.sync.delete(id)


async def _done(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result


async def _raises(error: type[Exception], what: str, call: Callable[[], Awaitable[Any]]) -> None:
    try:
        await call()
    except error:
        return
    except Exception as other:
        # A store of the user's own: any other error is a finding.
        raised = f"{what} raises {type(other).__name__}"
        raise AssertionError(f"{raised}, not {error.__name__}: {other}") from other
    raise AssertionError(f"{what} does not raise {error.__name__}")


def _same(what: str, found: Any, expected: Any) -> None:
    assert found == expected, f"{what} is {str(found)[:200]!r}, not {str(expected)[:200]!r}"


async def _a_session_is_opened_as_it_was_saved(probe: _Probe) -> None:
    session = await probe.do("create", "A title", directory="/somewhere")
    _same("a new session's history", list(session.messages), [])
    reply = AssistantMessage([ToolCall("c", "look", {"a": [1, None]})], "test", "m", stop_reason="tool_use")
    turn: list[Message] = [UserMessage("hi"), reply, ToolResultMessage("c", "look", "seen")]
    turn += [CustomMessage("note", {"x": 1}), AssistantMessage("", "test", "m")]
    await _done(session.append(turn, state={"n": 1, "list": [1, {"a": None}]}))
    again = await probe.do("open", session.id)
    _same("the history", list(again.messages), list(turn))
    _same("the state", again.state, {"n": 1, "list": [1, {"a": None}]})
    _same("the metadata", again.meta, session.meta)
    counts = again.meta.messages, again.meta.turns, again.meta.sequence
    _same("messages, turns and sequence", counts, (5, 1, 1))
    _same("title and directory", (again.meta.title, again.meta.directory), ("A title", "/somewhere"))
    await _done(again.append([], state={}))
    _same("a state that was emptied", (await probe.do("open", session.id)).state, {})


async def _a_session_without_a_title_gets_the_first_words(probe: _Probe) -> None:
    session = await probe.said("Where is Paris?")
    _same("the title", (await probe.do("open", session.id)).meta.title, "Where is Paris?")


async def _records_come_back_in_their_order(probe: _Probe) -> None:
    session = await probe.said("hi")
    call = AssistantMessage([ToolCall("c", "pay", {})], "test", "m", stop_reason="tool_use")
    records = [
        ModelChange(ModelSpec("test", "m")),
        Label("here", 1),
        UnknownRecord("of_a_plugin", {"type": "of_a_plugin", "x": [1, {"y": None}]}),
        UnknownRecord("commit", {"type": "commit"}),
        TurnOpened(call),
        CallStarted("c"),
    ]
    await _done(session.append([], records=records))
    await _done(session.append([], records=[CallEnded("c", ToolResult("done"))]))
    found = await probe.do("load", session.id)
    _same("the records", found[1:], [*records, CallEnded("c", ToolResult("done"))])
    again = await probe.do("open", session.id)
    _same("the open turn's calls", again.conversation.open and set(again.conversation.open.results), {"c"})
    _same("the model", str(again.model), "test:m")


async def _who_comes_second_gets_a_conflict(probe: _Probe) -> None:
    first = await probe.said("one")
    second = await probe.do("open", first.id)
    await _done(first.append([UserMessage("two")]))
    await _raises(SessionConflict, "append", lambda: _done(second.append([UserMessage("late")])))
    _same("the loser's history", [message.text for message in second.messages], ["one"])
    _same("the stored history", await probe.texts(first.id), ["one", "two"])
    second = await probe.do("open", first.id)
    await _done(second.append([UserMessage("three")]))
    _same("the history", await probe.texts(first.id), ["one", "two", "three"])


async def _of_many_that_write_at_once_one_wins(probe: _Probe) -> None:
    session = await probe.said("one")
    handles = [probe.sync.open(session.id) for _ in range(6)]

    def write(number: int) -> bool:
        try:
            handles[number].append([UserMessage(f"writer {number}")])
        except SessionConflict:
            return False
        return True

    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(6) as threads:
        won = await asyncio.gather(*[loop.run_in_executor(threads, write, number) for number in range(6)])
    _same("the number of winners", sum(won), 1)
    _same("the history", await probe.texts(session.id), ["one", f"writer {won.index(True)}"])


async def _sessions_do_not_disturb_each_other(probe: _Probe) -> None:
    sessions = [await probe.do("create") for _ in range(6)]

    async def talk(session: Any) -> None:
        for number in range(3):
            await _done(session.append([UserMessage(f"{session.id} {number}")]))

    await asyncio.gather(*map(talk, sessions))
    for session in sessions:
        _same("a history", await probe.texts(session.id), [f"{session.id} {number}" for number in range(3)])


async def _ids_are_checked(probe: _Probe) -> None:
    for id in BAD_IDS:
        for name in ("open", "delete", "fork", "load"):
            await probe.refuses(InvalidInput, name, id)
        await probe.refuses(InvalidInput, "create", id=id)
        await probe.refuses(InvalidInput, "rename", id, "title")
    for id in GOOD_IDS:
        id = f"{id}{token_hex(6)}"
        await probe.do("create", id=id)
        await probe.refuses(SessionConflict, "create", id=id)
        _same("the id", (await probe.do("open", id)).id, id)


async def _an_unknown_id_is_not_found(probe: _Probe) -> None:
    for name in ("open", "delete", "fork", "load"):
        await probe.refuses(SessionNotFound, name, "nobody")
    await probe.refuses(SessionNotFound, "rename", "nobody", "title")


async def _the_list_has_the_newest_first(probe: _Probe) -> None:
    place = f"/{token_hex(8)}"
    sessions = [await probe.said("hi", directory=place) for _ in range(3)]
    await _done(sessions[0].append([UserMessage("again")]))
    ids = [meta.id for meta in await probe.do("list", directory=place)]
    _same("the list", ids, [sessions[0].id, sessions[2].id, sessions[1].id])
    _same("a short list", [meta.id for meta in await probe.do("list", directory=place, limit=1)], ids[:1])
    _same("a list of less than none", await probe.do("list", directory=place, limit=-1), [])
    _same("its metadata", (await probe.do("list", directory=place, limit=1))[0], sessions[0].meta)


async def _a_rename_disturbs_nobody(probe: _Probe) -> None:
    session = await probe.said("hi")
    await probe.do("rename", session.id, "Another title \ud800")
    await _done(session.append([UserMessage("on")]))
    again = await probe.do("open", session.id)
    _same("the title", again.meta.title[:13], "Another title")
    _same("the history", [message.text for message in again.messages], ["hi", "on"])


async def _a_deleted_session_is_gone(probe: _Probe) -> None:
    word = f"w{token_hex(8)}"
    session = await probe.said(word)
    _same("the hits", len(await probe.do("search", word)), 1)
    await probe.do("delete", session.id)
    await probe.refuses(SessionNotFound, "open", session.id)
    await _raises(SessionNotFound, "append", lambda: _done(session.append([UserMessage("x")])))
    _same("the hits", await probe.do("search", word), [])
    assert session.id not in [meta.id for meta in await probe.do("list")], "it is still in the list"


async def _a_fork_goes_its_own_way(probe: _Probe) -> None:
    session = await probe.said("one", "two")
    call = AssistantMessage([ToolCall("c", "look", {})], "test", "m", stop_reason="tool_use")
    await _done(session.append([call, ToolResultMessage("c", "look", "seen")], state={"n": 1}))
    fork = await probe.do("fork", session.id)
    _same("parent and place", (fork.meta.parent, fork.meta.forked_at, fork.state), (session.id, 4, {"n": 1}))
    await _done(fork.append([UserMessage("own")]))
    _same("the fork", len((await probe.do("open", fork.id)).messages), 5)
    _same("its parent", len((await probe.do("open", session.id)).messages), 4)
    early = await probe.do("fork", session.id, 1)
    _same("an early fork", await probe.texts(early.id), ["one"])
    between = await probe.do("fork", session.id, 3)
    _same("a fork between a call and its result", await probe.texts(between.id), ["one", "two"])
    await probe.refuses(InvalidInput, "fork", session.id, 99)
    family = {branch.meta.id for branch in await probe.do("tree", early.id)}
    _same("the family", family, {session.id, fork.id, early.id, between.id})


async def _load_takes_a_part(probe: _Probe) -> None:
    session = await probe.do("create")
    await _done(session.append([UserMessage(str(n), timestamp=float(n)) for n in range(5)], state={"a": 1}))
    load = [record.message.text for record in await probe.do("load", session.id, last=2, types=["message"])]
    _same("the last two", load, ["3", "4"])
    _same("what is later", len(await probe.do("load", session.id, after=2.0)), 2)
    _same("the states", len(await probe.do("load", session.id, types=["state"])), 1)


async def _odd_values_come_back(probe: _Probe) -> None:
    session = await probe.do("create")
    deep: Any = "deep"
    for _ in range(100):
        deep = [deep]
    arguments = {"inf": math.inf, "big": 10**400, "deep": deep, "text": "a\x00b\u2028\r\n"}
    arguments |= {"": {"$number": "x"}}
    call = AssistantMessage([ToolCall("c", "odd", arguments)], "test", "m", stop_reason="tool_use")
    turn = [UserMessage(""), UserMessage("half \ud800 pair"), UserMessage("x" * 1_000_000), call]
    await _done(session.append(turn, state={"inf": -math.inf}))
    again = await probe.do("open", session.id)
    _same("empty and long messages", [len(message.text) for message in again.messages], [0, 11, 1_000_000, 0])
    _same("arguments", again.messages[3].tool_calls[0].arguments, arguments)
    _same("the state", again.state, {"inf": -math.inf})


async def _what_was_compacted_away_stays(probe: _Probe) -> None:
    word = f"w{token_hex(8)}"
    session = await probe.said(word, "two", "three")
    kept = [UserMessage("summary"), session.messages[2]]
    await _done(session.append([], records=[Compaction(kept)]))
    again = await probe.do("open", session.id)
    _same("the context", [message.text for message in again.messages], ["summary", "three"])
    everything = [message.text for message in again.conversation.everything.values()]
    _same("everything", everything, [word, "two", "three"])
    _same("the hits", [hit.number for hit in await probe.do("search", word)], [0])


async def _search_finds_words_and_phrases(probe: _Probe) -> None:
    word = f"w{token_hex(8)}"
    session = await probe.do("create", "Rivers")
    asked = UserMessage(f"{word.upper()}: where does the Danube end?", timestamp=100.0)
    reply = AssistantMessage(f"The {word} Café, at the Black Sea 漢字.", "test", "m", timestamp=200.0)
    await _done(session.append([asked, reply]))

    async def numbers(text: str, **filters: Any) -> list[int]:
        return [hit.number for hit in await probe.do("search", text, **filters)]

    _same("a word, latest first", await numbers(word), [1, 0])
    _same("two words", await numbers(f"danube {word}"), [0])
    _same("a phrase", await numbers(f'{word} "does the danube"'), [0])
    _same("a phrase in another order", await numbers(f'{word} "danube the does"'), [])
    _same("a part of a word", await numbers(f"{word} danub"), [])
    _same("an accent", await numbers(f"{word} cafe"), [1])
    _same("Chinese", await numbers(f"{word} 漢字"), [1])
    _same("a role", await numbers(word, role="user"), [0])
    _same("a time after", await numbers(word, after=100.0), [1])
    _same("a time before", await numbers(word, before=200.0), [0])
    _same("a session", await numbers(word, session=session.id), [1, 0])
    _same("a limit", await numbers(word, limit=1), [1])
    _same("a limit below none", await numbers(word, limit=-1), [])
    (hit,) = await probe.do("search", f"{word} danube")
    _same("a hit", (hit.session, hit.title, hit.role, hit.timestamp), (session.id, "Rivers", "user", 100.0))
    assert "«Danube»" in hit.snippet, f"the snippet does not mark what was found: {hit.snippet!r}"
    for query in ODD_QUERIES:
        await probe.do("search", f"{word} {query}")
        await probe.do("search", query)
    await probe.refuses(InvalidInput, "search", "  ")


async def _a_sound_session_is_found_sound(probe: _Probe) -> None:
    session = await probe.said("hi")
    (check,) = await probe.do("check", session.id)
    assert check.sound, f"check finds {check}"
    _same("a repair of nothing", (await probe.do("repair", session.id)).losses, ())
    _same("the history", await probe.texts(session.id), ["hi"])


async def _a_part_of_an_id_is_enough(probe: _Probe) -> None:
    session = await probe.do("create")
    _same("the id", await probe.do("find", session.id[-20:]), session.id)
    await probe.refuses(SessionNotFound, "find", token_hex(20))


async def _a_closed_store_can_be_used_again(probe: _Probe) -> None:
    session = await probe.said("hi")
    probe.sync.close()
    await _done(session.append([UserMessage("on")]))
    _same("the history", await probe.texts(session.id), ["hi", "on"])


_CHECKS: tuple[Callable[[_Probe], Awaitable[None]], ...] = (
    _a_session_is_opened_as_it_was_saved,
    _a_session_without_a_title_gets_the_first_words,
    _records_come_back_in_their_order,
    _who_comes_second_gets_a_conflict,
    _of_many_that_write_at_once_one_wins,
    _sessions_do_not_disturb_each_other,
    _ids_are_checked,
    _an_unknown_id_is_not_found,
    _the_list_has_the_newest_first,
    _a_rename_disturbs_nobody,
    _a_deleted_session_is_gone,
    _a_fork_goes_its_own_way,
    _load_takes_a_part,
    _odd_values_come_back,
    _what_was_compacted_away_stays,
    _search_finds_words_and_phrases,
    _a_sound_session_is_found_sound,
    _a_part_of_an_id_is_enough,
    _a_closed_store_can_be_used_again,
)
