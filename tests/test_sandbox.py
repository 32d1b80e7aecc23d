"""What a candidate sees, told by candidates that look: each raises what it found, and the verdict's message brings it out."""

import hashlib
import json
import os
import socket
import subprocess
import sys
import textwrap
import threading
import types
from pathlib import Path

import pytest

from gym import Gym, Job
from kernelbench import Task, landlock, sandbox
from kernelbench.judge import Options, Referee
from kernelbench.process import Zygote

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ROOT / "tests" / "kernels"
TASK = Task("task", (KERNELS / "task.py").read_text() + "\nSECRET = 'a-mark-within-the-task'\n")
TOKEN, SEED = "hf_a-token-of-the-parent", 11
SECRETS = {
    "token": TOKEN.encode(),
    "key": hashlib.sha256(f"gym {SEED}".encode()).digest(),
    "task": b"a-mark-within-the-task",
}


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def gym(request):
    patch = pytest.MonkeyPatch()
    for name in ("HF_TOKEN", "WANDB_API_KEY", "CUDA_SECRET", "MY_PASSWORD"):
        patch.setenv(name, TOKEN)
    with patch.context(), Gym(request.param, workers=2, seed=SEED, options=Options(build_s=30, call_s=10)) as gym:
        yield gym
    patch.undo()


def candidate(body: str) -> str:
    """A candidate whose forward runs `body`, which leaves its findings in `found`."""
    return (
        'import json, os, time\nimport torch\nos = [os][0]  # out of sight of the static look\ndef hidden(*parts, load=[__import__][0]):\n    return load("".join(parts))\nclass Found(Exception): pass\nclass ModelNew(torch.nn.Module):\n    def forward(self, x, y):\n'
        + textwrap.indent(f"found = None\n{textwrap.dedent(body)}\nraise Found(json.dumps(found))", " " * 8)
    )


def findings(gym, body: str, layer: str | None = None):
    """What a candidate that runs `body` found; skips where this machine does not grant the layer of the sandbox."""
    verdict = gym.evaluate([Job(TASK, candidate(body))])[0]
    assert verdict.status == "runtime_error" and "Found: " in verdict.message, (verdict.status, verdict.message)
    found = json.loads(verdict.message.rpartition("Found: ")[2])
    state = fused(gym).sandbox
    if layer and state[layer] != "on":
        pytest.skip(f"{layer}: {state[layer]}")
    return found


def fused(gym):
    return gym.evaluate([Job(TASK, (KERNELS / "fused.py").read_text())])[0]


def test_every_layer_is_reported(gym):
    layers = fused(gym).sandbox
    assert layers.keys() >= {
        "pid namespace",
        "network namespace",
        "file descriptors",
        "resource limits",
        "private folder",
    }
    assert all(isinstance(state, str) and state for state in layers.values())
    assert layers["file descriptors"] == layers["resource limits"] == layers["no new privileges"] == "on"


def test_environment_is_an_allow_list(monkeypatch):
    for name in ("HF_TOKEN", "WANDB_API_KEY", "CUDA_SECRET_PATH", "TRITON_KEY", "PASSWORD", "OTHER"):
        monkeypatch.setenv(name, "hidden")
    monkeypatch.setenv("CUDA_MODULE_LOADING", "LAZY")
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    monkeypatch.setenv("TRITON_INTERPRET", "0")
    cpu, cuda = sandbox.environment("cpu"), sandbox.environment("cuda")
    assert "hidden" not in [*cpu.values(), *cuda.values()]
    assert cpu["PATH"] == cuda["PATH"] == os.environ["PATH"]
    assert cpu["TRITON_INTERPRET"] == "1" and "TRITON_INTERPRET" not in cuda
    assert cpu["CUDA_VISIBLE_DEVICES"] == "" and cuda["CUDA_MODULE_LOADING"] == "LAZY"
    assert "PYTORCH_CUDA_ALLOC_CONF" not in cuda


def test_no_secret_in_the_environment(gym):
    halves = TOKEN[:8], TOKEN[8:]
    found = findings(
        gym,
        f"""
        everything = repr(dict(os.environ)) + open("/proc/self/environ").read()
        found = [sorted(os.environ), "".join({halves!r}) in everything, os.environ["PATH"] in everything]
        """,
    )
    assert "PATH" in found[0] and "HF_TOKEN" not in found[0]
    assert found[1:] == [False, True]


