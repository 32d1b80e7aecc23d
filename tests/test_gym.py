import contextlib
import glob
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import tyro
from test_feedback import VERDICTS

import doctor
import gym as gym_module
from gym import Args, Gym, GymError, Job, main, reference_code
from kernelbench import Task, load_tasks, times
from kernelbench.judge import Options, Verdict

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ROOT / "tests" / "kernels"
TASK = Task("task", (KERNELS / "task.py").read_text())
KERNEL = {path.stem: path.read_text() for path in KERNELS.glob("*.py")}
FUSED = KERNEL["fused"]
OPTIONS = Options(load_s=60, build_s=60, call_s=30)
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture(scope="module", params=DEVICES)
def gym(request, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("gym")))
        with Gym(request.param, workers=2, seed=3, options=OPTIONS) as gym:
            yield gym


def unlike(n, text=FUSED):
    return f"{text}\n# {n}\n"


# Batches


def test_a_batch_keeps_its_order_and_judges_a_text_once(gym):
    """Equal text for an equal task is one verdict, whatever the task is called; another text or another task is another."""
    other = Task("other", TASK.source + "\n")
    jobs = [
        *(Job(TASK, FUSED), Job(TASK, KERNEL["wrong"]), Job(TASK, None), Job(TASK, FUSED), Job(other, FUSED)),
        *(Job(Task("renamed", TASK.source), FUSED), Job(TASK, unlike(1)), Job(TASK, KERNEL["wrong"]), Job(TASK, "")),
    ]
    verdicts = gym.evaluate(jobs)
    statuses = ["correct", "wrong", "no_code", "correct", "correct", "correct", "correct", "wrong", "no_code"]
    assert [verdict.status for verdict in verdicts] == statuses
    same = [[i for i in range(9) if verdicts[i] is verdict] for verdict in verdicts]
    assert same == [[0, 3, 5], [1, 7], [2], [0, 3, 5], [4], [0, 3, 5], [6], [1, 7], [8]]
    assert gym.evaluate([]) == []


def test_the_first_kernels_of_all_tasks_come_first():
    """Each task's reference is timed once, while others of its kernels wait: the references are timed side by side."""
    other = Task("other", TASK.source + "\n")
    jobs = [Job(task, unlike(number)) for task in (TASK, other) for number in (1, 2)]
    with Gym("cpu", workers=1) as gym:
        assert [index for index, _ in gym.as_completed(jobs)] == [0, 2, 1, 3]


def test_as_completed_names_every_job_once(gym):
    jobs = [Job(TASK, None), Job(TASK, FUSED), Job(TASK, FUSED), Job(TASK, KERNEL["wrong"])]
    pairs = list(gym.as_completed(jobs))
    assert sorted(index for index, _ in pairs) == [0, 1, 2, 3]
    assert {index: verdict.status for index, verdict in pairs} == {0: "no_code", 1: "correct", 2: "correct", 3: "wrong"}
    abandoned = gym.as_completed([Job(TASK, unlike(i)) for i in range(3)])
    next(abandoned), abandoned.close()  # the next batch does not meet the verdicts of a batch that was left
    assert [v.status for v in gym.evaluate([Job(TASK, None), Job(TASK, KERNEL["wrong"])])] == ["no_code", "wrong"]


def plain(verdict: Verdict, device: str) -> dict:
    """Without what is measured: seconds, and on a GPU the kernels' times."""
    measured = {"seconds"} | (
        {"speedup", "speedup_ci", "reference_ms", "kernel_ms", "coverage", "coverage_raw", "kernels"}
        | {"reference_kernels", "launch", "roofline", "reference_times", "clock"}
        if device == "cuda"
        else set()
    )
    return {k: v for k, v in verdict.to_json().items() if k not in measured}


def test_one_seed_gives_one_verdict(gym):
    """The wrong one's message quotes values, and so tells the secret inputs apart."""
    jobs = [Job(TASK, KERNEL[name]) for name in ("fused", "lazy", "wrong", "decoy", "compile_error", "in_place")]
    mine = gym.evaluate(jobs)
    with Gym(gym.device, workers=1, seed=3, options=OPTIONS) as again:
        theirs = again.evaluate([Job(TASK, unlike(0)), *reversed(jobs)])[:0:-1]
    assert [plain(v, gym.device) for v in mine] == [plain(v, gym.device) for v in theirs]


