"""The system calls that a sandboxed command may not make, as a seccomp program (classic BPF).

Denied is what namespaces and Landlock do not confine: other processes' memory, mounts and namespaces, kernel
keys, modules and clocks, io_uring (whose requests no filter sees), and socket families outside network
namespaces. Without namespaces also the limits, processors and priorities of other processes.
"""

import platform
import struct
from collections.abc import Iterable, Iterator
from errno import ENOSYS, EPERM

AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000

# name: (x86_64, aarch64); from 424 on all machines share one number
_CALLS = {"socket": (41, 198), "clone": (56, 220), "ioctl": (16, 29), "clone3": (435, 435)}

_DENIED = {
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "process_mrelease": (448, 448),
    # namespaces and mounts
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39),
    "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429),
    "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "open_tree_attr": (467, 467), "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265), "fanotify_init": (300, 262),
    # keys of the user's session
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # the kernel itself
    "bpf": (321, 280), "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142), "syslog": (103, 116),
    "acct": (163, 89), "swapon": (167, 224), "swapoff": (168, 225), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "lookup_dcookie": (212, 18), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171),
    "sethostname": (170, 161), "setdomainname": (171, 162), "vhangup": (153, 58), "iopl": (172, None),
    "ioperm": (173, None),
    # io_uring
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
}  # fmt: skip

# What a namespace isolates and Landlock does not: System V and POSIX messages and memory, file attributes.
_SHARED = {
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semop": (65, 193),
    "semctl": (66, 191), "semtimedop": (220, 192), "msgget": (68, 186), "msgsnd": (69, 189),
    "msgrcv": (70, 188), "msgctl": (71, 187), "mq_open": (240, 180), "setxattr": (188, 5),
    "lsetxattr": (189, 6), "fsetxattr": (190, 7), "removexattr": (197, 14), "lremovexattr": (198, 15),
    "fremovexattr": (199, 16), "setxattrat": (463, 463), "removexattrat": (466, 466),
    "file_setattr": (469, 469),
}  # fmt: skip

# Without namespaces a process may do this to any other of the same user; here only to itself, which it names
# as pid 0. A filter does not know the caller's pid, so a program that passes its own pid instead is refused
# too.
_TO_ITSELF = {
    "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119), "sched_setparam": (142, 118),
    "sched_setattr": (314, 274), "migrate_pages": (256, 238), "move_pages": (279, 239),
}  # fmt: skip
# The last number selects all processes of a user.
_TO_ITSELF_OR_ITS_GROUP = {"setpriority": (141, 140, 2), "ioprio_set": (251, 30, 3)}
_PRLIMIT = (302, 261)

_NEW_NAMESPACES = 0x7E020000  # user, pid, net, ipc, uts, cgroup, mount
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_NUMBER, _MACHINE = 0, 4


def is_supported() -> bool:
    """Whether there is a filter for this machine."""
    return platform.machine() in _AUDIT_ARCH


def build_filter(families: Iterable[int], *, namespaces: bool) -> bytes:
    """The filter, with these socket families; without `namespaces` it denies what those would isolate."""
    machine = platform.machine()
    column = list(_AUDIT_ARCH).index(machine)
    denied = _DENIED if namespaces else {**_DENIED, **_SHARED}
    code: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, _MACHINE),
        (_EQUAL, 1, 0, _AUDIT_ARCH[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        code += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _KILL)]
    for numbers in denied.values():
        if (number := numbers[column]) is not None:
            code += [(_EQUAL, 0, 1, number), _errno(EPERM)]
    # Filters cannot read the arguments of clone3, which are in memory; if it is missing, libraries use clone.
    code += [(_EQUAL, 0, 1, _CALLS["clone3"][column]), _errno(ENOSYS)]
    new_namespaces = [_argument(0), (_ANY_BIT, 0, 1, _NEW_NAMESPACES), _errno(EPERM), _allow()]
    code += _on_call(_CALLS["clone"][column], new_namespaces)
    if not namespaces:
        code += _of_others(column)
    code += _on_call(_CALLS["ioctl"][column], list(_terminal_injection()))
    code += _on_call(_CALLS["socket"][column], list(_socket_families(families)))
    code.append(_allow())
    return b"".join(struct.pack("HBBI", *instruction) for instruction in code)


def _on_call(number: int, body: list[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
    """The body for one system call; it must return."""
    return [(_EQUAL, 0, len(body), number), *body]


def _of_others(column: int) -> list[tuple[int, int, int, int]]:
    """Processors, priorities and limits may be set for the caller only; limits of others may be read."""
    code: list[tuple[int, int, int, int]] = []
    only_zero = [(_EQUAL, 0, 1, 0), _allow(), _errno(EPERM)]
    for numbers in _TO_ITSELF.values():
        code += _on_call(numbers[column], [_argument(0), *only_zero])
    for x86_64, aarch64, whole_user in _TO_ITSELF_OR_ITS_GROUP.values():
        body = [_argument(0), (_EQUAL, 3, 0, whole_user), _argument(1), *only_zero]
        code += _on_call((x86_64, aarch64)[column], body)
    new = [_argument(2), (_EQUAL, 0, 3, 0), _argument(2, high=True), *only_zero]
    return code + _on_call(_PRLIMIT[column], [_argument(0), (_EQUAL, 0, 1, 0), _allow(), *new])


def _terminal_injection() -> Iterator[tuple[int, int, int, int]]:
    yield _argument(1)
    for request in (_TIOCSTI, _TIOCLINUX):
        yield (_EQUAL, 0, 1, request)
        yield _errno(EPERM)
    yield _allow()


def _socket_families(families: Iterable[int]) -> Iterator[tuple[int, int, int, int]]:
    yield _argument(0)
    for family in families:
        if family == AF_NETLINK:
            # Route information only, which resolvers ask for: other protocols of it reach into the kernel.
            yield (_EQUAL, 0, 4, family)
            yield _argument(2)
            yield (_EQUAL, 0, 1, 0)
            yield _allow()
            yield _errno(EPERM)
        else:
            yield (_EQUAL, 0, 1, family)
            yield _allow()
    yield _errno(EPERM)


def _argument(index: int, *, high: bool = False) -> tuple[int, int, int, int]:
    # little-endian on both machines: the low half comes first
    return (_LOAD, 0, 0, 16 + 8 * index + 4 * high)


def _errno(number: int) -> tuple[int, int, int, int]:
    return (_RETURN, 0, 0, 0x00050000 | number)


def _allow() -> tuple[int, int, int, int]:
    return (_RETURN, 0, 0, _ALLOW)
