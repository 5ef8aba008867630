"""Questions to the person in the editor: calls, hosts, forms, whether a folder is trusted.

What waits in the permissions of a session is asked of the editor at once, each in a task; a question that a
rule or another mode has decided meanwhile is withdrawn there. An editor that has gone answers nothing: the
call is refused, and the run ends with its session.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from swink.app.acp.calls import (
    KINDS,
    absolute,
    diff_content,
    preview_content,
    text_content,
    title_of,
)
from swink.app.acp.connection import Connection, EditorGone, RequestRefused
from swink.app.acp.parameters import FormAnswer, PermissionAnswer
from swink.app.assistant.forms import Form, Item
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.person import (
    ABSENT,
    NOT_UNDERSTOOD,
    Always,
    AnswerOption,
    ByRule,
    DomainQuestion,
    Once,
    Question,
    Refuse,
    Reply,
    answer_options,
    domain_options,
    domain_reply,
)
from swink.app.assistant.reviewing import Review
from swink.events.transcript.blockkinds import counted

_KINDS = {"y": "allow_once", "d": "allow_once", "n": "reject_once", "r": "reject_once"}
"""What an answer is to an editor, by its key; every other one allows for longer."""
_UNSUPPORTED = ("e",)
"""Answers for which an editor has no way to ask further."""
_OTHER = "{}_other"


class EditorQuestions:
    """Asks the editor of one session; `known_id` is the id by which it knows a call."""

    def __init__(
        self,
        connection: Connection,
        session_id: str,
        permissions: Permissions,
        directory: Path,
        known_id: Callable[[str], str],
        send: Callable[[Mapping[str, Any]], None],
        *,
        has_forms: bool,
    ) -> None:
        self._connection, self._session_id = connection, session_id
        self._permissions, self._directory = permissions, directory
        self._known_id, self._send, self._has_forms = known_id, send, has_forms
        self._tasks: dict[Any, asyncio.Task[None]] = {}
        self._count = 0
        permissions.changed = self.look

    def look(self) -> None:
        """Ask what waits and was not asked yet; withdraw what waits no more."""
        found = self._permissions
        waiting: list[Any] = [*found.questions.waiting, *found.domains.waiting, *found.forms.waiting]
        for asked in [asked for asked in self._tasks if asked not in waiting]:
            self._tasks.pop(asked).cancel()
        for asked in waiting:
            if asked not in self._tasks:
                self._tasks[asked] = asyncio.create_task(self._put(asked), name="swink-question")

    async def aclose(self) -> None:
        """Withdraw all questions that wait; no others are asked."""
        self._permissions.changed = lambda: None
        tasks = [*self._tasks.values()]
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def choose(
        self, title: str, options: Sequence[tuple[str, str, str]], *, kind: str = "other", told: str = ""
    ) -> str | None:
        """The id of the option that the person takes of (id, name, kind), about no call; None for none."""
        self._count += 1
        id = f"question-{self._count}"
        call: dict[str, Any] = {"toolCallId": id, "title": title, "kind": kind, "status": "pending"}
        if told:
            call["content"] = [text_content(told)]
        self._send({"sessionUpdate": "tool_call", **call})
        chosen = None
        try:
            chosen = await self._request(call, options)
        finally:
            allowed = any(option == chosen and name.startswith("allow") for option, _, name in options)
            status = "completed" if allowed else "failed"
            self._send({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status})
        return chosen

    async def _put(self, asked: Any) -> None:
        found = self._permissions
        try:
            match asked:
                case Question():
                    found.questions.answer(asked, await self._answer_call(asked))
                case DomainQuestion():
                    found.domains.answer(asked, await self._answer_domain(asked))
                case _:
                    found.forms.answer(asked, await self._fill_in(asked))
        except (RequestRefused, EditorGone) as error:
            if isinstance(asked, Form):
                found.forms.answer(asked, None)
            elif isinstance(asked, Question):
                found.questions.answer(asked, Refuse(str(error), by=ABSENT))
            else:
                found.domains.answer(asked, Refuse(str(error), by=ABSENT))

    async def _request(self, call: Mapping[str, Any], options: Sequence[tuple[str, str, str]]) -> str | None:
        offered = [{"optionId": id, "name": name, "kind": kind} for id, name, kind in options]
        asked = {"sessionId": self._session_id, "toolCall": call, "options": offered}
        answer = await self._connection.ask("session/request_permission", asked, PermissionAnswer)
        return answer.outcome.option_id if answer.outcome.outcome == "selected" else None

    async def _answer_call(self, question: Question) -> Reply:
        options = [option for option in answer_options(question) if self._can_take(option, question)]
        key = await self._request(self._shown(question), _offered(options))
        match key:
            case "y":
                return Once()
            case "a":
                return Always()
            case "p":
                return ByRule(question.suggested)
            case "d":
                return await self._review(question)
            case "r":
                return Refuse(await self._reason())
            case "n" | None:
                return Refuse()
            case _:
                return Refuse(by=NOT_UNDERSTOOD)

    def _can_take(self, option: AnswerOption, question: Question) -> bool:
        if option.key == "d":
            return question.preview is not None and question.preview.can_review
        return option.key not in _UNSUPPORTED and (option.key != "r" or self._has_forms)

    def _shown(self, question: Question) -> dict[str, Any]:
        request, preview = question.request, question.preview
        content = [text_content(told) for told in (question.notice, question.leads_to) if told]
        path = request.shown.get("path")
        call: dict[str, Any] = {
            "toolCallId": self._known_id(request.call_id),
            "title": question.title or title_of(request.name, request.shown),
            "kind": KINDS.get(request.name, "other"),
            "status": "pending",
            "rawInput": request.shown,
        }
        if isinstance(path, str):
            whole = absolute(path, self._directory)
            call["locations"] = [{"path": whole}]
            if preview is not None:
                content += preview_content(preview, whole)
        return {**call, "content": content} if content else call

    async def _review(self, question: Question) -> Reply:
        """Put each part of a change to the person; what is left unanswered refuses the whole."""
        assert question.preview is not None
        review, path = Review(question.preview), question.request.shown["path"]
        for at, hunk in enumerate(review.diff.hunks):
            old = [line.text for line in hunk.lines if line.kind != "added"]
            new = [line.text for line in hunk.lines if line.kind != "removed"]
            whole = absolute(str(path), self._directory)
            call = {
                "toolCallId": self._known_id(question.request.call_id),
                "title": f"Part {at + 1} of {len(review.diff.hunks)} of {path}: {hunk.header}",
                "content": [diff_content(whole, "\n".join(old), "\n".join(new))],
            }
            options = [("y", "Yes, this part", "allow_once"), ("n", "No, not this part", "reject_once")]
            verdict = await self._request(call, options)
            if verdict not in ("y", "n"):
                return Refuse()
            review.judge(at, verdict == "y")
        return review.reply(question.request.name, question.request.arguments)

    async def _reason(self) -> str:
        reason = {"type": "string", "title": "Why not?"}
        filled = await self._elicit("What should the agent do instead?", {"reason": reason}, ())
        given = None if filled is None else filled.get("reason")
        return given if isinstance(given, str) else ""

    async def _answer_domain(self, question: DomainQuestion) -> Reply:
        commands = "\n".join(question.commands)
        options = [option for option in domain_options(question) if option.key != "r"]
        key = await self.choose(
            f"Reach {question.wish}?", _offered(options), kind="fetch", told=f"for:\n{commands}"
        )
        return Refuse() if key is None else domain_reply(question, key)

    async def _fill_in(self, form: Form) -> list[str] | None:
        names = [f"question_{number}" for number in range(1, len(form.items) + 1)]
        fields: dict[str, Any] = {}
        for name, item in zip(names, form.items, strict=True):
            fields |= _fields(name, item)
        required = [name for name, item in zip(names, form.items, strict=True) if not item.choices]
        asked = form.items[0].question if len(form.items) == 1 else counted(len(form.items), "question")
        filled = await self._elicit(f"{form.asker} asks: {asked}", fields, required)
        if filled is None:
            return None
        return [_given(filled.get(name), filled.get(_OTHER.format(name))) for name in names]

    async def _elicit(
        self, message: str, fields: Mapping[str, Any], required: Sequence[str]
    ) -> dict[str, object] | None:
        schema = {"type": "object", "properties": fields, "required": required}
        asked = {"sessionId": self._session_id, "mode": "form", "message": message, "requestedSchema": schema}
        answer = await self._connection.ask("elicitation/create", asked, FormAnswer)
        return (answer.content or {}) if answer.action == "accept" else None


def _offered(options: Sequence[AnswerOption]) -> list[tuple[str, str, str]]:
    return [(option.key, option.text, _KINDS.get(option.key, "allow_always")) for option in options]


def _fields(name: str, item: Item) -> dict[str, Any]:
    """A question as fields of a form: a choice, or several, may be answered in other words as well."""
    if not item.choices:
        return {name: {"type": "string", "title": item.question}}
    choices: dict[str, Any] = {"type": "string", "enum": list(item.choices)}
    field = {"type": "array", "items": choices} if item.several else choices
    other = {"type": "string", "title": "Or in other words"}
    return {name: {**field, "title": item.question}, _OTHER.format(name): other}


def _given(chosen: object, other: object) -> str:
    match chosen, other:
        case _, str() if other.strip():
            return other
        case str(), _:
            return chosen
        case list(), _:
            return "; ".join(map(str, cast("list[object]", chosen)))
        case _:
            return "" if chosen is None else str(chosen)
