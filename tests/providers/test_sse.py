"""The event-stream rules of WHATWG, one by one, and in any cut."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swink.errors import StreamError
from swink.providers.sse import LINE_LIMIT, LineParser, ServerEvent, SseParser


def parse(*chunks: bytes) -> list[ServerEvent]:
    parser = SseParser()
    return [event for chunk in chunks for event in parser.feed(chunk)]


def data(*chunks: bytes) -> list[bytes]:
    return [event.data for event in parse(*chunks)]


RULES: list[tuple[str, bytes, list[ServerEvent]]] = [
    ("one line of data", b"data: a\n\n", [ServerEvent(b"a")]),
    ("several lines of data are joined", b"data: a\ndata: b\n\n", [ServerEvent(b"a\nb")]),
    ("CR ends a line", b"data: a\r\rdata: b\r\r", [ServerEvent(b"a"), ServerEvent(b"b")]),
    ("CRLF ends a line", b"data: a\r\n\r\ndata: b\r\n\r\n", [ServerEvent(b"a"), ServerEvent(b"b")]),
    ("line endings may be mixed", b"data: a\r\ndata: b\n\rdata: c\r\r\n", [ServerEvent(b"a\nb"), ServerEvent(b"c")]),
    ("a byte order mark at the start is skipped", b"\xef\xbb\xbfdata: a\n\n", [ServerEvent(b"a")]),
    ("only the first byte order mark is", b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n", [ServerEvent(b"b")]),
    ("a byte order mark later is part of the name", b"data: a\n\n\xef\xbb\xbfdata: b\n\n", [ServerEvent(b"a")]),
    ("a byte order mark before a blank line", b"\xef\xbb\xbf\ndata: a\n\n", [ServerEvent(b"a")]),
    ("comments are ignored", b": ping\n\n:\n\ndata: a\n: between\ndata: b\n\n", [ServerEvent(b"a\nb")]),
    ("one space after the colon is removed, no more", b"data:  a\ndata:b\ndata:\tc\n\n", [ServerEvent(b" a\nb\n\tc")]),
    ("data without a colon is an empty line of data", b"data\n\n", [ServerEvent(b"")]),
    ("two of them are one newline", b"data\ndata\n\n", [ServerEvent(b"\n")]),
    ("data with a colon and nothing after it", b"data:\n\ndata: \n\n", [ServerEvent(b""), ServerEvent(b"")]),
    ("an event without data is not dispatched", b"event: lost\n\ndata: a\n\n", [ServerEvent(b"a")]),
    ("the event name is kept for its event only", b"event: x\ndata: a\n\ndata: b\n\n", [ServerEvent(b"a", "x"), ServerEvent(b"b")]),
    ("the last event name counts", b"event: x\nevent: y\ndata: a\n\n", [ServerEvent(b"a", "y")]),
    ("the id stays until another comes", b"id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", [
        ServerEvent(b"a", "", "1"), ServerEvent(b"b", "", "1"), ServerEvent(b"c")]),
    ("an id with NUL is ignored", b"id: 1\ndata: a\n\nid: \x002\ndata: b\n\n", [ServerEvent(b"a", "", "1"), ServerEvent(b"b", "", "1")]),
    ("an id counts without data too", b"id: 7\n\ndata: a\n\n", [ServerEvent(b"a", "", "7")]),
    ("an error line of llama.cpp is an event", b"error: {}\n\ndata: a\n\n", [ServerEvent(b"{}", "error"), ServerEvent(b"a")]),
    ("unknown fields are ignored", b"foo: bar\ndata: a\nDATA: b\n data: c\n\n", [ServerEvent(b"a")]),
    ("an event without its blank line is not dispatched", b"data: a\n\ndata: b\n", [ServerEvent(b"a")]),
    ("a line without its end is no line", b"data: a\n\ndata: b", [ServerEvent(b"a")]),
    ("a colon in the data is data", b"data: {\"a\": 1}\n\n", [ServerEvent(b'{"a": 1}')]),
    ("text of any script", "data: ünï→💡\n\n".encode(), [ServerEvent("ünï→💡".encode())]),
    ("bad UTF-8 in a name is replaced", b"event: \xff\ndata: \xff\n\n", [ServerEvent(b"\xff", "\ufffd")]),
]  # fmt: skip


@pytest.mark.parametrize(("body", "events"), [rule[1:] for rule in RULES], ids=[rule[0] for rule in RULES])
def test_a_rule_of_the_format_holds_however_the_bytes_are_cut(body: bytes, events: list[ServerEvent]):
    assert parse(body) == events
    assert parse(*[body[at : at + 1] for at in range(len(body))]) == events
    for at in range(len(body) + 1):
        assert parse(body[:at], body[at:]) == events, f"cut at {at}"
        assert parse(body[:at], b"", body[at:]) == events, f"cut at {at} with an empty chunk"


def test_retry_takes_digits_only():
    parser = SseParser()
    parser.feed(b"retry: 3000\nretry: soon\nretry: -1\n\n")
    assert parser.retry == 3000


LINES = st.lists(
    st.tuples(
        st.sampled_from(
            [
                b"data: ",
                b"data:",
                b"data",
                b"event: ",
                b"id: ",
                b": ",
                b"retry: ",
                b"x: ",
                b"\xef\xbb\xbf",
                b"",
            ]
        ),
        st.text(
            alphabet=st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=12
        ).map(str.encode),
        st.sampled_from([b"\n", b"\r\n", b"\r", b"\n\n", b"\r\n\r\n"]),
    ),
    max_size=25,
).map(lambda lines: b"".join(b"".join(line) for line in lines))


@given(LINES, st.lists(st.integers(0, 400), max_size=20))
def test_any_cut_gives_the_same_events(body: bytes, cuts: list[int]):
    at = sorted({0, len(body), *(cut for cut in cuts if cut < len(body))})
    pieces = [body[start:end] for start, end in itertools.pairwise(at)]
    assert parse(*pieces) == parse(body)


@given(LINES)
def test_the_parser_agrees_with_a_reading_of_the_specification(body: bytes):
    assert [(event.data, event.event, event.id) for event in parse(body)] == read_as_specified(body)


def read_as_specified(body: bytes) -> list[tuple[bytes, str, str]]:
    """The algorithm of the specification, word for word, on the whole text at once."""
    text = body.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")[:-1]
    buffer, name, last_id, events = "", "", "", []
    for line in lines:
        if not line:
            if buffer:
                events.append((buffer.removesuffix("\n").encode(), name, last_id))
            buffer, name = "", ""
            continue
        if line.startswith(":"):
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            buffer += value + "\n"
        elif field == "event":
            name = value
        elif field == "id" and "\0" not in value:
            last_id = value
    return events


def test_a_line_of_sixteen_mebibytes_is_taken():
    value = b"x" * (LINE_LIMIT - len(b"data: "))
    chunks = [b"data: ", *[value[at : at + 65536] for at in range(0, len(value), 65536)], b"\n\n"]
    assert data(*chunks) == [value]


def test_a_longer_line_is_refused_before_it_fills_the_memory():
    parser = SseParser()
    with pytest.raises(StreamError, match="16 MiB"):
        for _ in range(300):
            parser.feed(b"x" * 65536)


def test_a_stream_that_never_completes_an_event_is_refused():
    parser = SseParser()
    with pytest.raises(StreamError, match="without one complete event"):
        for _ in range(2000):
            parser.feed((b":" + b"-" * 4094 + b"\n") * 16)


def test_the_beginning_of_a_long_line_is_not_read_again_with_every_piece():
    parser = SseParser()
    for _ in range(400_000):  # which would be read for minutes
        parser.feed(b"0123456789")
    assert parser.feed(b"\n\n") == []


def test_ndjson_lines_are_split_in_any_cut():
    body = '{"a": 1}\r\n\n  \n{"b": "ü"}\n{"c": 3}'.encode()
    for at in range(len(body) + 1):
        parser = LineParser()
        lines = [*parser.feed(body[:at]), *parser.feed(body[at:])]
        assert lines == [b'{"a": 1}', '{"b": "ü"}'.encode()]
        assert parser.rest() == b'{"c": 3}'


def test_an_ndjson_line_that_is_too_long_is_refused():
    parser = LineParser()
    with pytest.raises(StreamError, match="16 MiB"):
        for _ in range(300):
            parser.feed(b"x" * 65536)
