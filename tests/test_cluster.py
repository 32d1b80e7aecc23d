"""The gym on a local Ray cluster: a head without CPUs and nodes of one CPU each, which come and go. With CI_RAY=1 Ray must be there."""

import contextlib
import glob
import os
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from test_gym import KERNEL, KERNELS, OPTIONS, TASK, plain, slow, unlike

import cluster as ray_cluster
from gym import Args, Gym, GymError, Job, main
from kernelbench.judge import Verdict

SMALL = {"object_store_memory": 80 << 20, "include_dashboard": False}
QUICK = {"enable_worker_prestart": False, "prestart_worker_first_driver": False}
QUICK |= {"health_check_initial_delay_ms": 0, "health_check_period_ms": 500, "health_check_failure_threshold": 4}


@pytest.fixture(scope="module")
def ray():
    if os.environ.get("CI_RAY") == "1":
        import ray
    else:
        ray = pytest.importorskip("ray")
    return ray


@pytest.fixture(scope="module")
def nodes(ray):
    """A cluster that this process is connected to, and its two nodes; actors make their files in a folder of ours."""
    from ray.cluster_utils import Cluster

    folder = tempfile.mkdtemp(prefix="dkray-", dir="/tmp")  # short: Ray puts sockets there
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", folder)
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.delenv("RAY_ADDRESS", raising=False)
        head = {"num_cpus": 0, "_system_config": QUICK, **SMALL}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        try:
            workers = [cluster.add_node(num_cpus=1, **SMALL) for _ in range(2)]
            patch.setenv("RAY_ADDRESS", cluster.address)  # what "auto" means
            yield SimpleNamespace(cluster=cluster, workers=workers, folder=folder)
        finally:
            ray.shutdown()
            cluster.shutdown()
            shutil.rmtree(folder, ignore_errors=True)


def until(condition, seconds: float = 60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def referees(folder: str) -> list[str]:
    """The processes, the lost node's too, whose temporary files are where a gym's actor in `folder` puts them."""
    found = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        with contextlib.suppress(OSError):
            found += [path] if f"TMPDIR={folder}/drkernel-".encode() in Path(path).read_bytes() else []
    return found


def test_a_batch_survives_the_loss_of_a_node(nodes, monkeypatch, capsys):
    """Both actors are at a job when one node goes. Every verdict is right, comes once, and is a local gym's; a new node takes the lost one's place."""
    quick = [Job(TASK, KERNEL[name]) for name in ("wrong", "fused", "decoy", "compile_error")]
    jobs = [*quick, *(Job(TASK, slow("ray", n)) for n in range(4)), Job(TASK, None)]
    over, lost = threading.Event(), []

    def lose_a_node():
        while not over.wait(0.05):
            begun = glob.glob(os.path.join(nodes.folder, "drkernel-*", "drkernel-*", "*", "begun-ray"))
            if not lost and len(begun) >= 2:
                nodes.cluster.remove_node(nodes.workers[0], allow_graceful=False)
                lost.append(time.monotonic())
            for path in begun if gym.retried else ():  # before that the lost one's kernel could still end well
                with contextlib.suppress(FileNotFoundError):
                    (Path(path).parent / "go").touch()

    with Gym("cpu", seed=3, options=OPTIONS, cluster="auto") as gym:
        assert (gym.device, [seat.setup[1] for seat in gym.seats]) == ("cpu", [1, 1])
        thread = threading.Thread(target=lose_a_node)
        thread.start()
        try:
            pairs = list(gym.as_completed(jobs))
        finally:
            over.set()
            thread.join()
        assert lost and sorted(index for index, _ in pairs) == list(range(9))
        verdicts = [verdict for _, verdict in sorted(pairs, key=lambda pair: pair[0])]
        statuses = ["wrong", "correct", "hack", "compile_error", *["correct"] * 4, "no_code"]
        assert [v.status for v in verdicts] == statuses
        assert gym.retried == 1

        waiting = next(seat for seat in gym.seats if not _up(seat))
        monkeypatch.setattr(ray_cluster, "PATIENCE", 0.0)
        until(lambda: waiting.broken and "Ray started no actor" in waiting.broken)
        assert gym.evaluate([Job(TASK, unlike("while one is lost"))])[0].status == "correct"
        nodes.cluster.add_node(num_cpus=1, **SMALL)
        until(lambda: waiting.broken is None and _up(waiting))
    assert "gym: 1 jobs were judged again" in capsys.readouterr().err
    with Gym("cpu", workers=1, seed=3, options=OPTIONS) as here:
        assert [plain(v, "cpu") for v in here.evaluate(quick)] == [plain(v, "cpu") for v in verdicts[:4]]
    until(lambda: referees(nodes.folder) == [])


def _up(seat) -> bool:
    """Its actor answers. That of a lost one is an error, which comes at once."""
    if seat.actor is None:
        return False
    try:
        seat.ray.get(seat.actor.here.remote(), timeout=5.0)
    except (seat.ray.exceptions.RayError, SystemExit):
        return False
    return True


def command_line(**changes) -> int:
    return main(Args(str(KERNELS / "task.py"), str(KERNELS / "wrong.py"), device="cpu", cluster="auto", **changes))


def test_mistakes_get_one_sentence(capsys, monkeypatch):
    def fails(error):
        def init(*_, **__):
            raise error

        monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(is_initialized=lambda: False, init=init))

    monkeypatch.setenv("RAY_ENABLE_AUTO_CONNECT", "0")
    monkeypatch.setitem(sys.modules, "ray", None)
    assert command_line() == 2
    assert capsys.readouterr().err == "gym.py: Ray is not installed: pip install ray==2.60.0, or leave --cluster out.\n"
    fails(ImportError("ray:// needs `ray[client]`"))
    assert command_line() == 2 and "needs `ray[client]`" in capsys.readouterr().err
    fails(ConnectionError("Could not find any running Ray instance.\nPlease"))
    assert command_line() == 2
    error = capsys.readouterr().err
    assert "No Ray cluster answers at auto" in error and error.endswith(": Could not find any running Ray instance.\n")
    assert command_line(gpus=(0,)) == 2 and "leave them out with a cluster" in capsys.readouterr().err