@pytest.mark.parametrize("device", DEVICES)
def test_own_tasks_against_themselves(device):
    tasks = load_tasks("level1", "level2", "level3", device=device)
    with Gym(device, workers=2, any_code=True) as any_code:
        verdicts = any_code.evaluate([Job(task, reference_code(task)) for task in tasks])
    assert {task.name: v.message for task, v in zip(tasks, verdicts) if not v.correct} == {}
    if device == "cpu":
        assert {
            task.name: v.speedup for task, v in zip(tasks, verdicts) if v.speedup != pytest.approx(1, rel=1e-12)
        } == {}
    assert all(
        v.coverage == v.coverage_raw == 0 and v.kernels and not any(k["own"] for k in v.kernels) for v in verdicts
    )


# Deaths


def children(pid: int) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            found += [int(name)] if int(fields[1]) == pid else []
    return found


def slow(mark: str, n: int) -> str:
    """A right candidate that says in its private folder that it has begun, and waits for a word (a minute at most) before it goes on."""
    wait = f"import os, time\nopen('begun-{mark}', 'w').close()\nfor _ in range(600):\n    if os.path.exists('go'):\n        break\n    time.sleep(0.1)\n"
    return wait + unlike(n)


def killed_in_mid_batch(gym, folder: Path, victim) -> list[Verdict]:
    """The verdicts of a batch in which the process `victim()` was killed while candidates ran."""
    mark = f"{folder.parent.name}-{folder.name}"

    def kill():
        killed = False
        while not over.wait(0.05):
            begun = glob.glob(os.path.join(tempfile.gettempdir(), "drkernel-*", "drkernel-*", "*", f"begun-{mark}"))
            if begun and not killed:
                os.kill(victim(), signal.SIGKILL)
                killed = True
            for path in begun:
                with contextlib.suppress(FileNotFoundError):  # judged by now
                    (Path(path).parent / "go").touch()

    over = threading.Event()
    thread = threading.Thread(target=kill)
    thread.start()
    verdicts = gym.evaluate(
        [Job(TASK, KERNEL["wrong"]), *(Job(TASK, slow(mark, n)) for n in range(3)), Job(TASK, None)]
    )
    over.set()
    thread.join()
    return verdicts


def test_a_killed_referee_is_restarted_and_its_jobs_are_retried(gym, tmp_path):
    referee = gym.seats[0].process.pid
    verdicts = killed_in_mid_batch(gym, tmp_path, lambda: referee)
    assert [v.status for v in verdicts] == ["wrong", "correct", "correct", "correct", "no_code"]
    assert gym.seats[0].process.pid != referee and children(referee) == []


def test_a_killed_zygote_is_replaced_and_its_jobs_are_retried(gym, tmp_path):
    referee = gym.seats[0].process.pid
    zygote = next(pid for pid in children(referee) if "zygote" in Path(f"/proc/{pid}/cmdline").read_text())
    verdicts = killed_in_mid_batch(gym, tmp_path, lambda: zygote)
    assert [v.status for v in verdicts] == ["wrong", "correct", "correct", "correct", "no_code"]
    assert gym.seats[0].process.pid == referee
    assert gym.evaluate([Job(TASK, unlike("after"))])[0].status == "correct"


STAND_IN = """
import os, sys
from multiprocessing.connection import Connection
from types import SimpleNamespace
connection, number = Connection(int(sys.argv[2])), 0
connection.recv_bytes()
connection.send(("ready", "a stand-in"))
while True:
    job, number = connection.recv_bytes(), number + 1
    if b"POISON" in job:
        os._exit(3)
    connection.send((number, SimpleNamespace(status="gym_error" if b"FAULT" in job else "wrong", number=number)))
"""


@pytest.fixture
def stand_in(monkeypatch):
    """Referees that start at once, number their verdicts, and die of one kind of job."""
    monkeypatch.setattr(gym_module, "BOOT", STAND_IN)


def judged(gym, *codes: str) -> list:
    return gym.evaluate([Job(TASK, code) for code in codes])


def test_a_job_that_ends_the_referee_is_given_up(stand_in):
    """A referee that dies of a job twice: gym_error for that job and what it took along twice; the gym goes on, as often as it takes."""
    with Gym("cpu", workers=1) as gym:
        for n in range(3):
            first, *bad, last = judged(gym, f"good {n}", f"POISON {n}", f"POISON {n} too", f"good {n} too")
            assert (first.number, last.number) == (1, 1)
            for verdict in bad:
                assert (verdict.status, verdict.correct) == ("gym_error", False)
                assert "the referee died while judging this kernel" in verdict.message
            gym.seats[0].process.kill()
            gym.seats[0].process.wait()
            assert judged(gym, f"good {n} after")[0].number == 1
            gym.seats[0].process.kill()


