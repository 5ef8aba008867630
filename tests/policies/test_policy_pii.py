"""PiiRedactor: what is stored and sent holds no personal data, and everything else stays as it was."""

import asyncio
import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from pydantic import BaseModel
from scenes import Scene, call
from tests.counts import in_cells, tried

from swink import (
    AssistantMessage,
    CustomMessage,
    Extension,
    Image,
    Policy,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolResultMessage,
    UserMessage,
)
from swink.errors import MisuseError
from swink.messages import Base64Source
from swink.messages.codec import encode_messages
from swink.policies import PiiRedactor
from swink.policies.personal import KINDS
from swink.stream import Error, Start
from swink.testing import history_problems

SECRETS = {
    "email": ["jane.doe@example.com", "a+b@mail.example.co.uk", "J_D-1@x.io", "пётр@example.com"],
    "phone": [
        "+1 212 555 0123",
        "+44 20 7946 0958",
        "(212) 555-0123",
        "212-555-0123",
        "212.555.0123",
        "+15551234567",
        "1-800-555-0199",
    ],
    "ssn": ["078-05-1120", "219 09 9999"],
    "card": [
        "4111111111111111",
        "4111 1111 1111 1111",
        "5500-0000-0000-0004",
        "378282246310005",
        "3782 822463 10005",
        "6011111111111117",
    ],
    "ipv4": ["203.0.113.7", "10.0.0.1", "192.168.1.254", "255.255.255.255"],
    "ipv6": [
        "2001:db8::8a2e:370:7334",
        "fe80::1ff:fe23:4567:890a",
        "2001:0db8:85a3:0000:0000:8a2e:0370:7334",
        "::ffff:203.0.113.7",
        "fe80::1",
    ],
    "iban": ["DE89 3704 0044 0532 0130 00", "GB29NWBK60161331926819"],
    "passport": ["passport no. C01X00T47"],
    "birthdate": ["born on 1 February 1980", "DOB: 1980-02-01"],
    "key": ["sk-ant-REDACTED", "AKIAIOSFODNN7EXAMPLE", "ghp_abcdefghijklmnop0123456789"],
}
ALL = [(kind, text) for kind, texts in SECRETS.items() for text in texts]

HARMLESS = [
    "Python 3.11.4 and numpy 1.26.0, build 2024.01.15",
    "It is 12:30:45 on 2024-01-15; took 00:01:02.345",
    "x[::2], a[1::2], std::vector<int>, crate::module, a::b, dead::beef",
    "127.0.0.1:8080, ::1, 0.0.0.0, localhost",
    "order 4111111111111112, id 1234567890123456, timestamp 1700000000000, 1700000000",
    "0.4111111111111111 and 3.14159265358979",
    "MAC 00:1a:2b:3c:4d:5e, sha 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "git clone git@github.com:user/repo.git",
    "@decorator, user@, @host, a @ b",
    "000-12-3456 666-12-3456 900-12-3456 123-00-4567 123-45-0000",
    "1,234,567.89 and 1 000 000 and 12-34-56",
    "999.1.2.3 and 1.2.3.4.5 and v1.2.3.4",
    "uuid 123e4567-e89b-12d3-a456-426614174000",
]


@pytest.mark.parametrize(("kind", "secret"), ALL)
def test_every_kind_is_found_in_its_surroundings(kind: str, secret: str):
    for frame in (
        "@",
        "see @.",
        "(@)",
        '{"x":"@"}',
        "is:@, and",
        "12 @ 34",
        "<@>",
        "'@'",
        "@\n@",
        "@, @",
        "a @: b",
    ):
        text = PiiRedactor().redact(frame.replace("@", secret))
        assert secret not in text, frame
        assert f"[{kind}]" in text or "[redacted]" in text or kind == "ipv6", text


SPACED = [
    item for item in ALL if item[0] in ("phone", "card", "ssn", "iban") and any(c in item[1] for c in " -")
]
SPACES = "\u00a0\u2007\u2009\u200a\u202f\u205f\u3000"
HYPHENS = "\u2010\u2011\u2012\u2013\u2212\u00ad\uff0d"


@pytest.mark.parametrize(("kind", "secret"), SPACED)
def test_numbers_with_the_spaces_and_hyphens_of_a_text_processor_are_found(kind: str, secret: str):
    for space, hyphen in zip(SPACES, HYPHENS, strict=True):
        written = secret.replace(" ", space).replace("-", hyphen)
        assert PiiRedactor().redact(f"at {written}, or") == f"at [{kind}], or", ascii(written)


@tried(100, 1_000)
@given(st.sampled_from([item for item in ALL if item[0] in ("email", *dict(SPACED))]), st.data())
def test_odd_digits_and_invisible_characters_hide_nothing(item: tuple[str, str], data: st.DataObject):
    kind, secret = item
    wide = {char: chr(ord(char) + 0xFEE0) for char in "0123456789+@"}
    written = "".join(
        data.draw(st.sampled_from([char, wide.get(char, char), char + "\u200b", "\u2060" + char]))
        for char in secret
    )
    assert f"[{kind}]" in PiiRedactor().redact(f"at {written}, or"), ascii(written)