def test_no_secret_in_memory(gym):
    """The candidate searches what it can write of its own memory for the parent's token, the gym's key and a mark within the task, each
    given in two halves; a mark that it makes itself shows that the search works."""
    halves = {name: [secret[:8].hex(), secret[8:16].hex()] for name, secret in SECRETS.items()}
    halves["control"] = [b"control-".hex(), b"is found".hex()]
    found = findings(
        gym,
        f"""
        halves = {{name: list(map(bytes.fromhex, pair)) for name, pair in {halves!r}.items()}}
        mark, found = b"".join(halves["control"]), dict.fromkeys(halves, 0)
        with open("/proc/self/mem", "rb", 0) as memory:
            for line in open("/proc/self/maps").read().splitlines():
                place, rights = line.split()[:2]
                start, end = (int(part, 16) for part in place.split("-"))
                if rights != "rw-p" or end - start > 1 << 26 or "/dev/" in line:
                    continue
                try:
                    memory.seek(start)
                    data = memory.read(end - start)
                except OSError:
                    continue
                for name, (first, second) in halves.items():
                    at = data.find(first)
                    while at >= 0:
                        found[name] += data[at + 8 : at + 16] == second
                        at = data.find(first, at + 1)
        """,
    )
    assert found.pop("control") > 0
    assert found == dict.fromkeys(SECRETS, 0)


def test_other_processes_are_out_of_sight(gym):
    found = findings(
        gym,
        f"""
        seen = [name for name in os.listdir("/proc") if name.isdigit()]
        def reach(act):
            try:
                act()
                return "reached"
            except OSError as error:
                return type(error).__name__
        parent = {os.getpid()}
        found = [os.getpid(), os.getppid(), seen, reach(lambda: open(f"/proc/{{parent}}/environ").read()),
                 reach(lambda: open(f"/proc/{{parent}}/mem", "rb")), reach(lambda: getattr(os, "kill")(parent, 0))]
        """,
        "own /proc",
    )
    pid, parent, seen, *reached = found
    assert pid == 1 and parent == 0 and seen == ["1"]
    assert reached == ["FileNotFoundError", "FileNotFoundError", "ProcessLookupError"]


def test_no_network(gym):
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        local.bind("\0an-abstract-name-for-this-test")
        local.listen()
        found = findings(
            gym,
            f"""
            socket = hidden("so", "cket")
            def reach(family, address):
                try:
                    with socket.socket(family) as mine:
                        mine.settimeout(5)
                        mine.connect(address)
                        return "reached"
                except OSError as error:
                    return type(error).__name__
            found = [reach(socket.AF_INET, ("127.0.0.1", {server.getsockname()[1]})), reach(socket.AF_INET, ("192.0.2.1", 80)),
                     reach(socket.AF_UNIX, "\\0an-abstract-name-for-this-test"),
                     open("/proc/net/dev").read().count(":")]
            """,
            "network namespace",
        )
    assert "reached" not in found[:3] and found[3] <= 1  # "lo" alone


def test_no_descriptor_of_the_parents(gym):
    read, write = os.pipe()
    os.set_inheritable(write, True)
    found = findings(
        gym,
        """
        found = {}
        for name in os.listdir("/proc/self/fd"):
            try:
                found[name] = os.readlink(f"/proc/self/fd/{name}")
            except OSError:
                continue
        """,
    )
    os.close(read), os.close(write)
    assert found["0"] == "/dev/null" and found["1"] == found["2"] and found["1"].endswith("/stderr")
    rest = [target for number, target in found.items() if int(number) > 2 and "nvidia" not in target]
    assert sum(target.startswith("socket:") for target in rest) == (1 if gym.device == "cpu" else 2)  # one is CUDA's
    assert not any(target.startswith("/dev/pts") or "pytest" in target for target in rest)
    if gym.device == "cpu":
        assert not any(target.startswith("pipe:") for target in rest)


def test_limits_and_the_private_folder(gym):
    found = findings(
        gym,
        """
        import resource, tempfile
        found = {name: resource.getrlimit(getattr(resource, "RLIMIT_" + name))[1] for name in ("CORE", "FSIZE", "NOFILE", "AS")}
        found["folders"] = [os.getcwd(), tempfile.gettempdir(), os.environ["HOME"], os.path.dirname(os.environ["TRITON_CACHE_DIR"])]
        found["kernelbench"] = __import__("importlib.util").util.find_spec("gym") is not None
        """,
    )
    assert found["CORE"] == 0 and found["FSIZE"] <= 1 << 30 and found["NOFILE"] <= 1024
    assert gym.device == "cuda" or found["AS"] <= 16 << 30
    assert len(set(found["folders"])) == 1 and not os.path.exists(found["folders"][0])  # removed with the verdict
    assert not found["kernelbench"]


