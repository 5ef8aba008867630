"""Logins at MCP servers: who is asked, what is kept, and what a bad server cannot do."""

import asyncio
import logging
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from mcp_servers import call, leftovers, results
from msgspec.structs import replace
from oauth_server import OAuthServer, Person
from tests.counts import MORE

from swink.mcp import HttpServer, McpError, McpServers
from swink.mcp.logins import Login, Logins
from swink.mcp.redirects import Listener, LoginFailed
from swink.mcp.timeouts import PausableTimeouts, Withdrawn
from swink.models.keys.keychain import Keychain
from swink.models.keys.store import key_places, keys_file, known_keys


@pytest.fixture(autouse=True)
def own_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr("swink.models.keys.store.open_keychain", lambda: None)


def web(server: OAuthServer, **options: Any) -> HttpServer:
    return HttpServer("web", server.url, **{"requires_approval": False, **options})


async def log_in(server: OAuthServer, **options: Any) -> Person:
    person = Person()
    async with McpServers([web(server, **options)], on_login=person):
        pass
    return person


async def failure(server: OAuthServer, **options: Any) -> str:
    with pytest.raises(McpError) as raised:
        await log_in(server, **options)
    assert leftovers() == []
    return str(raised.value)


async def test_a_login_is_asked_for_once_and_kept():
    async with OAuthServer() as server:
        person = await log_in(server)
        assert len(person.urls) == 1
        asked = server.authorised[0]
        assert (asked["code_challenge_method"], asked["scope"], asked["resource"]) == (
            "S256",
            "read",
            server.url,
        )
        async with McpServers([web(server)]) as servers:
            assert (await results(servers, call("web_who")))[0].text == "session-2"
        assert leftovers() == []
        assert keys_file().stat().st_mode & 0o077 == 0
        login = Logins(server.url).read_now()
    assert {*login.secrets} <= {*known_keys()}, "so that sessions and logs are rid of them"
    shown = f"{login!r} {McpServers([web(server)])!r}"
    assert not [secret for secret in login.secrets if secret in shown]


async def test_where_nobody_can_log_in_the_error_says_what_to_do_and_nobody_is_registered():
    async with OAuthServer() as server:
        with pytest.raises(McpError, match="MCP server 'web' needs a login: swink mcp login web"):
            async with McpServers([web(server)]):
                pass
        assert "/register" not in server.asked
        async with McpServers([web(server, required=False)]) as servers:
            assert "swink mcp login web" in servers.problems[0]


async def test_an_expired_token_is_renewed_before_it_is_used_and_after_a_restart_too():
    async with OAuthServer() as server:
        await log_in(server)
        await Logins(server.url).write(replace(Logins(server.url).read_now(), expires=time.time() - 1))
        server.tokens.clear()
        server.asked.clear()
        async with McpServers([web(server)]) as servers:
            assert not (await results(servers, call("web_who")))[0].is_error
        assert server.asked[:2] == ["/token", "refresh_token"]
        assert len(server.authorised) == 1


async def test_a_token_that_the_server_has_withdrawn_is_renewed():
    async with OAuthServer() as server:
        await log_in(server)
        async with McpServers([web(server)]) as servers:
            server.tokens.clear()
            first, second = await asyncio.gather(*(results(servers, call("web_who")) for _ in range(2)))
            assert [first[0].is_error, second[0].is_error] == [False, False]
        assert server.asked.count("refresh_token") == 1, "calls at the same time share one renewal"


async def test_a_token_that_cannot_be_renewed_needs_a_login():
    async with OAuthServer() as server:
        await log_in(server)
        async with McpServers([web(server)]) as servers:
            server.tokens.clear()
            server.refreshable.clear()
            (result,) = await results(servers, call("web_who"))
    assert "needs a login: swink mcp login web" in result.text


async def test_another_programs_renewal_is_used():
    async with OAuthServer() as server:
        await log_in(server)
        async with McpServers([web(server)]) as servers:
            login = Logins(server.url).read_now()
            assert login.tokens is not None
            server.tokens = {"token-from-elsewhere"}
            fresh = Login(
                {**login.tokens, "access_token": "token-from-elsewhere"}, time.time() + 60, login.client
            )
            await Logins(server.url).write(fresh)
            assert not (await results(servers, call("web_who")))[0].is_error
        assert "refresh_token" not in server.asked


async def test_more_rights_are_asked_for_together_with_those_given():
    async with OAuthServer() as server:
        person = Person()
        async with McpServers([web(server)], on_login=person) as servers:
            said = 'Bearer error="insufficient_scope", scope="write"'
            server.odd["call"] = (403, {"www-authenticate": said}, None)
            (result,) = await results(servers, call("web_who"))
        assert result.is_error, "it asks without end: it is asked twice, then given up"
        assert [set(asked["scope"].split()) for asked in server.authorised] == [
            {"read"},
            *[{"read", "write"}] * 2,
        ]


