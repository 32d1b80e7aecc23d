"""What a process gives up for good: Landlock (files, TCP, signals), a seccomp filter, capabilities.

By the system calls themselves: no library for them is installed with PyTorch, and few calls are needed. Sources: the kernel's
Documentation/userspace-api/landlock.rst and seccomp_filter.rst, include/uapi/linux/{landlock,seccomp,capability}.h.

Covered: all versions of Landlock's interface (ABI), each used as far as it goes; x86-64 and 64-bit Arm for the filter.
Not covered: Landlock binds the calling thread and what it starts; threads that exist already are bound from ABI 8 on only.
"""

import ctypes
import errno
import functools
import os
import platform
import stat
import struct

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, MAKE_CHAR, MAKE_BLOCK = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 6, 1 << 11
TRUNCATE, IOCTL_DEV = 1 << 14, 1 << 15
FILES = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}  # ABI -> its rights
ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV  # what a rule for a file, no folder, may name
READ = EXECUTE | READ_FILE | READ_DIR
DEVICE = READ_FILE | WRITE_FILE | READ_DIR | IOCTL_DEV
ALL = ((1 << 16) - 1) & ~(MAKE_CHAR | MAKE_BLOCK)
TCP = 0b11  # bind, connect
SCOPES = 0b11  # abstract unix sockets, signals
QUIET, ALL_THREADS = 1 << 0, 1 << 3  # flags of restrict_self: no audit records (ABI 7), bind every thread (ABI 8)

DAC_OVERRIDE, SYS_ADMIN = 1 << 1, 1 << 21
MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE, RDONLY = 442, -100, 0x8000, 1

SECCOMP_SET_FILTER, TSYNC, SPEC_ALLOW = 1, 1 << 0, 1 << 2
LOAD, JUMP_EQ, JUMP_GE, JUMP_SET, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # classic BPF
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
NEW_NAMESPACES, CLONE_THREAD, CLONE3 = 0x7E020000, 0x00010000, 435
SAME_NUMBERS = (425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 442)  # io_uring, mounts by descriptor, pidfd_getfd
ALARM, FORKS = (
    {"x86_64": (37,), "aarch64": ()},
    {"x86_64": (57, 58), "aarch64": ()},
)  # alarm; fork, vfork: newer architectures lack them
IGNORED = (13, 134)  # rt_sigaction
ARCHITECTURES = {  # machine -> number for audit, of seccomp, of clone
    "x86_64": (0xC000003E, 317, 56),
    "aarch64": (0xC00000B7, 277, 220),
}
DENIED = {  # name -> numbers on x86-64 and on 64-bit Arm
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "quotactl": (179, 60),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "syslog": (103, 116),
    "setitimer": (38, 103),  # signals would interrupt what is around the candidate
    "timer_create": (222, 107),
    "socket": (41, 198),  # neither a namespace nor Landlock stops a unix socket with a path, such as docker.sock
}
_libc = ctypes.CDLL(None, use_errno=True)


def _system_call(number: int, *args) -> int:
    """The result; OSError on failure."""
    result = _libc.syscall(ctypes.c_long(number), *args)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def abi() -> int:
    """The version of Landlock's interface that this kernel offers; 0: none."""
    try:
        return _system_call(CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EOPNOTSUPP):
            return 0
        raise


def restrict(rules: list[tuple[str, int]]) -> dict[str, str]:
    """Bind this thread and all that it starts to `rules`: (path, rights beneath it). layer -> "on" or the reason why it is off.

    Needs "no new privileges". The paths must exist.
    """
    version = abi()
    if not version:
        why = "this kernel has no Landlock (Linux 5.13 with CONFIG_SECURITY_LANDLOCK, and landlock in its lsm= list)"
        return {"landlock files": why, "landlock tcp": why, "landlock signals": why}
    handled = FILES[min(version, 5)]
    known = struct.pack("QQQ", handled, TCP, SCOPES)[: 8 if version < 4 else 16 if version < 6 else 24]
    ruleset = _system_call(CREATE_RULESET, known, ctypes.c_size_t(len(known)), 0)
    try:
        for path, rights in rules:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
            try:
                rights &= handled if stat.S_ISDIR(os.fstat(fd).st_mode) else handled & ON_FILES
                _system_call(ADD_RULE, ruleset, 1, struct.pack("=Qi", rights, fd), 0)
            finally:
                os.close(fd)
        flags = (QUIET if version >= 7 else 0) | (ALL_THREADS if version >= 8 else 0)
        _system_call(RESTRICT_SELF, ruleset, flags)
    finally:
        os.close(ruleset)
    older = f"Landlock's ABI here is {version}; {{}}"
    layers = {
        "landlock files": "on" if version >= 3 else older.format("3 (Linux 6.2) is needed against truncation"),
        "landlock tcp": "on" if version >= 4 else older.format("4 (Linux 6.7) is needed"),
        "landlock signals": "on" if version >= 6 else older.format("6 (Linux 6.12) is needed"),
    }
    others = len(os.listdir("/proc/self/task")) - 1
    if others and version < 8:
        layers["landlock threads"] = older.format(f"{others} threads that run already are bound from 8 (Linux 7.0) on")
    return layers


