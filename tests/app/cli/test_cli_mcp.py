"""`swink mcp`: servers are listed, and logged in to in a browser."""

import json
import signal
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest
from command_line import SECONDS, Call, Place, Provider, Screen
from tests.counts import MORE
from tests.pages import ROOT

if find_spec("mcp") is None:
    pytest.skip("needs the extra mcp", allow_module_level=True)


def more(test: Any) -> Any:
    """A process of its own imports the SDK, which takes its time."""
    return pytest.mark.more(pytest.mark.skipif(not MORE, reason="make test-more runs it")(test))


SERVER = ROOT / "tests" / "mcp"
BROWSER = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"


@pytest.fixture
def wanting() -> Iterator[str]:
    """The URL of a server that wants a login, in a process of its own."""
    import subprocess

    program = (
        f"import asyncio, sys; sys.path[:0] = [{str(SERVER)!r}, {str(ROOT)!r}]\n"
        "from oauth_server import OAuthServer\n"
        "async def main():\n"
        "    async with OAuthServer() as server:\n"
        "        print(server.url, flush=True)\n"
        "        await asyncio.sleep(600)\n"
        "asyncio.run(main())"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def configure(place: Place, url: str) -> None:
    place.environ.pop("SSL_CERT_FILE", None)
    place.config.mkdir(parents=True, exist_ok=True)
    (place.config / "config.toml").write_text(f'[mcp.web]\nurl = "{url}"\n[mcp.files]\ncommand = "x"\n')


@more
def test_a_headless_run_sends_resources_and_prompts_of_servers(place: Place, provider: Provider):
    place.environ.pop("SSL_CERT_FILE", None)
    rich = json.dumps(str(SERVER / "rich_server.py"))
    place.configure(f'[mcp.rich]\ncommand = {json.dumps(sys.executable)}\nargs = [{rich}, "2025-11-25"]\n')
    provider.replies = [["One."], ["Two."]]
    coding = ("run", "--coding", "-m", "openai:m")
    done = place.swink(*coding, "Explain @rich:note://one.", env=provider.env)
    assert done.code == 0, done
    assert "what note://one says" in json.dumps(provider.requests[0]["messages"][-1]), done
    assert "mcp_server name" in json.dumps(provider.requests[0]["messages"][0])
    done = place.swink(*coding, "/rich:greet Ada", env=provider.env)
    assert done.code == 0, done
    assert "Greet Ada kindly." in json.dumps(provider.requests[1]["messages"][-1])
    done = place.swink(*coding, "/rich:greet", env=provider.env)
    assert done.code == 2
    assert "who is missing; write /rich:greet WHO [HOW]" in done.err


@more
def test_a_login_in_the_browser_is_kept_and_forgotten(place: Place, wanting: str):
    configure(place, wanting)
    browser = place.home / "browser"
    browser.write_text(f"#!{sys.executable}\n{BROWSER}\n")
    browser.chmod(0o755)
    done = place.swink("mcp", "login", "web", env={"BROWSER": f"{browser} %s &"})
    assert (done.code, done.out) == (0, ""), done
    assert "logged in to web; it has 1 tool" in done.err, done
    assert "code_challenge_method=S256" in done.err
    kept = json.loads((place.config / "keys.json").read_text())
    assert list(kept) == [f"mcp:{wanting}"]
    assert "stored" in place.swink("mcp").out
    out = place.swink("mcp", "logout", "web")
    assert (out.code, "is deleted" in out.err) == (0, True)
    assert place.swink("mcp", "logout", "web").code == 2
    assert "none" in place.swink("mcp", "list").out


def test_what_cannot_be_logged_in_to_is_said(place: Place):
    configure(place, "http://127.0.0.1:9/mcp")
    nearly = place.swink("mcp", "login", "wep")
    assert (nearly.code, "did you mean web?" in nearly.err) == (2, True)
    assert "NAME" in place.swink("mcp").out
    assert "is a process on this machine" in place.swink("mcp", "login", "files").err


@more
def test_ctrl_c_gives_up_a_login(place: Place, wanting: str):
    configure(place, wanting)
    process = place.start("mcp", "login", "web", "--no-browser")
    assert process.stderr is not None
    seen = b""
    while b"Ctrl-C gives up" not in seen and (line := process.stderr.readline()):
        seen += line
    process.send_signal(signal.SIGINT)
    assert process.wait(SECONDS) == 130, seen
    assert not (place.config / "keys.json").exists()


def configure_shop(place: Place) -> None:
    place.config.mkdir(parents=True, exist_ok=True)
    bare = json.dumps([str(SERVER / "bare_server.py"), "asking"])
    (place.config / "config.toml").write_text(
        f'[mcp.shop]\ncommand = "{sys.executable}"\nargs = {bare}\nrequires_approval = false\n'
    )


@more
def test_a_run_has_the_tools_of_its_servers_from_the_start_and_nobody_answers_what_they_ask(
    place: Place, provider: Provider
):
    configure_shop(place)
    place.environ.pop("SSL_CERT_FILE", None)
    provider.replies = [[Call("shop_form")], ["done"]]
    done = place.swink("run", "--coding", "--approve", "off", "go", env=provider.env)
    assert done.code == 0, done
    assert "not supported" in json.dumps(provider.requests[-1]), done


@more
def test_the_plain_chat_asks_what_a_server_asks(place: Place, provider: Provider):
    configure_shop(place)
    place.environ.pop("SSL_CERT_FILE", None)
    provider.replies = [[Call("shop_form")], ["All done."]]
    screen = Screen(place, "--plain", "--approve", "off", "--model", "openai:m", env=provider.env)
    screen.wait_for("> ")
    screen.type("go\n")
    for shown, typed in (
        ("the MCP server shop asks", "Ada"),
        ("age", "1"),
        ("color", "Blue"),
        ("news", "no"),
        ("sizes", "1,2"),
        ("Send this to the MCP server shop?", "1"),
    ):
        screen.wait_for(shown)
        screen.wait_for("leave it unanswered: ")
        screen.type(f"{typed}\n")
    screen.wait_for("All done.")
    screen.wait_for_prompt()
    screen.type("\x04")
    assert screen.end() == 0
    said = provider.requests[-1]["messages"][-1]["content"]
    assert '"name": "Ada", "age": 30, "color": "b", "news": false, "sizes": ["S", "M"]' in said
