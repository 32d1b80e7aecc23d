"""What a candidate sees, told by candidates that look: each raises what it found, and the verdict's message brings it out."""

import hashlib
import json
import os
import socket
import textwrap
from pathlib import Path

import pytest

from gym import Gym, Job
from kernelbench import Task, sandbox
from kernelbench.judge import Options

KERNELS = Path(__file__).parent / "kernels"
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
        "import json, os, time\nimport torch\nclass Found(Exception): pass\nclass ModelNew(torch.nn.Module):\n    def forward(self, x, y):\n"
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
            socket = __import__("socket")
            def reach(family, address):
                with socket.socket(family) as mine:
                    mine.settimeout(5)
                    try:
                        mine.connect(address)
                        return "reached"
                    except OSError as error:
                        return type(error).__name__
            found = [reach(socket.AF_INET, ("127.0.0.1", {server.getsockname()[1]})), reach(socket.AF_INET, ("192.0.2.1", 80)),
                     reach(socket.AF_UNIX, "\\0an-abstract-name-for-this-test"), [name for _, name in socket.if_nameindex()]]
            """,
            "network namespace",
        )
    assert "reached" not in found[:3] and found[3] in ([], ["lo"])


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


SLEEPER = "86398.5"


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


@pytest.mark.parametrize("ending", ["raises", "dies"])
def test_descendants_end_with_the_verdict(gym, ending):
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
        assert findings(gym, body, "pid namespace") == 1
    else:
        verdict = gym.evaluate([Job(TASK, candidate(body))])[0]
        assert verdict.status == "runtime_error" and "exit code 7" in verdict.message
        if fused(gym).sandbox["pid namespace"] != "on":
            pytest.skip("no PID namespace here")
    assert sleepers() == []
