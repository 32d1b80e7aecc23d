"""The simulated device. Triton reads TRITON_INTERPRET at import, so all checks run once in a process of their own: this file as a script."""

import json
import linecache
import math
import operator
import os
import subprocess
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.tools.tensor_descriptor import TensorDescriptor

CHECKS = {}


def check(fn):
    CHECKS[fn.__name__] = fn
    return fn


def clock(run, own_file=__file__, **device):
    """Meter around run() on a device with 1 us per launch, 1 GB/s and, unless given, endless flops."""
    values = dict(launch_s=1e-6, bytes_per_s=1e9, flops_per_s=1e18, dot_flops_per_s=1e18, reread=0.25) | device
    with simulate.Meter(simulate.Device("test", **values), own_file) as meter:
        run()
    return meter


def us(meter):
    return pytest.approx(meter.ms * 1e3, rel=1e-9)


@triton.jit
def add_kernel(x_ptr, y_ptr, o_ptr, n, BLOCK: tl.constexpr, MASK: tl.constexpr = True):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    if MASK:
        tl.store(o_ptr + at, tl.load(x_ptr + at, mask=mask) + tl.load(y_ptr + at, mask=mask), mask=mask)
    else:
        tl.store(o_ptr + at, tl.load(x_ptr + at) + tl.load(y_ptr + at))


@check
def cost_of_an_add():
    x, y, o = torch.randn(3, 1000).unbind()  # one storage for all three
    meter = clock(lambda: add_kernel[(4,)](x, y, o, 1000, BLOCK=256))
    assert torch.equal(o, x + y)
    assert us(meter) == 1 + 3 * 4000 / 1e3  # 12,000 bytes at 1,000 bytes/us
    assert [(k["name"], k["launches"], k["own"]) for k in meter.kernels] == [("add_kernel", 1, True)]
    assert us(clock(lambda: add_kernel[(4,)](x, y, o, 1000, BLOCK=256), scale=200)) == 1 + 200 * 12
    assert us(clock(lambda: add_kernel[(4,)](x, y, o, 1000, BLOCK=256), flops_per_s=1e6)) == 1 + 1024  # 4 x 256 sums
    assert clock(lambda: add_kernel[(4,)](x, y, o, 1000, BLOCK=256), own_file="other").kernels[0]["own"] is False
    h200 = simulate.DEVICES["H200"]
    assert h200.seconds(12000) == pytest.approx(4e-6 + 200 * 12000 / 4.3e12)


@check
def grids_and_launch_syntaxes():
    x, y, o = torch.randn(1000), torch.randn(1000), torch.empty(1000)
    for launch in (
        lambda: add_kernel[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](x, y, o, n=1000, BLOCK=256),
        lambda: add_kernel[[4]](x, y, o, 1000, 256, num_warps=8, num_stages=2),
        lambda: add_kernel.run(x, y, o, 1000, BLOCK=256, grid=(4, 1, 1), warmup=False),
    ):
        o.zero_()
        assert us(clock(launch)) == 13 and torch.equal(o, x + y)
    assert us(clock(lambda: add_kernel[(0,)](x, y, o, 1000, BLOCK=256))) == 1
    with pytest.raises(KeyError, match="FOO"):  # as the compiled launcher; the plain interpreter ignores it
        add_kernel[(4,)](x, y, o, 1000, BLOCK=256, FOO=3)
    with pytest.raises(TypeError, match="BLOCK"):
        add_kernel[(4,)](x, y, o, 1000)
    with pytest.raises(RuntimeError, match="outside of the scope"):
        add_kernel(x, y, o, 1000, 256)
    o.zero_()
    ready = add_kernel.warmup(x, y, o, 1000, BLOCK=256, grid=(1,))
    ready._init_handles()
    assert ready.n_regs > 0 and ready.metadata.shared >= 0 and not o.any()
    assert us(clock(lambda: ready[(4,)](x, y, o, 1000, 256))) == 13 and torch.equal(o, x + y)


@triton.jit
def pick_kernel(x_ptr, m_ptr, o_ptr, sx, sy, ROWS: tl.constexpr, COLS: tl.constexpr):
    row, col = tl.arange(0, ROWS)[:, None], tl.arange(0, COLS)[None, :]
    mask = tl.load(m_ptr + row * COLS + col) != 0
    tl.store(o_ptr + row * COLS + col, tl.load(x_ptr + row * sx + col * sy, mask=mask, other=-1.0), mask=mask)


@check
def bytes_of_a_masked_strided_copy_twin():
    torch.manual_seed(0)
    for trial in range(5):
        base = torch.randn(40, 40, dtype=torch.float64)
        x = base[3:35:2, 4:12].t() if trial % 2 else base.t()[1:9, 5:37:2]  # (8, 16) views, neither contiguous
        mask = (torch.rand(8, 16) < trial / 4).to(torch.int16)
        o, want, size = torch.zeros(8, 16, dtype=torch.float64), torch.zeros(8, 16, dtype=torch.float64), 0
        meter = clock(lambda x=x, m=mask, o=o: pick_kernel[(1,)](x, m, o, *x.stride(), ROWS=8, COLS=16))
        for i in range(8):
            for j in range(16):
                size += 2  # the mask
                if mask[i, j]:
                    want[i, j] = x[i, j]
                    size += 8 + 8
        assert torch.equal(o, want) and us(meter) == 1 + size / 1e3


@triton.jit
def bias_kernel(x_ptr, b_ptr, o_ptr, cols, BLOCK: tl.constexpr):
    at, row = tl.arange(0, BLOCK), tl.program_id(0)
    mask = at < cols
    x = tl.load(x_ptr + row * cols + at, mask=mask) + tl.load(b_ptr + at, mask=mask)
    x += tl.sum(tl.load(x_ptr + row * cols + at, mask=mask, other=0.0), 0)
    tl.store(o_ptr + row * cols + at, x, mask=mask)


