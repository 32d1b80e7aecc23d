"""What the process that runs a candidate may touch.

Covered, where the host allows it: PID namespace with its own /proc (every descendant dies with the contestant, setsid or not), mount,
network and IPC namespaces, resource limits, no new privileges, a closed file-descriptor table, a private folder for temporary files and
Triton's cache, an environment without secrets, death with the parent.
Not covered here: file reads and writes elsewhere on the disk (Landlock), a uid of its own, GPU memory of other processes.

`isolate()` runs in the zygote around the fork, `confine()` in the child before any candidate code. What a host lacks is reported in
words in the verdict's `sandbox` field and nothing is silently off.
"""

import ctypes
import os
import resource
import signal
import sys
import tempfile

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWPID, CLONE_NEWNET = 0x00020000, 0x08000000, 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 2, 4, 8, 0x4000, 0x40000
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38
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


def isolate() -> str | None:
    """In the zygote, before each fork: let the next child be the first process of a new PID namespace. None, or why not."""
    own = os.open("/proc/self/ns/pid", os.O_RDONLY)
    try:
        return _call("setns", own, CLONE_NEWPID) or _call("unshare", CLONE_NEWPID)
    finally:
        os.close(own)


def confine(
    folder: str, keep: set[int], device: str, pid_namespace: str | None, memory_gib: float = 16.0
) -> dict[str, str]:
    """In the child, before any code of the candidate. Returns layer -> "on" or the reason why it is off.

    folder: the only place meant for writing (becomes TMPDIR, HOME and Triton's cache); keep: file descriptors that stay open.
    """
    layers = {"pid namespace": pid_namespace or "on"}
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.setsid()
    for name, flag in (
        ("mount namespace", CLONE_NEWNS),
        ("network namespace", CLONE_NEWNET),
        ("ipc namespace", CLONE_NEWIPC),
    ):
        layers[name] = _call("unshare", flag) or "on"
    if layers["mount namespace"] == layers["pid namespace"] == "on":
        _call("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)
        layers["own /proc"] = _call("mount", b"proc", b"/proc", b"proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, None) or "on"

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
    layers["no new privileges"] = _call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or "on"

    os.environ |= {
        "TMPDIR": folder,
        "HOME": folder,
        "TRITON_CACHE_DIR": os.path.join(folder, "triton"),
        "TRITON_HOME": folder,
    }
    tempfile.tempdir = None  # the zygote may have looked it up
    os.chdir(folder)
    sys.path[:] = [p for p in sys.path if p]
    layers["private folder"] = "on"
    return layers