SLEEPER = f"86398.{os.getpid()}"


def sleepers() -> list[str]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            found += [name] if SLEEPER.encode() in words else []
    return found


BARE = """
import sys
sys.path.insert(0, sys.argv[1])
from kernelbench import landlock, sandbox
call, no = sandbox._call, "refused for a test"
sandbox._call = lambda name, *args: no if name in {lacks} else call(name, *args)
landlock.forbid_system_calls = lambda *_: no
{more}
from kernelbench.contestant import zygote
zygote(int(sys.argv[2]), sys.argv[3])
"""


def bare(monkeypatch, more: str = "", lacks: tuple = ("setns", "unshare"), seconds: float = 3):
    """A referee on a host that grants no namespaces and no filter of system calls."""
    monkeypatch.setattr(Zygote, "BOOT", BARE.format(more=more, lacks=lacks))
    referee = Referee("cpu", b"key", Options(build_s=seconds, call_s=seconds))
    evaluate = lambda jobs: [referee.judge(job.task, job.code) for job in jobs]  # noqa: E731
    return types.SimpleNamespace(device="cpu", evaluate=evaluate, close=referee.close)


@pytest.fixture
def processes(gym, monkeypatch):
    """A gym whose candidates may start processes, as on a GPU and wherever no filter of system calls forbids it."""
    host = bare(monkeypatch, lacks=(), seconds=30) if gym.device == "cpu" else gym
    yield host
    if host is not gym:
        host.close()


@pytest.mark.parametrize("ending", ["raises", "dies"])
def test_descendants_end_with_the_verdict(processes, ending):
    """A grandchild in a session of its own outlives a kill of the process group, but not of the PID namespace."""
    body = f"""
    fork, execv, leave = getattr(os, "fork"), getattr(os, "execv"), getattr(os, "_exit")
    read, write = os.pipe()
    os.set_inheritable(write, False)
    if fork() == 0:
        os.setsid()
        if fork() == 0:
            os.setsid()
            execv("/bin/sleep", ["sleep", "{SLEEPER}"])
        leave(0)
    os.close(write)
    found = len(os.read(read, 1))  # returns when the last of them has become another program
    time.sleep(0.2)
    names = [name for name in os.listdir("/proc") if name.isdigit()]
    found = sum(b"{SLEEPER}" in open(f"/proc/{{name}}/cmdline", "rb").read() for name in names)
    if "{ending}" == "dies" and found:
        leave(7)
    """
    if ending == "raises":
        assert findings(processes, body, "pid namespace") == 1
    else:
        verdict = processes.evaluate([Job(TASK, candidate(body))])[0]
        assert verdict.status == "runtime_error" and "exit code 7" in verdict.message
        if fused(processes).sandbox["pid namespace"] != "on":
            pytest.skip("no PID namespace here")
    assert sleepers() == []


REACH = """
import pathlib
socket, me = hidden("so", "cket"), pathlib.Path(os.getcwd())
def reach(act):
    try:
        act()
        return "reached"
    except OSError as error:
        return type(error).__name__
def connect(family, address):
    with socket.socket(family) as mine:
        mine.settimeout(5)
        mine.connect(address)
"""


def refused(gym, attempts: dict[str, str], layer: str, before: str = "") -> dict[str, str]:
    """What became of each attempt (an expression) of a candidate: the name of an error, or "reached"."""
    pairs = ", ".join(f"{name!r}: reach(lambda: {text})" for name, text in attempts.items())
    return findings(gym, REACH + textwrap.dedent(before) + f"found = {{{pairs}}}", layer)


@pytest.fixture
def elsewhere(tmp_path):
    """A folder of the host with a file of another evaluation."""
    (tmp_path / "kernel.py").write_text("another evaluation's kernel")
    return tmp_path


