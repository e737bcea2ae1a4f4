"""The seccomp filter of sandboxed programs. Imports only the standard library.

The filter denies system calls that bypass the file rules: sockets, namespaces, mounts, other processes, kernel
interfaces with a history of vulnerabilities. Without a mount namespace that makes files read-only, it also denies
changes that Landlock does not cover: modes, owners, times, attributes.
"""

import ctypes
import errno
import struct
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final, NamedTuple

from steno.permissions.sandbox import syscalls

# System call numbers on x86_64 and aarch64.
_SYSCALL_NUMBERS: Final[dict[str, tuple[int | None, int | None]]] = {
    "socket": (41, 198),
    "socketpair": (53, 199),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
    "clone": (56, 220),
    "clone3": (435, 435),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "iopl": (172, None),
    "ioperm": (173, None),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "nfsservctl": (180, 42),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "personality": (135, 92),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "uselib": (134, None),
    "modify_ldt": (154, None),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "ptrace": (101, 117),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    "memfd_secret": (447, 447),
    "statmount": (457, 457),
    "listmount": (458, 458),
    "lsm_set_self_attr": (460, 460),
    "lsm_get_self_attr": (459, 459),
    "lsm_list_modules": (461, 461),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "msgget": (68, 186),
    "msgctl": (71, 187),
    "semget": (64, 190),
    "semctl": (66, 191),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "ioctl": (16, 29),
    "fcntl": (72, 25),
    "prlimit64": (302, 261),
    "setpriority": (141, 140),
    "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "ioprio_set": (251, 30),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
    "pidfd_open": (434, 434),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "getxattr": (191, 8),
    "lgetxattr": (192, 9),
    "listxattr": (194, 11),
    "llistxattr": (195, 12),
    "getxattrat": (464, 464),
    "listxattrat": (465, 465),
    "file_setattr": (469, 469),
    "inotify_add_watch": (254, 27),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "truncate": (76, 45),
    "open": (2, None),
    "openat": (257, 56),
    "openat2": (437, 437),
    "creat": (85, None),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "_sysctl": (156, None),
    "sysfs": (139, None),
    "ustat": (136, None),
    "fchown": (93, 55),
}
_AUDIT_ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32: Final = 0x40000000
# Linux 6.17 ends with 469; later calls are unknown to this filter and fail with ENOSYS.
_LAST_KNOWN: Final = 469
_NAMESPACES: Final = (
    syscalls.CLONE_NEWNS
    | syscalls.CLONE_NEWUTS
    | syscalls.CLONE_NEWIPC
    | syscalls.CLONE_NEWUSER
    | syscalls.CLONE_NEWPID
    | syscalls.CLONE_NEWNET
    | syscalls.CLONE_NEWCGROUP
    | syscalls.CLONE_NEWTIME
)

_SOCKET_CALLS: Final = "socket connect bind listen accept accept4"
# The filter cannot check their flags, or they bypass it; programs fall back to other calls.
_UNAVAILABLE_CALLS: Final = "clone3 openat2 io_uring_setup io_uring_enter io_uring_register"
_DENIED_CALLS: Final = (
    "unshare setns mount umount2 pivot_root chroot move_mount open_tree open_tree_attr fsopen"
    " fsconfig fsmount fspick mount_setattr statmount listmount swapon swapoff reboot kexec_load"
    " kexec_file_load init_module finit_module delete_module acct settimeofday clock_settime"
    " adjtimex clock_adjtime sethostname setdomainname iopl ioperm quotactl quotactl_fd nfsservctl"
    " name_to_handle_at open_by_handle_at fanotify_init fanotify_mark personality syslog vhangup"
    " uselib modify_ldt pidfd_getfd process_madvise process_mrelease process_vm_readv"
    " process_vm_writev kcmp ptrace move_pages migrate_pages memfd_secret lsm_set_self_attr"
    " lsm_get_self_attr lsm_list_modules bpf perf_event_open userfaultfd keyctl add_key request_key"
    " shmget shmat shmctl msgget msgctl semget semctl mq_open mq_unlink _sysctl sysfs ustat"
)
_METADATA_CALLS: Final = (
    "chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes futimesat setxattr"
    " lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat"
    " file_setattr inotify_add_watch inotify_init inotify_init1"
)
_ATTRIBUTE_READS: Final = "getxattr lgetxattr listxattr llistxattr getxattrat listxattrat"
_SIGNAL_CALLS: Final = "tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal pidfd_open"
# Calls whose first argument is a process ID; 0 is the caller.
_PROCESS_CALLS: Final = "prlimit64 sched_setaffinity sched_setscheduler sched_setparam sched_setattr"
_AF_UNIX: Final = 1
_STREAM_TYPES: Final = (1, 5)
# F_SETOWN, F_SETSIG, F_SETOWN_EX make the kernel send signals to other processes.
_SIGNAL_OWNERS: Final = (8, 10, 15)
# Requests for files and terminals: window size, flags, bytes to read, extents, clones.
_ALLOWED_IOCTLS: Final = (
    0x5401, 0x540F, 0x5413, 0x541B, 0x5421, 0x5429, 0x5450, 0x5451, 0x802C542A, 0x80086601,
    0xC020660B, 0x40049409, 0x4020940D, 0x80081272, 0x80087601, 0x801C581F,
)  # fmt: skip
_SET_ID_BITS: Final = 0o6000
_O_CREAT: Final = 0o100
_O_TMPFILE: Final = 0o20000000
_O_TRUNC: Final = 0o1000
_O_ACCMODE: Final = 0o3