@pytest.mark.parametrize(
    "text",
    [
        "1990\u20131999, pages 100\u2013200 and 1\u202f234\u202f567\u00a0m",
        "3\u2212212 = \u2212209, 10\u00a0000\u00a0000 people, \u00a7\u00a012\u00a0(3)",
        "2024\u201101\u201115, 12:30\u201313:45, v1.2.3\u2011rc1",
        "\uff12\uff10\uff12\uff14\u5e74\uff11\u6708 \u0661\u0662\u0663",
    ],
)
def test_ordinary_figures_keep_their_typography(text: str):
    assert PiiRedactor().redact(text) == text


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_not_personal_is_let_pass(text: str):
    assert PiiRedactor().redact(text) == text


def test_a_number_in_front_does_not_hide_a_card():
    assert "1111" not in PiiRedactor().redact("2024 4111 1111 1111 1111 12/27")


def test_kinds_are_chosen():
    assert PiiRedactor(kinds=["email"]).redact("a@b.io 203.0.113.7") == "[email] 203.0.113.7"
    with pytest.raises(MisuseError):
        PiiRedactor(kinds=["nonsense"])  # type: ignore[list-item]


def test_what_may_stay_stays():
    assert (
        PiiRedactor(keep=["help@example.com"]).redact("help@example.com, me@example.com")
        == "help@example.com, [email]"
    )


def kept(message: Any, **options: Any) -> Any:
    verdict = PiiRedactor(**options).pre_commit(message)
    return message if verdict is None else verdict.message


def test_signed_thinking_that_would_change_is_dropped_and_other_thinking_is_redacted():
    blocks = [
        Thinking("mail a@b.io", "sig"),
        Thinking("fine", "sig2"),
        Thinking("mail a@b.io"),
        Thinking("a@b.io", "x", True),
        Text("ok"),
    ]
    assert kept(AssistantMessage(blocks)).content == (
        Thinking("fine", "sig2"),
        Thinking("mail [email]"),
        Thinking("a@b.io", "x", True),
        Text("ok"),
    )


def test_details_extensions_custom_messages_and_error_texts_are_redacted():
    result = kept(
        ToolResultMessage(
            "1", "t", [Extension("x", {"m": "a@b.io"})], details={"a@b.io": ["a@b.io", 4111111111111111, 7]}
        )
    )
    assert result.content[0].data == {"m": "[email]"}
    assert result.details == {"[email]": ["[email]", "[card]", 7]}
    assert kept(CustomMessage("note", {"from": "a@b.io"})).data == {"from": "[email]"}
    assert (
        kept(AssistantMessage("", stop_reason="error", error_message="no a@b.io")).error_message
        == "no [email]"
    )


def test_an_untouched_message_is_the_same_object():
    message = UserMessage(["hello", Image(Base64Source("aGk="))])
    assert PiiRedactor().pre_commit(message) is None


async def test_nothing_personal_is_stored_or_sent_on_any_turn():
    secret = "jane@example.com"
    replies = [[Thinking(f"ask {secret}"), f"Writing to {secret}", call(1, to=secret)], f"Wrote to {secret}"]
    scene = Scene(
        PiiRedactor(),
        replies,
        answer=lambda arguments: ToolResult(f"sent to {arguments['to']}", {"to": arguments["to"]}),
    )
    result = await scene.run(f"I am {secret}")
    sent = "".join(str(context.messages) for context in scene.model.calls)
    assert secret not in encode_messages(scene.agent.messages).decode()
    assert secret not in encode_messages(result.messages).decode()
    assert secret not in sent
    assert scene.ran == [("act", {"to": secret})], "the tool itself gets the real value"


async def test_a_failed_reply_is_redacted_too():
    scene = Scene(PiiRedactor(), [[Start(), Error("user a@b.io is blocked", "auth")]])
    await scene.run()
    assert "a@b.io" not in encode_messages(scene.agent.messages).decode()


async def test_arguments_can_be_redacted_for_the_tool_as_well_or_kept():
    redacting = Scene(PiiRedactor(arguments="redact"), [call(1, to="a@b.io"), "done"])
    await redacting.run()
    assert redacting.ran == [("act", {"to": "[email]"})]
    keeping = Scene(PiiRedactor(arguments="keep"), [call(1, to="a@b.io"), "done"])
    await keeping.run()
    assert "a@b.io" in encode_messages(keeping.agent.messages).decode()


class Yielding(Policy):
    async def pre_dispatch(self, ctx: Any, call: Any) -> None:
        await asyncio.sleep(0.001)


async def test_agents_that_share_a_redactor_do_not_get_each_others_values():
    redactor = PiiRedactor()
    scenes = [
        Scene([Yielding(), redactor], [call(1, to=f"user{number}@example.com"), "done"])
        for number in range(20)
    ]
    await asyncio.gather(*(scene.run() for scene in scenes))
    assert [scene.ran for scene in scenes] == [
        [("act", {"to": f"user{number}@example.com"})] for number in range(20)
    ]


