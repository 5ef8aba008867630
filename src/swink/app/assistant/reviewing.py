"""Review of a call: hunk by hunk, each approved, rejected or rewritten, or the call edited as a whole.

What runs is the same call with other arguments, so that a file becomes byte for byte what was approved.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from swink.agent.policy import ApprovalRequest
from swink.app.assistant.person import Once, Refuse
from swink.app.assistant.previews import EDIT, Preview
from swink.app.assistant.toolcalls import tool_of
from swink.events.transcript.blockkinds import counted
from swink.events.transcript.diffs import Hunk
from swink.messages.redact import MARK
from swink.system.shorten import clip_end
from swink.tools import ToolError
from swink.tools.coding.edits import Edit, apply_edits
from swink.tools.schema import Shape

Verdict = bool | str
"""Approved, rejected, or the lines that the hunk shall have instead."""
ALL_REJECTED = "every part of the change was rejected; nothing was written"
_QUOTED = 2_000
"""Characters of rejected hunks, or of an edited call, that the model is told."""


class Review:
    """The hunks of a change and what the person said of each."""

    def __init__(self, preview: Preview) -> None:
        assert preview.diff is not None
        assert preview.old is not None
        assert preview.new is not None
        self.diff = preview.diff
        self.state = preview.state
        self.old = preview.old
        self.new = preview.new
        self.verdicts: list[Verdict | None] = [None] * len(self.diff.hunks)
        self.reasons: dict[int, str] = {}
        """Why hunks were rejected, where the person said so."""

    @property
    def is_complete(self) -> bool:
        """Whether every hunk has a verdict."""
        return None not in self.verdicts

    @property
    def next_open(self) -> int | None:
        """The first hunk without a verdict."""
        return self.verdicts.index(None) if None in self.verdicts else None

    def judge(self, index: int, verdict: Verdict, reason: str = "") -> None:
        """Keep what the person said of a hunk, and nothing of what they said before."""
        self.verdicts[index] = verdict
        self.reasons.pop(index, None)
        if reason:
            self.reasons[index] = reason

    def proposed(self, index: int) -> str:
        """The lines that a hunk would leave, for a person to edit."""
        lines = _raw_lines(self.new)
        numbers = [line.new for line in self.diff.hunks[index].lines if line.new is not None]
        return "\n".join([lines[number - 1].removesuffix("\n").removesuffix("\r") for number in numbers])

    def text(self) -> str:
        """The file as approved; hunks without a verdict count as rejected."""
        if all(verdict is True for verdict in self.verdicts):
            return self.new
        return apply_verdicts(self.old, self.new, self.diff.hunks, self.verdicts)

    def reply(self, name: str, arguments: Mapping[str, Any]) -> Once | Refuse:
        """The answer for the call: as it is, with other arguments, or not at all."""
        if all(verdict is True for verdict in self.verdicts):
            return Once()
        text = self.text()
        if text == self.old:
            why = "".join(f"; {reason}" for reason in dict.fromkeys(self.reasons.values()))
            return Refuse(f"{ALL_REJECTED}{why}")
        return Once(rewrite(name, arguments, self.old, text, self.state), self._note())

    def _note(self) -> str:
        judged = enumerate(zip(self.diff.hunks, self.verdicts, strict=True))
        rejected = [self._told(at, hunk) for at, (hunk, verdict) in judged if verdict in (False, None)]
        edited = [verdict for verdict in self.verdicts if isinstance(verdict, str)]
        total = len(self.verdicts)
        parts = [f"The user reviewed this change of {self.diff.path} in {counted(total, 'hunk')}."]
        if rejected:
            parts.append(f"Not written, because the user rejected them ({len(rejected)} of {total}):")
            parts.append(_quote(rejected))
        if edited:
            parts.append(f"Written otherwise by the user ({len(edited)} of {total}), as:")
            parts.append(_quote(edited))
        return "\n".join(parts)

    def _told(self, at: int, hunk: Hunk) -> str:
        because = f"because: {self.reasons[at]}\n" if at in self.reasons else ""
        return because + _as_text(hunk)


_REVIEWED = re.compile(r"(rejected them|otherwise by the user) \((\d+) of (\d+)\)")
_BECAUSE = re.compile(r"^because: (.*)$", re.M)
_CHANGED = "The user changed this call before it ran."


def note_summary(note: str) -> str:
    """What the note on a call says, in a few words for the person who gave it."""
    words = {"rejected them": "refused", "otherwise by the user": "written by you"}
    told = [f"{count} of {total} parts {words[how]}" for how, count, total in _REVIEWED.findall(note)]
    why = "; ".join(_BECAUSE.findall(note)) if told else ""
    if told:
        return f"{', '.join(told)}: {why}" if why else ", ".join(told)
    return "changed by you" if note.startswith(_CHANGED) else note.partition("\n")[0]


def reason_of(rejection: str) -> str:
    """Why a call was rejected, of what the model was told; nothing where nobody said why."""
    _, found, why = rejection.partition("tool call rejected: ")
    said_no = Refuse().by
    return why.removeprefix(f"{said_no}: ") if found and why != said_no else ""


def editable_text(request: ApprovalRequest) -> str:
    """What a person edits: the command line, or the arguments as JSON."""
    command = request.shown.get("command")
    if isinstance(command, str):
        return command
    return msgspec.json.format(msgspec.json.encode(request.shown), indent=2).decode()


def edited_call(request: ApprovalRequest, text: str) -> Once:
    """The call as a person has edited it; raises `ValueError` with what is wrong."""
    shown: dict[str, Any]
    if isinstance(request.shown.get("command"), str):
        shown = {**request.shown, "command": text}
    else:
        try:
            shown = msgspec.json.decode(text, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeEncodeError) as error:
            raise ValueError(f"this is no JSON object: {error}") from None
    names = dict(zip(request.shown, request.arguments, strict=True))
    arguments: dict[str, Any] = {}
    for key, value in shown.items():
        # What was shown without its secrets and was left alone runs as it was.
        name = names.get(key, key)
        is_same = value == request.shown.get(key)
        arguments[name] = request.arguments[name] if is_same else value
        if not is_same and _count_marks(value) > _count_marks(request.arguments.get(name)):
            raise ValueError(f"{key}: a part of it is hidden; write the whole of it, or leave it as it was")
    if arguments == request.arguments:
        return Once()
    spec = tool_of(request)
    if spec is not None and (problems := Shape(spec.parameters_schema).violations(arguments)):
        raise ValueError("; ".join(problems))
    ran = msgspec.json.encode({key: value for key, value in shown.items() if value != request.shown.get(key)})
    quoted = ran.decode()[:_QUOTED]
    return Once(arguments, f"{_CHANGED} What is different: {quoted}")


def apply_verdicts(old: str, new: str, hunks: Sequence[Hunk], verdicts: Sequence[Verdict | None]) -> str:
    """The old text with the approved hunks; every byte outside of them stays as it was."""
    before, after = _raw_lines(old), _raw_lines(new)
    found: list[str] = []
    at = 0
    for hunk, verdict in zip(hunks, verdicts, strict=True):
        numbers = [line.old for line in hunk.lines if line.old is not None]
        start, end = (numbers[0] - 1, numbers[-1]) if numbers else (at, at)
        found += before[at:start]
        at = end
        if isinstance(verdict, str):
            ends = end < len(before) or new.endswith("\n")
            found += _fit(verdict, before[start:end] or after, ends)
        elif verdict:
            for line in hunk.lines:
                if line.kind == "same" and line.old is not None:
                    found.append(before[line.old - 1])
                elif line.kind == "added" and line.new is not None:
                    found.append(after[line.new - 1])
        else:
            found += before[start:end]
    found += before[at:]
    return _join(found, "\r\n" if old.find("\r\n") >= 0 else "\n")


def rewrite(
    name: str, arguments: Mapping[str, Any], old: str, text: str, state: str | None
) -> dict[str, Any]:
    """The arguments with which the call makes `text` of the file, if that is still in the given state."""
    changed = {**arguments, "expected_hash": state} if state is not None else dict(arguments)
    if name != EDIT:
        return {**changed, "content": text}
    return {**changed, "edits": [msgspec.to_builtins(_smallest_edit(old, text))]}


def _smallest_edit(old: str, text: str) -> Edit:
    """One edit of whole lines that makes `text` of `old`, as short as it can be and still unique."""
    before, after = _raw_lines(old), _raw_lines(text)
    start, shorter = 0, min(len(before), len(after))
    while start < shorter and before[start] == after[start]:
        start += 1
    tail = 0
    while tail < shorter - start and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    for margin in (1, 3, 10, 50):
        first = max(0, start - margin)
        last = max(0, tail - margin)
        edit = Edit("".join(before[first : len(before) - last]), "".join(after[first : len(after) - last]))
        with suppress(ToolError):
            if apply_edits(old, [edit]).text == text:
                return edit
    return Edit(old, text)


def _raw_lines(text: str) -> list[str]:
    """The lines with their ends; only a line feed ends one."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _fit(written: str, around: Sequence[str], ends: bool) -> list[str]:
    """What a person wrote, as lines that end like those around it; the last of a file may have no end."""
    if not written:
        return []
    end = "\r\n" if around and around[0].endswith("\r\n") else "\n"
    lines = [line.removesuffix("\r") + end for line in written.removesuffix("\n").split("\n")]
    return lines if ends else [*lines[:-1], lines[-1].removesuffix(end)]


def _join(lines: Sequence[str], end: str) -> str:
    """The lines as a text; one that lost its place at the end of the file gets a line end."""
    whole = [line if line.endswith("\n") else line + end for line in lines[:-1]]
    return "".join([*whole, *lines[-1:]])


def _as_text(hunk: Hunk) -> str:
    marks = {"same": " ", "removed": "-", "added": "+"}
    return "\n".join([hunk.header, *[marks[line.kind] + line.text for line in hunk.lines]])


def _quote(pieces: Sequence[str]) -> str:
    text = "\n".join(pieces)
    return clip_end(text, _QUOTED, f"\n… ({len(text) - _QUOTED:,} characters more)")


def _count_marks(value: Any) -> int:
    return msgspec.json.encode(value).decode().count(MARK)