_LOAD: Final = 0x20
_JEQ: Final = 0x15
_JGT: Final = 0x25
_JGE: Final = 0x35
_JSET: Final = 0x45
_AND: Final = 0x54
_RET: Final = 0x06
_ALLOW: Final = 0x7FFF0000
_ERRNO: Final = 0x00050000
_OFFSET_NUMBER: Final = 0
_OFFSET_ARCHITECTURE: Final = 4
_MODE_FILTER: Final = 2


class Instruction(NamedTuple):
    """One classic BPF instruction."""

    code: int
    jump_true: int
    jump_false: int
    value: int


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


class FilterOptions(NamedTuple):
    """Restrictions that the filter must add because the other mechanisms lack them."""

    metadata: bool
    """Deny changes of modes, owners, times and attributes: no mount makes files read-only."""
    touch: bool
    """With `metadata`: still let a program set the times of an open file to now."""
    signals: bool
    """Deny signals to other processes: neither a PID namespace nor Landlock limits them."""
    processes: bool
    """Deny changes of the limits and priorities of other processes: no PID namespace hides them."""
    truncation: bool
    """Deny truncation of files by path or by a read-only open: Landlock does not."""


@cache
def assemble_filter(options: FilterOptions) -> bytes:
    """Return the filter in the kernel's format.

    Raises:
        OSError: the architecture is not supported.
    """
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in build_filter(options, syscalls.machine()))


def install_filter(options: FilterOptions) -> None:
    """Install the filter for this process and its children; requires no_new_privs.

    Raises:
        OSError: the kernel refused, or the architecture is not supported.
    """
    code = assemble_filter(options)
    program = _FilterProgram(length=len(code) // 8, filter=code)
    syscalls.prctl(syscalls.PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program))


def build_filter(options: FilterOptions, architecture: str) -> list[Instruction]:
    """Return the filter program for an architecture.

    Raises:
        OSError: the architecture is not supported.
    """
    if architecture not in _AUDIT_ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no seccomp table for {architecture}")
    column = list(_AUDIT_ARCHITECTURES).index(architecture)
    return list(_instructions(options, column, _AUDIT_ARCHITECTURES[architecture]))


def _instructions(options: FilterOptions, column: int, architecture: int) -> Iterator[Instruction]:
    yield _load(_OFFSET_ARCHITECTURE)
    yield Instruction(_JEQ, 1, 0, architecture)
    yield _fail(errno.EPERM)
    yield _load(_OFFSET_NUMBER)
    yield Instruction(_JGE, 0, 1, _X32)
    yield _fail(errno.EPERM)
    yield Instruction(_JGT, 0, 1, _LAST_KNOWN)
    yield _fail(errno.ENOSYS)

    yield from _denied_calls(options, column)
    yield from _limited_calls(options, column)
    yield Instruction(_RET, 0, 0, _ALLOW)


def _denied_calls(options: FilterOptions, column: int) -> Iterator[Instruction]:
    denied = [(_SOCKET_CALLS, errno.EACCES), (_UNAVAILABLE_CALLS, errno.ENOSYS), (_DENIED_CALLS, errno.EPERM)]
    if options.metadata:
        denied += [(_METADATA_CALLS, errno.EPERM), (_ATTRIBUTE_READS, errno.EOPNOTSUPP)]
    if options.signals:
        denied += [(_SIGNAL_CALLS, errno.EPERM)]
    if options.truncation:
        denied += [("truncate", errno.ENOSYS)]
    for names, number in denied:
        for name in names.split():
            yield from _for_syscall(name, column, [_fail(number)])


