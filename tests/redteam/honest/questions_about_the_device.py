"""Asks whatever CUDA can be asked before it chooses its blocks: bf16 support, architectures, streams of torch.accelerator, properties.

layer: source
catalogue: own
task: h_softmax
expect: correct
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=-float("inf")) / 1.7
    e = tl.exp(x - tl.max(x, 0))
    tl.store(o_ptr + row * n + i, e / tl.sum(e, 0), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.half = torch.cuda.is_bf16_supported()
        p = torch.cuda.get_device_properties(torch.cuda.current_device())
        self.warps = 8 if p.major >= 8 and p.multi_processor_count > 80 else 4
        self.name = f"{p.name} ({p.total_memory / 2**30:.0f} GiB)"
        self.hip = getattr(torch.version, "hip", None) is not None

    def forward(self, x):
        assert x.is_cuda and not x.is_cpu and x.device.type == "cuda"
        o = torch.empty_like(x)
        torch.accelerator.current_stream()
        with torch.cuda.device(x.device.index):
            softmax_kernel[(x.shape[0],)](
                x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=self.warps
            )
        return o
