"""Two things that a contestant does to be hard to fool from inside its own process: memory that holds nothing, and functions that stay what
they are. Neither is proof against code that runs beside them; what the referee believes does not rest on them alone."""

import _signal
import contextlib
import inspect
import itertools
import json
import math
import os
import signal
import socket
import struct
import sys
import time
import types

import torch
from torch.library import _impls
from torch.overrides import _get_current_function_mode_stack
from torch.utils import _python_dispatch
from torch.utils._device import DeviceContext
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

from kernelbench import channel, driver, interpret, language, launches, modes, simulate, wire
from kernelbench.modes import Mode

_FUNCTIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.GetSetDescriptorType,
    type,
)
_TORCHS = ("aten/", "prim/", "prims/")  # names of operators with an implementation in Python: library/operator/device
_USED = "device frombuffer empty zeros zeros_like as_tensor where randn randint from_numpy no_grad default_generator"  # of torch, around a forward
_FIXED = (tuple, frozenset)  # tables, which are sealed like functions
_MUTABLE = {"around"}  # names that change by themselves


def _carriers() -> list:
    """What carries messages, times and tensors."""
    return [
        json,
        json.encoder,
        json.decoder,
        json.JSONEncoder,
        json.JSONDecoder,
        os,
        socket,
        socket.socket,
        struct,
        time,
        math,
        itertools,
        inspect,
        contextlib,
        contextlib.ExitStack,
        contextlib._BaseExitStack,
        wire,
        channel,
        channel.Channel,
        wire.Opened,
        wire.Shared,
        interpret,
        interpret.Traffic,
        interpret._Builder,
        language,
        driver,
        simulate,
        simulate.Device,
        simulate.Meter,
        launches,
        launches.Launches,
        launches.watch,
        DeviceContext,
        torch.Tensor,
        torch.nn.Module,
        torch.cuda,
        torch.cuda.Event,
        torch.profiler,
        torch.profiler.profile,
        torch._C._autograd,
        _python_dispatch,
        TorchDispatchMode,
        modes,
        Mode,
        Poison,
        torch.overrides,
        torch.overrides.TorchFunctionMode,
        torch._ops.OpOverload,
        torch._ops.OpOverloadPacket,
    ]


def seal(*places):
    """A function that names the first thing that has changed since: functions, methods and classes of `places` and of what else carries
    messages, times and tensors, hooks of the interpreter, modes of torch. None while all is as it was."""
    known = [
        (place, vars(place), name, value, getattr(value, "__code__", None))
        for place in [*_carriers(), *places]
        for name, value in vars(place).items()
        if isinstance(value, (*_FUNCTIONS, *_FIXED, property, staticmethod, classmethod)) and name not in _MUTABLE
    ]
    known += [(torch, vars(torch), name, vars(torch)[name], None) for name in _USED.split()]
    active, threads, hooks, figures, kernels = (
        _modes(),
        set(sys._current_frames()),
        _hooks(),
        repr(simulate.DEVICES),
        set(_impls),
    )

    def changed() -> str | None:
        for place, now, name, value, code in known:
            if now.get(name) is not value or (code is not None and value.__code__ is not code):
                return f"{place.__name__}.{name}"
        if repr(simulate.DEVICES) != figures:
            return "the simulated device"
        if own := [
            name
            for name in (_impls - kernels if len(_impls) > len(kernels) else ())
            if name.startswith(_TORCHS) and not name.endswith("/Meta")
        ]:
            return f"the operator {own[0]}"
        if _hooks() != hooks:
            return "what the interpreter calls by itself (profile and trace functions, handlers of signals)"
        if any(not _of_torch(frame) for ident, frame in sys._current_frames().items() if ident not in threads):
            return "what runs beside the forward (a thread that goes on after it)"
        return "a mode of torch" if _modes() != active else None

    return changed


def _hooks() -> list:
    tools = [sys.monitoring.get_tool(i) for i in range(6)] if hasattr(sys, "monitoring") else []  # Python 3.12
    return [sys.getprofile(), sys.gettrace(), *tools, *map(_signal.getsignal, range(1, signal.NSIG))]


def _of_torch(frame: types.FrameType | None) -> bool:
    """Whether a thread was started by torch (Inductor's compilation has one)."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(os.path.dirname(torch.__file__)):
            return True
        frame = frame.f_back
    return False


def _modes() -> list:
    """What sees every call of torch; the default device, which anybody may set, aside."""
    modes = [*_get_current_function_mode_stack(), *_get_current_dispatch_mode_stack()]
    return [mode for mode in modes if type(mode) is not DeviceContext]


def no_more_hooks(event: str, args: tuple) -> None:
    """An audit hook that lets no other be added: it would run whenever memory is made or a file opened, and could not be seen."""
    if event == "sys.addaudithook":
        raise RuntimeError


_EMPTY = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted"}
_FLOATS = {torch.float16, torch.bfloat16, torch.float32, torch.float64}
_INTEGERS = {torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}


class Poison(Mode):
    """While active, uninitialised memory holds finite random values: what is left there from before, or the zeros of fresh memory, help nobody."""

    def __init__(self, device: str):
        super().__init__()
        self.generators = {"cpu": torch.Generator(), "cuda": torch.Generator(device)}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if (
            func.overloadpacket.__name__ in _EMPTY
            and out.layout == torch.strided
            and out.device.type in self.generators
        ):
            self._fill(out)
        return out

    def _fill(self, out: torch.Tensor):
        generator, large = self.generators[out.device.type], out.nbytes > 1 << 28
        if (
            generator.device.type == "cuda" and torch.cuda.is_current_stream_capturing()
        ):  # random numbers have no place in a graph
            return
        if out.dtype in _FLOATS | _INTEGERS and large:  # one number everywhere is had sooner
            out.fill_(int(torch.randint(1, 100, (), generator=self.generators["cpu"])))
        elif out.dtype in _FLOATS:
            out.uniform_(-1000, 1000, generator=generator)
        elif out.dtype in _INTEGERS:
            out.random_(0, 2 if out.dtype == torch.bool else 100, generator=generator)
