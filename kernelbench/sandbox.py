"""What the process that runs a candidate may touch.

Covered, where the host allows it: PID namespace with its own /proc (every descendant dies with the contestant, setsid or not; elsewhere
the zygote inherits and kills what a contestant leaves), mount, network and IPC namespaces, resource limits, a limit of processes, no new
privileges, no capabilities, a closed file-descriptor table, a private folder for temporary files and Triton's cache, an environment
without secrets, death with the parent; Landlock (files, TCP, signals) and a filter of system calls (`landlock.py`); a uid of its own where
Landlock is missing.
Not covered: the size of the private folder, memory of many processes together (the first to be killed for it are contestants), GPU memory
taken past torch's allocator.

`prepare()` runs in the zygote once and `isolate()` around each fork; `confine()` in the child before CUDA starts, `lock()` after that
(tried on an H200: under Landlock CUDA does not start, error 304) and before any candidate code. What a host lacks is reported in words
in the verdict's `sandbox` field and nothing is silently off.
"""

import ctypes
import glob
import os
import platform
import resource
import shutil
import signal
import sys
import tempfile
import time

from kernelbench import landlock

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWPID, CLONE_NEWNET = 0x00020000, 0x08000000, 0x20000000, 0x40000000
CLONE_NEWUSER = 0x10000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 8, 0x1000, 0x4000, 0x40000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 36, 38
PROCESSES = 512  # at a time, threads counted, where the host lets them be limited
SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/sys", "/dev/zero", "/dev/random", "/dev/urandom")
ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "passwd", "group", "nsswitch.conf", "localtime", "locale.alias")
# What of a /proc that shows the host's processes too is readable beside the contestant's own folder.
PROC = tuple(f"/proc/{name}" for name in ("cpuinfo", "meminfo", "stat", "version", "devices", "modules", "driver"))
# Names (or beginnings of names) of the environment variables that a zygote inherits; everything else may hold a secret.
ENVIRONMENT = (
    "PATH",
    "LD_LIBRARY_PATH",
    "LANG",
    "LC_",
    "PYTHON",
    "VIRTUAL_ENV",
    "CUDA_",
    "NVIDIA_",
    "TRITON_",
    "OMP_",
    "MKL_",
    "OPENBLAS_",
)
_libc = ctypes.CDLL(None, use_errno=True)


def environment(device: str) -> dict[str, str]:
    """The environment of a zygote for `device` ("cpu" or "cuda"): an allow-list of the caller's, plus what the device needs."""
    env = {
        k: v
        for k, v in os.environ.items()
        if k.startswith(ENVIRONMENT) and "TOKEN" not in k and "KEY" not in k and "SECRET" not in k
    }
    env |= {
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "TRITON_PRINT_AUTOTUNING": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    env.pop("PYTORCH_CUDA_ALLOC_CONF", None)  # expandable segments cannot be shared through CUDA IPC
    env.pop("TRITON_INTERPRET", None)
    if device == "cpu":
        env |= {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    else:  # one hardware queue: a context is made in 0.08 s of the driver's time instead of 0.2 s, and only one is made at a time
        env["CUDA_DEVICE_MAX_CONNECTIONS"] = "1"
    return env


def _call(name: str, *args) -> str | None:
    """A libc call; None on success, else the reason in words."""
    return None if getattr(_libc, name)(*args) == 0 else os.strerror(ctypes.get_errno())


class _Host:
    """What `prepare` found out, for the forks."""

    root, rules, descendants = "", [], ""


def prepare(root: str, device: str):
    """In the zygote, once, before any thread or fork. root: the repository's folder, which candidates must not read."""
    _Host.root = os.path.realpath(root)
    if device == "cpu" and os.geteuid() and _works(_descend):
        _descend()  # with CUDA a user namespace breaks IPC
    _Host.descendants = _call("prctl", PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) or "on"
    if os.readlink("/proc/self") != str(os.getpid()):
        _Host.descendants = "/proc is not that of this PID namespace"
    system = {os.path.realpath(p) for p in (*SYSTEM, *(f"/etc/{name}" for name in ETC)) if os.path.exists(p)}
    paths = [p for p in narrowed(_python() + sys.path + _compilers() + _mapped(), _Host.root) if not _held(p, system)]
    system = [p for p in sorted(system) if not _held(p, system - {p})]
    devices = ["/dev/null", *(glob.glob("/dev/nvidia*") + glob.glob("/dev/dxg") if device == "cuda" else [])]
    _Host.rules = [(p, landlock.READ) for p in paths + system] + [(p, landlock.DEVICE) for p in devices]
    landlock.instructions(platform.machine(), device == "cuda")  # remembered


def _works(act) -> bool:
    """Whether `act` succeeds, tried in a fork."""
    pid = os.fork()
    if not pid:
        try:
            act()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def _descend():
    """Without privileges: go on as the first process of PID, user and mount namespaces of our own, in which `isolate` and `confine` are
    allowed what they do. The process that was started waits for it. OSError where the host refuses."""
    uid, gid = os.geteuid(), os.getegid()
    _must("unshare", CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    pid = os.fork()
    if pid:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) & 0xFF)
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _must("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    _must("mount", b"proc", b"/proc", b"proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, None)
    if error := isolate():
        raise OSError(error)


def _must(name: str, *args):
    if error := _call(name, *args):
        raise OSError(f"{name}: {error}")


def isolate() -> str | None:
    """In the zygote, before each fork: let the next child be the first process of a new PID namespace. None, or why not."""
    own = os.open("/proc/self/ns/pid", os.O_RDONLY)
    try:
        return _call("setns", own, CLONE_NEWPID) or _call("unshare", CLONE_NEWPID)
    finally:
        os.close(own)


def sweep(keep: set[int], limit: float = 5.0):
    """In the zygote, after a contestant's end: kill its children that are not in `keep`. Without a PID namespace these are what contestants
    left behind, whatever session they moved to: orphans fall to the nearest subreaper, and their own children with them, one after another."""
    end = time.monotonic() + limit
    while _Host.descendants == "on" and (left := _children() - keep) and time.monotonic() < end:
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)
        for pid in left:
            os.waitpid(pid, os.WNOHANG)