@check
def what_is_read_again_costs_less():
    x, b, o = torch.randn(8, 100), torch.randn(100), torch.empty(8, 100)
    meter = clock(lambda: bias_kernel[(8,)](x, b, o, 100, BLOCK=128))
    assert torch.allclose(o, x + b + x.sum(1, keepdim=True), atol=1e-5)
    # x 3,200 twice, b 400 eight times, o 3,200; a quarter of the price for what was read before
    assert us(meter) == 1 + (3200 + 400 + 3200 + 0.25 * (3200 + 7 * 400)) / 1e3


@triton.jit
def shift_kernel(x_ptr, o_ptr, shift, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(o_ptr + at + shift, tl.load(x_ptr + at, mask=at < n), mask=at < n)


@check
def out_of_bounds():
    x, y, o = torch.randn(1000), torch.randn(1000), torch.zeros(1000)
    with pytest.raises(simulate.IllegalAccess, match=r"add_kernel, program \(3, 0, 0\), load: 24 of 256 active lanes"):
        add_kernel[(4,)](x, y, o, 1000, BLOCK=256, MASK=False)
    assert torch.equal(o[:768], (x + y)[:768]) and not o[768:].any()
    add_kernel[(5,)](x[:640], y, o, 640, BLOCK=128, MASK=False)  # divides: no mask needed
    arena = torch.zeros(64)
    for shift, bad in ((0, 0), (4, 4), (-3, 3), (1 << 20, 16), (-(1 << 20), 16), (-(1 << 29), 16)):
        out = torch.zeros(16)  # its storage is what counts, wherever it lies
        if bad:
            with pytest.raises(simulate.IllegalAccess, match=f"store: {bad} of 16 active lanes"):
                shift_kernel[(1,)](torch.ones(16), out, shift, 16, BLOCK=32)
            assert not out.any()  # checked before memory is touched
        else:
            shift_kernel[(1,)](torch.ones(16), out, shift, 16, BLOCK=32)
    shift_kernel[(1,)](torch.ones(16), arena[8:24], -8, 16, BLOCK=32)  # outside the view, inside its storage
    assert arena.sum() == 16
    for caught in (simulate.IllegalAccess, simulate.Unsupported):
        assert not issubclass(caught, Exception)  # a candidate's `except Exception: fall back` must not hide it
    assert us(clock(lambda: add_kernel[(4,)](x, y, o, 1000, BLOCK=256))) == 13  # the process is as good as new


CONFIGS = [triton.Config({"BLOCK": block}, num_warps=warps) for block in (16, 64, 256) for warps in (1, 2)]


@triton.autotune(configs=CONFIGS, key=["n"], reset_to_zero=["o_ptr"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def tuned_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    tl.static_assert(BLOCK < 256)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at) if EVEN else tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.atomic_add(o_ptr, tl.sum(x))


@check
def autotune_ranks_by_simulated_cost():
    x, o, seen = torch.ones(1024), torch.zeros(1), []

    def around(launch, run):
        seen.append(launch.name)
        run()

    simulate.around = around
    launch = lambda: tuned_kernel[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](x, o, 1024)  # noqa: E731
    first = clock(launch)
    simulate.around = None
    assert o.item() == 1024 and tuned_kernel.best_config.kwargs == {
        "BLOCK": 64
    }  # fewer atomics; 256 fails its assertion
    assert seen == ["tuned_kernel"] * 4  # one trial of each BLOCK, whatever num_warps, and the launch itself
    assert [k["launches"] for k in first.kernels if k["name"] == "tuned_kernel"] == [3]  # the failed trial aside
    o.zero_()
    # 4,096 bytes of x; 16 atomics, each reads 4 bytes (the first time at full price) and writes 4
    assert us(clock(launch)) == 1 + (4096 + 4 + 0.25 * 15 * 4 + 16 * 4) / 1e3


@triton.jit
def atomic_kernel(x_ptr, i_ptr, o_ptr, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    mask = at < n
    x, i = tl.load(x_ptr + at, mask=mask), tl.load(i_ptr + at, mask=mask)
    if KIND == "add":
        tl.atomic_add(o_ptr + i, x, mask=mask)
    elif KIND == "max":
        tl.atomic_max(o_ptr + i, x, mask=mask)
    elif KIND == "min":
        tl.atomic_min(o_ptr + i, x, mask=mask)
    elif KIND == "cas":
        tl.atomic_cas(o_ptr + at, (at * 0).to(tl.int64), at.to(tl.int64))


@check
def atomics():
    x, i = torch.arange(-10, 10).float(), torch.arange(20) % 3
    for kind, reduce in (("add", "sum"), ("max", "amax"), ("min", "amin")):
        for dtype in (torch.float32, torch.int32, torch.float16)[: 3 if kind == "add" else 2]:
            o, v = torch.zeros(3, dtype=dtype), x.to(dtype)
            meter = clock(lambda k=kind, v=v, o=o: atomic_kernel[(1,)](v, i, o, 20, KIND=k, BLOCK=32), reread=1)
            assert torch.equal(o, torch.zeros(3, dtype=dtype).scatter_reduce(0, i, v, reduce))
            assert us(meter) == 1 + 20 * (v.element_size() + 8 + 2 * v.element_size()) / 1e3
    atomic_kernel[(1,)](o := torch.tensor([0, 5, 0, 5]), o, o, 4, KIND="cas", BLOCK=4)
    assert o.tolist() == [0, 5, 2, 5]
    with pytest.raises(simulate.IllegalAccess, match="atomic: 6 of 20 active lanes"):  # a third of the indices is 2
        atomic_kernel[(1,)](x, i, torch.zeros(2), 20, KIND="add", BLOCK=32)
    with pytest.raises(simulate.Unsupported, match="bf16"):
        atomic_kernel[(1,)](x.bfloat16(), i, torch.zeros(3).bfloat16(), 20, KIND="add", BLOCK=32)


@triton.jit
def dot_kernel(a_ptr, b_ptr, o_ptr, PRECISION: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a, b = tl.load(a_ptr + m[:, None] * K + k[None, :]), tl.load(b_ptr + k[:, None] * N + n[None, :])
    tl.store(o_ptr + m[:, None] * N + n[None, :], tl.dot(a, b, input_precision=PRECISION))


@check
def dots():
    torch.manual_seed(0)
    slow = dict(bytes_per_s=1e18, flops_per_s=1e9, dot_flops_per_s=4e9)
    flops = 2 * 16 * 32 * 64
    for dtype, precision, price in (
        (torch.float32, "ieee", flops + 16 * 32),  # vector units; and the accumulator's sum
        (torch.float32, "tf32", 2 * flops / 4 + 16 * 32),
        (torch.float16, "ieee", flops / 4 + 16 * 32),
        (torch.bfloat16, "ieee", flops / 4 + 16 * 32),
    ):
        a, b, o = torch.randn(16, 64).to(dtype), torch.randn(64, 32).to(dtype), torch.empty(16, 32)
        meter = clock(lambda a=a, b=b, o=o, p=precision: dot_kernel[(1,)](a, b, o, p, M=16, N=32, K=64), **slow)
        error = (o - a.float() @ b.float()).abs().max()
        assert 1e-3 < error < 5e-2 if precision == "tf32" else error < 2e-5
        assert us(meter) == pytest.approx(1 + price / 1e3, abs=1)  # 512 elementwise flops are 0.5 us
    matmul = clock(lambda: torch.randn(16, 64).half() @ torch.randn(64, 32).half(), **slow)
    assert next(k["ms"] for k in matmul.kernels if k["name"] == "aten::mm") * 1e3 == pytest.approx(1 + flops / 4 / 1e3)
    with pytest.raises(AssertionError, match="K >= 16"):
        dot_kernel[(1,)](torch.zeros(16, 8), torch.zeros(8, 16), torch.zeros(16, 16), "ieee", M=16, N=16, K=8)


@triton.jit
def bf16_kernel(x_ptr, y_ptr, o_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    mask = at < n
    x, y = tl.load(x_ptr + at, mask=mask, other=1.5), tl.load(y_ptr + at, mask=mask, other=-2)
    z = tl.maximum(tl.abs(x * y + tl.full((BLOCK,), 0.25, tl.bfloat16)), tl.zeros((BLOCK,), tl.bfloat16) + x)
    z = z.to(tl.bfloat16).to(tl.int16, bitcast=True).to(tl.bfloat16, bitcast=True)
    z = tl.where(z > 1, tl.exp(y.to(tl.float32)).to(tl.bfloat16), -z) + tl.sum(tl.where(mask, y, 0.0), 0)
    tl.store(o_ptr + at, z, mask=mask)


@check
def bf16_numbers():
    torch.manual_seed(0)
    x, y = torch.randn(2, 100).bfloat16().unbind()
    o = torch.empty(100).bfloat16()
    meter = clock(lambda: bf16_kernel[(1,)](x, y, o, 100, BLOCK=128))
    u, v = x.float(), y.float()
    z = torch.maximum((u * v + 0.25).abs(), u).bfloat16().float()
    want = torch.where(z > 1, v.exp(), -z) + v.sum()
    assert ((o.float() - want).abs() <= 2**-7 * (want.abs() + v.exp())).all()
    assert us(meter) == 1 + 600 / 1e3
    floats = torch.randint(-(2**31), 2**31, (100000,), dtype=torch.int64).to(torch.int32).view(torch.float32)
    ours = torch.from_numpy(interpret._to_bits(floats.numpy()).view("int16")).view(torch.bfloat16)
    nan, want = floats.isnan(), floats.bfloat16()
    assert torch.equal(ours.isnan(), nan) and torch.equal(ours[~nan].view(torch.int16), want[~nan].view(torch.int16))


@triton.jit
def libdevice_kernel(x_ptr, y_ptr, o_ptr, FN: tl.constexpr, TWO: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + at), tl.load(y_ptr + at)
    tl.store(o_ptr + at, FN(x, y) if TWO else FN(x))


@check
def libdevice_is_torch():
    torch.manual_seed(0)
    x, y, o = torch.rand(64) * 0.9 + 0.05, torch.rand(64) * 3 - 1, torch.empty(64)
    one = "tanh erf erfc exp expm1 exp2 log log1p log2 log10 rsqrt sqrt sin cos tan asin acos atan sinh cosh asinh atanh floor ceil trunc lgamma erfinv"
    for name in one.split():
        libdevice_kernel[(1,)](x, y, o, getattr(libdevice, name), False, BLOCK=64)
        assert torch.allclose(o, getattr(torch, name)(x), rtol=1e-5, atol=1e-6), name
    for name, fn in (("fast_expf", torch.exp), ("rint", torch.round), ("float2int_rz", torch.trunc)):
        libdevice_kernel[(1,)](10 * x, y, o, getattr(libdevice, name), False, BLOCK=64)
        assert torch.allclose(o, fn(10 * x), rtol=1e-5), name
    for name in ("pow", "atan2", "fmod", "hypot", "copysign"):
        libdevice_kernel[(1,)](x, y, o, getattr(libdevice, name), True, BLOCK=64)
        assert torch.allclose(o, getattr(torch, name)(x, y), rtol=1e-5, atol=1e-6), name
    for ours, fn in ((tl.math.rsqrt, torch.rsqrt), (tl.sigmoid, torch.sigmoid), (tl.math.erf, torch.erf)):
        libdevice_kernel[(1,)](x, y, o, ours, False, BLOCK=64)
        assert torch.allclose(o, fn(x))
    pi, twelve = torch.pi, torch.tensor([-5, 0, 1, 2, 3, 8, 12, 2**31 - 1] * 8, dtype=torch.int32)
    for name, fn in (
        ("sinpi", lambda x: torch.sin(pi * x)),
        ("cospi", lambda x: torch.cos(pi * x)),
        ("rcbrt", lambda x: x ** (-1 / 3)),
        ("logb", lambda x: x.log2().floor()),
    ):
        libdevice_kernel[(1,)](x, y, o, getattr(libdevice, name), False, BLOCK=64)
        assert torch.allclose(o, fn(x), rtol=1e-5, atol=1e-6), name
    libdevice_kernel[(1,)](10 * x, y, o, libdevice.remainder, True, BLOCK=64)
    assert torch.allclose(
        o, torch.tensor([math.remainder(a, b) for a, b in zip((10 * x).tolist(), y.tolist())]), atol=1e-5
    )
    for name, fn in (
        ("popc", lambda n: bin(n % 2**32).count("1")),
        ("clz", lambda n: 32 - (n % 2**32).bit_length()),
        ("ffs", lambda n: (n & -n).bit_length()),
    ):
        counts = torch.empty(64, dtype=torch.int32)
        libdevice_kernel[(1,)](twelve, twelve, counts, getattr(libdevice, name), False, BLOCK=64)
        assert counts.tolist() == [fn(n) for n in twelve.tolist()], name
    with pytest.raises(simulate.Unsupported, match="__nv_fadd_rd"):
        libdevice_kernel[(1,)](x, y, o, libdevice.add_rd, True, BLOCK=64)


@triton.jit
def times(a, b):
    return a * b


@triton.jit
def line(a, b, c, d):
    return times(a, c), times(b, c) + d


@triton.jit
def reduce_kernel(x_ptr, o_ptr, R: tl.constexpr, C: tl.constexpr):
    row, col = tl.arange(0, R), tl.arange(0, C)
    x = tl.load(x_ptr + row[:, None] * C + col[None, :])
    tl.store(o_ptr + row, tl.reduce(x, 1, times))
    tl.store(o_ptr + 8 + col[None, :], tl.reduce(x, 0, times, keep_dims=True))
    tl.store(o_ptr + 16, tl.reduce(x, None, times))
    tl.store(o_ptr + 20 + row, tl.argmax(x, 1, tie_break_left=False))
    a, b = tl.associative_scan((x, x), 1, line)
    tl.store(o_ptr + 32 + row[:, None] * C + col[None, :], b)
    a, b = tl.associative_scan((x, x), 0, line, reverse=True)
    tl.store(o_ptr + 64 + row[:, None] * C + col[None, :], b)


@check
def custom_reductions_and_scans_twin():
    torch.manual_seed(0)
    x, o = torch.rand(4, 8) + 0.5, torch.zeros(96)
    meter = clock(lambda: reduce_kernel[(1,)](x, o, R=4, C=8))
    assert [k["launches"] for k in meter.kernels] == [1]  # helpers are no launches
    assert torch.allclose(o[:4], x.prod(1)) and torch.allclose(o[8:16], x.prod(0)) and torch.allclose(o[16], x.prod())
    assert torch.equal(o[20:24].long(), x.argmax(1))
    for got, rows in ((o[32:64].view(4, 8), x), (o[64:].view(4, 8).flip(0).t(), x.flip(0).t())):
        for i, row in enumerate(rows):
            total = 0.0
            for j, value in enumerate(row.tolist()):  # b' = b c + d over pairs (x, x), the first of which is x itself
                total = total * value + value if j else value
                assert got[i, j].item() == pytest.approx(total, rel=1e-5)


@triton.jit
def blocks_kernel(x_ptr, o_ptr, desc, M, N, BM: tl.constexpr, BN: tl.constexpr):
    row = tl.program_id(0) * BM
    i = tl.make_block_ptr(x_ptr, shape=(M, N), strides=(N, 1), offsets=(row, 0), block_shape=(BM, BN), order=(1, 0))
    o = tl.make_block_ptr(o_ptr, shape=(M, N), strides=(N, 1), offsets=(row, 0), block_shape=(BM, BN), order=(1, 0))
    for k in range(0, tl.cdiv(N, BN)):
        x = tl.load(i, boundary_check=(0, 1), padding_option="zero") + desc.load([row, k * BN])
        tl.store(o, x, boundary_check=(0, 1))
        i, o = tl.advance(i, (0, BN)), tl.advance(o, (0, BN))


@check
def block_pointers_and_descriptors():
    for dtype in (torch.float32, torch.bfloat16):
        x, y, o = torch.randn(10, 20).to(dtype), torch.randn(10, 24).to(dtype), torch.zeros(10, 20, dtype=dtype)
        desc, seen = TensorDescriptor.from_tensor(y, [4, 8]), []
        simulate.around = lambda launch, run, seen=seen: (seen.append(launch), run())
        meter = clock(lambda x=x, o=o, d=desc: blocks_kernel[(3,)](x, o, d, 10, 20, BM=4, BN=8))
        simulate.around = None
        assert torch.equal(o, x + y[:, :20])
        assert us(meter) == 1 + (200 + 240 + 200) * x.element_size() / 1e3
        assert [t.data_ptr() for t in seen[0].tensors] == [x.data_ptr(), o.data_ptr(), y.data_ptr()]
        assert (seen[0].name, seen[0].own_file) == ("blocks_kernel", __file__)


@check
def around_stands_between():
    x, y, o = torch.randn(1000), torch.randn(1000), torch.zeros(1000)

    def knock_out(launch, run):
        before = [t.clone() for t in launch.tensors]
        run()
        for old, new in zip(before, launch.tensors):
            if not torch.equal(old, new):
                new.fill_(7)

    simulate.around = knock_out
    meter = clock(lambda: add_kernel[(4,)](x, y, o, 1000, BLOCK=256))
    assert (o == 7).all() and us(meter) == 13  # the clones and the comparison are not the candidate's
    simulate.around = lambda launch, run: o.zero_()
    assert not clock(lambda: add_kernel[(4,)](x, y, o, 1000, BLOCK=256)).kernels and not o.any()
    simulate.around = None


def make_kernel(factor):
    @triton.jit
    def closed(x_ptr, o_ptr, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.device_print("x", at)
        tl.store(o_ptr + at, tl.load(x_ptr + at) * factor)

    return closed


@triton.jit
def odd_kernel(x_ptr, KIND: tl.constexpr):
    at = tl.arange(0, 16)
    if KIND == "asm":
        tl.inline_asm_elementwise("x", "=r,r", [at], dtype=tl.int32, is_pure=True, pack=1)
    elif KIND == "integer":
        tl.load(tl.load(x_ptr).to(tl.int64).to(tl.pointer_type(tl.float32)))
    elif KIND == "name":
        undefined_name(at)  # noqa: F821


def spend():
    return 1


class SideEffect:
    def __init__(self, x, o):
        self.x, self.o, self.dtype = x, o, o.dtype

    def data_ptr(self):
        torch.add(self.x, 1, out=self.o)
        return self.o.data_ptr()


@triton.jit
def calls_python(x_ptr, o_ptr):
    tl.store(o_ptr, spend())


@triton.jit
def takes_the_array(x_ptr, o_ptr):
    tl.store(o_ptr, tl.load(x_ptr).handle.data[0])


@triton.jit
def plain(x_ptr, o_ptr):
    tl.load(x_ptr)


@triton.jit
def asks_the_dictionary(x_ptr, o_ptr):
    tl.store(o_ptr, tl.load(x_ptr).__dict__["x"])


@triton.jit
def asks_by_name(x_ptr, o_ptr):
    tl.store(o_ptr, operator.neg(tl.load(x_ptr)))


@triton.jit
def works_in_numpy(x_ptr, o_ptr):
    tl.store(o_ptr, np.ones(4))


@triton.jit
def sums_in_python(x_ptr, o_ptr):
    tl.store(o_ptr, sum([1, 2]))


@triton.jit
def has_a_lambda(x_ptr, o_ptr):
    f = lambda v: v  # noqa: E731
    tl.store(o_ptr, f(1.0))


@triton.jit
def writes_a_text(x_ptr, o_ptr):
    tl.static_assert(True, f"{tl.load(x_ptr)}")


@triton.jit
def takes_a_float(x_ptr, o_ptr):
    tl.store(o_ptr, float(tl.load(x_ptr)))


cheats = {"function": calls_python, "handle": takes_the_array, "torch": plain, "dictionary": asks_the_dictionary}
cheats |= {"name": asks_by_name, "numpy": works_in_numpy, "python": sums_in_python, "lambda": has_a_lambda}
cheats |= {"text": writes_a_text, "float": takes_a_float}


@triton.jit
def honest_calls(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    """What authors call in kernels, all of which the compiler knows."""
    at, top, least = tl.arange(0, BLOCK), max(BLOCK, 4), min(2, n)
    width = math.log2(BLOCK) + float(BLOCK) + int(2.5) + len((1, 2))
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    if isinstance(width, float) and hasattr(x, "dtype") and getattr(x, "dtype") == tl.float32:  # noqa: B009
        x = x + width * 0.0 + least * 0.0
    parts = [x * 1.0 for _ in range(2)]
    tl.static_assert(BLOCK >= 4, f"BLOCK is {BLOCK}")
    tl.store(o_ptr + at, tl.fma(parts[0], x * 0.0 + 1.0, tl.clamp(x, -100.0, 100.0)) + top * 0.0, mask=at < n)


@triton.jit
def fma_kernel(x_ptr, o_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    tl.store(o_ptr + at, tl.clamp(tl.fma(x, x, x), -1.0, 1.0))


@check
def kernels_call_what_the_compiler_knows():
    x, o = torch.randn(8), torch.empty(8)
    honest_calls[(1,)](x, o, 8, BLOCK=8)
    assert torch.allclose(o, 2 * x)
    meter = clock(lambda: fma_kernel[(1,)](x, o, BLOCK=8), bytes_per_s=1e18, flops_per_s=1e9)
    assert torch.allclose(o, (x * x + x).clamp(-1, 1)) and us(meter) == 1 + 8 * 4 / 1e3  # two flops each


@check
def operators_that_no_table_knows_have_a_price():
    """Products by any name cost 2MKN, complex ones four times that; what is written in place is written."""
    slow = dict(bytes_per_s=1e18, flops_per_s=1e9)
    a, b, x = torch.randn(1, 8, 16), torch.randn(1, 16, 4), torch.randn(2, 3, 6, 6)
    for run, flops in (
        (lambda: torch.addbmm(torch.zeros(1, 1), a, b), 2 * 8 * 16 * 4),
        (lambda: torch.mm(a[0] + 0j, b[0] + 0j), 4 * 2 * 8 * 16 * 4),
        (
            lambda: torch._C._nn.slow_conv_dilated2d(x, torch.ones(5, 3, 3, 3), [3, 3], None, [1, 1], [1, 1], [1, 1]),
            2 * 2 * 5 * 36 * 27,
        ),
        (lambda: torch.native_layer_norm(a, [16], None, None, 1e-5), 0),
        (lambda: torch.softmax(a, -1), 0),
    ):
        last = clock(run, **slow).kernels[-1]
        assert last["ms"] * 1e3 == pytest.approx(1 + flops / 1e3), last["name"]
    tensors = [torch.randn(1000), torch.randn(500)]
    assert us(clock(lambda: torch._foreach_mul_(tensors, 2.0))) == 1 + 2 * 6000 / 1e3


@check
def memory_that_others_see_is_copied_or_refused():
    array = np.zeros(2000, np.float32)
    for make in (torch.from_numpy, torch.as_tensor, torch.asarray, torch.frombuffer, torch.from_dlpack):
        options = {"dtype": torch.float32} if make is torch.frombuffer else {}
        make(array, **options).fill_(7)
        assert not array.any(), make
    x = torch.ones(2000)
    assert torch.as_tensor(x).data_ptr() == x.data_ptr() and len(repr(x)) > 10
    for run in (
        lambda: repr(x),
        lambda: x.untyped_storage()._write_file(1, False, False, 1),
        lambda: x.untyped_storage()._share_fd_cpu_(),
        lambda: torch.UntypedStorage.from_file("x", True, 8),
    ):
        with pytest.raises(simulate.Unsupported):
            clock(run)
    with torch.inference_mode():
        assert not torch.is_inference_mode_enabled() and not torch.is_grad_enabled()
    assert torch.inference_mode()(lambda: torch.is_grad_enabled())() is False
    assert torch.inference_mode(lambda: torch.is_grad_enabled())() is False


@triton.jit
def comparisons(x_ptr, o_ptr, n, m, eps, BLOCK: tl.constexpr):
    """Masks of scalars, `and` and `or` on blocks, loops' variables and floats as the compiler has them."""
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=(at < n) & (n > m), other=0.0)
    total = x * 0.0
    for k in range(0, 3):
        total += (k + 1).to(tl.float32) * tl.where(~(k == 0), 1.0, 0.0) + (k - 3) // 2
    x = x.to(tl.float16) * eps.to(tl.float32)
    tl.static_assert(x.dtype == tl.float32)
    tl.store(o_ptr + at, x + total, mask=(at < n) and (at >= m) or (at == 0))


@check
def numbers_in_kernels_are_those_of_the_compiler():
    x, o = torch.arange(8.0), torch.full((8,), -9.0)
    comparisons[(1,)](x, o, 6, 2, 0.5, BLOCK=8)
    want = x * 0.5 + 2 + 3 - 1 - 1  # k = 1, 2 add 2 and 3; (0 - 3) // 2 and (1 - 3) // 2 are -1, (2 - 3) // 2 is 0
    assert o.tolist() == [want[0], -9, *want[2:6], -9, -9]
    assert (
        not torch.ones(2).is_cpu
        and torch.accelerator.is_available()
        and torch.tensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    )


@check
def operators_for_cuda_run_here():
    @torch.library.custom_op("mine::twice", mutates_args=(), device_types="cuda")
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    library = torch.library.Library("mine", "FRAGMENT")
    library.define("thrice(Tensor x) -> Tensor")
    library.impl("thrice", lambda x: x * 3, "CUDA")
    x = torch.ones(3)
    assert twice(x).tolist() == [2] * 3 and torch.ops.mine.thrice(x).tolist() == [3] * 3


@check
def outputs_with_gaps_are_written_out():
    """As on a GPU, where they are copied within the time; an output that is dense costs nothing more."""
    dense, wide = torch.ones(100, 10), torch.ones(100, 1).expand(100, 10)
    with simulate.Meter(simulate.Device("test", 1e-6, 1e9, 1e18, 1e18), __file__) as meter:
        meter.copy([dense])
        assert meter.ms == 0
        (wide,) = meter.copy([wide])
    assert wide.is_contiguous() and us(meter) == 1 + (400 + 4000) / 1e3


@triton.jit
def casts(x_ptr, o_ptr, KIND: tl.constexpr, MODE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(o_ptr + at, tl.load(x_ptr + at).to(KIND, fp_downcast_rounding=MODE).to(tl.float32))


@triton.jit
def extremes(x_ptr, y_ptr, o_ptr, top, flag, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + at), tl.load(y_ptr + at)
    o = max(x, 0.0, y) + min(x, top) if flag else x
    tl.store(o_ptr + at, tl.clamp(x, -0.5, 0.5))
    tl.store(o_ptr + BLOCK + at, tl.minimum(x, y))
    tl.store(o_ptr + 2 * BLOCK + at, tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL))
    tl.store(o_ptr + 3 * BLOCK + at, o)


@check
def casts_round_and_extremes_leave_nans_out_as_on_a_gpu():
    x = torch.cat([torch.randn(1000) * 10 ** torch.linspace(-9, 6, 1000), torch.arange(24) / 16])
    o = torch.empty(1024)
    for kind, its in ((tl.float8e5, torch.float8_e5m2), (tl.float8e4nv, torch.float8_e4m3fn)):
        most = torch.finfo(its).max
        near = x.clamp(-most, most).to(its).float()
        casts[(1,)](x, o, kind, "rtne", BLOCK=1024)
        assert torch.equal(o, near)
        casts[(1,)](x, o, kind, "rtz", BLOCK=1024)
        assert (o.abs() <= x.abs()).all() and ((o == near) | (near.abs() > x.abs())).all() and not torch.equal(o, near)
    x[:3], y, o = math.nan, torch.randn(1024), torch.empty(4, 1024)
    y[2:4] = math.nan
    extremes[(1,)](x, y, o, 0.25, True, BLOCK=1024)
    assert torch.equal(o[0], torch.where(x.isnan(), -0.5, x.clamp(-0.5, 0.5)))
    assert torch.equal(o[1].nan_to_num(9), torch.fmin(x, y).nan_to_num(9)) and o[1].isnan().nonzero().tolist() == [[2]]
    assert torch.equal(o[2].isnan(), x.isnan() | y.isnan())
    want = torch.fmax(torch.fmax(x, torch.zeros(())), y) + torch.fmin(x, torch.tensor(0.25))
    assert torch.equal(o[3], want)


class Sly:
    """What would be given a kernel's values, and could do anything with them."""

    def __add__(self, x):
        raise SystemExit

    __getitem__ = __contains__ = __eq__ = __add__


class SlyPair(NamedTuple):
    one: object

    def sly(self):
        raise SystemExit


def sly(*x):
    raise SystemExit


@triton.jit
def foreign(x_ptr, F: tl.constexpr, HOW: tl.constexpr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    if HOW == "operator":
        x = F + x
    if HOW == "index":
        x = F[x]
    if HOW == "tuple":
        x = x in (F,)
    if HOW == "method":
        x = SlyPair(x).sly()
    if HOW == "reduction":
        x = tl.reduce(x, 0, F)
    if HOW == "map":
        x = tl.map_elementwise(F, x)
    if HOW == "constexpr":
        x = F(x)
    if HOW == "argument":
        x = tl.where(F, x, x)
    if HOW == "field":
        x = SlyPair(x).one * 2
    if HOW == "scaled":
        tl.dot_scaled(x, x, "e4m3", x, x, "e4m3")
    if HOW == "clock":
        tl.extra.cuda.globaltimer()
    tl.store(x_ptr + tl.arange(0, BLOCK), x)


@check
def no_object_of_python_is_given_a_kernels_values():
    x = torch.ones(4)
    for how in "operator index tuple method reduction map constexpr argument".split():
        given = {"reduction": sly, "map": sly, "constexpr": triton.constexpr_function(sly)}.get(how, Sly())
        with pytest.raises(language.NotTriton):
            foreign[(1,)](x, given, how, BLOCK=4)
    foreign[(1,)](x, 1, "field", BLOCK=4)
    assert x.tolist() == [2] * 4
    with pytest.raises(simulate.Unsupported, match="dot_scaled"):
        foreign[(1,)](x, 1, "scaled", BLOCK=4)
    with pytest.raises(simulate.Unsupported, match="globaltimer"):
        foreign[(1,)](x, 1, "clock", BLOCK=4)
    with pytest.raises(simulate.Unsupported, match="new_block"):
        interpret.interpreter.interpreter_builder.new_block()
    jitted, stolen = triton.jit(times.fn), triton.jit(times.fn)
    type(stolen).rewritten_fn[stolen.fn], stolen.rewriter = sly, None
    assert jitted.rewrite() is stolen.rewrite() and jitted.rewrite() is not sly
    scope = {"triton": triton, "tl": tl}
    exec(compile("\n" * 99999 + "@triton.jit\ndef hidden(x): pass", __file__, "exec"), scope)
    with pytest.raises(ValueError, match="defined in a Python file"):
        scope["hidden"][(1,)](x)


@check
def what_an_author_asks_of_the_device_is_answered():
    x = torch.ones(3)
    driver = triton.runtime.driver.active
    assert driver.get_active_torch_device() == x.device and driver.get_current_stream(0) == 0
    jitted = triton.jit(times.fn)
    assert "TRITON_INTERPRET" not in os.environ and isinstance(jitted, triton.runtime.JITFunction)
    assert jitted.src.startswith("def times") and [p.name for p in jitted.params] == ["a", "b"] and jitted.cache_key
    assert x.type() == "torch.cuda.FloatTensor" and x.type("torch.cuda.HalfTensor").dtype == torch.float16
    assert 4000 < triton.testing.get_dram_gbps(0) < 6000
    with torch.cuda.Stream() as stream:
        stream.wait_stream(torch.accelerator.current_stream())
    launched = add_kernel[(1,)](x, x, x, 3, BLOCK=4)
    assert launched.n_spills == 0 and launched.metadata.num_warps == 4 and isinstance(launched.asm["ptx"], str)
    meter = clock(lambda: x.tolist() + [torch.arange(2).numpy()])
    assert sum(k["launches"] for k in meter.kernels if k["name"] == "aten::_local_scalar_dense") == 5
    for call in (torch.compile, torch.cuda.CUDAGraph):
        try:
            call(print)
        except Exception as error:  # noqa: BLE001 as an honest fallback does
            assert isinstance(error, simulate.Unsupported)
    with pytest.raises(simulate.Unsupported, match="redispatch"):
        torch.ops.aten.relu.default.redispatch(None, x)
    linecache.cache["<mine>"] = 1, None, ["import triton"], "<mine>"
    assert simulate.is_own("<mine>", __file__) and not simulate.is_own("<other>", __file__)


@check
def closures_errors_and_what_is_unsupported():
    x, o = torch.randn(4), torch.empty(4)
    make_kernel(3.0)[(1,)](x, o, BLOCK=4)
    assert torch.equal(o, x * 3)
    assert "GridExecutor" not in globals()  # the plain interpreter leaves its imports in the candidate's module
    with pytest.raises(NameError, match="undefined_name"):  # not InterpreterError(repr)
        odd_kernel[(1,)](x, "name")
    for kind, text in (("asm", "inline assembly"), ("integer", "pointers made from integers")):
        with pytest.raises(simulate.Unsupported, match=text):
            odd_kernel[(1,)](x, kind)
    y, z = torch.zeros(4), torch.zeros(4)
    for kind, text in (
        ("function", "global variable spend"),
        ("handle", "no attribute 'handle'"),
        ("torch", "cannot call aten.add"),
        ("dictionary", "no attribute '__dict__'"),
        ("name", "cannot be called with values of Triton"),
        ("numpy", "gives a ndarray"),
        ("python", "sum is not defined"),
        ("lambda", "AST node type: Lambda"),
        ("text", "has no text"),
        ("float", "cannot be called with values of Triton"),
    ):
        with pytest.raises(language.NotTriton, match=text):
            clock(lambda: cheats[kind][(1,)](y, SideEffect(y, z) if kind == "torch" else z))  # noqa: B023
    assert not z.any() and not issubclass(language.NotTriton, Exception)
    for call in (
        lambda: torch.compile(torch.nn.Linear(2, 2)),
        lambda: torch.cuda.CUDAGraph(),
        lambda: torch.cuda.Event().elapsed_time(torch.cuda.Event()),
        lambda: threading.Thread(target=print).start(),
        lambda: ThreadPoolExecutor(1).submit(print),
        lambda: clock(lambda: np.from_dlpack(torch.ones(3))),
        lambda: clock(lambda: torch.ones(3).map_(torch.ones(3), max)),
        lambda: torch.ones(3).untyped_storage().tolist(),
        lambda: clock(lambda: torch.ones(30).numpy()),
        lambda: clock(lambda: torch.ones(30).tolist()),
    ):
        with pytest.raises(simulate.Unsupported):
            call()
    assert us(clock(lambda: add_kernel[(1,)](x, x, o, 0, BLOCK=4))) == 1  # as good as new; no lane is active


@check
def an_operator_of_ones_own_costs_what_it_consists_of():
    @torch.library.custom_op("drkernel_test::chain", mutates_args=())
    def chain(x: torch.Tensor) -> torch.Tensor:
        o = torch.empty_like(x)
        add_kernel[(4,)](x, x, o, x.numel(), BLOCK=256)
        return torch.relu(o) * 2

    x = torch.ones(1000)
    own = clock(lambda: chain(x))
    assert {k["name"]: k["launches"] for k in own.kernels} == {"add_kernel": 1, "aten::relu": 1, "aten::mul": 1}
    assert us(own) == 1 + 4 + 4 / 4 + 4 + 1 + 8 + 1 + 8  # kB: the kernel reads x, reads it again, writes; two operators
    assert torch.equal(chain(x), torch.full((1000,), 4.0))


@check
def outputs_are_copied_for_nothing_but_nothing_else_is():
    x = torch.ones(1000)
    with simulate.Meter(simulate.DEVICES["H200"], __file__) as meter:
        y = x * 2
        spent = meter.ms
        (z,) = meter.copy([y])
        assert meter.ms == spent and torch.equal(z, y) and z.data_ptr() != y.data_ptr()
        z.clone()
    assert meter.ms > spent


@check
def what_times_itself_is_told_the_simulated_time():
    x, y, o, seen = torch.randn(1000), torch.randn(1000), torch.empty(1000), []
    run = lambda: (add_kernel[(4,)](x, y, o, 1000, BLOCK=256), torch.relu(o))  # noqa: E731
    meter = clock(
        lambda: seen.extend([triton.testing.do_bench(run), *triton.testing.do_bench(run, quantiles=[0.5, 0.9])])
    )
    assert seen == pytest.approx([1e-3 * (1 + 12 + 1 + 8)] * 3) and us(meter) == 2 * 22


@check
def cuda_is_this_memory():
    x = torch.ones(3, device="cuda")
    assert (
        x.is_cuda and x.device == torch.device("cuda:0") and x.get_device() == 0 and x.to(x.device).numpy().sum() == 3
    )
    with torch.device("cuda"):
        assert torch.equal(torch.ones(3), x) and torch.equal(torch.arange(1.0, 2.0, device=x.device), x[:1])
    with torch.device("meta"):
        assert torch.ones(3).is_meta
    with torch.cuda.stream(torch.cuda.Stream()) as stream, torch.cuda.device_of(x):
        torch.cuda.current_stream().wait_event(torch.cuda.Event().record(stream))
        x.record_stream(stream)
    assert torch.ones(3).to("cuda", torch.float16).dtype == torch.float16
    assert torch.nn.Linear(2, 2, device=torch.device("cuda:0")).cuda().to("cuda").weight.is_cuda
    assert triton.runtime.driver.active.get_current_device() == 0
    assert torch.cuda.get_device_properties("cuda").multi_processor_count == 132
    with torch.cuda.device(0):
        torch.cuda.synchronize()


@check
def cost_of_torch_ops():
    x, y, w, i = torch.randn(10, 100), torch.randn(10, 100), torch.randn(50, 100), torch.tensor([3, 4])

    def price(run):
        with torch.no_grad():
            meter = clock(run)
        return [(k["name"].removeprefix("aten::"), round(1e3 * k["ms"] - k["launches"], 6)) for k in meter.kernels]

    assert price(lambda: x + y) == [("add", 12)] and price(lambda: x * x) == [("mul", 8)]  # x is read once
    assert price(lambda: x.add_(1)) == [("add_", 8)] and price(lambda: x.copy_(y)) == [("copy_", 8)]
    assert price(lambda: x.t().view(100, 10)[:, 1:].detach()) == []
    assert price(lambda: torch.empty(10)) == [] and price(lambda: torch.zeros(10)) == [("zeros", 0.04)]
    assert price(lambda: x + y[:1].expand(10, 100)) == [("add", 4 + 0.4 + 4)]
    assert price(lambda: torch.nn.functional.linear(x, w)) == [("mm", 4 + 20 + 2)]
    assert price(lambda: torch.softmax(x, 1)) == [("_softmax", 8)]
    assert price(lambda: torch.nn.functional.layer_norm(x, (100,))) == [("native_layer_norm", 8 + 2 * 0.04)]
    assert price(lambda: x.mean(1)) == [("mean", 4.04)] and price(lambda: torch.nn.functional.silu(x)) == [("silu", 8)]
    assert price(lambda: torch.nn.functional.embedding(i, w)) == [("embedding", 0.8 + 0.016 + 0.8)]
    assert price(lambda: x * torch.sigmoid(x)) == [("sigmoid", 8), ("mul", 12)]
    assert us(clock(lambda: torch.mm(x, w.t()), flops_per_s=1e9)) == 1 + 2 * 10 * 100 * 50 / 1e3


def main():
    results = {}
    for name, fn in CHECKS.items():
        try:
            fn()
            results[name] = ""
        except BaseException:  # noqa: BLE001 Unsupported too
            results[name] = traceback.format_exc()
            simulate.around = None
    print("\n" + json.dumps(results))


@pytest.fixture(scope="module")
def results():
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(Path(__file__).parent.parent)}
    command = [sys.executable, "-W", "ignore", __file__]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", CHECKS)
def test_simulate(name, results):
    assert not results[name], results[name]


if __name__ == "__main__":
    from kernelbench import interpret, language, simulate

    torch.set_num_threads(1)
    simulate.install()
    main()