def test_a_text_is_judged_once_in_a_gyms_life(stand_in, monkeypatch):
    """Faults are no verdicts and are not remembered; of the others the oldest is forgotten first."""
    monkeypatch.setattr(gym_module, "REMEMBERED", 3)
    with Gym("cpu", workers=1) as gym:
        assert [v.number for v in judged(gym, "a", "FAULT", "b", "a")] == [1, 2, 3, 1]
        assert [v.number for v in judged(gym, "b", "FAULT", "a", "c")] == [3, 4, 1, 5]
        assert [v.number for v in judged(gym, "d")] == [6]
        assert [v.number for v in judged(gym, "b", "c", "d", "a")] == [3, 5, 6, 7]
        renamed, changed = Task("renamed", TASK.source), Task("task", TASK.source + "\n")
        assert [v.number for v in gym.evaluate([Job(renamed, "d"), Job(changed, "d")])] == [6, 8]


@pytest.mark.parametrize(
    "boot", ["raise SystemExit(3)", STAND_IN.replace('("ready", "a stand-in")', '("failed", "no room")')]
)
def test_a_referee_that_never_starts(monkeypatch, boot):
    monkeypatch.setattr(gym_module, "BOOT", boot)
    with Gym("cpu", workers=1) as gym, pytest.raises(GymError, match="No referee could be started"):
        gym.evaluate([Job(TASK, FUSED)])