@functools.cache
def instructions(machine: str, processes: bool = False) -> bytes | None:
    """The filter for a machine: DENIED, new namespaces and, unless `processes` (compilers must be started), new processes fail with EPERM;
    clone3, whose flags a filter cannot see, is "not there"; handlers of signals are never installed, and nobody is told."""
    if machine not in ARCHITECTURES:
        return None
    audit, _, clone = ARCHITECTURES[machine]
    deny = (RETURN, 0, 0, ERRNO | errno.EPERM)
    program = [(LOAD, 0, 0, 4), (JUMP_EQ, 1, 0, audit), deny, (LOAD, 0, 0, 0), (JUMP_GE, 0, 1, 0x40000000), deny]
    forks = () if processes else FORKS[machine]
    for number in (*SAME_NUMBERS, *ALARM[machine], *forks, *(pair[machine == "aarch64"] for pair in DENIED.values())):
        program += [(JUMP_EQ, 0, 1, number), deny]
    program += [(JUMP_EQ, 0, 1, IGNORED[machine == "aarch64"]), (RETURN, 0, 0, ERRNO)]
    program += [(JUMP_EQ, 0, 1, CLONE3), (RETURN, 0, 0, ERRNO | errno.ENOSYS)]
    program += [
        (JUMP_EQ, 0, 4, clone),
        (LOAD, 0, 0, 16),
        (JUMP_SET, 1, 0, NEW_NAMESPACES),
        (JUMP_GE, 1, 0, 0) if processes else (JUMP_SET, 1, 0, CLONE_THREAD),
        deny,
    ]
    return b"".join(struct.pack("HBBI", *line) for line in [*program, (RETURN, 0, 0, ALLOW)])


def forbid_system_calls(processes: bool = False) -> str:
    """Install the filter in every thread. "on", or why not."""
    machine = platform.machine()
    program = instructions(machine, processes)
    if program is None:
        return f"the numbers of the system calls of {machine} are not known here"
    code = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("HP", len(program) // 8, ctypes.addressof(code))
    try:
        _system_call(ARCHITECTURES[machine][1], SECCOMP_SET_FILTER, TSYNC | SPEC_ALLOW, head)
    except OSError as error:
        return error.strerror
    return "on"


def drop_capabilities(keep: int) -> str:
    """All but `keep`, in this thread and what it starts; with "no new privileges" no program gives them back. "on", or why not."""
    head, data = struct.pack("=Ii", 0x20080522, 0), ctypes.create_string_buffer(24)
    if _libc.capget(head, data):
        return os.strerror(ctypes.get_errno())
    effective, permitted, *_ = struct.unpack("=6I", data.raw)
    left = struct.pack("=6I", effective & keep, permitted & keep, 0, 0, 0, 0)
    return os.strerror(ctypes.get_errno()) if _libc.capset(head, left) else "on"


def set_read_only(path: str, on: bool) -> str | None:
    """All that is mounted at `path` and beneath it, in this mount namespace. None, or why not."""
    attributes = struct.pack("4Q", RDONLY if on else 0, 0 if on else RDONLY, 0, 0)
    try:
        _system_call(MOUNT_SETATTR, AT_FDCWD, path.encode(), AT_RECURSIVE, attributes, ctypes.c_size_t(32))
    except OSError as error:
        return error.strerror