def test_files_outside_the_private_folder_cannot_be_read(gym, elsewhere):
    file, readme = f"{elsewhere}/kernel.py", f"{ROOT}/README.md"
    found = refused(
        gym,
        {
            "task": f"open({str(KERNELS / 'task.py')!r}).read()",
            "repository": f"os.listdir({str(ROOT)!r})",
            "module": f"open({str(ROOT / 'kernelbench/judge.py')!r}).read()",
            "other evaluation": f"open({file!r}).read()",
            "evaluations": "os.listdir(me.parent)",
            "upwards": f"open(me / '../../{os.path.relpath(file, '/tmp')}').read()",
            "temporary": "os.listdir('/tmp')",
            "home": f"os.listdir({os.path.expanduser('~')!r})",
            "root": "os.listdir('/')",
            "shadow": "open('/etc/shadow').read()",
            "disk": "open('/dev/vda', 'rb').read(1)",
            "symbolic link": f"(os.symlink({file!r}, 'a'), open('a').read())",
            "hard link": f"(os.link({file!r}, 'b'), open('b').read())",
            "link to a folder": f"(os.symlink({str(ROOT)!r}, 'c'), open('c/README.md').read())",
            "/proc/self/root": f"open('/proc/self/root{readme}').read()",
            "/proc/1/root": f"open('/proc/1/root{readme}').read()",
            "/proc/self/cwd": f"open('/proc/self/cwd/../../{os.path.relpath(file, '/tmp')}').read()",
            "own kernel": "open('kernel.py').read()",
            "Python": "open(os.__file__).read()",
            "torch": "open(torch.__file__).read()",
        },
        "landlock files",
    )
    assert {name for name, end in found.items() if end == "reached"} == {"own kernel", "Python", "torch"}, found


def test_files_outside_the_private_folder_cannot_be_changed(gym, elsewhere):
    file = f"{elsewhere}/kernel.py"
    before = sorted((path.name, path.stat().st_mode) for path in elsewhere.iterdir())
    found = refused(
        gym,
        {
            "write": f"open({file!r}, 'a').write('x')",
            "truncate": f"os.truncate({file!r}, 0)",
            "make": f"open({str(elsewhere / 'new')!r}, 'w')",
            "folder": f"os.mkdir({str(elsewhere / 'new')!r})",
            "remove": f"os.remove({file!r})",
            "move out": f"os.rename('kernel.py', {str(elsewhere / 'new')!r})",
            "repository": f"open({str(ROOT / 'README.md')!r}, 'a')",
            "library": "open(torch.__file__, 'a')",
            "shared memory": "open('/dev/shm/drkernel-test', 'w')",
            "temporary": "open('/tmp/drkernel-test', 'w')",
            "cache": "os.mkdir(os.path.expanduser('/root/.triton-test'))",
            "/proc/self/root": f"open('/proc/self/root{file}', 'a')",
            "sysctl": "open('/proc/sys/kernel/pid_max', 'w')",
            "device": "os.mknod('disk', 0o60600, 0xfe00)",
            "inside": "(open('mine', 'w').write('x'), os.rename('mine', 'yours'), os.truncate('yours', 0), os.mkdir('d'))",
        },
        "landlock files",
    )
    assert {name for name, end in found.items() if end == "reached"} == {"inside"}, found
    assert before == sorted((path.name, path.stat().st_mode) for path in elsewhere.iterdir())
    assert (elsewhere / "kernel.py").read_text() == "another evaluation's kernel"


def test_attributes_outside_the_private_folder_cannot_be_changed(gym, elsewhere):
    file = f"{elsewhere}/kernel.py"
    attempts = {
        "mode": f"os.chmod({file!r}, 0)",
        "time": f"os.utime({file!r})",
        "attribute": f"os.setxattr({file!r}, 'user.a', b'b')",
        "inside": "os.chmod('kernel.py', 0o600)",
    }
    found = refused(gym, attempts, "read-only disk")
    assert {name for name, end in found.items() if end == "reached"} == {"inside"}, found


