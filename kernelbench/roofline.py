"""What a task must cost at least: bytes and FLOPs of its reference against what the device was measured to do.

Bytes: inputs, outputs, weights and buffers, each moved once. FLOPs: matmuls, convolutions and attention (torch's formulas), 2 for a
multiplication with its addition; elementwise work and RNNs of cuDNN are not counted. Peaks: a large copy (read and write counted) and a
large matmul in the precision in force; of the simulated device, its own figures, in units in which every byte and FLOP counts
`Device.scale` times.
"""

import torch
from torch.utils.flop_counter import flop_registry, sdpa_flop_count

from kernelbench.modes import Mode
from kernelbench.reference import PRECISIONS, Reference, nbytes
from kernelbench.simulate import DEVICES


class Flops(Mode):
    """Counts those of the operators that run inside it. Used in the reference's contestant."""

    total = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if func.overloadpacket in flop_registry:
            self.total += int(flop_registry[func.overloadpacket](*args, **kwargs, out_val=out))
        elif func.overloadpacket.__name__ == "_scaled_dot_product_flash_attention_for_cpu":
            self.total += int(sdpa_flop_count(*(x.shape for x in args[:3])))
        return out


def traffic(reference: Reference) -> int:
    """Bytes that one forward of the reference must move."""
    return nbytes(reference.like) + nbytes(reference.weights)


def peaks(device: str, simulated: str, precision: str) -> tuple[float, float]:
    """(bytes/s, FLOP/s) of the device: measured, TF32 as the caller has set it; or of the simulated one."""
    if device == "cpu":
        gpu = DEVICES[simulated]
        return gpu.bytes_per_s, gpu.flops_per_s if precision == "fp32" else gpu.dot_flops_per_s
    found = []
    for measure in (_copying, lambda: _multiplying(PRECISIONS[precision] or torch.float32)):
        found.append(measure())
        torch.cuda.empty_cache()  # before a workspace comes to lie in it, for good
    return tuple(found)


def _copying() -> float:
    a = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    b = torch.empty_like(a)
    return 2 * a.numel() / _best(lambda: b.copy_(a))


def _multiplying(dtype: torch.dtype) -> float:
    n = 4096 if dtype == torch.float32 else 8192
    a = torch.randn(n, n, device="cuda", dtype=dtype)
    b = torch.empty_like(a)
    return 2 * n**3 / _best(lambda: torch.mm(a, a, out=b))


def _best(run) -> float:
    """Seconds of the fastest of 10 runs."""
    times = []
    for _ in range(10):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 1e3)
    return min(times)


def figures(
    nbytes: int, flops: int, peak: tuple[float, float], scale: int, kernel_ms: float, reference_ms: float
) -> dict:
    """Achieved rates, the least time that the work can take at the device's peaks, and the share of it in either time."""
    nbytes, flops = nbytes * scale, flops * scale
    moved, computed = 1e3 * nbytes / peak[0], 1e3 * flops / peak[1]  # ms
    floor = max(moved, computed)
    return {
        "bytes": nbytes,
        "flops": flops,
        "gbps": nbytes / kernel_ms / 1e6,
        "tflops": flops / kernel_ms / 1e9,
        "peak_gbps": peak[0] / 1e9,
        "peak_tflops": peak[1] / 1e12,
        "bound": "memory" if moved >= computed else "compute",
        "floor_ms": floor,
        "share": floor / kernel_ms,
        "reference_share": floor / reference_ms,
    }
