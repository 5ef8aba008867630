"""Tests see nothing of the user's: neither home nor keys nor proxies, in this process and in what it starts."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

from swink.app.cli import main
from tests.conftest import put_back_logging
from tests.isolation import FOREIGN

LOOK = """
import subprocess, sys
from tests.isolation import leave_the_user_out
leave_the_user_out()
child = "import json, os; from pathlib import Path; print(json.dumps([str(Path.home()), dict(os.environ)]))"
print(subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, check=True).stdout)
"""
ROOT = Path(__file__).parents[1]


def test_no_test_sees_what_belongs_to_the_user(tmp_path: Path):
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text("[default]\n")
    users = {
        "OPENAI_API_KEY": "sk-user",
        "AWS_PROFILE": "work",
        "https_proxy": "http://proxy:3128",
        "ALL_PROXY": "socks5://proxy",
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "SWINK_MODEL": "openai:gpt",
        "OLLAMA_HOST": "elsewhere",
        "COLORTERM": "truecolor",
        "LC_ALL": "de_DE.UTF-8",
    }
    start = {name: value for name, value in os.environ.items() if name != "SWINK_TEST_HOME"}
    done = subprocess.run(
        [sys.executable, "-c", LOOK],
        env={**start, **users, "HOME": str(tmp_path)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    home, seen = json.loads(done.stdout)
    assert home not in ("", str(tmp_path))
    assert not users.keys() & seen.keys()
    assert seen["PIP_PROXY"] == "http://proxy:3128", "the package index is still found"
    assert not Path(home).exists(), "nothing is left behind"


def test_this_run_is_isolated():
    assert str(Path.home()) == os.environ["SWINK_TEST_HOME"]
    given = {"AWS_EC2_METADATA_DISABLED": "true", "LANG": "C.UTF-8", "TERM": "xterm"}
    assert {name: value for name, value in os.environ.items() if FOREIGN.fullmatch(name)} == given


def test_the_log_that_a_command_sets_up_in_this_process_is_gone_after_the_test():
    assert main(["docs", "hello"]) == 0
    assert any(type(handler) is logging.StreamHandler for handler in logging.root.handlers)
    put_back_logging()
    assert not any(type(handler) is logging.StreamHandler for handler in logging.root.handlers)