async def test_values_of_a_reply_that_was_never_dispatched_are_not_given_to_a_later_call():
    redactor = PiiRedactor()
    message = AssistantMessage([ToolCall("1", "act", {"to": "old@example.com"})])
    redactor.pre_commit(message)
    scene = Scene(redactor, [call(1, to="[email]"), "done"])
    await scene.run()
    assert scene.ran == [("act", {"to": "[email]"})]


pieces = st.sampled_from(
    [text for _, text in ALL] + HARMLESS + ["password=hunter22", "Bearer abcdefgh12", "[email]", "[card]"]
)
glue = st.text(alphabet=" .,:;-@/[]()<>\n0123456789abcdefgx", max_size=4)
texts = st.one_of(st.lists(st.one_of(pieces, glue), max_size=6).map("".join), st.text(max_size=30))


@given(texts, st.sets(st.sampled_from(KINDS), min_size=1))
@tried(75, 300)
def test_redacting_twice_changes_nothing(text: str, kinds: set[Any]):
    redactor = PiiRedactor(kinds)
    once = redactor.redact(text)
    assert redactor.redact(once) == once


@given(
    st.lists(
        st.tuples(st.text(min_size=1, max_size=6), texts, texts), max_size=4, unique_by=lambda item: item[0]
    ),
    texts,
)
@tried(25, 100)
def test_pairing_names_and_signatures_are_never_touched(calls: list[tuple[str, str, str]], text: str):
    message = AssistantMessage(
        [Text(text), *(ToolCall(id, "act", {"x": x}, signature="s") for id, x, _ in calls)]
    )
    history = [
        UserMessage(text or "x"),
        message,
        *(ToolResultMessage(id, "act", answer) for id, _, answer in calls),
    ]
    assert not history_problems(history)
    redacted = [kept(item) for item in history]
    assert not history_problems(redacted)
    assert [(c.id, c.name, c.signature) for c in redacted[1].tool_calls] == [
        (c.id, c.name, c.signature) for c in message.tool_calls
    ]
    assert [kept(item) for item in redacted] == redacted


@dataclasses.dataclass
class Person:
    name: str
    contact: dict[str, Any]


class Record(Struct):
    mail: str


class Model(BaseModel):
    phone: str


class Odd:
    def __init__(self, note: str) -> None:
        self.note = note
        self.other = object()


class Silent:
    __slots__ = ()

    def __str__(self) -> str:
        return "silent a@b.io"


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        (Person("Jane", {"mail": ["a@b.io"]}), {"name": "Jane", "contact": {"mail": ["[email]"]}}),
        (Record("a@b.io"), {"mail": "[email]"}),
        (Model(phone="+1 212 555 0123"), {"phone": "[phone]"}),
        ([Record("a@b.io"), 7], [{"mail": "[email]"}, 7]),
        ({"a@b.io"}, ("[email]",)),
        (Path("/home/a@b.io"), "/home/[email]"),
        (Silent(), "silent [email]"),
        (4111111111111111, "[card]"),
    ],
)
def test_details_of_any_shape_are_redacted(details: Any, expected: Any):
    assert kept(ToolResultMessage("1", "t", "ok", details=details)).details == expected


def test_an_odd_object_is_redacted_by_its_attributes():
    assert kept(ToolResultMessage("1", "t", details=Odd("a@b.io"))).details["note"] == "[email]"


@pytest.mark.parametrize(
    "details",
    [
        Person("Jane", {}),
        Record("x"),
        Odd("fine"),
        [10**6000],
        float("nan"),
        b"a@b.io",
        {"k": (1, None)},
        range(3),
    ],
)
def test_clean_details_stay_the_object_they_were(details: Any):
    message = ToolResultMessage("1", "t", "ok", details=details)
    assert PiiRedactor().pre_commit(message) is None


def test_details_that_cannot_be_compared_are_no_obstacle():
    class Picky:
        def __eq__(self, other: object) -> bool:
            raise ValueError("ambiguous")

        __hash__ = None  # type: ignore[assignment]

    assert PiiRedactor().pre_commit(ToolResultMessage("1", "t", "ok", details=Picky())) is None


SHAPES = [
    "+1 2125550123",
    "a@b.cc",
    "1.2.3.4.",
    "1.2.3.4-",
    "a:",
    "::",
    "4111 ",
    "41",
    "born ",
    "phone ",
    "passport ",
    "DE89",
    "P<",
    "078-05-1120-",
    "0",
    "@a.",
]


@in_cells("shape", SHAPES, every=4)
def test_hostile_shapes_take_linear_time(shape: str):
    PiiRedactor().redact(shape * (100_000 // len(shape)))  # its square would take longer than a test may


def test_a_row_of_numbers_without_gaps_is_redacted_in_a_few_passes():
    text = PiiRedactor().redact("+1 2125550123" * 500)
    assert "555" not in text
