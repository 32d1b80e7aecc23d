"""As many programs as the device has multiprocessors walk over the rows.

layer: source
catalogue: own
task: h_softmax
expect: correct
coverage_at_least: 0.5
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, o_ptr, rows, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=2):
        at = row.to(tl.int64) * n + i
        x = tl.load(x_ptr + at, mask=i < n, other=float("-inf")) / 1.7
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(o_ptr + at, e / tl.sum(e, axis=0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        device = torch.cuda.current_device()
        sms = torch.cuda.get_device_properties(device).multi_processor_count
        sms = min(sms, triton.runtime.driver.active.utils.get_device_properties(device)["multiprocessor_count"])
        o = torch.empty_like(x)
        block = triton.next_power_of_2(x.shape[1])
        softmax_kernel[(min(sms, x.shape[0]),)](x, o, *x.shape, BLOCK=block, num_warps=8)
        return o
