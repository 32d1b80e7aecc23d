"""A simulated GPU for machines without one: Triton's interpreter computes the numbers, a cost model the times.

Each Triton launch and each torch op costs `launch + max(bytes / bandwidth, flops / peak)` of a named GPU: deterministic, and always to be labelled
"simulated". `install()` once per process before any candidate is loaded, with TRITON_INTERPRET=1 set before triton is imported; `Meter` around
what is to be timed; `around` for whoever wants to stand between the caller and each launch.

Bytes of a launch are those of its active lanes: the first pass over a tensor in full, what the same launch reads again (a bias for every row, a
second pass over a row) at `Device.reread`; an atomic reads and writes. Flops: each floating-point element that an operator makes or a reduction
takes, 2MNK of a dot. Bytes of a torch op: its distinct inputs and its outputs, once; views are free.
Autotune ranks configs by that time. Launch arguments are checked as a compiled kernel's. "cuda" means this machine's memory.
Not covered: coalescing, occupancy; `x.is_cuda` is True but `x.device.type` "cpu". What has no meaning here raises `Unsupported`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import triton
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry, sdpa_flop_count
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import CUDAOptions
from triton.runtime.autotuner import Autotuner
from triton.runtime.interpreter import InterpretedFunction

from kernelbench import interpret
from kernelbench.interpret import IllegalAccess, Traffic, Unsupported, refuse

__all__ = ["DEVICES", "Device", "IllegalAccess", "Launch", "Meter", "Unsupported", "install"]


@dataclass(frozen=True)
class Device:
    """A GPU as the cost model sees it: seconds per launch, bytes/s of memory, flops/s of the fp32 units and of 16-bit tensor cores."""

    name: str
    launch_s: float
    bytes_per_s: float
    flops_per_s: float
    dot_flops_per_s: float
    scale: int = 1  # tasks are about this much smaller without a GPU than on one: each byte and flop counts so often
    reread: float = 0.2  # price of a byte that the launch has read before, relative to one from memory

    def seconds(self, size: float, flops: float = 0, dot_flops: float = 0) -> float:
        compute = flops / self.flops_per_s + dot_flops / self.dot_flops_per_s
        return self.launch_s + self.scale * max(size / self.bytes_per_s, compute)


DEVICES = {
    "H200": Device("H200", launch_s=4e-6, bytes_per_s=4.3e12, flops_per_s=60e12, dot_flops_per_s=700e12, scale=200)
}


@dataclass(frozen=True)
class Launch:
    """One Triton launch: the kernel's name, the file its code lives in, its tensor arguments (bases of descriptors included), its code."""

    name: str
    own_file: str
    tensors: list[torch.Tensor]
    code: types.CodeType | None = None


around: Callable[[Launch, Callable[[], None]], None] | None = None
_meter: Meter | None = None
_tuning: list[float] | None = None  # seconds of the launches of the config being tried
_busy = False  # a launch is under way: torch ops are its own business


def _tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from _tensors(value)
        elif hasattr(value, "base"):  # a tensor descriptor, a reinterpreted tensor
            yield from _tensors([value.base])


_OPTIONS = {*CUDAOptions.__dataclass_fields__, "device", "stream"}
_plain_run = InterpretedFunction.run


