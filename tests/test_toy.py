"""Toy tasks: what is claimed of them is checked by running them, the solutions in Triton's interpreter (a process of its own)."""

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from kernelbench import toy  # noqa: E402

TOYS = [toy.make(split, 0, i) for split in ("train", "test") for i in range(100)]


def model_of(source):
    names = {}
    exec(source, names)
    return names["Model"]()


def sample(t, **options):
    tensors = toy._sample("plain", "float32")
    return [torch.from_numpy(tensors[name]) for name in toy._tensors(t.steps)]


def test_deterministic_in_another_process():
    code = (
        "import random; from kernelbench import toy; rng = random.Random(0); t = [toy.make('train', 1, i) for i in range(20)]; "
        "print([(x.task.source, [x.solution(q, rng) for q in toy.QUALITIES]) for x in t])"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "77"}
    other = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
    rng, toys = random.Random(0), [toy.make("train", 1, i) for i in range(20)]
    assert str([(t.task.source, [t.solution(q, rng) for q in toy.QUALITIES]) for t in toys]) == other.rstrip("\n")


def test_splits_share_no_composition():
    seen = {split: {toy.make(split, seed, i).ops for seed in (0, 1) for i in range(300)} for split in ("train", "test")}
    assert not seen["train"] & seen["test"]
    for split in seen:
        assert all((zlib.crc32(" ".join(ops).encode()) % 8 == 0) == (split == "test") for ops in seen[split])
        assert len(seen[split]) > 480  # of 600, constants left out: memorising does not pay


