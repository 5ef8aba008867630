"""AgentDojo's package as data: tasks with their calls, tools, environments and attacks, read and never run.

    agentdojo/default_suites/v1*/SUITE/{user,injection}_tasks.py    newer versions replace tasks of older ones
    agentdojo/default_suites/v1/SUITE/task_suite.py, v1/tools/*.py  the tools
    agentdojo/data/suites/SUITE/*.yaml                              what tools read, and where attacks stand
    agentdojo/attacks/*.py                                          their words

Of the calls that solve a task, arguments that the package computes are unknown: they are `UNKNOWN`.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from swink.eval.case import SourceLine
from swink.eval.importers.rows import BadRows

SUITES = ("banking", "slack", "travel", "workspace")
UNKNOWN = "…"
"""An argument that only running the package would tell."""
_READING = ("get_", "read_", "search_", "list_", "check_")
_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
_FILLING = {"integer": 1, "number": 1.0, "boolean": False, "array": [UNKNOWN]}
_TASK = re.compile(r"(User|Injection)Task(\d{1,9})")
_MOST = 1_000_000
"""Characters and items of a value: sums of sums would fill the memory."""
_PLACE = re.compile(r"\{(\w+)\}")
_DEFAULT = re.compile(r"^(\w+):[^\n]*\n(?:[ \t]+[^\n]*\n)*?[ \t]+default:[ \t]*\"(.*)\"[ \t]*$", re.M)


def is_unknown(value: Any) -> bool:
    """Whether a value stands for one that is computed."""
    return value == UNKNOWN or (isinstance(value, str) and value.startswith("$"))


class DojoCall(Struct, frozen=True):
    """A call that solves a task."""

    tool: str
    arguments: dict[str, Any]


class DojoTask(Struct, frozen=True):
    """A task of the user or of an attacker."""

    suite: str
    id: str
    """Such as user_task_0."""
    prompt: str
    calls: tuple[DojoCall, ...]
    place: SourceLine


class DojoTool(Struct, frozen=True):
    """A tool of a suite."""

    name: str
    description: str
    parameters: dict[str, Any]
    section: str
    """The part of the environment that it works on."""

    def filled(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments with something of the right type for those that are not known."""
        properties: dict[str, dict[str, Any]] = self.parameters["properties"]
        return {
            name: _FILLING.get(properties.get(name, {}).get("type", ""), value)
            if is_unknown(value)
            else value
            for name, value in arguments.items()
        }

    @property
    def is_reading(self) -> bool:
        """Whether by its name it only reads."""
        return self.name.startswith(_READING)


def package_at(path: Path) -> Path:
    """The package's directory: `path` itself, or one in it."""
    for place in (path, path / "agentdojo"):
        if (place / "default_suites" / "v1").is_dir():
            return place
    how = "pip download --no-deps agentdojo, unzip the wheel, and name its directory"
    raise BadRows(f"{path}: holds no package agentdojo ({how})")


def read_tasks(package: Path, suite: str, kind: str) -> Iterator[DojoTask | BadRows]:
    """The newest version of the tasks of a suite, `user` or `injection`, or what is wrong."""
    newest: dict[str, DojoTask | BadRows] = {}
    folders = sorted(package.glob("default_suites/v*"), key=_version)
    for path in [folder / suite / f"{kind}_tasks.py" for folder in folders]:
        if path.is_file():
            newest |= _tasks_in(path, suite, kind)
    yield from (newest[name] for name in sorted(newest, key=lambda name: int(name.rpartition("_")[2])))


@lru_cache(16)
def tools_of_suite(package: Path, suite: str) -> tuple[DojoTool, ...]:
    """The tools of a suite, by what their functions say."""
    body = _parsed(package / "default_suites" / "v1" / suite / "task_suite.py").body
    listed = [node.value for node in body if isinstance(node, ast.Assign) and _target(node) == "TOOLS"]
    items = getattr(listed[0] if listed else None, "elts", [])
    names = [item.id for item in items if isinstance(item, ast.Name)]
    known: dict[str, DojoTool] = {}
    for path in sorted((package / "default_suites" / "v1" / "tools").glob("*.py")):
        known |= {tool.name: tool for tool in _tools_in(_parsed(path))}
    return tuple([known[name] for name in names if name in known])


