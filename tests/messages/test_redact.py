"""Redaction (E3, P9): secrets leave no trace, the rest stays readable, and what was hidden can be put back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import in_cells

from swink.messages import redact
from swink.messages.redact import (
    MARK,
    MOST_TOLD,
    describe_error,
    describe_traceback,
    redact_text,
    redact_value,
)
from swink.stream import StreamOptions

SECRETS = [
    "sk-ant-api03-Zz9_yX8wV7uT6sR5qP4",
    "sk-proj-abcdefghijklmnop1234",
    "xai-0123456789abcdef",
    "gsk_0123456789abcdef",
    "nvapi-0123456789abcdef",
    "hf_0123456789abcdefGHIJ",
    "glpat-0123456789abcdef",
    "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "github_pat_11AAAAAAA0123456789_abcdefghij",
    "xoxb-123456789012-abcdefghij",
    "AIzaSyA0123456789abcdefghijklmnopqrstuv",
    "AKIAIOSFODNN7EXAMPLE",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "around", ["{}", "key is {}, sorry", '{{"x": "{}"}}', "https://h/p?k={}&z=1", "\n{}\n", "({})"]
)
def test_what_looks_like_a_key_is_replaced_wherever_it_stands(secret, around):
    text = redact_text(around.format(secret))
    assert secret not in text
    assert MARK in text


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer abcDEF123456", "abcDEF123456"),
        ("authorization: basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("Authorization: Token 9944b09199c62bcf", "9944b09199c62bcf"),
        ("x-api-key: hunter22hunter22", "hunter22"),
        ("api_key=hunter22", "hunter22"),
        ('{"password": "hunter22"}', "hunter22"),
        ("{'client_secret': 'hunter22'}", "hunter22"),
        ('{\\"password\\": \\"hunter22\\"}', "hunter22"),
        ('password = "correct horse battery"', "horse"),
        ("db_password: correct,horse", "correct"),
        ('{"password": "§"}', "§"),
        ("?access_token=abc.def.ghi&next=1", "abc.def.ghi"),
        ("postgres://user:p4ss@host/db", "p4ss"),
        ("https://:p4ss@host/", "p4ss"),
        ('{"refresh_token":"1//0gabcdef"}', "1//0gabcdef"),
        ('{"token": "0123456789abcdef"}', "0123456789abcdef"),
    ],
)
def test_what_stands_where_a_secret_stands_is_replaced(text, secret):
    assert secret not in redact_text(text)


def test_private_keys_go_as_a_whole_even_when_cut_off():
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\ndef\n-----END RSA PRIVATE KEY-----"
    assert redact_text(f"a {key} b") == f"a {MARK} b"
    assert "MIIabc" not in redact_text(key[:40])


@pytest.mark.parametrize(
    "text",
    [
        "The task-force met; ask-me-anything, risk-management-plan.",
        "Unexpected token: } in JSON at position 4",
        "max_tokens: 4096, prompt_tokens=12",
        "https://example.com/path?query=word#anchor",
        "a basic idea, and the bearer of news; basic authentication is required",
        "def tokenize(text): return text.split()",
        "git@github.com:owner/name.git",
        "12:30:45 -- 2026-01-01",
    ],
)
def test_ordinary_text_stays_as_it_is(text):
    assert redact_text(text) == text


def test_given_secrets_are_replaced_and_trifles_are_not():
    assert redact_text("the key was marmalade", "marmalade", None, "") == f"the key was {MARK}"
    assert redact_text("a cat", "a") == "a cat"


@given(st.text(max_size=200) | st.sampled_from([f"password={secret} {secret}" for secret in SECRETS]))
def test_redacting_twice_changes_nothing_more(text):
    once = redact_text(text)
    assert redact_text(once) == once


@in_cells(
    "text",
    [
        "a" * 300_000,
        "a-" * 150_000,
        "a." * 150_000,
        "eyJaaaaaaaa-" * 24_000,
        "password" * 36_000,
        "-----BEGIN " * 27_000,
    ],
    every=3,
)
def test_long_text_takes_linear_time(text):
    redact_text(text)  # its square would take longer than a test may


def test_secret_keys_hide_their_values_at_any_depth():
    value = {
        "password": "a",
        "Api-Key": "b",
        "nested": [{"client_secret": {"k": "c"}}, ("authorization", {"Authorization": "d"})],
        "session_token": 12345,
        "cookie": ["e"],
        "access_tokens": ["f"],
        "path": "/tmp/x",
    }
    shown = redact_value(value)
    assert shown == {
        "password": MARK,
        "Api-Key": MARK,
        "nested": [{"client_secret": MARK}, ["authorization", {"Authorization": MARK}]],
        "session_token": MARK,
        "cookie": MARK,
        "access_tokens": MARK,
        "path": "/tmp/x",
    }
    assert value["password"] == "a", "the original is not touched"


def test_counts_of_tokens_are_no_secret():
    value = {"max_tokens": 100, "total_tokens": 7, "token_count": 3, "token_type": "bearer", "password": None}
    assert redact_value(value) == value


def test_values_that_look_like_keys_are_hidden_under_any_name():
    assert SECRETS[0] not in str(redact_value({"command": f"curl -H 'x: {SECRETS[0]}'"}))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(SECRETS),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "password", "token"]), inner, max_size=3)
    ),
    max_leaves=8,
)


def test_stream_options_never_show_a_key():
    options = StreamOptions(
        api_key="very-private", extra={"headers": {"Authorization": "Bearer very-private"}, "top_k": 3}
    )
    shown = repr(options) + str(options) + str(list(options.__rich_repr__()))
    assert "very-private" not in shown
    assert "top_k" in shown


@pytest.mark.parametrize(
    "text",
    [
        "token = get_token()",
        "password: str",
        "api_key: str | None = None",
        'secret = os.environ["SECRET"]',
        "login(user, password=password)",
        "password = getpass.getpass('Password: ')",
        '{"password": "Enter your password"}',
        '{"token": "identifier", "secret": "string"}',
        "GITHUB_TOKEN: ${{ secrets.GITHUB_TOKEN }}",
        "API_KEY=your_api_key_here",
        "postgres://user:password@localhost/db",
        "TOKEN=$(cat token.txt)",
        "private_key: PKCS7PrivateKeyTypes",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        'integrity "sha512-yjqHF2YL1b3dyR5y2ZMq0NzMT2+r0EHyUUQGkZ0kXGCYkgvhpD0wjRrAIBr1x3SbRrBFUbzRzJvtVHnbTFNFcA=="',
        "commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        "id: 123e4567-e89b-12d3-a456-426614174000",
        'if text.startswith("-----BEGIN PRIVATE KEY-----"):\n    return load(text)\n',
        "2. Basic Permissions. HTTP Basic Authentication, a bearer credential",
    ],
)
def test_code_survives(text):
    assert redact_text(text) == text


@in_cells(
    "shape",
    [
        "password=",
        "password: ",
        'password="',
        "token=",
        "?token=a&",
        "://a:",
        "eyJaaaaaaaa+",
        "sk-",
        "ghp_",
        "SG.aaaaaaaaaaaaaaaa.",
    ],
    every=3,
)
def test_hostile_shapes_take_linear_time(shape):
    redact_text(shape * (500_000 // len(shape)))  # its square would take longer than a test may


@pytest.mark.parametrize(
    "text",
    [
        "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "SECRET_KEY='p@ss word!'",
        "SECRET_KEY=django-insecure-#x$y",
        "glpat-abcdefghijABCDEFGHIJ",
        "ghp_" + "AbCd" * 9,
    ],
)
def test_a_key_is_one_also_without_digits_or_with_a_path_in_it(text: str):
    assert MARK in redact_text(text)


@pytest.mark.parametrize(
    "text", ["call(passphrase=passphrase)", "a.py,sha256=r8_DrqAfn6QLwQnmXEggveiSU-UaIL2p2nuPINelfFc,14949"]
)
def test_names_and_hashes_that_resemble_keys_stay(text: str):
    assert redact_text(text) == text


def raised(text: str) -> Exception:
    try:
        raise ValueError(text)
    except ValueError as error:
        return error


@pytest.mark.parametrize("describe", [describe_error, describe_traceback])
def test_of_a_huge_error_only_the_beginning_is_looked_through(describe, monkeypatch: pytest.MonkeyPatch):
    looked: list[int] = []
    find = redact.secret_spans
    monkeypatch.setattr(redact, "secret_spans", lambda text: (looked.append(len(text)), find(text))[1])
    text = describe(raised("word " * 1_000_000))
    assert sum(looked) < 2 * MOST_TOLD
    assert len(text) < 2 * MOST_TOLD
    assert "more characters]" in text
    assert "ValueError: word" in text


@pytest.mark.parametrize("before", range(MOST_TOLD - 120, MOST_TOLD, 9))
def test_a_key_at_the_place_where_an_error_is_cut_is_not_told_in_part(before: int):
    key = "sk-ant-api03-" + "Ab3dEf6hIj" * 9
    text = describe_error(ValueError("x " * ((before - 12) // 2) + key + " y" * 500_000))
    assert "Ab3dEf" not in text
    assert MARK in text


def test_a_chain_of_errors_with_a_huge_one_is_told_to_its_end():
    error = raised("word " * 100_000)
    error.__cause__ = raised("the cause " * 100_000)
    error.__cause__.__cause__ = raised("the first")
    text = describe_traceback(error)
    for part in ("the first", "the cause", "ValueError: word", "direct cause"):
        assert part in text