def _limited_calls(options: FilterOptions, column: int) -> Iterator[Instruction]:
    own_process_only = [_load(_argument(0)), *_allow_only([0], errno.EPERM)]
    bodies: dict[str, list[Instruction]] = {
        "ioctl": [_load(_argument(1)), *_allow_only(_ALLOWED_IOCTLS, errno.ENOTTY)],
        "fcntl": _deny_only(1, _SIGNAL_OWNERS),
        "clone": _no_namespaces(),
        "socketpair": _stream_pairs(),
        "open": _open_flags(1, truncation=options.truncation),
        "openat": _open_flags(2, truncation=options.truncation),
    }
    bodies |= {name: _no_set_user_bits(1) for name in ("chmod", "fchmod", "creat", "mknod")}
    bodies |= {name: _no_set_user_bits(2) for name in ("fchmodat", "fchmodat2", "mknodat")}
    if options.metadata:
        bodies["utimensat"] = _utimensat(touch=options.touch)
    if options.signals:
        # Signals to its own process group (0) stay allowed; the program leads its own session.
        bodies["kill"] = own_process_only
    if options.processes:
        bodies |= dict.fromkeys(_PROCESS_CALLS.split(), own_process_only)
        second_argument = [_load(_argument(1)), *_allow_only([0], errno.EPERM)]
        bodies |= dict.fromkeys(("setpriority", "ioprio_set"), second_argument)
    for name, body in bodies.items():
        yield from _for_syscall(name, column, body)


def _for_syscall(name: str, column: int, body: list[Instruction]) -> Iterator[Instruction]:
    """Yield a body for one system call; it must end with a return."""
    number = _SYSCALL_NUMBERS[name][column]
    if number is not None:
        yield Instruction(_JEQ, 0, len(body), number)
        yield from body


def _load(offset: int) -> Instruction:
    return Instruction(_LOAD, 0, 0, offset)


def _argument(index: int, *, high: bool = False) -> int:
    # Both architectures are little-endian.
    return 16 + 8 * index + (4 if high else 0)


def _fail(number: int) -> Instruction:
    return Instruction(_RET, 0, 0, _ERRNO | number)


def _permit() -> Instruction:
    return Instruction(_RET, 0, 0, _ALLOW)


def _allow_only(values: Iterable[int], number: int) -> list[Instruction]:
    body: list[Instruction] = []
    for value in values:
        body += [Instruction(_JEQ, 0, 1, value), _permit()]
    return [*body, _fail(number)]


def _deny_only(index: int, values: Iterable[int]) -> list[Instruction]:
    body = [_load(_argument(index))]
    for value in values:
        body += [Instruction(_JEQ, 0, 1, value), _fail(errno.EPERM)]
    return [*body, _permit()]


def _no_namespaces() -> list[Instruction]:
    return [_load(_argument(0)), Instruction(_JSET, 0, 1, _NAMESPACES), _fail(errno.EPERM), _permit()]


def _stream_pairs() -> list[Instruction]:
    """Allow pairs of connected Unix sockets, which cannot be connected to another address."""
    return [
        _load(_argument(0)),
        Instruction(_JEQ, 1, 0, _AF_UNIX),
        _fail(errno.EACCES),
        _load(_argument(1)),
        Instruction(_AND, 0, 0, 0xF),
        *_allow_only(_STREAM_TYPES, errno.EACCES),
    ]


def _utimensat(*, touch: bool) -> list[Instruction]:
    """Deny all calls except setting the times of an open file (no path) to now (no times).

    Without `touch` that call succeeds without effect, so that the `touch` command can create files.
    """
    return [
        _load(_argument(1)),
        Instruction(_JEQ, 1, 0, 0),
        _fail(errno.EPERM),
        _load(_argument(1, high=True)),
        Instruction(_JEQ, 1, 0, 0),
        _fail(errno.EPERM),
        _load(_argument(2)),
        Instruction(_JEQ, 1, 0, 0),
        _fail(errno.EPERM),
        _load(_argument(2, high=True)),
        Instruction(_JEQ, 1, 0, 0),
        _fail(errno.EPERM),
        _permit() if touch else _fail(0),
    ]


def _no_set_user_bits(index: int) -> list[Instruction]:
    """Deny set-user-ID and set-group-ID modes."""
    return [_load(_argument(index)), Instruction(_JSET, 0, 1, _SET_ID_BITS), _fail(errno.EPERM), _permit()]


def _open_flags(index: int, *, truncation: bool) -> list[Instruction]:
    """Deny creating set-user-ID and set-group-ID files and, with `truncation`, truncation without write access."""
    instructions = [
        _load(_argument(index)),
        Instruction(_JSET, 0, 3, _O_CREAT | _O_TMPFILE),
        _load(_argument(index + 1)),
        Instruction(_JSET, 0, 1, _SET_ID_BITS),
        _fail(errno.EPERM),
    ]
    if not truncation:
        return [*instructions, _permit()]
    return [
        *instructions,
        _load(_argument(index)),
        Instruction(_JSET, 1, 0, _O_TRUNC),
        _permit(),
        Instruction(_AND, 0, 0, _O_ACCMODE),
        *_allow_only((1, 2), errno.EACCES),
    ]