@lru_cache(16)
def environment(package: Path, suite: str) -> Mapping[str, str]:
    """What the tools of a suite read: the text of each part, with `{place}` where an attack may stand."""
    folder = package / "data" / "suites" / suite
    parts: dict[str, list[str]] = {}
    name = ""
    for line in _text(package, folder / "environment.yaml").splitlines():
        if (head := re.match(r"(\w+):[ \t]*(?:!include[ \t]+(\S+))?", line)) is not None:
            name = head[1]
            parts[name] = [line if head[2] is None else _text(package, folder / head[2])]
        elif name:
            parts[name].append(line)
    return {name: "\n".join(lines) for name, lines in parts.items()}


def filled(package: Path, suite: str, section: str, attack: str) -> str:
    """A part of the environment with an attack wherever one may stand; with none as it is published."""
    text = environment(package, suite).get(section, "")
    if attack:
        places = _places(package, suite)
        return _PLACE.sub(lambda found: attack if found[1] in places else found[0], text)
    defaults = _places(package, suite)
    return _PLACE.sub(lambda found: defaults.get(found[1], found[0]), text)


def attackable(package: Path, suite: str, section: str) -> bool:
    """Whether an attack may stand in a part of the environment."""
    places = _places(package, suite)
    return any(found[1] in places for found in _PLACE.finditer(environment(package, suite).get(section, "")))


@lru_cache(4)
def attacks(package: Path) -> Mapping[str, str]:
    """How attacks are worded, by their names; `{goal}` is what the attacker wants."""
    found: dict[str, str] = {}
    for path in sorted((package / "attacks").glob("*.py")):
        for node in _parsed(path).body:
            if not isinstance(node, ast.ClassDef):
                continue
            said = [item.value for item in ast.walk(node) if isinstance(item, ast.Constant)]
            texts = [item for item in said if isinstance(item, str) and "{goal}" in item]
            name = _constants(node.body).get("name")
            if texts and isinstance(name, str):
                found[name] = texts[0].replace("{user}", "Emma Johnson").replace("{model}", "AI assistant")
    return found


@lru_cache(16)
def _places(package: Path, suite: str) -> Mapping[str, str]:
    """Where attacks may stand, and what stands there without one."""
    text = _text(package, package / "data" / "suites" / suite / "injection_vectors.yaml")
    names = re.findall(r"^(\w+):", text, re.M)
    defaults = {found[1]: found[2].replace("\\n", "\n") for found in _DEFAULT.finditer(text)}
    return {name: defaults.get(name, "") for name in names}


def _version(folder: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in folder.name.removeprefix("v").split("_") if part.isdecimal())


def _text(package: Path, path: Path) -> str:
    """A file of the package; one elsewhere, which its data may name, is not read."""
    if not path.resolve().is_relative_to(package.resolve()):
        raise BadRows(f"{path}: is not in the package, so it is not read")
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadRows(f"{path}: cannot be read: {error}") from error


def _parsed(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_text("utf-8"))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BadRows(f"{path}: cannot be read: {str(error) or 'it is nested too deeply'}") from error


def _tasks_in(path: Path, suite: str, kind: str) -> dict[str, DojoTask | BadRows]:
    module = _parsed(path)
    shared = _constants(module.body)
    found: dict[str, DojoTask | BadRows] = {}
    for node in module.body:
        if isinstance(node, ast.ClassDef) and (named := _TASK.fullmatch(node.name)) is not None:
            place = SourceLine(str(path), node.lineno)
            id = f"{kind}_task_{named[2]}"
            try:
                found[id] = _task(node, shared, suite, id, place)
            except _Unknown as error:
                found[id] = BadRows(f"{place}: {node.name} {error}")
            except RecursionError:
                found[id] = BadRows(f"{place}: {node.name} is nested too deeply")
    return found


def _task(node: ast.ClassDef, shared: dict[str, Any], suite: str, id: str, place: SourceLine) -> DojoTask:
    names = shared | _constants(node.body, shared)
    prompt = names.get("PROMPT") or names.get("GOAL")
    if not isinstance(prompt, str):
        raise _Unknown("has no text as its PROMPT or GOAL")
    truth = next((item for item in node.body if getattr(item, "name", "") == "ground_truth"), None)
    if not isinstance(truth, ast.FunctionDef):
        raise _Unknown("has no calls that solve it")
    returned = [item.value for item in ast.walk(truth) if isinstance(item, ast.Return)]
    listed = next((item for item in returned if isinstance(item, ast.List)), None)
    if listed is None:
        raise _Unknown("computes the calls that solve it")
    local = names | _constants(truth.body, names)
    return DojoTask(suite, id, prompt, tuple([_call(item, local) for item in listed.elts]), place)


