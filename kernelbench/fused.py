"""Comparing large outputs on a GPU: each value is read once, where torch's operators would write and read a dozen temporaries. An output of
6 GiB takes some 5 ms instead of 40. See compare.py, which says the same of smaller outputs and wherever these kernels cannot be used."""

import torch
import triton
import triton.language as tl

BLOCK, PROGRAMS = 4096, 1024


@triton.jit(do_not_specialize=["n"])
def _sums_kernel(t_ptr, shift, sums_ptr, squares_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((), tl.float64)
    square = tl.zeros((), tl.float64)
    first = tl.program_id(0).to(tl.int64) * BLOCK
    step = tl.num_programs(0).to(tl.int64) * BLOCK
    for start in range(first, n, step):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(t_ptr + i, mask=i < n, other=0).to(tl.float32) - shift
        x = tl.where(i < n, x, 0.0)
        total += tl.sum(x, 0).to(tl.float64)
        square += tl.sum(x * x, 0).to(tl.float64)
    tl.store(sums_ptr + tl.program_id(0), total)
    tl.store(squares_ptr + tl.program_id(0), square)


@triton.jit(do_not_specialize=["n"])
def _right_kernel(o_ptr, e_ptr, tolerance, slack, rights_ptr, errors_ptr, n, BLOCK: tl.constexpr):
    right = tl.zeros((), tl.int64)
    error = tl.zeros((), tl.float64)
    first = tl.program_id(0).to(tl.int64) * BLOCK
    step = tl.num_programs(0).to(tl.int64) * BLOCK
    for start in range(first, n, step):
        i = start + tl.arange(0, BLOCK)
        o = tl.load(o_ptr + i, mask=i < n, other=0).to(tl.float32)
        e = tl.load(e_ptr + i, mask=i < n, other=0).to(tl.float32)
        off = tl.abs(o - e)
        right += tl.sum(((off <= tl.abs(e) * tolerance + slack) & (i < n)).to(tl.int32), 0).to(tl.int64)
        error += tl.sum(off * off, 0).to(tl.float64)
    tl.store(rights_ptr + tl.program_id(0), right)
    tl.store(errors_ptr + tl.program_id(0), error)


def _partial(kernel, dtype: torch.dtype, *args) -> tuple[float, float]:
    """The sums over all programs of the two things that each of them finds. args: tensors of one shape, contiguous, and numbers."""
    t = args[0]
    found = [torch.empty(PROGRAMS, dtype=d, device=t.device) for d in (dtype, torch.float64)]
    kernel[(PROGRAMS,)](*args, *found, t.numel(), BLOCK=BLOCK, num_warps=8)
    return found[0].sum().item(), found[1].sum().item()


def sums(t: torch.Tensor, shift: float) -> tuple[float, float]:
    """Of t - shift: the sum, the sum of squares. Not finite where one of t's values is not."""
    return _partial(_sums_kernel, torch.float64, t, shift)


def right(output: torch.Tensor, expected: torch.Tensor, tolerance: float, slack: float) -> tuple[int, float]:
    """How many values are within slack + tolerance |e|; the sum of the squared differences of all."""
    return _partial(_right_kernel, torch.int64, output, expected, tolerance, slack)


def warm(device: str):
    """Compiles the kernels, for float32 and whatever number of values (below 2^31)."""
    t = torch.zeros(1, device=device)
    sums(t, 0.5), right(t, t, 0.5, 0.5)