def test_system_calls(gym):
    """No capabilities, no new processes (with CUDA compilers are started), no handlers of signals."""
    body = """
    unix = socket.socketpair()
    def status():
        found = {line.split(":")[0]: line.split()[-1] for line in open("/proc/self/status")}
        if int(found["CapPrm"], 16) & ~(1 << 1 | 1 << 21) or found["Seccomp"] != "2" or found["NoNewPrivs"] != "1":
            raise RuntimeError(found)
    def handler():
        signal, heard = hidden("sig", "nal"), []
        signal.signal(signal.SIGWINCH, lambda *_: heard.append(1))
        getattr(os, "kill")(os.getpid(), signal.SIGWINCH)
        if heard:
            raise RuntimeError
    libc = hidden("ct", "ypes").CDLL(None, use_errno=True)
    def call(name, *args):
        if getattr(libc, name)(*args) < 0:
            raise OSError(hidden("ct", "ypes").get_errno(), name)
    """
    attempts = {
        "namespace": "call('unshare', 0x10000000)",
        "mount": "call('mount', b'none', b'/sys', b'tmpfs', 0, None)",
        "ptrace": "call('ptrace', 0, 0, 0, 0)",
        "socket": "socket.socket(socket.AF_UNIX)",
        "fork": "getattr(os, 'fork')() or os.abort()",
        "program": "hidden('sub', 'process').run(['true'])",
        "timer": "hidden('sig', 'nal').setitimer(0, 1)",
        "pair": "socket.socketpair()",
        "status": "status()",
        "handler": "handler()",
    }
    open_ones = {"pair", "status", "handler"} | ({"fork", "program"} if gym.device == "cuda" else set())
    found = refused(gym, attempts, "system calls", body)
    expected = dict.fromkeys(attempts, "PermissionError") | dict.fromkeys(open_ones, "reached")
    assert found == expected | {"timer": "itimer_error"}


def test_a_fork_bomb_ends(processes):
    if (state := fused(processes).sandbox["process limit"]) != "on":
        pytest.skip(f"process limit: {state}")
    found = findings(
        processes,
        """
        fork, found = getattr(os, "fork"), 0
        try:
            while found < 2000:
                if fork() == 0:
                    time.sleep(1000)
                found += 1
        except OSError:
            pass
        """,
    )
    assert 10 < found < sandbox.PROCESSES


@pytest.fixture
def no_namespaces(monkeypatch):
    host = bare(monkeypatch)
    yield host
    host.close()


def test_what_a_host_lacks_is_said(no_namespaces):
    layers = fused(no_namespaces).sandbox
    lacking = {name for name, state in layers.items() if state == "refused for a test"}
    assert lacking == {"pid namespace", "mount namespace", "network namespace", "ipc namespace", "system calls"}
    assert layers["descendants"] == "on" and "own /proc" not in layers


def test_landlock_alone(no_namespaces):
    """Other processes, TCP and abstract sockets, where no namespace hides them."""
    sleeper = subprocess.Popen(["sleep", "60"])
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        local.bind("\0another-name-for-this-test")
        local.listen()
        attempts = {
            "tcp": f"connect(socket.AF_INET, ('127.0.0.1', {server.getsockname()[1]}))",
            "tcp server": "socket.create_server(('127.0.0.1', 0))",
            "abstract socket": "connect(socket.AF_UNIX, '\\0another-name-for-this-test')",
            "signal": f"getattr(os, 'kill')({sleeper.pid}, 9)",
            "signal to the zygote": "getattr(os, 'kill')(os.getppid(), 0)",
            "environment": f"open('/proc/{os.getpid()}/environ').read()",
            "memory": f"open('/proc/{os.getpid()}/mem', 'rb')",
            "folder": f"os.listdir('/proc/{os.getpid()}/cwd/')",
            "processes": "os.listdir('/proc')",
            "own": "open('/proc/self/maps').read()",
        }
        found = refused(no_namespaces, attempts, "landlock signals")
    assert sleeper.poll() is None
    sleeper.kill(), sleeper.wait()
    assert found == dict.fromkeys(attempts, "PermissionError") | {"own": "reached"}


@pytest.mark.parametrize(
    "ending, status", [("raises", "runtime_error"), ("dies", "runtime_error"), ("hangs", "timeout")]
)
def test_descendants_end_without_a_pid_namespace(no_namespaces, ending, status):
    """Children, and grandchildren in sessions of their own whose parents are gone."""
    body = f"""
    fork, execv, leave = getattr(os, "fork"), getattr(os, "execv"), getattr(os, "_exit")
    for generation in range(4):
        if fork() == 0:
            os.setsid()
            if generation % 2 and fork():
                leave(0)
            execv("/bin/sleep", ["sleep", "{SLEEPER}"])
    time.sleep(2)
    leave(7) if "{ending}" == "dies" else time.sleep(1000 if "{ending}" == "hangs" else 0)
    """
    seen, over = [], threading.Event()

    def look():
        while not over.wait(0.05):
            seen.append(len(sleepers()))

    no_namespaces.evaluate(
        [Job(TASK, candidate("pass"))]
    )  # the reference's process ends, and with it all that has no parent left
    thread = threading.Thread(target=look)
    thread.start()
    verdict = no_namespaces.evaluate([Job(TASK, candidate(body))])[0]
    left = sleepers()
    over.set(), thread.join()
    assert verdict.status == status and max(seen) == 4 and left == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a uid of its own")
