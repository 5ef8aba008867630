"""StreamOptions: what cannot work is refused where it is written, with what to pass instead."""

from typing import Any

import pytest
from msgspec.structs import replace

from swink import InvalidInput, StreamOptions
from swink.stream import Timeout

NAN, INF = float("nan"), float("inf")

REFUSED: list[tuple[str, Any, str]] = [
    ("temperature", "0.5", "a number of 0 or more"),
    ("temperature", -0.1, "a number of 0 or more"),
    ("temperature", NAN, "a number of 0 or more"),
    ("temperature", True, "a number of 0 or more"),
    ("max_tokens", -1, "a whole number above 0"),
    ("max_tokens", 0, "a whole number above 0"),
    ("max_tokens", 10.0, "a whole number above 0"),
    ("max_tokens", "100", "a whole number above 0"),
    ("max_tokens", True, "a whole number above 0"),
    ("api_key", "", "leave it out"),
    ("api_key", " \n", "leave it out"),
    ("api_key", b"sk-secret-bytes", "takes str, not bytes"),
    ("session_id", 7, "takes str, not int"),
    ("transport", "http2", "'sse', 'websocket', 'auto'"),
    ("transport", object(), "passed as http="),
    ("tool_choice", "", "a tool's name"),
    ("tool_choice", ["weather"], "a tool's name"),
    ("cache", "no", "is True, False, '5m' or '1h'"),
    ("timeout", "5", "finite number of seconds"),
    ("timeout", 0, "seconds above 0"),
    ("timeout", -1.5, "seconds above 0"),
    ("timeout", INF, "finite number of seconds"),
    ("timeout", True, "finite number of seconds"),
    ("extra", [("user", "carol")], "takes Mapping, not list"),
    ("extra", None, "takes Mapping, not NoneType"),
    ("on_raw_payload", "print", "is a function, not str"),
    ("http", "http://proxy.example", "an HttpClient"),
    ("http", object, "an HttpClient"),
]


@pytest.mark.parametrize(("name", "value", "says"), REFUSED)
def test_an_option_that_cannot_work_is_refused_by_name_with_what_to_pass(name: str, value: Any, says: str):
    with pytest.raises(InvalidInput, match=f"^{name}\\b") as raised:
        StreamOptions(**{name: value})
    assert says in str(raised.value)
    with pytest.raises(InvalidInput):
        replace(StreamOptions(), **{name: value})


def test_a_key_that_is_refused_is_not_shown():
    with pytest.raises(InvalidInput) as raised:
        StreamOptions(api_key=b"sk-secret-bytes")  # type: ignore[arg-type]
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("name", ["idle", "first", "connect"])
@pytest.mark.parametrize("value", ["5", None, 0, -1, NAN, INF])
def test_a_time_limit_that_is_none_is_refused(name: str, value: Any):
    with pytest.raises(InvalidInput, match=f"Timeout\\({name}="):
        Timeout(**{name: value})


def test_what_works_is_taken():
    options = StreamOptions(
        temperature=0,
        max_tokens=1,
        api_key="k",
        session_id="",
        transport="auto",
        tool_choice="none",
        cache=False,
        timeout=Timeout(idle=1),
        extra={},
        on_raw_payload=print,
    )
    assert "api_key" not in repr(options)
    assert repr(StreamOptions()) == "StreamOptions(cache=True)"
