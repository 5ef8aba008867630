"""What a person types after a slash in an editor: commands, skills, prompts of servers."""

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal

from swink.agent.agentresult import AgentResult
from swink.app.acp.continuations import note_continuation
from swink.app.acp.options import MODEL
from swink.app.assistant.fallbacks import obey_fallback
from swink.app.assistant.servermentions import command_of, fill_in_prompt, find_prompt, usage_of
from swink.app.assistant.sessionswitcher import Rewound
from swink.app.assistant.skillplaces import list_skills, make_skill_prompt
from swink.errors import InvalidContinue, MisuseError, NoMessages
from swink.events import ContextCompacted
from swink.system.oneline import shorten
from swink.system.shorten import clip, clip_list
from swink.system.threads import in_thread

if TYPE_CHECKING:
    from swink.app.acp.editorsession import EditorSession

_OWN = {
    "/continue": "finish what an interruption left",
    "/model": "show the model, or take another one: its name; fallback NAME… is asked when it fails",
    "/compact": "make room in the context now",
    "/rewind": "go back to before a prompt, with the files of then: its number, or none to list them",
    "/redo": "undo the last rewind",
    "/export": "write this conversation to a file: its name, ending with .md, .html or .json",
    "/skills": "which skills there are; /skill:NAME enters one",
}
_SKILL = "/skill:"
_NAME = re.compile(r"/[a-zA-Z][\w:-]*")
_HELP = 300


class SessionCommands:
    """The commands of one session."""

    def __init__(self, session: "EditorSession") -> None:
        self._session = session
        self._told: list[dict[str, Any]] = []

    def tell(self) -> None:
        """Tell the editor which commands there are now, if it does not know yet."""
        listed = [{"name": name[1:], "description": told} for name, told in _OWN.items()]
        environment = self._session.environment
        listed += [
            _command(each.name, each.help) for each in environment.commands.values() if each.name not in _OWN
        ]
        skills = {} if environment.skills is None else environment.skills.skills
        listed += [
            _command(f"{_SKILL}{name}", each.description, "what to do") for name, each in skills.items()
        ]
        for prompt in environment.servers.prompts:
            if (name := command_of(prompt)) is not None:
                listed.append(_command(name, prompt.description or name, usage_of(prompt)))
        if listed != self._told:
            self._told = listed
            self._session.send({"sessionUpdate": "available_commands_update", "availableCommands": listed})

    async def obey(self, text: str) -> AgentResult[None] | Literal[True] | None:
        """What a command came to: a run, or True where it was none; None if it is no command."""
        name, _, rest = text.strip().partition(" ")
        rest, session = rest.strip(), self._session
        environment = session.environment
        if not name.startswith("/"):
            return None
        match name:
            case "/continue":
                return await self._continue()
            case "/compact":
                session.narrator.take(ContextCompacted(await session.agent.compact()))
                return True
            case "/rewind":
                await self._rewind(rest)
                return True
            case "/redo":
                done = await session.sessions.redo()
                await self._note_place()
                self._tell_restored("the rewind is undone", done)
                return True
            case "/export":
                if not rest:
                    raise MisuseError("write the name of a file after it: /export talk.md")
                path = await session.sessions.export(session.environment.directory / rest)
                session.narrator.notify(f"written to {path}")
                return True
            case "/model":
                if (told := obey_fallback(session.agent, rest)) is None:
                    if rest:
                        await session.set_option(MODEL, rest)
                        session.tell_options()
                    told = f"the model is {session.agent.model}"
                session.narrator.notify(told)
                return True
            case "/skills":
                session.narrator.notify(list_skills(environment.skills, session.agent.messages))
                return True
            case _ if name.startswith(_SKILL):
                skill = name.removeprefix(_SKILL)
                return await session.run(
                    await make_skill_prompt(environment, session.agent.messages, skill, rest)
                )
            case _ if (custom := environment.commands.get(name)) is not None:
                return await session.run(custom.expand(rest))
            case _ if (prompt := find_prompt(name, environment.servers.prompts)) is not None:
                return await session.run(await fill_in_prompt(prompt, rest, environment.servers))
            case _:
                self._refuse_mistyped(name, rest)
                return None

    def _refuse_mistyped(self, name: str, rest: str) -> None:
        """Refuse what was meant as a command; a path, or words after a name like none, are a prompt."""
        if _NAME.fullmatch(name) is None:
            return
        near = get_close_matches(name[1:], [each["name"] for each in self._told], n=1)
        if near or not rest:
            hint = f"did you mean /{near[0]}?" if near else "a word before it makes it a prompt"
            raise MisuseError(f"there is no command {name}; {hint}")

    async def _continue(self) -> AgentResult[None]:
        try:
            return await self._session.run(None)
        except (NoMessages, InvalidContinue) as error:
            raise MisuseError("there is nothing to continue; write what is to be done") from error

    async def _rewind(self, which: str) -> None:
        sessions, narrator = self._session.sessions, self._session.narrator
        prompts = sessions.prompts()
        if not which:
            listed = [f"{at}  {shorten(each.text, 80)}" for at, each in enumerate(prompts, 1)]
            how = "/rewind NUMBER goes back to before one, with the files of then:"
            narrator.notify("\n".join([how, *listed]) if listed else "nothing was said yet")
            return
        if not which.isdecimal() or not 1 <= int(which) <= len(prompts):
            raise MisuseError(f"there is no prompt {which}; /rewind alone lists them")
        prompt = prompts[int(which) - 1]
        done = await sessions.rewind(prompt.number)
        await self._note_place()
        self._tell_restored(f"this is before “{shorten(prompt.text, 80)}”; /redo undoes it", done)

    async def _note_place(self) -> None:
        """Have the session found again under the id that the editor knows."""
        if (saved := self._session.sessions.saved_id()) is not None:
            await in_thread(note_continuation, self._session.id, saved)

    def _tell_restored(self, what: str, done: Rewound) -> None:
        told = [what]
        if done.files is not None:
            told += [f"restored: {path}" for path in done.files.files]
            told += [f"{change.path} is left: {change.conflict}" for change in done.files.left]
            told += [f"{path} could not be restored: {why}" for path, why in done.files.failed.items()]
        self._session.narrator.notify("\n".join(clip_list(told, 20)))


def _command(name: str, told: str, hint: str = "arguments") -> dict[str, Any]:
    command: dict[str, Any] = {"name": name.removeprefix("/"), "description": clip(told, _HELP)}
    return {**command, "input": {"hint": hint}} if hint else command
