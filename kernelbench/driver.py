"""What an author asks of a GPU beside work, answered as an H200 would: streams, events, generators, devices, properties, Triton's driver and the
kernels that it compiles. Nothing here takes time or touches a tensor's values; what has no answer raises `Unsupported`.

`install()` once per process; `simulate.install()` does it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import types
from collections.abc import Callable
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import interpreter
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

from kernelbench.interpret import refuse
from kernelbench.language import Unavailable, Unsupported

CUDA = torch.device("cuda", 0)


class Compiled:
    """What `kernel.warmup(..)` and a launch give: asked for its resources, and launched with all arguments in order."""

    n_regs, n_spills, n_max_threads, function = 32, 0, 1024, 0

    def __init__(self, kernel: InterpretedFunction):
        self.kernel, self.name = kernel, kernel.fn.__name__
        self.asm = dict.fromkeys(("ttir", "ttgir", "llir", "ptx"), "") | {"cubin": b""}
        about = dict(shared=1024, num_warps=4, num_ctas=1, num_stages=3, name=self.name, target=Driver.target)
        self.metadata = types.SimpleNamespace(**about)

    def _init_handles(self) -> None: ...

    def __getitem__(self, grid: Any) -> Callable:
        return lambda *args: self.kernel[grid](*args)


class Guard:
    """`with torch.cuda.device(..)`: there is one."""

    def __init__(self, *_: Any) -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, *_: Any) -> None: ...


class Generator(torch.Generator):
    """Of this machine's numbers, whatever device it is for."""

    def __new__(cls, device: Any = "cpu") -> Generator:
        return super().__new__(cls, device="cpu")


class Stream:
    """All work waits for all that came before it."""

    cuda_stream = stream_id = device_index = priority = 0
    device = CUDA

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: Any) -> None: ...

    def record_event(self, event: Event | None = None) -> Event:
        return event or Event()

    query = lambda self: True  # noqa: E731
    synchronize = wait_stream = wait_event = lambda self, *_: None


class Event:
    def __init__(self, *_: Any, **__: Any) -> None: ...

    def elapsed_time(self, end: Event) -> float:
        raise Unsupported("the time between two events is not simulated")

    query = lambda self: True  # noqa: E731
    record = wait = synchronize = lambda self, *_: None


class Driver:
    """What authors of kernels ask of Triton's driver. Clocks in kHz, bus in bits, memory in bytes."""

    target = GPUTarget("cuda", 90, 32)
    properties = dict(multiprocessor_count=132, max_shared_mem=232448, max_num_regs=65536, warpSize=32)
    properties |= dict(sm_clock_rate=1_980_000, mem_clock_rate=3_201_000, mem_bus_width=6144)
    utils = types.SimpleNamespace(get_device_properties=lambda device: dict(Driver.properties))
    get_current_device = staticmethod(lambda: 0)
    get_current_stream = staticmethod(lambda device=None: 0)
    get_current_target = staticmethod(lambda: Driver.target)
    get_active_torch_device = staticmethod(lambda: CUDA)
    get_device_interface = staticmethod(lambda: torch.cuda)
    get_device_capability = staticmethod(lambda device=0: (9, 0))
    set_current_device = staticmethod(lambda device: None)

    def __init__(self, benchmarker: Callable):
        self.get_benchmarker = lambda: benchmarker

    def __getattr__(self, name: str) -> Any:
        raise Unsupported(f"{name} of Triton's driver is not simulated")


class Jitted(InterpretedFunction):
    """What @triton.jit gives: passes for a JITFunction, and knows its parameters and its source."""

    __class__ = property(lambda self: JITFunction)

    @functools.cached_property
    def compilers(self) -> JITFunction:
        """The same function as the compiler knows it."""
        return JITFunction(self.fn, **self.kwargs)

    params, src, raw_src, signature, starting_line_number = (
        property(lambda self, name=name: getattr(self.compilers, name))
        for name in ("params", "src", "raw_src", "signature", "starting_line_number")
    )

    @property
    def cache_key(self) -> str:
        return hashlib.sha256(f"{self.src} {self.starting_line_number}".encode()).hexdigest()


def install(benchmarker: Callable) -> None:
    """All of the above, in torch and Triton. benchmarker: what ranks autotuned configs (ms)."""
    interpreter.InterpretedFunction = Jitted
    triton.runtime.driver.set_active(Driver(benchmarker))
    torch.compile = refuse("torch.compile", Unavailable)
    for name in ("CUDAGraph", "graph"):
        setattr(torch.cuda, name, refuse(f"torch.cuda.{name}", Unavailable))
    torch.cuda._lazy_init = refuse("torch.cuda._lazy_init")
    torch.cuda.Stream, torch.cuda.Event = Stream, Event
    torch.cuda.current_stream = torch.cuda.default_stream = lambda device=None: Stream()
    torch.cuda.stream = lambda stream: contextlib.nullcontext()
    torch.cuda.set_stream = lambda stream: None
    torch.cuda.device_count = lambda: 1
    for name in [name for name in vars(torch.cuda) if name.endswith("Tensor") and hasattr(torch, name)]:
        setattr(torch.cuda, name, getattr(torch, name))
    gpu = types.SimpleNamespace(name="NVIDIA H200", major=9, minor=0, multi_processor_count=132, warp_size=32)
    gpu.total_memory, gpu.L2_cache_size, gpu.max_threads_per_multi_processor = 150_112_043_008, 62_914_560, 2048
    gpu.shared_memory_per_block, gpu.shared_memory_per_block_optin = 49_152, 232_448
    gpu.shared_memory_per_multiprocessor, gpu.regs_per_multiprocessor = 233_472, 65_536
    gpu.clock_rate, gpu.memory_clock_rate, gpu.memory_bus_width = 1_980_000, 3_201_000, 6144
    torch.version.cuda = torch.version.cuda or "13.0"
    torch.Generator = Generator
    nothing = lambda *_, **__: None  # noqa: E731
    torch.cuda.set_device = torch.cuda.empty_cache = torch.cuda.reset_peak_memory_stats = nothing
    torch.cuda.memory_allocated = torch.cuda.max_memory_allocated = torch.cuda.memory_reserved = lambda device=None: 0
    torch.cuda.mem_get_info = lambda device=None: (gpu.total_memory, gpu.total_memory)
    torch.cuda.is_current_stream_capturing = lambda: False
    torch.cuda.nvtx = types.SimpleNamespace(
        range_push=nothing, range_pop=nothing, mark=nothing, range=contextlib.nullcontext
    )
    torch.cuda.is_available = lambda: True
    torch.cuda.current_device = lambda: 0
    torch.cuda.device = torch.cuda.device_of = Guard
    torch.cuda.get_device_capability = lambda device=None: (gpu.major, gpu.minor)
    torch.cuda.get_device_name = lambda device=None: gpu.name
    torch.cuda.get_device_properties = lambda device=None: gpu
    torch.cuda.synchronize = lambda device=None: None
    same = "is_available device_count synchronize current_device_index=current_device set_device_index=set_device device_index=device"
    for name in f"{same} current_stream set_stream empty_cache memory_allocated max_memory_allocated".split():
        setattr(torch.accelerator, name.split("=")[0], getattr(torch.cuda, name.split("=")[-1]))
    torch.accelerator.current_accelerator = lambda check_available=False: CUDA
