"""A denial stops a command by its name: whatever would run it is refused, or somebody is asked, in every mode."""

import functools
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import MORE, tried
from tests.tools.coding.shell_corpus import harmless
from tests.tools.coding.shell_scene import git

from swink.app.assistant.rules import JudgedCall, denied_by, doubt_about, parse_rule

RULES = [parse_rule("deny bash(rm *)")]


def passes(line: str, *rules: str) -> bool:
    """Whether a line runs in mode off without a word."""
    call = JudgedCall("bash", {"command": line})
    denials = [parse_rule(f"deny bash({rule})") for rule in rules] or RULES
    return denied_by(denials, call) is None and doubt_about(denials, call) is None


PLAIN = [
    "rm f", "/bin/rm f", "/usr/bin/rm f", "/bin//rm f", "/bin/../bin/rm f", "rm -f f", "rm", "./rm f", "mark/rm f",
]  # fmt: skip
"""Words that run it, also where no shell reads them."""
SPELLED = [
    "\\rm f", '"rm" f', "'rm' f", 'r""m f', "r''m f", '"r"m f', "r\\m f", "$'rm' f", "$'\\x72m' f", '$"rm" f',
    "/bin/r? f", "/bin/r[m] f", "mar*/r* f", "./r? f", "{rm,f}", "/bin/{rm,x} f", "x=rm; $x f", "x=rm; ${x} f",
    "x=r; ${x}m f", "x=r; \"$x\"m f", "$(echo rm) f", "`echo rm` f", '"$(echo rm)" f', "r$(true)m f", "r$@m f", "r$1m f",
    "r${x}m f", "X=1 rm f", ">/dev/null rm f", "2>&1 rm f", "</dev/null rm f", "rm \\\n f", "r\\\nm f", "rm\tf", "\nrm f",
    "~/rm f", "$HOME/rm f", "rm f # x", "x() { rm f; }; x", "function x { rm f; }; x", "set -- rm f; \"$@\"",
    "a=(rm f); \"${a[@]}\"", "alias x=rm\nshopt -s expand_aliases\nx f", "shopt -s expand_aliases\nalias x=rm\nx f",
    "hash -p /bin/rm x; x f", "trap 'rm f' EXIT", "echo 'rm f' > s; . ./s", "echo 'rm f' > s; source ./s",
    "echo 'rm f' > s; bash s", "printf 'r%s f' m | sh", "sh <<< 'rm f'", "sh <<x\nrm f\nx", "bash < s2", "cat s2 | bash",
    "git -c alias.z='!rm f' z", "git -c alias.z='!r\\m f' z", "git -c core.fsmonitor='rm f' status", "git z",
    "git -c core.fsmonitor='/bin/r? f' status", "git config alias.y '!rm f'; git y", "git bisect run rm f",
    "git submodule foreach 'rm f'", "git --exec-path=. status", "git ls-remote --upload-pack='rm f;' .",
    "git ls-remote --upload-p='/bin/r? f;' .", "git rebase --root -x 'rm f'", "git rebase --root --exec='r\\m f'",
    "git grep -O'rm' x", "git grep --open-files-in-pager=rm x", "git clone -q -u 'rm f;' . y", "git fetch --upload-pack='rm f;' .",
    "find . -name f -exec rm {} +", "find . -name f -exec rm '{}' ';'", "find . -name f -execdir rm '{}' \\;",
    "find mark -name rm -exec '{}' f ';'", "find . -name f | xargs rm", "echo rm f | xargs env", "echo rm | xargs -I% % f",
    "echo f | xargs -n 1 /bin/rm", "echo rm f | xargs sh -c '$0 $1'", "echo rm f | xargs", "echo f | xargs -I% sh -c 'rm %'",
    "python3 -c 'import os; os.system(\"r\" \"m f\")'", "echo 'import os; os.system(\"rm f\")' | python3", "perl -e 'exec \"rm f\"'",
    "perl -e'exec \"r\".\"m f\"'", "awk 'BEGIN{system(\"rm f\")}'", "awk 'BEGIN{system(\"r\" \"m f\")}'", "sed '1e r\\m f' s2",
    "sed -i '1e rm f' s2", "sed -n 's/.*/rm f/e' s2", "make --eval='x:;rm f' x", "make -f mk X=rm", "make --eval 'x:;/bin/r? f' x",
    "tar cf x.tar s2 --checkpoint=1 --checkpoint-action='exec=rm f'", "tar cf x.tar s2 --checkpoint=1 --checkpoint-action='exec=r\\m f'",
    "tar cf x.tar s2 --checkpoint=1 --checkpoint-action 'exec=/bin/r? f'", "sort --compress-program=rm -S 1b big",
    "tar cf x.tar -I 'rm f' s2", "split --filter='rm f' s2", "split --filter 'r\\m f' s2", "env -S 'rm f'", "env '-Srm f'",
    "if true; then rm f; fi", "for i in 1; do rm f; done", "while rm f; do break; done", "case x in x) rm f;; esac", "(rm f)",
    "{ rm f; }", "! rm f", "[[ -n $(rm f) ]]", "echo $(rm f)", "echo \"`rm f`\"", "cat <(rm f)", "rm f &", "rm f & wait", "coproc rm f",
    "test -v 'x[$(rm f)]'", "let 'x[$(rm f)]=1'", "printf -v 'x[$(rm f)]' 1", "echo $((x[$(rm f)]))", "true && rm f", "false || rm f",
    "true | rm f", "bash -c 'rm f'", "bash -c '$0 f' rm", "bash -c '\"$@\"' x rm f", "eval rm f", "eval 'r''m f'", "eval \"r\"\"m f\"",
    "builtin eval 'rm f'", "enable -n echo; rm f", "busybox rm f", "cd . && rm f", "cd mark && ./rm ../f", "cd /bin && ./rm \"$OLDPWD/f\"",
    "compgen -C 'rm f'", "mapfile -C 'rm f' -c 1 x < s2", "flock s2 rm f", "flock s2 -c 'r\\m f'", "script -qc 'rm f' /dev/null",
    "/lib/ld-linux-aarch64.so.1 /bin/rm f", "/lib64/ld-linux-x86-64.so.2 /bin/rm f", "time -f x rm f", "rm f; true", "RM f",
    "cp /bin/rm x; ./x f", "ln -s /bin/rm x; ./x f", "mv mark/rm x; ./x f", "install /bin/rm x; ./x f",
    "git clone --up='rm f;git-upload-pack' . x", "git ls-remote --u='rm f;' .", "git ls-remote --exe 'rm f;' .", "git fetch --upl='rm f;' .",
    "GIT_SSH_VARIANT=ssh git clone --co=core.sshCommand='rm f;' ssh://h/x x", "git clone --co=core.sshCommand='rm f;' ssh://h/x x",
    "git clone --c core.sshCommand='/bin/r? f;' ssh://h/x x", "git push --rec='rm f;' . HEAD:y", "git push --e='rm f;' . HEAD:y",
    "git archive --remote=. --exe='rm f;' HEAD", "git rebase --root --ex='rm f'", "git grep --open=rm rm", "git grep --o=rm rm",
    "git-clone --up='rm f;' . x", "/usr/lib/git-core/git-ls-remote --u='rm f;' .", "linux64 /bin/r*m f", "linux64 r*m f",
    "linux64 -R /bin/r*m f", "linux64 bash -c '. ./s2'", "setarch x86_64 /bin/r*m f", "setarch x86_64 bash s2", "ssh-agent /bin/r*m f",
    "ssh-agent bash s2", "choom -n 0 -- /bin/r*m f", "choom -n 0 bash s2", "dbus-run-session /bin/r*m f", "dbus-run-session -- bash s2",
    "valgrind /bin/r*m f", "valgrind -q bash s2", "uv run /bin/r*m f", "uv run --no-project bash s2", "chronic /bin/r*m f",
    "gcc -wrapper /bin/r*m,f f.c", "python3 -m timeit -n1 -r1 \"__import__('os').system('r' 'm f')\"",
    "echo 'import os; os.system(\"rm f\")' | python3 -m code", "echo 'import os; os.system(\"rm f\")' | python3 /dev/stdin",
    "echo 'import os; os.system(\"rm f\")' | python3 /dev//fd/0", "echo 'import os; os.system(\"rm f\")' | python3 /proc/self/fd/0",
    "echo 'import os; os.system(\"rm f\")' | python3 ../../../../../../../../dev/stdin", "cd /dev; echo 'import os; os.system(\"rm f\")' | python3 stdin",
    "echo 'exec \"rm f\"' | perl /dev/stdin", "echo '!/bin/rm f' | dc", "echo '!/bin/rm f' | env dc", "echo 'syscmd(rm f)' | m4",
    "echo '!rm f' | ed", "echo '.shell rm f' | sqlite3", "cp /bin/[r]m x; ./x f", "cp /bin/r? x; ./x f", "cp -p ../../../../../../../../../bin/r? x; ./x f",
]  # fmt: skip
WRAPPED = [
    "env %s", "env -i %s", "env X=1 %s", "env -u X %s", "env PATH=mark %s", "nice %s", "nice -n 5 %s", "nice -5 %s", "timeout 5 %s",
    "timeout -k 1 5 %s", "timeout --signal=INT 5 %s", "timeout 5s %s", "time %s", "time -p %s", "command %s", "command -p %s", "exec %s",
    "exec -a x %s", "nohup %s", "setsid %s", "setsid -w %s", "stdbuf -o0 %s", "stdbuf -o 0 %s", "ionice -c 3 %s", "xargs %s < s3", "xargs -r %s < /dev/null",
    "! %s", "eval %s", "coproc %s", "true && %s", "true; %s", "false || %s", "true | %s", "( %s )", "{ %s; }", "echo a\n%s",
    "if true; then %s; fi", "find . -maxdepth 0 -exec %s ';'", "find . -maxdepth 0 -exec %s \\;", "\\env %s", "'nice' %s", "/usr/bin/env %s",
]  # fmt: skip


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory `start`, of which each line gets a copy to run in."""
    top = tmp_path_factory.mktemp("denials")
    start = top / "start"
    (start / "mark").mkdir(parents=True)
    (start / "rm").write_text('#!/bin/sh\n: > "$MARK"\n')
    (start / "rm").chmod(0o755)
    shutil.copy(start / "rm", start / "mark/rm")
    git(start, "init", "-q", "--template=")
    git(start, "commit", "-q", "--allow-empty", "-m", "x")
    with (start / ".git/config").open("a") as file:
        file.write("[alias]\n\tz = !rm f\n[user]\n\tname = A\n\temail = a@example.org\n")
    files = {"s2": "rm f\n", "s3": "f\n", "mk": "x:\n\t$(X) f\n", "big": "line\n" * 3_000, "f": ""}
    for name, text in files.items():
        (start / name).write_text(text)
    git(start, "add", "s2")
    return top


def runs_it(scene: Path, line: str) -> bool:
    """Whether a line for bash runs `rm`: the one that leaves a mark, or the system's own."""
    mark, work = scene / "marked", scene / "work"
    shutil.rmtree(work, ignore_errors=True)
    mark.unlink(missing_ok=True)
    shutil.copytree(scene / "start", work, symlinks=True)
    environment = {"PATH": f"{work}/mark:{os.environ['PATH']}", "MARK": str(mark), "HOME": f"{work}/mark"}
    environment |= {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(
        ["bash", "--norc", "-c", line],
        cwd=work,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=20,
    )
    return mark.exists() or not (work / "f").exists()


@pytest.mark.more
def test_no_line_that_runs_what_is_denied_passes(scene: Path):
    lines = [*PLAIN, *SPELLED, *(wrap % "rm f" for wrap in WRAPPED)]
    assert [line for line in lines if passes(line) and runs_it(scene, line)] == []
    some = lines if MORE else lines[::20]
    ran = [line for line in some if runs_it(scene, line)]
    assert len(ran) > 0.8 * len(some)


links = st.sampled_from(
    ["%s; %s", "%s && %s", "%s || %s", "%s | %s", "%s\n%s", "%s & %s", "%s 2>/dev/null; %s"]
)
command = st.sampled_from(["true", "ls", "echo x", "git status", "cat s3"]) | st.builds(
    lambda wraps, inner: functools.reduce(lambda line, wrap: wrap.replace("%s", line, 1), wraps, inner),
    st.lists(st.sampled_from(WRAPPED), max_size=2),
    st.sampled_from(PLAIN) | st.sampled_from(SPELLED),
)


@tried(30, 1_000)
@given(command, links, command)
def test_whatever_is_put_around_it_it_does_not_pass(scene: Path, one: str, link: str, other: str):
    line = link % (one, other)
    assert not (passes(line) and runs_it(scene, line)), line


def test_ordinary_lines_pass_a_denial_of_something_else():
    lines = [*harmless(), *ORDINARY]
    assert [line for line in lines if not passes(line)] == []
    assert [line for line in lines if not passes(line, "git frobnicate *")] == []


@pytest.mark.parametrize(
    ("rule", "line", "passed"),
    [
        ("git push", "git push", False),
        ("git push", "git push origin main", True),
        ("git push *", "git pu?h origin", False),
        ("git push *", "echo push | xargs git", False),
        ("git push *", "git status src/*.py", True),
        ("git push *", "/usr/lib/git-core/git-push o", False),
        ("git push *", "git-push o", False),
        ("git push *", "strange git-push o", False),
        ("git push *", "linux64 /usr/bin/gi? push x", False),
        ("git push *", "linux64 git push x", False),
        ("git push *", "uv run git push x", False),
        ("git push *", "git-fetch o", True),
        ("git lfs *", "git-lfs pull", False),
        ("./deploy.sh *", "linux64 ./dep*.sh", False),
        ("./deploy.sh *", "cd sub && ../deploy.sh now", False),
        ("./deploy.sh *", "./other.sh now", True),
        ("/bin/rm *", "/bin//rm f", False),
        ("/bin/rm *", "rm f", False),
    ],
)
def test_a_denial_speaks_of_the_name_and_of_the_words_it_has(rule: str, line: str, passed: bool):
    assert passes(line, rule) is passed


ORDINARY = [
    "make test", "make -j4 all", "npm run build", "npm install", "pytest -q tests -k 'a and b'", "python script.py --x y", "cargo test",
    "python3 -m pytest -x", "git commit -m 'a b'", "git add . && git commit -qm x", "git switch -c new", "git push -u origin main",
    "git rm x", "git clean -fdx", "git rebase main", "git checkout -- x", "timeout 60 make test", "nice -n 5 cargo build",
    "env -i ls", "sudo apt-get update", "find . -name '*.pyc' -delete", "find . -name x -exec cat '{}' ';'", "ls | xargs wc -l",
    "command -v rm", "type rm", "echo rm f", "cat rm", "sed -i s/a/b/ x", "sed -n 1,5p x", "awk '{print $1}' x", "docker run --rm x", "./tool rm.txt",
    "cp a b", "mkdir -p a/b", "tar xf a.tar", "ruff check .", "uv run pytest", "go test ./...", "cat *.md", "grep -rn rm src", "time make",
    "which rm", "git log --grep=rm", "curl https://example.org/x", "ssh-keygen -l -f x", "exec ls", "nohup make test", "cp *.py there",
    "python3 -m pip install x", "python -m venv .venv", "python3 -m unittest", "python3 -m http.server", "ruff check src/*.py", "git add src/*",
    "git clone https://example.org/x x", "git fetch --update-shallow", "git diff --exit-code", "git push --recurse-submodules=check",
    "git log --format=%H --since=yesterday", "ssh-agent -s", "linux64 make", "poetry run pytest", "uv sync", "git rebase --continue", "cp src/*.py there", "cp src/* there", "mv /tmp/x/*.log logs",
]  # fmt: skip