async def test_rights_that_are_missing_are_asked_for_by_the_next_login():
    async with OAuthServer() as server:
        await log_in(server)
        said = 'Bearer error="insufficient_scope", scope="write"'
        server.odd["call"] = (403, {"www-authenticate": said}, None)
        async with McpServers([web(server)]) as servers:
            (result,) = await results(servers, call("web_who"))
        assert "needs more rights (write): swink mcp login web" in result.text
        server.tokens.clear()
        server.refreshable.clear()
        await log_in(server)
        assert set(server.authorised[-1]["scope"].split()) == {"read", "write"}


async def test_a_slow_call_does_not_hold_up_others():
    async with OAuthServer() as server:
        await log_in(server)
        async with McpServers([web(server)]) as servers:
            server.slow.clear()
            slow = asyncio.create_task(results(servers, call("web_who")))
            while "/mcp" not in server.asked[-1:]:
                await asyncio.sleep(0.01)
            await asyncio.wait_for(servers.refresh(), 30)
            server.slow.set()
            assert not (await slow)[0].is_error


async def test_a_client_of_ones_own_needs_no_registration():
    async with OAuthServer() as server:
        await log_in(server, client_id="mine", client_secret="hunter2-of-mine")
        assert server.authorised[0]["client_id"] == "mine"
        assert "/register" not in server.asked
        assert "hunter2" not in repr(web(server, client_id="mine", client_secret="hunter2-of-mine"))


async def test_a_token_goes_to_no_other_url(tmp_path: Path):
    async with OAuthServer() as server, OAuthServer() as other:
        await log_in(server)
        with pytest.raises(McpError, match="needs a login"):
            async with McpServers([web(other)]):
                pass
        assert list(key_places()) == [f"mcp:{server.url}"]
        with pytest.raises(McpError, match="needs https"):
            plain = HttpServer("web", other.url.replace("127.0.0.1", "127.0.0.1.nip.example"))
            raise McpError(_why_not(plain))


def _why_not(server: HttpServer) -> str:
    from swink.mcp.authorisation import Authorisation

    made: Any = Authorisation.__new__(Authorisation)
    made._server = server
    return made._why_not()


ELSEWHERE = "http://169.254.169.254/latest"


@pytest.mark.parametrize(
    ("odd", "expected"),
    [
        ({"resource": (200, {}, {"resource": "https://other.example/mcp", "authorization_servers": ["https://x.example"]})}, "does not match"),
        ({"resource": (200, {}, {"resource": "BASE/mcp", "authorization_servers": [ELSEWHERE]})}, "a login needs https"),
        ({"resource": (200, {}, b"{" + b" " * 3_000_000)}, "sends too much"),
        ({"resource": (503, {}, None)}, "503"),
        ({"metadata": (200, {}, {"issuer": "BASE", "authorization_endpoint": "BASE/authorize", "token_endpoint": "BASE/token", "registration_endpoint": "BASE/register"})}, "PKCE"),
        ({"metadata": (200, {}, {"issuer": "BASE", "authorization_endpoint": "BASE/authorize", "token_endpoint": ELSEWHERE, "registration_endpoint": "BASE/register", "code_challenge_methods_supported": ["S256"]})}, "a login needs https"),
        ({"metadata": (200, {}, {"issuer": "BASE", "authorization_endpoint": "https://accounts.google.com@evil.example/", "token_endpoint": "BASE/token", "registration_endpoint": "BASE/register", "code_challenge_methods_supported": ["S256"]})}, "a user name before its host"),
        ({"register": (403, {}, {"error": "no"})}, "Registration failed"),
        ({"register": (201, {}, b"[1")}, "cannot be logged in to"),
        ({"token": (400, {}, {"error": "invalid_grant"})}, "invalid_grant"),
        ({"token": (200, {}, {"access_token": 7})}, "cannot be logged in to"),
        ({"refusal": (401, {"www-authenticate": f'Bearer resource_metadata="{ELSEWHERE}"'}, None)}, "a login needs https"),
        ({"refusal": (401, {"www-authenticate": 'Bearer resource_metadata="file:///etc/passwd"'}, None)}, "a login needs https"),
    ],
)  # fmt: skip
async def test_a_bad_authorisation_server_is_an_error_that_says_so(odd: dict[str, Any], expected: str):
    async with OAuthServer() as server:
        text = msgspec.json.encode({key: [status, headers, None if isinstance(body, bytes) else body] for key, (status, headers, body) in odd.items()}).decode()  # fmt: skip
        for key, (status, headers, body) in msgspec.json.decode(text.replace("BASE", server.base)).items():
            server.odd[key] = (status, headers, odd[key][2] if isinstance(odd[key][2], bytes) else body)
        assert expected in await failure(server)
        assert key_places() == {}


