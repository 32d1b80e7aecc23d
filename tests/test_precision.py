"""Precisions: both sides are cast alike, and a candidate that computes in another one is wrong."""

import pytest
import torch

from gym import Gym, Job, reference_code
from kernelbench import Task
from kernelbench.judge import Options
from kernelbench.reference import Reference, cast

TASK = Task(
    "linear",
    """import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, shift, features=64):
        super().__init__()
        self.linear = nn.Linear(features, 32)
        self.shift = shift
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, x, index):
        return torch.relu(self.linear(x) + self.shift)[index]

def get_inputs():
    return [torch.randn(48, 64), torch.randint(0, 48, (40,))]

def get_init_inputs():
    return [torch.randn(32)]
""",
)
KERNEL = (
    TASK.source.replace("class Model(", "class ModelNew(")
    + """
import triton
import triton.language as tl

@triton.jit
def relu_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(o_ptr + i, tl.maximum(x, 0.0), mask=i < n)

def forward(self, x, index):
    x = self.linear(x) + self.shift
    o = torch.empty_like(x)
    relu_kernel[(triton.cdiv(x.numel(), 256),)](x, o, x.numel(), BLOCK=256)
    return o[index]

ModelNew.forward = forward
"""
)
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def test_nested_values_are_cast():
    x, flags = torch.ones(2), torch.tensor([1, 2])
    got = cast([x, (flags, {"k": x, "n": 3}), "text"], torch.bfloat16)
    assert got[0].dtype == got[1][1]["k"].dtype == torch.bfloat16
    assert got[1][0] is flags and got[1][1]["n"] == 3 and got[2] == "text" and type(got[1]) is tuple
    assert cast([x], None)[0] is x


@pytest.mark.parametrize("precision", DTYPES)
def test_a_reference_in_that_precision(precision):
    dtype = DTYPES[precision]
    reference = Reference(TASK, "cpu", b"key", precision=precision)
    bias = reference.weights["linear.bias"].clone()  # before all weights are moved
    x, index = reference.given("check", 0)
    (output,) = reference.expected("check", 0, inputs=reference.given("check", 0))[1]
    weights = reference.weights
    assert x.dtype == output.dtype == weights["linear.weight"].dtype == reference.args[0].dtype == dtype
    assert index.dtype == weights["steps"].dtype == torch.int64
    exact = Reference(TASK, "cpu", b"key")  # the same numbers, rounded
    assert torch.equal(exact.inputs("check", 0)[0].to(dtype), x)
    assert torch.equal(exact.weights["linear.bias"].to(dtype), bias)
    assert reference.given("check", 2)[0].dtype == dtype  # moved inputs too


@pytest.mark.parametrize(
    "device, precision", [("cpu", "bf16"), *(pytest.param("cuda", p, marks=pytest.mark.gpu) for p in ("bf16", "fp16"))]
)
def test_both_sides_are_cast_alike(device, precision):
    cheat = KERNEL.replace("return o[index]", "return o[index].float()")
    by_seed = KERNEL.replace("self.linear = nn.Linear", "self.other = nn.Linear").replace("self.linear(", "self.other(")
    coarse = KERNEL.replace("self.linear(x)", "self.linear(x).to(torch.float8_e5m2).to(x.dtype)")
    jobs = [Job(TASK, code) for code in (KERNEL, reference_code(TASK), cheat, by_seed, coarse)]
    options = Options(precision=precision, any_code=True)
    with Gym(device, workers=2, options=options) as gym:
        right, itself, wide, seeded, rough = gym.evaluate(jobs)
    assert [v.status for v in (right, itself, wide, seeded, rough)] == ["correct"] * 2 + ["wrong", "correct", "wrong"]
    assert "expected " + str(DTYPES[precision])[6:] in wide.message
    assert all((v.precision, v.tf32, v.baseline) == (precision, False, "eager") for v in (right, itself, wide))
    # 200 times 2 bytes each of x (48 x 64), W (32 x 64), b and output (40 x 32); the index has 8 bytes, as has the buffer
    moved = 2 * (48 * 64 + 32 * 64 + 32 + 40 * 32) + 8 * (40 + 1)
    assert itself.roofline["bytes"] == moved * (200 if device == "cpu" else 1)
    assert itself.roofline["flops"] == 2 * 48 * 64 * 32 * (200 if device == "cpu" else 1)


@pytest.mark.gpu
@pytest.mark.parametrize("tf32", [False, True])
def test_tf32_is_the_same_on_both_sides(tf32):
    """A library matmul agrees with the task's in either mode; a TF32 dot is wrong where the task's is exact."""
    wide = Task("wide", TASK.source.replace("features=64", "features=4096").replace("(48, 64)", "(48, 4096)"))
    mine = f"{wide.source}\ntorch.backends.cuda.matmul.allow_tf32 = True\n\nclass ModelNew(Model):\n    pass\n"
    with Gym("cuda", options=Options(tf32=tf32, any_code=True)) as gym:
        itself, loose = gym.evaluate([Job(wide, reference_code(wide)), Job(wide, mine)])
    assert itself.status == "correct" and itself.tf32 == tf32
    assert loose.status == ("correct" if tf32 else "wrong"), loose.message


@pytest.mark.gpu
@pytest.mark.parametrize("baseline", ["compile", "max-autotune"])
def test_compiled_baselines(baseline):
    source = TASK.source.replace("[index]", "").replace("x, index", "x, index=None").replace("(48, 64)", "(4096, 64)")
    chain = Task(
        "chain", source.replace("torch.relu(", "torch.tanh(1.5 * torch.sigmoid(").replace("self.shift)", "self.shift))")
    )
    with Gym("cuda", workers=2, options=Options(baseline=baseline, any_code=True)) as gym:
        first, second = gym.evaluate(
            [Job(chain, reference_code(chain)), Job(chain, reference_code(chain) + "\n# again")]
        )
    assert first.status == second.status == "correct", first.message + second.message
    assert first.baseline == baseline and first.speedup < 1.05  # eager is not faster than what Inductor fuses
    assert {k["name"] for k in first.reference_kernels} != {k["name"] for k in first.kernels}
