"""The network of commands on the command line and in the plain chat."""

import shutil
import sys

import pytest
from command_line import Call, Place, Provider, Screen
from tests.app.loopback_indexes import PackageIndex, swink_with

needs_bubblewrap = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("bwrap") is None, reason="bubblewrap is not installed"
)


def fetch(index: PackageIndex) -> Call:
    url = f"http://index.test:{index.port}/simple/alpha/"
    code = "import urllib.request as r, sys; print(r.urlopen(sys.argv[1]).read())"
    return Call("bash", command=f'{sys.executable} -c "{code}" {url}')


@needs_bubblewrap
def test_the_plain_chat_asks_about_a_domain_by_its_name_and_then_its_address(
    place: Place, provider: Provider
):
    with PackageIndex("alpha") as index:
        provider.replies = [[fetch(index)], ["It is there."]]
        command = swink_with(place.home, {"index.test": "127.0.0.1"}, in_hosts=False)
        arguments = ("--model", "openai:m", "--approve", "off", "--plain")
        screen = Screen(place, *arguments, env=provider.env, command=command)
        screen.wait_for_prompt()
        screen.type("look\r")
        assert "import urllib" in screen.wait_for(f"wants to reach index.test:{index.port}")
        screen.wait_for("allow it? [y/a/p/n]")
        screen.type("y\r")
        screen.wait_for(f"wants to reach index.test:{index.port} at 127.0.0.1")
        screen.wait_for("allow it?")
        assert index.requests == []
        screen.type("y\r")
        screen.wait_for("It is there.")
        assert index.requests == ["/simple/alpha/"]
        screen.type("/quit\r")
        assert screen.end() == 0


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [("--network", "sometimes", "ask, off, on, or domains"), ("--sandbox", "open", "workspace, none")],
)
def test_a_wrong_word_for_the_sandbox_is_refused_with_the_right_ones(
    place: Place, option: str, value: str, said: str
):
    ended = place.swink("run", option, value, "hello")
    assert ended.code == 2
    assert said in " ".join(ended.err.split())