async def test_a_redirect_without_end_is_not_followed_without_end():
    async with OAuthServer() as server:
        server.odd["resource"] = (302, {"location": "/.well-known/oauth-protected-resource/mcp"}, None)
        assert len((await log_in(server)).urls) == 1, "the way of servers without that document is taken"
        assert len(server.asked) < 40


async def test_a_remote_server_cannot_send_us_into_our_own_network():
    from swink.mcp.authorisation import Authorisation

    made: Any = Authorisation.__new__(Authorisation)
    made._server = HttpServer("web", "https://tools.example/mcp")
    made._check("https://login.example/authorize")
    for url in ("https://127.0.0.1/x", "http://127.0.0.1/x", "https://10.0.0.7/x", "https://router.local/x"):
        with pytest.raises(LoginFailed):
            made._check(url)


async def test_the_listener_takes_the_right_state_only():
    async with Listener() as listener:
        assert "404" in await _visit(listener.port, "GET /callback?code=x&state= HTTP/1.1\r\n\r\n")
        listener.expect("right")
        for target in (
            "/callback?code=x&state=wrong",
            "/callback?code=x",
            "/favicon.ico",
            "/callback?state=right%00",
        ):
            assert "404" in await _visit(listener.port, f"GET {target} HTTP/1.1\r\n\r\n")
        await _visit(listener.port, "nonsense\r\n\r\n")
        assert "200" in await _visit(
            listener.port, "GET /callback?code=c&state=right&iss=me HTTP/1.1\r\n\r\n"
        )
        found = await listener.redirect()
        assert (found.code, found.issuer) == ("c", "me")
        assert "c" not in repr(found).removeprefix("Redirect")
        port = listener.port
        _, idle = await asyncio.open_connection("127.0.0.1", port)
    idle.close()
    with pytest.raises(OSError):
        await _visit(port, "GET / HTTP/1.1\r\n\r\n")


async def test_a_refused_login_is_told():
    async with OAuthServer() as server:

        async def refuse(name: str, url: str) -> None:
            query = parse_qs(urlsplit(url).query)
            port = urlsplit(query["redirect_uri"][0]).port
            assert port is not None
            target = f"/callback?error=access_denied&state={query['state'][0]}"
            asyncio.get_running_loop().create_task(_visit(port, f"GET {target} HTTP/1.1\r\n\r\n"))

        with pytest.raises(McpError, match="the login was refused: access_denied"):
            async with McpServers([web(server)], on_login=refuse):
                pass
    assert leftovers() == []


async def test_cancelling_while_somebody_logs_in_frees_the_port():
    async with OAuthServer() as server:
        shown: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def opening() -> None:
            async def show(name: str, url: str) -> None:
                shown.set_result(url)

            async with McpServers([web(server)], on_login=show):
                pass

        task = asyncio.create_task(opening())
        url = await shown
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        port = urlsplit(parse_qs(urlsplit(url).query)["redirect_uri"][0]).port
        assert port is not None
        with pytest.raises(OSError):
            await _visit(port, "GET / HTTP/1.1\r\n\r\n")
    assert leftovers() == []


async def test_time_limits_stand_still_while_a_person_is_asked_and_go_on_after():
    limits = PausableTimeouts()
    said: list[str] = []
    with pytest.raises(TimeoutError):
        async with limits.of(0.05):
            said.append(await limits.ask(asyncio.sleep(0.2, "an answer")))
            await asyncio.sleep(60)
    assert said == ["an answer"]
    assert not limits.are_open


async def test_what_a_person_is_asked_is_withdrawn_with_what_it_was_asked_for():
    limits = PausableTimeouts()

    async def ask() -> None:
        with pytest.raises(Withdrawn):
            await limits.ask(asyncio.sleep(600))

    async with limits.of(60):
        asking = asyncio.create_task(ask())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    await asking


async def test_a_call_that_ends_takes_its_login_with_it(caplog: pytest.LogCaptureFixture):
    async with OAuthServer() as server:
        await log_in(server)
        shown = asyncio.Event()

        async def show(name: str, url: str) -> None:
            shown.set()

        async with McpServers([web(server)], on_login=show) as servers:
            server.tokens.clear()
            server.refreshable.clear()
            task = asyncio.create_task(results(servers, call("web_who")))
            await shown.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.sleep(0.05)
            assert not [one for one in asyncio.all_tasks() if one.get_name() == "swink-mcp-ask"]
    assert leftovers() == []


