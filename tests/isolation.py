"""The user's own settings, which no test sees, nor any process that a test starts: home, keys, proxies, language, terminal.

Only the way to the package index and the caches that were filled before stay as they are.
"""

import atexit
import os
import re
import shutil
import tempfile
from pathlib import Path

FOREIGN = re.compile(
    r"""(?ix) .*_(api_key | token | base_url) | (aws | azure | anthropic | openai | google | gemini | ollama)_.*
    | (http | https | all | no | ftp | socks)_proxy | xdg_.* | git_.* | pytest_addopts
    | columns | lines | no_color | force_color | term(_.*)? | color(term|fgbg) | lang(uage)? | lc_(?!ctype$).*
    | swink_(?!test_|cache_dir$).* """
)
_MARK = "SWINK_TEST_HOME"
_CERTIFICATES = [Path("/etc/ssl/certs/ca-certificates.crt"), Path("/etc/pki/tls/certs/ca-bundle.crt")]
_LONGEST_TEMP = 40
"""A path of a socket has 108 bytes, and pytest's directories are below this one."""
_CACHES = Path(__file__).parents[1] / ".cache"


def leave_the_user_out() -> None:
    """Give this process an empty home and an environment without the user's settings; once per test run."""
    if os.environ.get(_MARK) == os.environ.get("HOME"):
        for name in ("LINES", "COLUMNS"):
            os.environ.pop(name, None)  # readline sets them behind Python's back, for processes started later
        return  # a worker: whoever started it has seen to the rest
    old = Path.home()
    proxy = os.environ.get("https_proxy") or os.environ.get("HTTPS_PROXY") or ""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or old / ".cache")
    kept = {
        "SWINK_CACHE_DIR": str(_CACHES / "swink"),
        "PYRIGHT_PYTHON_CACHE_DIR": str(caches),
        "PIP_CONFIG_FILE": _first(old / ".config/pip/pip.conf", old / ".pip/pip.conf"),
        "PIP_PROXY": proxy,
        "npm_config_userconfig": _first(old / ".npmrc"),
        "npm_config_cache": _first(old / ".npm"),
        "npm_config_https_proxy": proxy,
        "NODE_EXTRA_CA_CERTS": _first(*_CERTIFICATES),
    }
    for name in [name for name in os.environ if FOREIGN.fullmatch(name)]:
        del os.environ[name]
    for name, value in kept.items():
        if value:
            os.environ.setdefault(name, value)
    if len(os.fsencode(tempfile.gettempdir())) > _LONGEST_TEMP and os.access("/tmp", os.W_OK):
        tempfile.tempdir = os.environ["TMPDIR"] = "/tmp"
    home = tempfile.mkdtemp(prefix="swink-home-")
    atexit.register(_remove, home, os.getpid())
    os.environ |= {
        "HOME": home,
        "USERPROFILE": home,
        _MARK: home,
        "TERM": "xterm",
        "LANG": "C.UTF-8",
        "AWS_EC2_METADATA_DISABLED": "true",
        "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
    }


def _first(*paths: Path) -> str:
    return next((str(path) for path in paths if path.exists()), "")


def _remove(home: str, owner: int) -> None:
    if os.getpid() == owner:  # not a process that a test forked
        shutil.rmtree(home, ignore_errors=True)