def test_devices_that_are_not_there(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(GymError, match="No GPU is visible here; use device cpu"):
        Gym("cuda")
    with pytest.raises(GymError, match="no device tpu: name cuda .* or cpu"):
        Gym("tpu")


def test_chosen_gpus(stand_in, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    for gpus, seats in ((None, [0, 1, 2, 3]), ([2, 0, 2], [2, 0])):
        with Gym("cuda", gpus=gpus) as gym:
            assert [seat.gpu for seat in gym.seats] == seats
    for gpus in ([], [4], [-1, 0]):
        with pytest.raises(GymError, match="were asked for; there are 0 to 3"):
            Gym("cuda", gpus=gpus)
    with pytest.raises(GymError, match="leave them out with device cpu"):
        Gym("cpu", gpus=[0])


def test_what_a_gym_passes_on(stand_in):
    def setup(**arguments):
        with Gym("cpu", workers=1, **arguments) as gym:
            device, key, options, workers = gym.seats[0].setup
        assert (device, workers, len(key)) == ("cpu", 1, 32)
        return key, options

    assert setup(seed=3)[0] == setup(seed=3)[0] != setup(seed=4)[0]
    assert setup()[0] != setup()[0]
    assert setup()[1] == Options() and setup(any_code=True)[1] == Options(any_code=True)
    short = Options(call_s=3)
    assert setup(options=short)[1] == short
    assert (
        setup(options=short, any_code=True)[1]
        == setup(options=Options(call_s=3, any_code=True))[1]
        == Options(call_s=3, any_code=True)
    )


# The command line


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:  # reference times go there, not into the user's home
        patch.setenv("DRKERNEL_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def command(*args: str, folder: Path = ROOT) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, str(ROOT / "gym.py"), *args], cwd=folder, capture_output=True, text=True, timeout=300
    )


def here(*args: str) -> SimpleNamespace:
    """gym.py in this process: nothing is imported again."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        if args[0] == "doctor":
            code = doctor.examine(*args[1:])
        else:
            code = main(tyro.cli(Args, args=args))
    return SimpleNamespace(returncode=code, stdout=out.getvalue(), stderr=err.getvalue())


def test_json_is_all_that_is_printed(tmp_path):
    """Although the candidate prints on every channel that it can find. From another folder, with paths relative to it."""
    noise = "import os, sys\nprint('NOISE')\nprint('NOISE', file=sys.stderr)\nos.write(1, b'NOISE')\nos.write(2, b'NOISE')\n"
    (tmp_path / "noisy.py").write_text(noise + FUSED)
    (tmp_path / "mine.py").write_text(TASK.source)
    done = command("mine.py", "noisy.py", "--json", "--device", "cpu", "--seed", "1", folder=tmp_path)
    verdict = Verdict.from_json(json.loads(done.stdout))
    assert (done.returncode, verdict.status, verdict.timing) == (0, "correct", "simulated") and verdict.speedup > 3
    assert "NOISE" not in done.stdout + done.stderr and done.stderr == ""


def test_a_task_against_itself():
    done = here("level1/2", "reference", "--any-code", "--device", "cpu")
    assert (
        done.returncode == 0 and "speed-up 1.00 [1.00, 1.00]" in done.stdout and "...   0.0% (raw 0.0%)" in done.stdout
    )


def test_a_folder_of_kernels(tmp_path):
    for name in ("fused", "wrong", "no_kernel"):
        (tmp_path / f"{name}.py").write_text(KERNEL[name])
    done = here(str(KERNELS / "task.py"), str(tmp_path), "--device", "cpu")
    rows = [line.split()[:2] for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    assert rows[1] == ["fused.py", "correct"] and sorted(rows[2:4]) == [["no_kernel.py", "hack"], ["wrong.py", "wrong"]]
    assert rows[4] == ["1", "of"]
    lines = (tmp_path / "verdicts.jsonl").read_text().splitlines()
    (tmp_path / "verdicts.jsonl").write_text("\n".join(lines[:2]) + "\n" + lines[2][:50])  # interrupted while it wrote
    (tmp_path / "lazy.py").write_text(KERNEL["lazy"])
    done = here(str(KERNELS / "task.py"), str(tmp_path), "--device", "cpu", "--json")
    found = json.loads(done.stdout)
    assert {name: v["status"] for name, v in found.items()} == {
        "fused.py": "correct",
        "lazy.py": "correct",
        "no_kernel.py": "hack",
        "wrong.py": "wrong",
    }
    files = [json.loads(line)["file"] for line in (tmp_path / "verdicts.jsonl").read_text().splitlines()]
    assert sorted(files) == ["fused.py", "lazy.py", "no_kernel.py", "wrong.py"]  # two were not judged again
    empty = tmp_path / "empty"
    empty.mkdir()
    done = here(str(KERNELS / "task.py"), str(empty), "--device", "cpu")
    assert done.returncode == 2 and "holds no .py files" in done.stderr


def test_doctor():
    done = here("doctor", "cpu")
    assert done.returncode == 0 and "Kernels can be judged here." in done.stdout, done.stdout + done.stderr
    for words in ("Landlock", "pid namespace", "network namespace", "resource limits", "torch", "triton"):
        assert words in done.stdout


def test_help():
    done = command("--help")
    assert done.returncode == 0 and "--any-code" in done.stdout and "python gym.py level1/3 my_kernel.py" in done.stdout


def test_exit_codes_and_what_the_options_mean(capsys, monkeypatch):
    given = []

    class Recorder:
        def __init__(self, device, gpus, **arguments):
            given.append((device, arguments["seed"], arguments["options"]))

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def evaluate(self, jobs):
            (job,) = jobs
            assert (job.task.source, job.code) == (TASK.source, KERNEL["wrong"])
            return [verdict]

    monkeypatch.setattr(gym_module, "Gym", Recorder)
    for verdict in VERDICTS.values():  # noqa: B007 the recorder answers with it
        args = Args(
            str(KERNELS / "task.py"),
            str(KERNELS / "wrong.py"),
            device="cpu",
            any_code=verdict.correct,
            seed=8,
            tolerance=1e-2,
            precision="bf16",
            tf32=True,
        )
        assert main(args) == (0 if verdict.correct else 1)
        assert capsys.readouterr().out.startswith(verdict.status)
        wanted = Options(any_code=verdict.correct, tolerance=1e-2, times=str(times.home()), precision="bf16", tf32=True)
        assert given.pop() == ("cpu", 8, wanted)


@pytest.mark.parametrize(
    "task, kernel, device, parts",
    [
        ("level1/999", "x.py", "cpu", ["no task '999' in level1"]),
        ("nothing", "x.py", "cpu", ["Unknown task 'nothing'"]),
        ("level1", "x.py", "cpu", ["level1 names", "name one, such as level1/1_GELU"]),
        ("level1/1", "nowhere.py", "cpu", ["no file nowhere.py", "class ModelNew"]),
        ("level1/1", ".github", "cpu", ["no file .github", "class ModelNew"]),
        ("level1/1", "reference", "tpu", ["no device tpu"]),
        ("level1/1", "reference", "cpu", ["baseline compile needs a GPU"]),
        ("level1/1", "reference", "cuda", ["No GPU is visible"]),
    ],
)
def test_mistakes_get_one_sentence(capsys, monkeypatch, task, kernel, device, parts):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert main(Args(task, kernel, device=device, baseline="compile" if device == "cpu" else "eager")) == 2
    output = capsys.readouterr()
    assert output.out == "" and output.err.startswith("gym.py: ") and len(output.err.splitlines()) == 1
    assert all(part in output.err for part in parts), output.err
