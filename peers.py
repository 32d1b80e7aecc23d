"""Other evaluators' opinion of a candidate, for `bench.py`: KernelBench and KernelGYM from checkouts that the caller names.

Nothing of theirs is kept here. Each evaluation runs in a process of its own: a fork in our sandbox (PID, mount, network and IPC namespaces,
a private folder, a time limit), which imports their evaluator and calls its entry point, with Triton as the backend and fp32:
KernelBench's `eval_kernel_against_ref` and, beside it, `validate_kernel_static`, which its evaluation does not call; KernelGYM's
`KernelBenchToolkit.evaluate` as its workers do, for the kernel, and in a second process for the reference's time. Packages that their modules
import for other purposes (an API client, settings from the environment) are replaced by empty ones where they are not installed.
"""

import contextlib
import copy
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
import types
from dataclasses import dataclass
from pathlib import Path

from kernelbench import sandbox

PEERS = ("kernelbench", "kernelgym")


@dataclass(frozen=True)
class Opinion:
    """What an evaluator says of a candidate; None where it says nothing."""

    correct: bool
    speedup: float | None = None
    coverage: float | None = None
    static: bool | None = None  # KernelBench's optional static check lets it pass
    note: str = ""
    seconds: float = 0.0
    ms: float | None = None  # the candidate's time


def ask(peer: str, path: str, request: dict, limit: float) -> Opinion:
    """The opinion of `peer` (a checkout at `path`) on request {"reference", "kernel", "correct_trials", "perf_trials", "do"}; do: kernel,
    reference (its time alone) or load (only the evaluator)."""
    env = sandbox.environment("cuda") | {"OMP_NUM_THREADS": "4", "MKL_NUM_THREADS": "4"}
    del env["CUDA_DEVICE_MAX_CONNECTIONS"]  # ours alone: it would serialise streams
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="peer-", ignore_cleanup_errors=True) as folder:
        (Path(folder) / "request.json").write_text(
            json.dumps(request | {"peer": peer, "path": str(Path(path).resolve())})
        )
        process = subprocess.Popen(
            [sys.executable, __file__, folder], env=env, stdin=subprocess.DEVNULL, start_new_session=True
        )
        try:
            process.wait(limit)
            note = f"its process ended with {process.returncode}"
        except subprocess.TimeoutExpired:
            note = f"no answer within {limit:.0f} s"
        finally:
            process.kill()  # its fork dies with it, and all descendants with that one
            process.wait()
        with contextlib.suppress(OSError, ValueError, TypeError):
            return Opinion(
                **json.loads((Path(folder) / "opinion.json").read_text()), seconds=time.perf_counter() - begin
            )
    return Opinion(False, note=note, seconds=time.perf_counter() - begin)


# ---------------------------------------------------------------------------------------------------------------------------
# In the process of one evaluation


def stand_in(name: str, **content):
    """An almost empty module instead of a package that is not installed and not needed."""
    if name not in sys.modules and importlib.util.find_spec(name) is None:
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(content)


class Model:
    """As much of pydantic's BaseModel as the peers' results and settings need: annotated names with defaults."""

    def __init__(self, **given):
        for base in reversed(type(self).__mro__):
            for name in getattr(base, "__annotations__", {}):
                setattr(self, name, given.get(name, copy.copy(getattr(type(self), name, None))))


def stand_ins():
    default = {"default": None, "default_factory": None}
    stand_in(
        "pydantic",
        BaseModel=Model,
        Field=lambda *a, **k: (
            (k := default | dict(zip(default, a)) | k) and (k["default_factory"] or (lambda: k["default"]))()
        ),
        validator=lambda *_, **__: lambda function: function,
    )
    stand_in("pydantic_settings", BaseSettings=importlib.import_module("pydantic").BaseModel)
    stand_in("requests")
    stand_in("dotenv", load_dotenv=lambda: None)
    stand_in("openai", OpenAI=None)
    stand_in("litellm", completion=None)


def package(name: str, path: Path):
    """The package at `path` without running its __init__."""
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [str(path)]