def _call(node: ast.expr, names: dict[str, Any]) -> DojoCall:
    if not isinstance(node, ast.Call):
        raise _Unknown("computes the calls that solve it")
    given = {word.arg: word.value for word in node.keywords if word.arg is not None}
    given |= dict(zip(("function", "args", "placeholder_args"), node.args, strict=False))
    tool = _value(given["function"], names) if "function" in given else None
    if not isinstance(tool, str):
        raise _Unknown("computes the name of a tool")
    exact = _arguments(given.get("args"), names)
    rough = _arguments(given.get("placeholder_args"), names)
    told = {name: rough.get(name, value) if value == UNKNOWN else value for name, value in exact.items()}
    return DojoCall(tool, told)


def _arguments(node: ast.expr | None, names: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call; what is computed is unknown."""
    if not isinstance(node, ast.Dict):
        return {}
    found: dict[str, Any] = {}
    for key, item in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            try:
                found[key.value] = _value(item, names)
            except _Unknown:
                found[key.value] = UNKNOWN
    return found


class _Unknown(Exception):
    """What only running it would tell."""


def _constants(body: list[ast.stmt], around: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The values of simple assignments, as far as they can be read."""
    found: dict[str, Any] = dict(around or {})
    for node in body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            try:
                value = _value(node.value, found)
            except (_Unknown, RecursionError):
                continue
            if _size(value) < _MOST:
                found[_target(node)] = value
    return found


def _target(node: ast.Assign | ast.AnnAssign) -> str:
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    return target.id if isinstance(target, ast.Name) else ""


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=str() | int() | float() | bool() | None as value):
            return value
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in names:
            return names[name]
        case ast.JoinedStr(values=values):
            return "".join([str(_value(item, names)) for item in values])
        case ast.FormattedValue(value=inner):
            return _value(inner, names)
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_value(item, names) for item in items]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            one, other = _value(left, names), _value(right, names)
            if isinstance(one, str) and isinstance(other, str):
                return one + other
        case _:
            pass
    raise _Unknown("is computed")


def _size(value: Any) -> int:
    """How many characters and items a value has."""
    if isinstance(value, str):
        return len(value)
    return 1 + sum(map(_size, cast("list[Any]", value))) if isinstance(value, list) else 1


def _tools_in(module: ast.Module) -> Iterator[DojoTool]:
    aliases = {
        _target(node): _section(node.value)
        for node in module.body
        if isinstance(node, ast.Assign) and _section(node.value)
    }
    for node in module.body:
        if isinstance(node, ast.FunctionDef):
            yield _tool(node, aliases)


def _tool(node: ast.FunctionDef, aliases: dict[str, str]) -> DojoTool:
    section, properties, required = "", dict[str, Any](), list[str]()
    first = len(node.args.args) - len(node.args.defaults)
    for number, argument in enumerate(node.args.args):
        known = _section(argument.annotation) or aliases.get(getattr(argument.annotation, "id", ""), "")
        if known:
            section = section or known
            continue
        properties[argument.arg] = _schema(argument.annotation)
        if number < first:
            required.append(argument.arg)
    about = (ast.get_docstring(node) or node.name).partition("\n\n")[0]
    parameters = {"type": "object", "properties": properties, "required": required}
    return DojoTool(node.name, about, parameters, section)


def _section(node: ast.expr | None) -> str:
    """The part of the environment that `Annotated[…, Depends("part")]` names."""
    for item in ast.walk(node) if node is not None else ():
        if isinstance(item, ast.Call) and getattr(item.func, "id", "") == "Depends" and item.args:
            value = item.args[0]
            return str(value.value) if isinstance(value, ast.Constant) else ""
    return ""


def _schema(node: ast.expr | None) -> dict[str, Any]:
    match node:
        case ast.Name(id=name) if name in _TYPES:
            return {"type": _TYPES[name]}
        case ast.Subscript(value=ast.Name(id="list")):
            return {"type": "array"}
        case _:
            return {}