def test_what_a_gym_asks_of_a_cluster(monkeypatch):
    """One actor per GPU; without GPUs one per node; processes that train share them."""

    def places(*nodes, device=None, workers=None):
        listed = [{"Alive": alive, "Resources": resources} for alive, resources in nodes]
        return ray_cluster.places(SimpleNamespace(nodes=lambda: listed), device, workers)

    big, small, gone = (True, {"CPU": 64.0, "GPU": 8.0}), (True, {"CPU": 4.0}), (False, {"CPU": 8.0, "GPU": 8.0})
    device, found = places(big, small, gone)
    assert device == "cuda" and found == [({"num_gpus": 1, "num_cpus": 0}, 10)] * 8
    assert [n for _, n in places(big, workers=3)[1]] == [3] * 8
    device, found = places(small, (True, {"CPU": 2.0}), (True, {}), gone)
    assert device == "cpu" and [(needs["num_cpus"], n) for needs, n in found] == [(4, 4), (2, 2)]
    assert [(needs["num_cpus"], n) for needs, n in places(small, workers=6)[1]] == [(4, 6)]
    with pytest.raises(ray_cluster.ClusterError, match="no GPU"):
        places(small, device="cuda")
    monkeypatch.setenv("WORLD_SIZE", "3")
    shares = []
    for rank in "012":
        monkeypatch.setenv("RANK", rank)
        shares.append(len(places(big)[1]))
    assert shares == [3, 3, 2]
    with pytest.raises(ray_cluster.ClusterError, match="room for 1 referees, and 3 are needed"):
        places(small)


def test_jobs_that_are_lost_twice_and_referees_that_never_start(monkeypatch, capsys):
    """With a Ray of our own: what is lost twice is given up as gym_error; where no referee starts, and nowhere else, one sentence."""
    lost = type("RayError", (Exception,), {})
    no_room = type("RayTaskError", (lost,), {"cause": GymError("no room")})
    outcomes = {"LOST": lost("node lost"), "FAULT": no_room(), "SYSTEM": SystemExit(0)}

    class Remote:
        def __init__(self, function):
            self.remote = function

    class Actor:
        here, close = Remote(lambda: "here"), Remote(lambda: "closed")
        judge = Remote(lambda task, code: (code, object()))

    def get(answer):
        if answer[0] in outcomes:
            raise outcomes[answer[0]]
        return Verdict("wrong", message="as expected")

    ray = SimpleNamespace(
        exceptions=SimpleNamespace(RayError=lost, RayTaskError=type(outcomes["FAULT"])),
        nodes=lambda: [{"Alive": True, "Resources": {"CPU": 1.0}}],
        remote=lambda _: SimpleNamespace(options=lambda **_: Remote(lambda *_: Actor)),
        wait=lambda answers, timeout: (answers, []),
        get=get,
        kill=lambda _: None,
    )
    monkeypatch.setattr(ray_cluster, "connect", lambda address: ray)
    with Gym(cluster="auto") as gym:
        for n, code in enumerate(["LOST", "SYSTEM", "LOST", "LOST"]):
            first, verdict = gym.evaluate([Job(TASK, f"good {n}"), Job(TASK, code)])
            assert (first.status, verdict.status, gym.retried) == ("wrong", "gym_error", n + 1)
            assert "the referee died while judging this kernel: " in verdict.message
        with pytest.raises(GymError, match="No referee could be started: no room"):
            gym.evaluate([Job(TASK, "FAULT")])
        assert gym.retried == 4 + 3  # the last went back three times, until its seat was given up
    assert command_line() == 1 and "as expected" in capsys.readouterr().out
    with pytest.raises(GymError, match="The cluster has no GPU"):
        Gym("cuda", cluster="auto")
