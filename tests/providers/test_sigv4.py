"""SigV4 against botocore's signer, byte for byte, and the search for keys against botocore's session."""

import os
from datetime import UTC, datetime

import botocore.auth
import botocore.session
import pytest
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotoCredentials
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from swink.errors import AuthError, StreamError
from swink.providers.bedrock.awsconfig import find_credentials, find_region
from swink.providers.bedrock.sigv4 import Credentials, sign_headers

NOW = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)

lean = settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
printable = st.text("abcXYZ019+/=%-", max_size=30)
url_safe = st.text(st.sampled_from("abcXYZ019-._~%:@!$'()*,;=+/"), max_size=40)
header_names = st.sampled_from(
    ["Content-Type", "Accept", "X-Amz-Target", "User-Agent", "X-Amzn-Trace-Id", "x-custom", "Connection"]
)


def botocore_signs(monkeypatch, method, url, headers, body, credentials, region, service):
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda *_, **__: NOW.replace(tzinfo=None))
    request = AWSRequest(method=method, url=url, headers=headers, data=body)
    boto = BotoCredentials(credentials.access_key, credentials.secret_key, credentials.session_token)
    botocore.auth.SigV4Auth(boto, service, region).add_auth(request)
    return dict(request.headers.items())


@lean
@given(
    path=url_safe,
    query=st.lists(st.tuples(st.sampled_from("abAB"), st.sampled_from(["", "1", "%20x"])), max_size=3),
    headers=st.dictionaries(
        header_names, st.text(st.sampled_from("abc 0;=/"), min_size=1, max_size=12), max_size=4
    ),
    body=st.binary(max_size=50),
    secret=printable,
    token=st.one_of(st.none(), st.just(""), printable),
    host=st.sampled_from(
        [
            "https://bedrock-runtime.eu-west-1.amazonaws.com",
            "http://127.0.0.1:9001",
            "https://HOST.example:443",
            "http://[::1]:80",
        ]
    ),
)
def test_every_signature_is_botocores(path, query, headers, body, secret, token, host):
    url = f"{host}/{path}" + ("?" + "&".join(f"{key}={value}" for key, value in query) if query else "")
    credentials = Credentials("AKIDEXAMPLE", secret, token)
    with pytest.MonkeyPatch.context() as monkeypatch:
        wanted = botocore_signs(monkeypatch, "POST", url, headers, body, credentials, "eu-west-1", "bedrock")
    got = sign_headers(
        "POST", url, headers, body, credentials=credentials, region="eu-west-1", service="bedrock", now=NOW
    )
    assert got == wanted


def test_a_model_arn_in_the_path_is_encoded_twice(monkeypatch):
    url = "https://bedrock-runtime.us-east-1.amazonaws.com/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aprofile%2Fx/converse-stream"
    credentials = Credentials("AKIDEXAMPLE", "secret", "token")
    wanted = botocore_signs(
        monkeypatch,
        "POST",
        url,
        {"Content-Type": "application/json"},
        b"{}",
        credentials,
        "us-east-1",
        "bedrock",
    )
    got = sign_headers(
        "POST",
        url,
        {"Content-Type": "application/json"},
        b"{}",
        credentials=credentials,
        region="us-east-1",
        service="bedrock",
        now=NOW,
    )
    assert got["Authorization"] == wanted["Authorization"]


def test_signing_again_replaces_the_old_signature():
    credentials = Credentials("AKIDEXAMPLE", "secret", "token")
    keywords = {"credentials": credentials, "region": "us-east-1", "service": "bedrock", "now": NOW}
    once = sign_headers("POST", "https://h/p", {"a": "b"}, b"x", **keywords)
    assert sign_headers("POST", "https://h/p", once, b"x", **keywords) == once


def test_credentials_show_nothing():
    shown = repr(Credentials("AKIDEXAMPLE", "secret", "token"))
    assert "AKID" not in shown
    assert "secret" not in shown
    assert "token" not in shown


CREDENTIALS_FILE = """
[default]
aws_access_key_id = AKDEFAULT
aws_secret_access_key = default/secret%with

[work]
aws_access_key_id=AKWORK
aws_secret_access_key=worksecret
aws_session_token=worktoken

[half]
aws_access_key_id = AKHALF
"""
CONFIG_FILE = """
[default]
region = us-east-2

[profile work]
region = eu-central-1
s3 =
    addressing_style = path

[profile "with space"]
aws_access_key_id = AKSPACE
aws_secret_access_key = spacesecret
region = ap-south-1

[profile role]
role_arn = arn:aws:iam::1:role/x
source_profile = default
"""


@pytest.fixture
def aws_files(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    (tmp_path / "credentials").write_text(CREDENTIALS_FILE)
    (tmp_path / "config").write_text(CONFIG_FILE)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return tmp_path


@pytest.mark.parametrize("profile", [None, "default", "work", "with space"])
@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"AWS_ACCESS_KEY_ID": "AKENV", "AWS_SECRET_ACCESS_KEY": "envsecret"},
        {
            "AWS_ACCESS_KEY_ID": "AKENV",
            "AWS_SECRET_ACCESS_KEY": "envsecret",
            "AWS_SESSION_TOKEN": "envtoken",
            "AWS_DEFAULT_REGION": "us-west-1",
        },
        {"AWS_PROFILE": "work"},
        {"AWS_PROFILE": "work", "AWS_ACCESS_KEY_ID": "AKENV", "AWS_SECRET_ACCESS_KEY": "envsecret"},
    ],
    ids=["files", "keys", "keys and region", "profile", "profile and keys"],
)
def test_keys_and_region_are_those_botocore_finds(aws_files, monkeypatch, profile, environ):
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    session = botocore.session.Session(profile=profile)
    wanted = session.get_credentials().get_frozen_credentials()
    assert find_credentials(profile) == Credentials(wanted.access_key, wanted.secret_key, wanted.token)
    assert find_region(None, profile) == session.get_config_variable("region")


def test_region_keyword_wins_over_the_environment(monkeypatch):
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-2")
    assert find_region("eu-north-1") == "eu-north-1"
    assert find_region() == "us-east-1"


def test_no_region_says_where_to_set_one(aws_files):
    with pytest.raises(StreamError, match="AWS_REGION"):
        find_region(None, "nobody")


@pytest.mark.parametrize(
    ("profile", "says"),
    [
        ("nobody", "AWS_ACCESS_KEY_ID"),
        ("half", "no secret access key"),
        ("role", "role_arn.*export-credentials"),
    ],
)
def test_a_profile_without_keys_says_what_to_do(aws_files, profile, says):
    with pytest.raises(AuthError, match=says):
        find_credentials(profile)


def test_a_broken_file_is_named_and_its_content_is_not_shown(aws_files):
    (aws_files / "credentials").write_text("aws_secret_access_key = hunter2\n")
    with pytest.raises(AuthError, match="credentials cannot be read") as caught:
        find_credentials()
    assert "hunter2" not in str(caught.value)