def _children() -> set[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return set(map(int, file.read().split()))
    except FileNotFoundError:  # a kernel without CONFIG_PROC_CHILDREN
        found = set()
        for path in glob.glob("/proc/[0-9]*/stat"):
            try:
                with open(path) as file:
                    parent = file.read().rpartition(")")[2].split()[1]
            except (FileNotFoundError, ProcessLookupError):
                continue
            found |= {int(path.split("/")[2])} if parent == str(os.getpid()) else set()
        return found


def _python() -> list[str]:
    """Where Python and its packages lie: code that is imported late must stay readable."""
    parts = ("bin", "lib", "lib64", "include", "share", "pyvenv.cfg")
    return [os.path.join(prefix, part) for prefix in {sys.prefix, sys.base_prefix} for part in parts]


def _compilers() -> list[str]:
    """Where the programs lie that Triton starts to build its launcher, and the libraries that the environment names."""
    found = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    found += os.environ.get("LD_LIBRARY_PATH", "").split(":")
    for path in filter(None, map(shutil.which, (os.environ.get("CC") or "cc", "gcc", "clang", "ld", "as"))):
        folder = os.path.dirname(os.path.realpath(path))
        found += [folder] + [os.path.join(folder, "..", part) for part in ("lib", "lib64", "libexec", "include")]
    return found


def _mapped() -> list[str]:
    """The folders of the libraries that this process has loaded."""
    with open("/proc/self/maps") as file:
        paths = {line.split(maxsplit=5)[5].rstrip("\n") for line in file if "/" in line and " r-xp " in line}
    return [os.path.dirname(path) for path in paths]


def narrowed(paths: list[str], root: str) -> list[str]:
    """Those of `paths` that may be read, resolved, none within another: nothing that holds the repository, the home folder or the folder of
    temporary files, and of the repository nothing but an installation of Python (a .venv within it)."""
    closed = [os.path.realpath(p) for p in (root, os.path.expanduser("~"), tempfile.gettempdir())]
    python, kept = [os.path.realpath(p) for p in _python()], []
    for path in sorted({os.path.realpath(p) for p in paths if os.path.isabs(p) and os.path.exists(p)}):
        inside = _within(path, closed[0]) and not _held(path, python)
        if not inside and not any(_within(c, path) for c in closed) and not _held(path, kept):
            kept.append(path)
    return kept


def _held(path: str, folders) -> str | None:
    """Which of `folders` holds `path`."""
    return next((folder for folder in folders if _within(path, folder)), None)


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def confine(
    folder: str, keep: set[int], device: str, pid_namespace: str | None, memory_gib: float = 16.0
) -> dict[str, str]:
    """In the child, before any code of the candidate. Returns layer -> "on" or the reason why it is off.

    folder: the only place meant for writing (becomes TMPDIR, HOME and Triton's cache); keep: file descriptors that stay open.
    """
    layers = {"pid namespace": pid_namespace or "on"}
    if pid_namespace:
        layers["descendants"] = _Host.descendants
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.setsid()
    layers["first when memory is short"] = _write("/proc/self/oom_score_adj", "1000")
    for name, flag in (
        ("mount namespace", CLONE_NEWNS),
        ("network namespace", CLONE_NEWNET),
        ("ipc namespace", CLONE_NEWIPC),
    ):
        layers[name] = _call("unshare", flag) or "on"
    if layers["mount namespace"] == "on":
        layers["mount namespace"] = _call("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None) or "on"
    layers["read-only disk"] = _read_only(folder) if layers["mount namespace"] == "on" else "no mount namespace"
    if layers["mount namespace"] == layers["pid namespace"] == "on":
        layers["own /proc"] = _call("mount", b"proc", b"/proc", b"proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, None) or "on"
    layers["process limit"] = _limit_processes(layers)

    log = os.open(os.path.join(folder, "stderr"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0), os.dup2(log, 1), os.dup2(log, 2)
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd > 2 and fd not in keep:
            try:
                os.close(fd)
            except OSError:  # the descriptor of the listing itself
                continue
    layers["file descriptors"] = "on"

    limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: 1 << 30, resource.RLIMIT_NOFILE: 1024}
    if device == "cpu":  # CUDA reserves address space far beyond what it uses
        limits[resource.RLIMIT_AS] = int(memory_gib * 2**30)
    for kind, value in limits.items():
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
    layers["resource limits"] = "on"
    os.environ |= {
        "TMPDIR": folder,
        "HOME": folder,
        "TRITON_CACHE_DIR": os.path.join(folder, "triton"),
        "TRITON_HOME": folder,
        "TORCHINDUCTOR_CACHE_DIR": os.path.join(folder, "inductor"),
        "CUDA_CACHE_PATH": os.path.join(folder, "cuda"),
    }
    tempfile.tempdir = None  # the zygote may have looked it up
    os.chdir(folder)
    sys.path[:] = [p for p in sys.path if p]
    layers["private folder"] = "on"

    layers["no new privileges"] = _call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or "on"
    return layers


def lock(folder: str, device: str, layers: dict[str, str]) -> dict[str, str]:
    """In the child, once CUDA runs and before any code of the candidate: what is left. Adds to `layers` and returns them. Memory of the
    referee that is opened through CUDA IPC later needs the driver's devices alone."""
    if not landlock.abi():
        layers["own uid"] = _own_uid(folder, device)
    layers["capabilities"] = landlock.drop_capabilities(landlock.DAC_OVERRIDE)
    rules = [(folder, landlock.ALL), *_Host.rules]
    if device == "cuda":  # the driver's libraries are loaded by now
        held = [path for path, _ in rules]
        rules += [(p, landlock.READ) for p in narrowed(_mapped(), _Host.root) if not _held(p, held)]
    proc = (
        ["/proc"]
        if layers.get("own /proc") == "on"
        else [os.path.realpath("/proc/self"), *filter(os.path.exists, PROC)]
    )
    layers |= landlock.restrict(rules + [(p, landlock.READ) for p in proc])
    places = {"the repository": _Host.root, "other evaluations' folders": os.path.dirname(folder)}
    for name, place in places.items():
        if layers["landlock files"] == "on" and (reader := _held(place, [path for path, _ in rules[1:]])):
            layers["landlock files"] = f"{name} lie within {reader}, which must be readable"
    return layers | {"system calls": landlock.forbid_system_calls(device == "cuda")}  # which starts compilers


def _read_only(folder: str) -> str:
    """Nothing on any disk can change but in `folder`: Landlock alone lets chmod, utime and extended attributes pass."""
    error = landlock.set_read_only("/", True) or _call("mount", *[folder.encode()] * 2, None, MS_BIND, None)
    error = error or landlock.set_read_only(folder, False)
    return error or "on"


def _limit_processes(layers: dict) -> str:
    """PROCESSES at most in the PID namespace: from Linux 6.14 on each has a pid_max of its own."""
    if layers.get("own /proc") != "on":
        return "needs a PID namespace with its own /proc"
    if tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2]) < (6, 14):
        return "needs Linux 6.14, where each PID namespace has a limit of its own"
    return _write("/proc/sys/kernel/pid_max", str(PROCESSES))


def _write(path: str, text: str) -> str:
    """Tell the kernel. "on", or why not."""
    try:
        with open(path, "w") as file:
            file.write(text)
    except OSError as error:
        return error.strerror
    return "on"


def _own_uid(folder: str, device: str) -> str:
    """Where files are protected by nothing else: a uid that only this evaluation has. "on", or why not."""
    if os.geteuid():
        return "only root can give one"
    if device == "cuda":
        return "with CUDA it breaks the sharing of memory"
    uid = 1 << 30 | os.stat(folder).st_ino % (1 << 30)
    os.seteuid(uid)
    shut = [path for path, _ in _Host.rules if not os.access(path, os.R_OK, effective_ids=True)]
    os.seteuid(0)
    if shut:
        return f"{shut[0]}, which must be readable, is closed to other users"
    os.chmod(os.path.dirname(folder), 0o711)
    for path in (folder, *(entry.path for entry in os.scandir(folder))):
        os.chown(path, uid, uid, follow_symlinks=False)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    resource.setrlimit(resource.RLIMIT_NPROC, (PROCESSES, PROCESSES))
    os.setresuid(uid, uid, uid)
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # a change of uid ends both
    _libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    return "on"