async def test_closing_does_not_wait_for_a_login():
    async with OAuthServer() as server:
        await log_in(server)
        shown = asyncio.Event()

        async def show(name: str, url: str) -> None:
            shown.set()

        async with McpServers([web(server)], on_login=show) as servers:
            server.tokens.clear()
            server.refreshable.clear()
            task = asyncio.create_task(results(servers, call("web_who")))
            await shown.wait()
        assert (await task)[0].is_error
    assert leftovers() == []
    assert not [one for one in asyncio.all_tasks() if one.get_name() == "swink-mcp-ask"]


async def test_an_on_login_that_fails_is_an_error_and_not_a_wait():
    def broken(name: str, url: str) -> None:
        raise ZeroDivisionError

    async with OAuthServer() as server:
        with pytest.raises(McpError, match="on_login failed: ZeroDivisionError"):
            async with McpServers([web(server)], on_login=broken):
                pass


@pytest.mark.more
async def test_a_login_can_be_cancelled_at_any_moment_and_leaves_nothing():
    async with OAuthServer() as server:
        for steps in range(0, 400, 10) if MORE else (3, 40, 90):
            task = asyncio.create_task(log_in(server))
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            names = {one.get_name() for one in asyncio.all_tasks()}
            assert not [name for name in names if name.startswith("swink-mcp")], steps
            Logins(server.url).remove()


async def test_a_login_in_the_keychain_is_known_to_redaction_once_it_was_read(
    monkeypatch: pytest.MonkeyPatch,
):
    kept: dict[str, str] = {}

    class Backend:
        name = "a test's"

        def get_password(self, service: str, name: str) -> str | None:
            return kept.get(name)

        def set_password(self, service: str, name: str, secret: str) -> None:
            kept[name] = secret

        def delete_password(self, service: str, name: str) -> None:
            del kept[name]

    monkeypatch.setattr("swink.models.keys.store.open_keychain", lambda: Keychain(Backend()))
    logins = Logins("https://tools.example/mcp?key=hunter2")
    await logins.write(Login({"access_token": "token-in-the-keychain"}))
    assert "token-in-the-keychain" not in keys_file().read_text()
    assert "hunter2" not in keys_file().read_text()
    assert (await logins.read()).secrets == ("token-in-the-keychain",)
    assert "token-in-the-keychain" in known_keys()
    assert (logins.remove(), kept, logins.exists()) == (True, {}, False)


async def test_an_authorisation_server_that_says_nothing_is_given_up():
    async with OAuthServer() as server:
        server.mute = "/register"
        assert "127.0.0.1 does not answer" in await failure(server, connect_timeout=0.7)


async def test_the_words_of_an_authorisation_server_are_shown_without_secrets():
    async with OAuthServer() as server:
        server.odd["token"] = (400, {}, b"\x1b[2J no: s3cret-of-client")
        text = await failure(server)
    assert "[redacted]" in text
    assert "s3cret" not in text
    assert "\x1b" not in text


async def test_an_error_of_the_server_is_told_by_its_number():
    async with OAuthServer() as server:
        server.odd["refusal"] = (502, {"content-type": "text/html"}, b"<html>")
        with pytest.raises(McpError, match="it answers HTTP 502"):
            await log_in(server)


async def test_no_secret_is_logged(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    async with OAuthServer() as server:
        await log_in(server)
        secrets = Logins(server.url).read_now().secrets
        server.odd["token"] = (400, {}, {"error": "invalid_grant"})
        server.tokens.clear()
        async with McpServers([web(server, required=False)], on_login=Person()):
            pass
    assert len(secrets) == 3
    assert not [secret for secret in (*secrets, "code-1", "code-2") if secret in caplog.text]


async def _visit(port: int, request: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request.encode())
        return (await reader.read()).decode()
    finally:
        writer.close()


class DyingTokens(OAuthServer):
    """One that drops the connection when it has read a request for a token."""

    is_dying = False

    async def _answer(self, method: str, target: Any, headers: dict[str, str], body: bytes) -> Any:
        if self.is_dying and target.path == "/token":
            self.asked.append(target.path)
            raise ConnectionResetError
        return await super()._answer(method, target, headers, body)


async def test_a_renewal_whose_connection_dies_is_sent_at_most_once_more():
    async with DyingTokens() as server:
        await log_in(server)
        await Logins(server.url).write(replace(Logins(server.url).read_now(), expires=time.time() - 1))
        server.tokens.clear()
        server.asked.clear()
        server.is_dying = True
        with pytest.raises(McpError, match="needs a login"):
            async with McpServers([web(server)]):
                pass
        assert 1 <= server.asked.count("/token") <= 2


async def test_a_login_whose_token_request_dies_fails_and_sends_its_code_once():
    async with DyingTokens() as server:
        server.is_dying = True
        assert "cannot be logged in to" in await failure(server)
        assert server.asked.count("/token") == 1
