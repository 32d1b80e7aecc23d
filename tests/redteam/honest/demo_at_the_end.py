"""A demo under `if __name__ == '__main__'` with a condition beside it, tests, get_inputs and Model in the candidate's
own file.

layer: source
catalogue: own
task: h_softmax
expect: correct
coverage_at_least: 0.9
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=-float("inf")) / 1.7
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(o_ptr + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


def softmax(x):
    o = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return o


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x / 1.7, dim=-1)


class ModelNew(nn.Module):
    def forward(self, x):
        return softmax(x)


rows, cols = 16, 100


def get_inputs():
    return [torch.randn(rows, cols).cuda()]


def get_init_inputs():
    return []


def test_it():
    (x,) = get_inputs()
    torch.testing.assert_close(ModelNew().cuda()(x), Model().cuda()(x))
    assert triton.testing.do_bench(lambda: ModelNew()(x)) > 0


if __name__ == "__main__" and torch.cuda.is_available():
    import subprocess
    import sys

    test_it()
    print(subprocess.check_output(["nvidia-smi"]), file=sys.stderr)