def _run(self: InterpretedFunction, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> None:
    """InterpretedFunction.run, with the argument checks of a compiled kernel, through `around` and under the meter."""
    global _busy
    if warmup:
        raise Unsupported("a kernel compiled without a launch (warmup) is not simulated")
    if unknown := kwargs.keys() - _OPTIONS - set(self.arg_names):
        raise KeyError(f"Keyword argument {min(unknown)} was specified but unrecognised")
    kwargs = {name: value for name, value in kwargs.items() if name in self.arg_names}
    bound = inspect.signature(self.fn).bind(*args, **kwargs)
    bound.apply_defaults()
    grid = tuple(grid(bound.arguments) if callable(grid) else grid)
    launch = Launch(
        self.fn.__name__, self.fn.__code__.co_filename, list(_tensors(bound.arguments.values())), self.fn.__code__
    )

    def run() -> None:
        interpret.traffic = traffic = Traffic(launch.name, launch.tensors)
        try:
            _plain_run(self, *args, grid=grid, warmup=False, **kwargs)
        finally:
            interpret.traffic = interpret.IDLE
        device = _meter.device if _meter else DEVICES["H200"]
        seconds = device.seconds(traffic.first + device.reread * traffic.again, traffic.flops, traffic.dot_flops)
        if _tuning is not None:
            _tuning.append(seconds)
        elif _meter is not None:
            _meter.add(launch.name, seconds, launch.own_file == _meter.own_file)

    _busy = True
    try:
        around(launch, run) if around else run()
    finally:
        _busy = False


def _rank(call: Callable[[], None], *_: Any, **__: Any) -> list[float]:
    """Triton's benchmarker: simulated ms of one call, for each of three quantiles; a config whose assertion fails ranks last."""
    global _tuning
    _tuning = []
    try:
        call()
        return [1e3 * sum(_tuning)] * 3
    except AssertionError:
        return [math.inf] * 3
    finally:
        _tuning = None


class Meter(TorchDispatchMode):
    """Times all torch ops and Triton launches inside it, as on `device`. Not reentrant; the launches of autotuning are not counted.

    kernels: name, ms, launches, own (the @triton.jit function lives in the file `own_file`) of each distinct kernel, in order of appearance."""

    def __init__(self, device: Device, own_file: str):
        super().__init__()
        self.device, self.own_file = device, own_file
        self.kernels: list[dict] = []

    @property
    def ms(self) -> float:
        return sum(kernel["ms"] for kernel in self.kernels)

    def add(self, name: str, seconds: float, own: bool = False) -> None:
        row = next((k for k in self.kernels if (k["name"], k["own"]) == (name, own)), None)
        if row is None:
            self.kernels.append(row := {"name": name, "ms": 0.0, "launches": 0, "own": own})
        row["ms"] += 1e3 * seconds
        row["launches"] += 1

    def __enter__(self) -> Meter:
        global _meter
        _meter = self
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        global _meter
        _meter = None
        super().__exit__(*error)

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if not _busy and _tuning is None and not _free(func):
            self.add(func._schema.name, self.device.seconds(*_torch_traffic(func, args, kwargs or {}, out)))
        return out


_FREE = "empty empty_like empty_strided new_empty new_empty_strided _unsafe_view resize_ set_".split()
_FILL = "zero_ fill_ copy_ normal_ uniform_ bernoulli_ exponential_ zeros_like ones_like full_like rand_like randn_like new_zeros new_ones".split()
_PICK = "embedding index index_select gather take".split()


@functools.cache
def _free(func: Any) -> bool:
    """Views and uninitialised tensors launch nothing."""
    if func.namespace not in ("aten", "prim", "prims", "profiler"):
        raise Unsupported(f"the custom operator {func} has no simulated time")
    view = any(r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns)
    return view or func.namespace == "profiler" or func.overloadpacket.__name__ in _FREE


def _torch_traffic(func: Any, args: tuple, kwargs: dict, out: Any) -> tuple[int, int, int]:
    """Bytes, fp32 flops and 16-bit flops of an aten op: distinct inputs read once, outputs written once, broadcast dimensions not counted."""

    def tensors(tree: Any) -> list[tuple[tuple, int]]:
        found = [x for x in tree_leaves(tree) if isinstance(x, torch.Tensor)]
        dense = [math.prod(n for n, stride in zip(x.shape, x.stride()) if stride or not n) for x in found]
        return [((x.data_ptr(), x.shape), n * x.element_size()) for x, n in zip(found, dense)]

    name = func.overloadpacket.__name__
    written = sum(size for _, size in tensors(out))
    read = dict(tensors((args[1:] if name in _FILL else args, {k: v for k, v in kwargs.items() if k != "out"})))
    if name in _PICK:
        table = tensors(args[0])[0][0]
        read[table] = min(read[table], written)
    flops = 0
    if func.overloadpacket in flop_registry:
        flops = flop_registry[func.overloadpacket](*args, **kwargs, out_val=out)
    elif name == "_scaled_dot_product_flash_attention_for_cpu":
        flops = sdpa_flop_count(*(x.shape for x in args[:3]))
    half = any(isinstance(x, torch.Tensor) and x.element_size() == 2 for x in args)
    return sum(read.values()) + written, 0 if half else flops, flops if half else 0


def _is_cuda(value: Any) -> bool:
    return isinstance(value, (str, torch.device)) and str(value).startswith("cuda")


class _Redirect(TorchFunctionMode):
    """The candidate's "cuda" is this machine's memory. Under the meter no tensor leaves it: work in numpy would be free."""

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if func in (torch.Tensor.cuda, torch.Tensor.pin_memory):
            return args[0]
        if (
            func in (torch.Tensor.numpy, torch.Tensor.__array__, torch.Tensor.tolist)
            and _meter is not None
            and not _busy
        ):
            raise Unsupported(f"{func.__name__}() takes the work off the simulated device")
        if func is torch.Tensor.to:
            args = tuple("cpu" if _is_cuda(value) else value for value in args)
        return func(*args, **{k: "cpu" if k == "device" and _is_cuda(v) else v for k, v in (kwargs or {}).items()})


class _Driver:
    """What authors of kernels ask of Triton's driver, answered as an H200 would."""

    properties = dict(multiprocessor_count=132, max_shared_mem=232448, max_num_regs=65536, warpSize=32)
    utils = types.SimpleNamespace(get_device_properties=lambda device: _Driver.properties)
    get_current_device = staticmethod(lambda: 0)
    get_current_target = staticmethod(lambda: GPUTarget("cuda", 90, 32))
    get_active_torch_device = staticmethod(lambda: torch.device("cpu"))
    get_benchmarker = staticmethod(lambda: _rank)

    def __getattr__(self, name: str) -> Any:
        raise Unsupported(f"{name} of Triton's driver is not simulated")


def install() -> None:
    """All hooks of this module, for the life of the process."""
    interpret.patch()
    InterpretedFunction.run = _run
    prune = (
        Autotuner.prune_configs
    )  # of configs that differ in warps or stages alone, and cost the same here, only the first is run
    Autotuner.prune_configs = lambda self, kwargs: [*{str(c.kwargs): c for c in prune(self, kwargs)[::-1]}.values()][
        ::-1
    ]
    Autotuner.do_bench = property(lambda self: _rank)
    triton.runtime.driver.set_active(_Driver())
    torch.Tensor.is_cuda = property(lambda self: True)
    torch.compile = refuse("torch.compile")
    for name in ("CUDAGraph", "Event", "Stream", "graph", "_lazy_init"):
        setattr(torch.cuda, name, refuse(f"torch.cuda.{name}"))
    gpu = types.SimpleNamespace(name="NVIDIA H200", major=9, minor=0, multi_processor_count=132, warp_size=32)
    torch.cuda.is_available = lambda: True
    torch.cuda.current_device = lambda: 0
    torch.cuda.device = lambda device: contextlib.nullcontext()
    torch.cuda.get_device_capability = lambda device=None: (gpu.major, gpu.minor)
    torch.cuda.get_device_name = lambda device=None: gpu.name
    torch.cuda.get_device_properties = lambda device=None: gpu
    torch.cuda.synchronize = lambda device=None: None
    _Redirect().__enter__()
