"""Attention over pages. Triton reads TRITON_INTERPRET at import: without a GPU the kernels' checks run in a process of their own, this file as a script."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import attention
from gym import Gym, Job
from kernelbench import Task

ROOT = Path(__file__).resolve().parent.parent


def brute(q, k, v, scale):
    """(H, D), (n, K, D), (n, K, D) -> (H, D): softmax over all keys, head by head, in float64."""
    out = []
    for h in range(len(q)):
        mine = h * k.shape[1] // len(q)
        weight = torch.softmax(scale * (k[:, mine].double() @ q[h].double()), 0)
        out.append(weight @ v[:, mine].double())
    return torch.stack(out)


def paged(lengths, page, heads, kv_heads, d, device="cpu", dtype=torch.float32, seed=0):
    """Random keys and values of ragged sequences in shuffled pages, what no sequence owns is NaN: (q, k_pages, v_pages, table, lengths, sequences). The first two
    sequences share their whole pages."""
    g = torch.Generator().manual_seed(seed)
    n = [-(-length // page) for length in lengths]
    order = (torch.randperm(sum(n) + 3, generator=g) + 1).tolist()
    pages = [torch.full((len(order) + 1, page, kv_heads, d), torch.nan) for _ in "kv"]
    table, sequences = torch.zeros(len(lengths), max(n) + 2, dtype=torch.int32), []
    for b, length in enumerate(lengths):
        shared = min(lengths[:2]) // page if b == 1 else 0
        own = table[0, :shared].tolist() + [order.pop() for _ in range(n[b] - shared)]
        table[b, : n[b]] = torch.tensor(own)
        for x in pages:
            for t in range(shared * page, length):
                x[own[t // page], t % page] = torch.randn(kv_heads, d, generator=g)
        sequences.append(
            [torch.stack([x[own[t // page], t % page] for t in range(length)] or [x[0, 0]]) for x in pages]
        )
    q = torch.randn(len(lengths), heads, d, generator=g) * 2
    moved = [x.to(device, dtype) for x in (q, *pages)]
    return *moved, table.to(device), torch.tensor(lengths, dtype=torch.int32, device=device), sequences


CASES = [  # lengths, page, query heads, key-value heads, D; on page ends, of one token, of none, shared
    ([37, 33, 1, 16, 0, 17], 16, 4, 2, 16),
    ([64, 65], 32, 2, 2, 32),
    ([100, 64], 16, 5, 1, 64),
]


def check_decode(device, dtype, tolerance, cases=CASES):
    for number, (lengths, page, heads, kv_heads, d) in enumerate(cases):
        q, k, v, table, n, sequences = paged(lengths, page, heads, kv_heads, d, device, dtype, seed=number)
        for programs in (1, 4 * len(lengths) * kv_heads):  # one range, and up to four
            got = attention.paged_attention(q, k, v, table, n, d**-0.5, programs)
            for b, length in enumerate(lengths):
                rounded = [x.to(dtype).float() for x in sequences[b]]
                expected = brute(q[b].cpu().float(), *rounded, d**-0.5) if length else torch.zeros(heads, d).double()
                torch.testing.assert_close(got[b].cpu().double(), expected, atol=tolerance, rtol=tolerance)


def check_write(device):
    """Keys and values of a transformers layout (1, K, T, D) land in their slots and nowhere else."""
    k, v = (torch.randn(1, 2, 5, 16, device=device)[0].transpose(0, 1) for _ in "kv")
    k_pages, v_pages = (torch.zeros(4, 16, 2, 16, device=device) for _ in "kv")
    slots = torch.tensor([17, 63, 16, 0, 40], device=device)
    attention.write(k, v, k_pages, v_pages, slots)
    for pages, x in ((k_pages, k), (v_pages, v)):
        expected = torch.zeros(64, 2, 16, device=device)
        for t, slot in enumerate(slots.tolist()):
            expected[slot] = x[t]
        assert pages.view(64, 2, 16).equal(expected)


def test_kernels_equal_brute_force_in_the_interpreter():
    env = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, __file__], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "checked" in done.stdout, done.stdout + done.stderr


@pytest.mark.gpu
def test_kernels_equal_brute_force_on_a_gpu():
    large = [([1300, 1024, 7, 0, 64], 64, 40, 8, 128), ([700, 513], 256, 16, 8, 128)]
    check_decode("cuda", torch.float32, 1e-5, CASES)
    check_decode("cuda", torch.bfloat16, 1e-2, CASES + large)
    check_write("cuda")


@pytest.mark.parametrize("splits", [1, 4])
def test_the_decode_kernel_compiles_for_an_h200(splits):
    """Without a GPU: keys and values arrive by asynchronous copies of 16 bytes, the products run on the tensor cores, and five
    programs have room on a multiprocessor."""
    shape = {"KV_HEADS": 8, "GROUP": 5, "ROWS": 16, "D": 128, "PAGE": 64, "BLOCK": 64, "SPLITS": splits, "LEAST": 128}
    types = dict.fromkeys(("q_ptr", "k_ptr", "v_ptr", "out_ptr"), "*bf16") | dict.fromkeys(
        ("table_ptr", "length_ptr"), "*i32"
    )
    types |= dict.fromkeys(("part_ptr", "lse_ptr"), "*fp32") | {"scale": "fp32", "table_stride": "i32"}
    names = attention.split_kernel.arg_names
    signature = {name: types.get(name, "constexpr" if name in shape else "i32") for name in names}
    whole = [i for i, name in enumerate(names) if name not in shape and name not in ("scale", "table_stride")]
    source = ASTSource(
        attention.split_kernel,
        signature,
        {(names.index(name),): value for name, value in shape.items()},
        {(i,): [["tt.divisibility", 16]] for i in whole},
    )
    kernel = triton.compile(source, GPUTarget("cuda", 90, 32), {"num_warps": 4, "num_stages": 3})
    code = kernel.asm["ptx"]
    assert "cp.async.cg.shared.global" in code and "mma.sync" in code and kernel.metadata.shared < 45_000


def test_the_plain_twin_equals_brute_force():
    for number, (lengths, page, heads, kv_heads, d) in enumerate(CASES):
        q, k, v, table, n, sequences = paged(lengths, page, heads, kv_heads, d, seed=number)
        got = attention.decode(q, k, v, table, n, d**-0.5)
        for b, length in enumerate(lengths):
            expected = brute(q[b], *sequences[b], d**-0.5) if length else torch.zeros(heads, d).double()
            torch.testing.assert_close(got[b].double(), expected, atol=1e-5, rtol=1e-5)
    check_write("cpu")


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_packed_sequences_see_their_own_past_only(device):
    """Queries are the last of their sequence: new tokens after 0, 6 and 3 earlier ones."""
    new, past, scale = [4, 1, 5], [0, 6, 3], 0.3
    g = torch.Generator().manual_seed(0)
    dtype, tolerance = (torch.float32, 1e-5) if device == "cpu" else (torch.bfloat16, 2e-2)
    q = torch.randn(sum(new), 4, 64, generator=g).to(dtype)
    k, v = (torch.randn(sum(new) + sum(past), 2, 64, generator=g).to(dtype) for _ in "kv")
    sizes = new, [a + b for a, b in zip(new, past, strict=True)]
    cu_q, cu_k = (torch.tensor([0, *torch.tensor(s).cumsum(0).tolist()], dtype=torch.int32) for s in sizes)
    moved = [x.to(device) for x in (q, k, v, cu_q, cu_k)]
    got = attention.prefill(*moved, max(new), max(sizes[1]), scale).cpu().double()
    for b in range(3):
        first = cu_k[b].item()
        for i in range(new[b]):
            at, seen = cu_q[b].item() + i, first + past[b] + i + 1
            expected = brute(q[at].float(), k[first:seen].float(), v[first:seen].float(), scale)
            torch.testing.assert_close(got[at], expected, atol=tolerance, rtol=tolerance)


def candidate():
    """The kernels of attention.py and what launches them, as an answer that stands alone."""
    source = Path(attention.__file__).read_text()
    wanted = {"split_kernel", "merge_kernel", "paged_attention"}
    parts = {node.name: node for node in ast.parse(source).body if getattr(node, "name", "") in wanted}
    lines = source.splitlines()
    whole = [lines[min([n.lineno, *(d.lineno for d in n.decorator_list)]) - 1 : n.end_lineno] for n in parts.values()]
    return "\n\n\n".join(["import torch\nimport triton\nimport triton.language as tl", *map("\n".join, whole), FORWARD])


FORWARD = """class ModelNew(torch.nn.Module):
    def forward(self, q, k_pages, v_pages, table, lengths):
        return paged_attention(q, k_pages, v_pages, table, lengths, q.shape[-1] ** -0.5, PROGRAMS)
"""


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_our_own_gym_judges_the_kernel(device):
    task = Task("paged", (ROOT / "tests" / "kernels" / "paged_task.py").read_text())
    right = candidate().replace("PROGRAMS", "16" if device == "cpu" else "2048")
    wrong = right.replace(
        "weight = tl.where(filled, tl.exp2(lse - tl.max(lse, 0)), 0.0)", "weight = tl.where(filled, 1.0, 0.0)"
    )
    assert wrong != right
    with Gym(device, workers=2, seed=1) as gym:
        verdict, other = gym.evaluate([Job(task, right), Job(task, wrong)])
    assert verdict.correct, verdict.message
    assert {kernel["name"] for kernel in verdict.kernels if kernel["own"]} == {"split_kernel", "merge_kernel"}
    assert other.status == "wrong"


if __name__ == "__main__":
    check_decode("cpu", torch.float32, 1e-5)
    check_write("cpu")
    print("checked")
