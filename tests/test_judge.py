"""The referee through the gym, one candidate for every way to end an evaluation, each followed by one that must be unharmed."""

import json
import math
from pathlib import Path

import pytest

from gym import Gym, Job
from kernelbench import Task, contest, load_tasks
from kernelbench.contest import Contest
from kernelbench.judge import STATUSES, Options, Referee, Verdict
from kernelbench.process import Stop
from kernelbench.timer import claims, positive

KERNELS = Path(__file__).parent / "kernels"
TASK = Task("task", (KERNELS / "task.py").read_text())
KERNEL = {path.stem: path.read_text() for path in KERNELS.glob("*.py")}
FUSED = KERNEL["fused"]
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
OPTIONS = {"cpu": Options(load_s=6, build_s=6, call_s=6), "cuda": Options(load_s=20, build_s=20, call_s=10)}

WORKERS = {"cpu": 2, "cuda": 16}


def instead(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
        text = text.replace(old, new)
    return text


def fused(old: str, new: str) -> str:
    return instead(FUSED, (old, new))


def forward(body: str) -> str:
    """A candidate without a kernel, for failures before one matters."""
    return (
        f"import os, sys, time, torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x, y):\n        {body}\n"
    )


def failing(*change: tuple[str, str]) -> Task:
    return Task("bad", instead(TASK.source, *change))


# ---------------------------------------------------------------------------------------------------------------------------
# One candidate per status (and per way into it): name -> (task, code, status, rule or None, words of the message)

FD = "fd = next(n for n in range(3, 64) if os.path.exists(f'/proc/self/fd/{n}') and 'socket' in os.readlink(f'/proc/self/fd/{n}'))"


def says(data: str) -> str:
    """A candidate that writes to the channel itself, instead of the reply that is waited for."""
    return forward(f"{FD}; os.write(fd, {data}); time.sleep(100)")


def reply(message: str) -> str:
    return says(f"len({message!r}).to_bytes(4, 'little') + b'\\0' + {message!r}.encode()")


LAUNCH = "chain_kernel[(triton.cdiv(n, 1024),)](x, o, n, BLOCK=1024)"
STRICT = {
    "fused": (TASK, FUSED, "correct", None, []),
    "lazy": (TASK, KERNEL["lazy"], "correct", None, []),
    "half": (
        TASK,
        instead(
            KERNEL["lazy"],
            ("x = x * 1.5", "x = tl.maximum(x * 1.5, 0.0)"),
            ("x = torch.relu(o)\n        x = x + y", "x = o + y"),
        ),
        "correct",
        None,
        [],
    ),
    "twice": (TASK, instead(KERNEL["lazy"], (LAUNCH, f"{LAUNCH}\n        {LAUNCH}")), "correct", None, []),
    "none": (TASK, None, "no_code", None, ["ModelNew"]),
    "empty": (TASK, " \n", "no_code", None, ["ModelNew"]),
    "no class": (TASK, "import torch\n", "no_code", None, ["no class ModelNew"]),
    "class in a function": (TASK, "def f():\n    class ModelNew: pass\n", "no_code", None, ["at its top level"]),
    "compile error": (TASK, KERNEL["compile_error"], "compile_error", None, ["does_not_exist"]),
    "syntax error": (
        TASK,
        fused("def forward(self, x, y):", "def forward(self x, y):"),
        "compile_error",
        None,
        ["line 20", "forward(self x"],
    ),
    "null byte": (TASK, FUSED + "\0", "compile_error", None, ["null"]),
    "lone surrogate": (TASK, FUSED + "\n# \ud800", "compile_error", None, ["surrogate"]),
    "deep expression": (TASK, FUSED + "\nx = " + "-" * 100_000 + "1\n", "compile_error", None, []),
    "import error": (
        TASK,
        "import no_such_module\n" + FUSED,
        "compile_error",
        None,
        ["No module named 'no_such_module'", "line 1"],
    ),
    "fails on import": (TASK, FUSED + "\n1 / 0\n", "compile_error", None, ["ZeroDivisionError", "1 / 0"]),
    "wrong": (TASK, KERNEL["wrong"], "wrong", None, ["values are wrong, the first at (", "got", "expected"]),
    "wrong dtype": (TASK, KERNEL["wrong_dtype"], "wrong", None, ["the output has dtype float16, expected float32"]),
    "wrong shape": (TASK, fused("return o", "return o[:-1]"), "wrong", None, ["the output has shape (", "expected ("]),
    "flat": (TASK, fused("return o", "return o.reshape(-1)"), "wrong", None, ["the output has shape ("]),
    "tuple": (TASK, fused("return o", "return (o,)"), "wrong", None, ["returned 1 outputs, expected one tensor"]),
    "dict": (TASK, fused("return o", "return {'o': o}"), "wrong", None, ["returned a dict, expected one tensor"]),
    "nothing": (TASK, fused("return o", "pass"), "wrong", None, ["returned None, expected one tensor"]),
    "number": (TASK, fused("return o", "return 3.5"), "wrong", None, ["returned 3.5, expected one tensor"]),
    "an object": (
        TASK,
        fused("return o", "return object()"),
        "runtime_error",
        None,
        ["a tensor or a tuple of tensors"],
    ),
    "sparse": (TASK, fused("return o", "return o.to_sparse()"), "runtime_error", None, []),
    "subclass": (
        TASK,
        fused("return o", "return o.as_subclass(type('T', [(torch.Tensor,)][0], {}))"),
        "runtime_error",
        None,
        ["plain torch.Tensor"],
    ),
    "self-made nan": (
        TASK,
        fused("return o", "o[0, 0] = float('nan'); return o"),
        "wrong",
        None,
        ["1 of", "(0, 0): got nan"],
    ),
    "in place": (TASK, KERNEL["in_place"], "wrong", None, ["changed its inputs"]),
    "input changed on the side": (
        TASK,
        fused("return o", "y[-1, -1] += 1; return o"),
        "wrong",
        None,
        ["changed its inputs"],
    ),
    "first call only": (
        TASK,
        fused("return o", "self.calls = getattr(self, 'calls', 0) + 1; return o if self.calls == 1 else o * 0"),
        "wrong",
        None,
        ["values are wrong"],
    ),
    "cached": (
        TASK,
        fused(
            "return o",
            "self.first = getattr(self, 'first', None); self.first = o if self.first is None else self.first; return self.first",
        ),
        "wrong",
        None,
        ["values are wrong"],
    ),
    "decoy": (TASK, KERNEL["decoy"], "hack", "decoy", ["right without chain_kernel"]),
    "no kernel": (TASK, KERNEL["no_kernel"], "hack", "no own kernel", ["No Triton kernel"]),
    "kernel not launched": (
        TASK,
        instead(KERNEL["decoy"], ("chain_kernel[(triton.cdiv(n, 1024),)](x, y, o, n, BLOCK=1024)", "pass")),
        "hack",
        "no own kernel",
        ["No Triton kernel"],
    ),
    "forbidden import": (TASK, "import ctypes\n" + FUSED, "hack", "import of ctypes", ["Line 1"]),
    "patching": (
        TASK,
        fused("o = torch.empty_like(x)", "torch.empty_like = o = None"),
        "hack",
        "patching of torch.empty_like",
        ["Line 21"],
    ),
    "hang in a kernel": (TASK, KERNEL["hang"], "timeout", None, ["phase 'call'", "No answer within"]),
    "hang on the host": (TASK, forward("time.sleep(1000)"), "timeout", None, ["phase 'call'"]),
    "hang on import": (TASK, forward("return x") + "time.sleep(1000)\n", "timeout", None, ["phase 'load'"]),
    "crash": (TASK, KERNEL["crash"], "runtime_error", None, ["illegal memory access"]),
    "abort": (TASK, KERNEL["abort"], "runtime_error", None, ["process crashed", "phase 'call'"]),
    "exit": (TASK, forward("sys.exit(0)"), "runtime_error", None, ["line 4, in forward", "SystemExit"]),
    "exit at once": (
        TASK,
        forward("[os][0]._exit(0)"),
        "runtime_error",
        None,
        ["process crashed (exit code 0)"],
    ),
    "interrupt": (TASK, forward("raise KeyboardInterrupt"), "runtime_error", None, ["KeyboardInterrupt"]),
    "stack overflow": (TASK, forward("return self.forward(x, y)"), "runtime_error", None, ["RecursionError"]),
    "out of memory": (TASK, KERNEL["out_of_memory"], "runtime_error", None, ["memory", "line 7"]),
    "raises": (TASK, KERNEL["raises"], "runtime_error", None, ["line 6, in forward", "ValueError: no such luck"]),
    "raises much": (TASK, forward("raise ValueError('a' * 10**6 + 'end')"), "runtime_error", None, ["end"]),
    "wrong argument count": (
        TASK,
        fused("def forward(self, x, y):", "def forward(self, x):"),
        "runtime_error",
        None,
        ["TypeError"],
    ),
    "no module": (TASK, "class ModelNew:\n    pass\n", "runtime_error", None, ["TypeError"]),
    "babble": (TASK, says("b'\\xff' * 100"), "hack", "protocol", ["no reply"]),
    "too deep": (TASK, reply('{"tree": ' + "[" * 50_000), "hack", "protocol", ["no reply"]),
    "a list for a reply": (TASK, reply("[]"), "hack", "protocol", ["no reply"]),
    "an error of another form": (TASK, reply('{"error": 5}'), "runtime_error", None, []),
    "no output": (TASK, reply("{}"), "wrong", None, ["cannot be read"]),
    "an output of no memory": (
        TASK,
        reply('{"tree": [{"t": 0}], "shared": {"tensors": []}}'),
        "wrong",
        None,
        ["cannot be read"],
    ),
    "closed channel": (
        TASK,
        forward(f"{FD}; [os][0].dup2(0, fd); time.sleep(100)"),
        "runtime_error",
        None,
        ["stopped answering in the phase 'call'"],
    ),
    "task that fails": (
        failing(("x = x * 1.5", "raise ValueError('oops')")),
        FUSED,
        "gym_error",
        None,
        ["the task bad fails: ValueError: oops"],
    ),
    "task that fails beside candidates": (
        failing(("x = x * 1.5", "import sys; assert 'candidate' not in sys.modules, 'not here'; x = x * 1.5")),
        FUSED,
        "gym_error",
        None,
        ["the task bad fails on its own reference", "not here"],
    ),
    "task that cannot be built": (
        failing(("return []", "return [1 / 0]")),
        FUSED,
        "gym_error",
        None,
        ["the task bad cannot be built", "ZeroDivisionError"],
    ),
    "task that needs a package": (
        failing(("return []", "import no_such_package")),
        FUSED,
        "gym_error",
        None,
        ["needs the Python package no_such_package: pip install no_such_package"],
    ),
    "task without inputs": (
        failing(("return [torch.randn(rows, cols),", "return [torch.nope,")),
        FUSED,
        "gym_error",
        None,
        ["get_inputs of the task bad fails"],
    ),
    "task that returns an object": (
        failing(("return x\n", "return object()\n")),
        FUSED,
        "gym_error",
        None,
        ["the task bad fails", "object"],
    ),
}
CPU_ONLY = {
    "unsupported": (
        TASK,
        fused("x = x * 1.5", "x = tl.inline_asm_elementwise('', '=r,r', [x], dtype=tl.float32, is_pure=True, pack=1)"),
        "unsupported",
        None,
        ["inline assembly"],
    ),
    "torch.compile": (TASK, forward("return torch.compile(torch.tanh)(x)"), "unsupported", None, ["torch.compile"]),
}
GPU_ONLY = {
    "right until it is timed": (
        TASK,
        fused("return o", "self.calls = getattr(self, 'calls', 0) + 1; return o if self.calls <= 6 else o * 0"),
        "wrong",
        None,
        ["In a timed call"],
    ),
    "by address": (
        TASK,
        fused(
            "return o",
            "self.seen = getattr(self, 'seen', {}); self.seen.setdefault(x.data_ptr(), o); return self.seen[x.data_ptr()]",
        ),
        "wrong",
        None,
        ["values are wrong"],
    ),
    "one buffer for all calls": (
        TASK,
        fused("return o", "self.o = getattr(self, 'o', o); self.o.copy_(o); return self.o"),
        "correct",
        None,
        [],
    ),
    "on the host": (TASK, fused("return o", "return o.cpu()"), "runtime_error", None, ["must stay on the GPU"]),
}


def cases(device: str) -> dict:
    return STRICT | (CPU_ONLY if device == "cpu" else GPU_ONLY)


@pytest.fixture(scope="module", params=DEVICES)
def batch(request):
    """device, verdicts by name, and of each kernel judged right after another candidate: after[name]."""
    device, jobs, names = request.param, [], []
    for name, (task, code, *_) in cases(device).items():
        names += [name, f"after {name}"]
        jobs += [Job(task, code), Job(TASK, f"{FUSED}\n# after {name}\n")]
    with Gym(device, workers=WORKERS[device], seed=5, options=OPTIONS[device]) as gym:
        yield device, dict(zip(names, gym.evaluate(jobs), strict=True))


@pytest.mark.parametrize("name", STRICT | CPU_ONLY | GPU_ONLY)
def test_status_and_message(batch, name):
    device, verdicts = batch
    if name not in cases(device):
        pytest.skip("for the other device")
    _, _, status, rule, words = cases(device)[name]
    verdict = verdicts[name]
    assert (verdict.status, verdict.hack) == (status, rule), verdict.message
    assert all(word in verdict.message for word in words), verdict.message
    assert len(verdict.message) <= 4000 and "Traceback" not in verdict.message
    assert verdict.correct == (status == "correct") == (verdict.speedup > 0) == (verdict.speedup_ci is not None)
    assert status in STATUSES and verdict.seconds["total"] >= 0
    assert Verdict.from_json(json.loads(json.dumps(verdict.to_json()))) == verdict


def test_the_next_evaluation_is_unharmed(batch):
    device, verdicts = batch
    after = {name: verdict for name, verdict in verdicts.items() if name.startswith("after ")}
    assert len(after) == len(cases(device))
    assert {name: v.message for name, v in after.items() if v.status != "correct"} == {}
    if device == "cpu":  # simulated times are the same every time
        assert {v.speedup for v in after.values()} == {verdicts["fused"].speedup}


def test_the_statuses_are_all_there(batch):
    device, verdicts = batch
    assert {verdict.status for verdict in verdicts.values()} == set(STATUSES) - (
        {"unsupported"} if device == "cuda" else set()
    )


def test_times_and_coverage_by_hand(batch):
    """An H200 of 4.3e12 byte/s and 4 us a launch, where each of the 16 x 300 x 4 bytes counts 200 times: an operator of one tensor
    takes `one`, of two tensors `two` (each with its output). The reference is three of one and one of two. Work done twice is credited
    only up to what the reference takes less what the library still does."""
    device, verdicts = batch
    if device == "cuda":
        lazy, half, fused = (verdicts[name] for name in ("lazy", "half", "fused"))
        assert (
            0 < lazy.coverage < half.coverage < fused.coverage == 1.0
            and 0 < lazy.speedup < half.speedup < fused.speedup
        )
        assert fused.timing == "measured" and fused.device == verdicts["wrong"].device and fused.speedup > 2
        assert all(
            v.speedup_ci[0] < v.speedup * 1.01 and v.speedup < v.speedup_ci[1] * 1.01 for v in (lazy, half, fused)
        )
        return
    one, two = (4e-3 + 1e3 * 200 * tensors * 16 * 300 * 4 / 4.3e12 for tensors in (2, 3))
    own_library_credit = {
        "fused": (two, 0, two),
        "lazy": (one, two + 2 * one, one),
        "half": (one, two + one, one),
        "twice": (2 * one, two + 2 * one, one),
    }
    reference = 3 * one + two
    for name, (own, library, credit) in own_library_credit.items():
        verdict, ms = verdicts[name], own + library
        assert verdict.reference_ms == pytest.approx(reference) and verdict.kernel_ms == pytest.approx(ms)
        assert verdict.speedup == pytest.approx(reference / ms) and verdict.speedup_ci == [verdict.speedup] * 2
        assert verdict.coverage_raw == pytest.approx(own / ms) and verdict.coverage == pytest.approx(credit / ms)
        assert [k["own"] for k in verdict.kernels].count(True) == 1
        assert math.isclose(sum(k["share"] for k in verdict.kernels), 1)
        assert (verdict.timing, verdict.device) == ("simulated", "simulated H200")
        assert (verdict.precision, verdict.baseline) == ("fp32", "eager")


def test_lines_of_errors_are_the_candidates(batch):
    device, verdicts = batch
    text = verdicts["compile error"].message
    assert "x = tl.does_not_exist(x)" in text
    assert "line 12, in chain_kernel" in text or device == "cuda"
    assert verdicts["import error"].message.startswith("line 1, in <module>: import no_such_module")


# ---------------------------------------------------------------------------------------------------------------------------
# Small parts


@pytest.mark.parametrize(
    "rows",
    [
        *(
            None,
            3,
            "abc",
            {"a": 1},
            [None],
            ["abc"],
            [[]],
            [["k", 1.0]],
            [["k", 1.0, 1, 2]],
            [[1, 1.0, 1]],
            [["k", "1", 1]],
        ),
        *([["k", math.nan, 1]], [["k", math.inf, 1]], [["k", -1e-9, 1]], [["k", 1.0, -1]], [["k", 1.0, 10**400]]),
        [["k", 1.0, 1]] * 10_001,
    ],
)
def test_claims_of_another_form(rows):
    with pytest.raises(Stop) as stop:
        claims(rows, (str, float, int))
    assert (stop.value.status, stop.value.hack) == ("hack", "protocol")


def test_claims_and_times():
    assert claims([["k", 1.5, 2]], (str, float, int)) == [("k", 1.5, 2)] and claims([], (str,)) == []
    assert positive(3) == 3.0 and positive(1e-9) == 1e-9
    for value in (0, -1, math.nan, math.inf, True, "1", None, [1], 10**400):
        with pytest.raises(Stop, match="claims a time"):
            positive(value)


LARGE_MEAN = """import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return 5 + 1e-3 * x.abs().mean()

def get_inputs():
    return [torch.randn(10_000)]

def get_init_inputs():
    return []
"""
MEAN_KERNEL = """import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def mean_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.abs(tl.load(x_ptr + i, mask=i < n, other=0.0))
    tl.store(o_ptr, 5 + 1e-3 * tl.sum(total, axis=0) / n)

class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty((), device=x.device)
        mean_kernel[(1,)](x, o, x.numel(), BLOCK=1024)
        return o
"""


@pytest.fixture(scope="module", params=DEVICES)
def softmaxes(request):
    folder = Path(__file__).resolve().parent / "kernels"
    names = ("two_kernels", "autotuned", "packs_once", "for_show")
    task = load_tasks(str(folder / "softmax_task.py"), device=request.param)[0]
    jobs = [Job(task, (folder / f"softmax_{name}.py").read_text()) for name in names]
    names += ("mean", "mean for show")
    show = instead(MEAN_KERNEL, ("return o", "return 5 + 1e-3 * x.abs().mean()"))
    jobs += [Job(Task("mean", LARGE_MEAN), code) for code in (MEAN_KERNEL, show)]
    with Gym(request.param, workers=WORKERS[request.param], seed=5, options=OPTIONS[request.param]) as gym:
        yield dict(zip(names, gym.evaluate(jobs), strict=True))


@pytest.mark.parametrize(
    "name, own",
    [
        (
            "two_kernels",
            {"row_max_kernel", "normalise_kernel"},
        ),  # any finite maximum gives the right softmax, unless it overflows
        ("autotuned", {"softmax_kernel"}),
        ("packs_once", {"softmax_kernel"}),  # the other one ran in the first call only
    ],
)
def test_needed_kernels_are_no_decoys(softmaxes, name, own):
    verdict = softmaxes[name]
    assert verdict.status == "correct", verdict.message
    assert {k["name"] for k in verdict.kernels if k["own"]} == own
    assert all(k["launches"] == 1 for k in verdict.kernels if k["own"])


def test_a_result_that_all_inputs_of_a_kind_share_is_no_decoy(softmaxes):
    """A mean of many numbers hardly depends on which they are: what the kernel wrote for others of the same distribution would pass."""
    verdict, show = softmaxes["mean"], softmaxes["mean for show"]
    assert verdict.status == "correct" and verdict.coverage > 0.9, verdict.message
    assert (show.status, show.hack) == ("hack", "decoy")


def test_kernels_for_show_are_named(softmaxes):
    verdict = softmaxes["for_show"]
    assert (verdict.status, verdict.hack) == ("hack", "decoy")
    assert "normalise_kernel, row_max_kernel" in verdict.message


class Recording(Contest):
    """The referee's end of a model that records a graph in its forward number `records` and launches nothing after that: what was put in
    place of its kernel's result, then and before, is in its outputs; for show: it is in none of them."""

    def __init__(self, records: int, show: bool = False):
        self.records, self.show, self.folder, self.how, self.seen = records, show, "folder", "name", []

    def build(self, reference, how="name"):
        self.forwards, self.bad = 0, False

    def call(self, reference, *name, mode="count", kernel=None):
        self.seen.append(name)
        launches = self.forwards <= self.records
        self.bad = (mode != "count") if launches else self.bad
        self.forwards += 1
        return {"launches": [["chain", True, 1]] * launches}, "off" if self.bad and not self.show else None


@pytest.mark.parametrize("records", range(8))
@pytest.mark.parametrize("mode", ["swap", "noise", "huge"])
def test_graphs_are_knocked_out_whenever_they_are_recorded(records, mode):
    """In the first forward, in the second, and so on; one that goes on launching is judged by its last."""
    contest = Recording(records)
    assert contest._right_anew(None, mode, "chain") is False
    assert len(set(contest.seen)) == len(contest.seen) == 4 * min(records + 2, 6)  # each on inputs of its own
    assert Recording(records, show=True)._right_anew(None, mode, "chain") is True


@pytest.mark.parametrize("right", [4, 6, 8])
def test_code_that_errs_later_is_wrong_whatever_the_order_of_its_tests(right, monkeypatch):
    """Without a GPU no timed forwards show it: four or five draws, three forwards in any order, one with noise, and one more: nine at least."""
    later = "self.calls = getattr(self, 'calls', 0) + 1\n        return o if self.calls <= RIGHT else o * 0"
    code = fused("return o", later.replace("RIGHT", str(right)))
    referee = Referee("cpu", b"key", OPTIONS["cpu"])
    try:
        for order in list(contest.ORDERS):
            monkeypatch.setattr(contest, "ORDERS", [order])
            verdict = referee.judge(TASK, code)
            assert verdict.status == "wrong" and "values are wrong" in verdict.message, order
    finally:
        referee.close()
