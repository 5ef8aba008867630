"""Shell access: how commands of the agent run in a directory, by what the person chose and answers.

ShellAccess(directory, …)   by the settings alone: nobody is asked, and nothing is reached
attend(permissions)         the person is asked about hosts and about commands outside
terms()                     how a command would run now
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from swink.app.assistant.networkrules import NetworkRules
from swink.app.assistant.outsideapproval import OutsideApproval
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.settings import SandboxSettings
from swink.app.assistant.shellsettings import ShellSettings
from swink.errors import InvalidInput
from swink.memory.jsonl import sessions_dir
from swink.system.places import config_dir
from swink.tools.coding.linkedgit import LinkedGit
from swink.tools.coding.sandbox import Level, Sandbox, SandboxUnavailable
from swink.tools.coding.workspace import select_roots


class ShellTerms(NamedTuple):
    """How commands run: as long as these are the same, so are the tools."""

    level: Level
    network: NetworkRules | None
    """Decides about each host; without it the level does."""
    roots: tuple[Path, ...]
    told: str
    """What the model is told of the network."""


class ShellAccess:
    """What commands of the agent may reach in a directory."""

    def __init__(
        self,
        directory: Path,
        chosen: SandboxSettings,
        is_own: Callable[[], bool],
        tell: Callable[[str], None],
    ) -> None:
        self.settings = ShellSettings(chosen)
        self.outside: OutsideApproval | None = None
        self.linked: LinkedGit | None = None
        """The repository, where the directory is a worktree of ours: commands commit to it."""
        self._directory = directory
        self._is_own, self._tell = is_own, tell
        self._network: NetworkRules | None = None
        self._permissions: Permissions | None = None

    def attend(self, permissions: Permissions) -> None:
        """Have the person asked what only they decide."""
        self._permissions = permissions
        permissions.shell = self.settings
        self.settings.find_trouble = self._find_trouble
        self._network = NetworkRules(permissions, self.settings, self._directory, self._tell)
        self.outside = OutsideApproval(permissions, self._is_own)

    def terms(self) -> ShellTerms:
        """How a command would run now."""
        now, network, roots = self.settings.now, self._network, self._roots()
        if now.level == "none":
            return ShellTerms("none", None, roots, "")
        if network is None:
            return ShellTerms("workspace", None, roots, "")
        if now.network == "on" and not network.has_denials:
            return ShellTerms("workspace+net", None, roots, "")
        return ShellTerms("workspace+net", network, roots, network.describe())

    def sandbox_options(self, terms: ShellTerms, shown: Sequence[Path] = ()) -> dict[str, Any]:
        """What every sandbox on these terms is made with, beside its level; `shown` can be read besides."""
        if self._permissions is not None and self._permissions.workspace is not None:
            self._permissions.workspace.add_roots(terms.roots, shown)
        given = {"approve_domain": terms.network, "writable": terms.roots, "shown": shown}
        return {"hidden": self.hidden(), "or_none": self._is_own(), "linked": self.linked, **given}

    def hidden(self) -> list[Path]:
        """Places that no tool may read: what was said elsewhere, keys and settings."""
        places = (sessions_dir(), config_dir())
        return [place for place in places if not self._directory.is_relative_to(place)]

    def _roots(self) -> tuple[Path, ...]:
        """The further roots that can be had; what is wrong with others is told once."""
        found: list[Path] = []
        for place in self.settings.now.writable:
            try:
                found += select_roots(self._directory, [place])
            except InvalidInput as error:
                self._tell(str(error))
        return select_roots(self._directory, found)

    async def _find_trouble(self) -> str:
        """Why commands cannot be sandboxed here; empty if they can."""
        level, gate, *_ = self.terms()
        try:
            await Sandbox(self._directory, level, hidden=self.hidden(), approve_domain=gate).backend()
        except SandboxUnavailable as error:
            return str(error)
        return ""