def test_device_changes_the_sizes_only():
    for i in range(60):
        cpu, cuda = (toy.make("train", 3, i, device) for device in ("cpu", "cuda"))
        assert cpu.steps == cuda.steps
        assert 8 <= cpu.rows <= 32 and 100 <= cpu.cols <= 500 and 11e6 <= 4 * cuda.rows * cuda.cols <= 34e6
        assert 1024 <= cuda.rows <= 8192 and 1000 <= cuda.cols <= 8192
        assert str(cuda.rows) in cuda.task.source and str(cpu.cols) in cpu.task.source
        for quality in ("fused", "half", "lazy"):
            text = cuda.solution(quality, random.Random(i))
            assert text == cpu.solution(quality, random.Random(i))
            numbers = {int(n) for n in re.findall(r"\b\d{3,}\b", text)}
            assert numbers <= set(toy.BLOCKS)
        programs = cpu.rows if cpu.ops[-1] in toy.ENDINGS else -(-cpu.rows * cpu.cols // min(toy.BLOCKS))
        assert programs <= 16


def test_mix():
    ends = sum(t.ops[-1] in toy.ENDINGS for t in TOYS) / len(TOYS)
    powers = sum(t.cols & (t.cols - 1) == 0 for t in TOYS) / len(TOYS)
    assert 0.2 < ends < 0.4 and 0 < powers < 0.2
    assert {len(toy._elementwise(t.steps)) for t in TOYS} == {2, 3, 4, 5}
    assert {name for t in TOYS for name in t.ops} == set(toy.OPS)
    assert len({t.solution("fused", random.Random(0)) for t in TOYS}) > 0.95 * len(TOYS)


@pytest.mark.parametrize("name", toy.OPS)
def test_numpy_value_is_torch_value(name):
    """Twin: each operator's numpy value against its torch line, for each constant."""
    for argument in ("y",) if name in toy.BINARY else toy.OPS[name].arguments:
        step, tensors = toy.Step(name, argument), toy._sample("plain", "float64")
        scope = {"torch": torch, **{k: torch.from_numpy(v) for k, v in tensors.items()}}
        exec(step.torch, scope)
        np.testing.assert_allclose(toy._value((step,), dtype="float64"), scope["x"].numpy(), rtol=1e-9, atol=1e-12)


def test_every_line_of_every_task_matters():
    """Brute force: each line of forward deleted from the task's text; and the whole deleted."""
    for t in TOYS:
        inputs = sample(t)
        right = model_of(t.task.source)(*inputs)
        assert right.isfinite().all() and right.unique().numel() > 0.2 * right.numel()
        for step in t.steps:
            line = f"        {step.torch}\n"
            assert t.task.source.count(line) >= 1
            wrong = model_of(t.task.source.replace(line, "", 1))(*inputs)
            assert wrong.shape != right.shape or (wrong - right).abs().max() > 0.02 * right.abs().max()
        assert right.shape != inputs[0].shape or (inputs[0] - right).abs().max() > 0.02 * right.abs().max()


class Count(TorchDispatchMode):
    kernels = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.kernels += func not in (torch.ops.aten.detach.default, torch.ops.aten.view.default)
        return func(*args, **(kwargs or {}))


def test_eager_kernels_are_counted_right():
    """Twin: Op.kernels, from which half-fused solutions are chosen, against torch's own dispatches."""
    for t in TOYS:
        inputs, model = sample(t), model_of(t.task.source)
        with Count() as count:
            model(*inputs)
        assert count.kernels == sum(toy.OPS[name].kernels for name in t.ops), t.ops


def test_speedup_estimate_by_hand():
    steps = (toy.Step("mul", "2.0"), toy.Step("add_tensor", "y"), toy.Step("relu"), toy.Step("sum"))
    # eager: 4 launches, tensors 2 + 3 + 2 + 1 = 8; one kernel: 1 launch, 2 tensors (the sum is hardly any)
    assert toy._speedup(steps, toy._fused(steps, None)) == min(4 / 1, 8 / 2)
    # mul and add in one kernel: 3 launches, 3 + 2 + 1 = 6 tensors
    plan = [toy.Part(True, steps[:2]), toy.Part(False, steps[2:])]
    assert toy._speedup(steps, plan) == min(4 / 3, 8 / 6)


def test_what_the_qualities_are():
    rng = random.Random(2)
    half = []
    for t in TOYS:
        fused, lazy = t.solution("fused", rng), t.solution("lazy", rng)
        assert fused.count("@triton.jit") == lazy.count("@triton.jit") == 1
        in_torch = [s.torch for s in t.steps if f"        {s.torch}\n" in fused.partition("def forward")[2]]
        assert not in_torch and all(f"    {line}\n" in fused for s in t.steps for line in s.triton)
        forward = lazy.partition("def forward")[2]
        assert forward.count("        x = ") - forward.count("        x = o\n") == len(t.steps) - 1
        plan = toy._half(t.steps, rng)
        half.append((toy._speedup(t.steps, plan), toy._speedup(t.steps, toy._fused(t.steps, rng))))
        assert sum((part.steps for part in plan), ()) == t.steps
        for step in t.steps:  # one operator, one line, the same where torch is not called
            assert len(step.triton) == 1 or step.name in toy.NORMS
            assert step.triton == [step.torch] or "torch." in step.torch
    assert all(1.25 < s <= 2.2 for s, _ in half) and np.mean([s < 0.8 * f for s, f in half]) > 0.9


def test_maskless_kernels_leave_their_tensors():
    rng, found = random.Random(4), 0
    for t in TOYS:
        for _ in range(8):
            text = t.solution("broken", rng)
            if "+ i)" in text:
                found += 1
                blocks = [int(b) for b in re.findall(r"triton.cdiv\(n, (\d+)\)", text)]
                n = t.rows * t.cols
                assert any(-(-n // b) * b > n for b in blocks)
    assert found > 10
    cuda = [toy.make("train", 0, i, "cuda").solution("broken", rng) for i in range(300)]
    assert not any("+ i)" in text for text in cuda)  # a GPU need not notice


@pytest.fixture(scope="module")
def executed():
    env = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, __file__], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("quality", ["fused", "half", "lazy"])
def test_right_solutions_are_right(executed, quality):
    outcomes = [(o, text) for q, o, text in executed if q == quality]
    assert len(outcomes) == 60
    for outcome, text in outcomes:
        assert outcome == "right", f"{outcome}\n{text}"


def test_broken_solutions_are_broken(executed):
    outcomes = [(o, text) for q, o, text in executed if q == "broken"]
    assert len(outcomes) == 120
    for outcome, text in outcomes:
        assert outcome != "right", text
    kinds = Counter(outcome for outcome, _ in outcomes)
    assert kinds["wrong"] > 20 and kinds["SyntaxError"] > 2 and sum(kinds.values()) - kinds["wrong"] > 30, kinds


def execute(t, text, folder) -> str:
    """What comes of a candidate on fresh inputs; unwritten memory is NaN."""
    import importlib.util

    def load(name, source):
        path = Path(folder) / f"{name}.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    execute.count = getattr(execute, "count", 0) + 1
    task = load(f"task{execute.count}", t.task.source)
    torch.manual_seed(execute.count)
    inputs = task.get_inputs()
    expected = task.Model()(*inputs)
    try:
        got = load(f"candidate{execute.count}", text).ModelNew()(*inputs)
    except Exception as error:  # noqa: BLE001  (the candidate's)
        return type(error).__name__
    if got is None or got.shape != expected.shape or got.dtype != expected.dtype:
        return "wrong kind"
    close = (got - expected).abs() <= 1e-4 * (expected.square().mean().sqrt().clamp(max=1) + expected.abs())
    return "right" if close.all() else "wrong"


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)  # with the next line: torch.empty gives NaN
    torch.utils.deterministic.fill_uninitialized_memory = True
    rng, results = random.Random(6), []
    with tempfile.TemporaryDirectory() as folder:
        for i in range(60):
            t = toy.make("test" if i % 4 == 0 else "train", 7, i)
            for quality in ("fused", "half", "lazy", "broken", "broken"):
                text = t.solution(quality, rng)
                while "+ i)" in text:  # without mask: would write over this process's memory
                    text = t.solution(quality, rng)
                results.append((quality, execute(t, text, folder), text))
    print(json.dumps(results))