def load(peer: str, path: str):
    """The peer's entry points, found and imported but not called."""
    for name in [name for name in sys.modules if name.split(".")[0] == "kernelbench"]:  # our package of the same name
        del sys.modules[name]
    stand_ins()
    if peer == "kernelbench":
        package("kernelbench", Path(path) / "src" / "kernelbench")
        importlib.import_module("kernelbench.utils")  # which the evaluation imports late
        check = importlib.import_module("kernelbench.kernel_static_checker")
        return importlib.import_module("kernelbench.eval").eval_kernel_against_ref, check.validate_kernel_static
    package("kernelgym", Path(path) / "kernelgym")
    toolkit = importlib.import_module("kernelgym.toolkit.kernelbench.toolkit").KernelBenchToolkit()
    return toolkit.evaluate, importlib.import_module("kernelgym.backend").get_backend("kernelbench")


def kernelbench(entry, check, request: dict) -> dict:
    import torch

    said = entry(
        request["reference"],
        request["kernel"],
        num_correct_trials=request["correct_trials"],
        num_perf_trials=request["perf_trials"],
        measure_performance=True,
        timing_method="cuda_event",
        device=torch.device("cuda:0"),
        backend="triton",
        precision=torch.float32,
    )
    static = check(request["kernel"], backend="triton", precision="fp32")[0]
    if said is None:
        return {"correct": False, "static": static, "note": "asks for another try"}
    speedup = said.ref_runtime / said.runtime if said.runtime > 0 < said.ref_runtime else None
    return {
        "correct": said.compiled and said.correctness,
        "speedup": speedup,
        "ms": said.runtime if said.runtime > 0 else None,
        "static": static,
        "note": str(said.metadata)[:500],
    }


def kernelgym(evaluate, backend, request: dict) -> dict:
    task = {
        "task_id": "x",
        "base_task_id": "x",
        "reference_code": request["reference"],
        "device": "cuda:0",
        "backend": "triton",
    }
    task |= {"num_perf_trials": request["perf_trials"]}
    if request["do"] == "reference":
        said = evaluate(task | {"task_type": "reference_timing"}, backend=backend)
        return {"correct": said["status"] == "completed", "speedup": said["reference_runtime"]}
    task |= {
        "kernel_code": request["kernel"],
        "num_correct_trials": request["correct_trials"],
        "task_type": "kernel_evaluation",
    }
    said = evaluate(task, backend=backend)
    about = said["metadata"] or {}
    spent = [
        about.get(f"{which}_in_profiling_us") or 0.0 for which in ("custom_kernel_cuda_time", "total_kernel_run_time")
    ]
    return {
        "correct": bool(said["compiled"] and said["correctness"] and not said["decoy_kernel"]),
        "speedup": said["kernel_runtime"],  # milliseconds, which `opinion` divides the reference's by
        "coverage": spent[0] / spent[1] if spent[1] else 0.0,
        "note": "decoy" if said["decoy_kernel"] else str(said["error_message"] or "")[:500],
    }


def main(folder: str):
    request = json.loads((Path(folder) / "request.json").read_text())
    off = sandbox.isolate()
    if pid := os.fork():
        os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) % 256)
    sandbox.confine(folder, set(), "cuda", off)
    try:
        sys.path[:] = [p for p in sys.path if Path(p).resolve() != Path(__file__).resolve().parent]
        entries = load(request["peer"], request["path"])
        judge = {"kernelbench": kernelbench, "kernelgym": kernelgym}[request["peer"]]
        said = {"correct": True} if request["do"] == "load" else judge(*entries, request)
    except Exception:  # noqa: BLE001 whatever a peer's evaluator lets through is its opinion
        said = {"correct": False, "note": traceback.format_exc()[-500:]}
    Path(folder, "opinion.json").write_text(json.dumps(said))
    os._exit(0)


def opinion(peer: str, path: str, task: str, code: str, times: dict, trials: tuple[int, int], limit: float) -> Opinion:
    """ask(), and for KernelGYM the speed-up from a second process for the reference, kept in `times` by task."""
    request = {"reference": task, "kernel": code, "correct_trials": trials[0], "perf_trials": trials[1], "do": "kernel"}
    said = ask(peer, path, request, limit)
    if peer == "kernelbench" or not said.correct:
        return said if peer == "kernelbench" else Opinion(**vars(said) | {"speedup": None})
    if task not in times:
        times[task] = ask(peer, path, request | {"do": "reference"}, limit).speedup
    reference, mine = times[task], said.speedup
    speedup = reference / mine if reference and mine and reference > 0 < mine else None
    return Opinion(**vars(said) | {"speedup": speedup})


if __name__ == "__main__":
    main(sys.argv[1])