def test_own_uid_without_landlock(monkeypatch, elsewhere):
    host = bare(monkeypatch, "landlock.abi = lambda: 0")
    (elsewhere / "kernel.py").chmod(0o600)
    try:
        state = fused(host).sandbox
        assert "no Landlock" in state["landlock files"]
        attempts = {
            "uid": "os.setuid(0)",
            "other evaluation": f"open('{elsewhere}/kernel.py').read()",
            "signal": f"getattr(os, 'kill')({os.getpid()}, 0)",
            "own": "open('mine', 'w').write('x')",
        }
        found = refused(host, attempts, "own uid")
    finally:
        host.close()
    assert found == dict.fromkeys(attempts, "PermissionError") | {"own": "reached"}


def test_what_is_readable(tmp_path, monkeypatch):
    """An installation of Python within the repository is; the repository, the home folder and what holds them are not."""
    root, home = tmp_path / "repository", tmp_path / "home"
    for folder in (
        "repository/.venv/lib/python3/site-packages",
        "repository/runs",
        "home/.ssh",
        "home/packages",
        "opt",
    ):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "link").symlink_to(root)
    monkeypatch.setattr(sys, "prefix", str(root / ".venv"))
    monkeypatch.setenv("HOME", str(home))
    given = [root, root / "runs", root / ".venv/lib", root / ".venv/lib/python3/site-packages", home, home / "packages"]
    given += [
        tmp_path,
        tmp_path / "opt",
        tmp_path / "link",
        tmp_path / "missing",
        "/",
        "/tmp",
        "relative",
        "",
        "/usr/lib",
        "/usr",
    ]
    expected = sorted(map(str, [root / ".venv/lib", home / "packages", tmp_path / "opt", "/usr"]))
    assert sandbox.narrowed(list(map(str, given)), str(root)) == expected


def test_the_filter_of_each_machine():
    for machine, (audit, _, clone) in landlock.ARCHITECTURES.items():
        program = landlock.instructions(machine)
        for number, argument, error in (
            (clone, 0, 1),
            (clone, 0x00010000, 0),
            (clone, 0x10010000, 1),
            (57 if machine == "x86_64" else 103, 0, 1),
            (435, 0, 38),
            (425, 0, 1),
            (landlock.DENIED["ptrace"][machine == "aarch64"], 0, 1),
            (landlock.DENIED["socket"][machine == "aarch64"], 0, 1),
            (0x40000001, 0, 1),
            (63 if machine == "aarch64" else 0, 0, 0),
        ):
            assert run_filter(program, {0: number, 4: audit, 16: argument}) == error, (machine, number)
        assert run_filter(program, {0: 0, 4: 0x40000003, 16: 0}) == 1
        program = landlock.instructions(machine, processes=True)  # where compilers must be started
        forks = ((57, 0, 0), (58, 0, 0), (37, 0, 1)) if machine == "x86_64" else ()
        ptrace = (landlock.DENIED["ptrace"][machine == "aarch64"], 0, 1)
        for number, argument, error in (
            *forks,
            ptrace,
            (clone, 17, 0),
            (clone, 0x10000011, 1),
            (435, 0, 38),
            (442, 0, 1),
        ):
            assert run_filter(program, {0: number, 4: audit, 16: argument}) == error, (machine, number)
    assert landlock.instructions("riscv64") is None


def run_filter(program: bytes, data: dict[int, int]) -> int:
    """The error that a classic BPF program gives a system call; 0: allowed."""
    at, value = 0, 0
    while True:
        code, yes, no, k = landlock.struct.unpack_from("HBBI", program, 8 * at)
        at += 1
        if code == landlock.LOAD:
            value = data[k]
        elif code == landlock.RETURN:
            return 0 if k == landlock.ALLOW else k & 0xFFFF
        else:
            truth = {landlock.JUMP_EQ: value == k, landlock.JUMP_GE: value >= k, landlock.JUMP_SET: value & k}[code]
            at += yes if truth else no
