"""A simulated GPU for machines without one: Triton's interpreter computes the numbers, a cost model the times.

Every Triton launch and every torch op costs `launch + max(bytes / bandwidth, flops / peak)` of a named GPU; deterministic, and always to be
labelled "simulated". `install()` once per process (TRITON_INTERPRET=1 set before triton is imported), before any candidate is loaded; `Meter`
around what is to be timed; `around` for whoever wants to stand between the caller and each launch.

Bytes of a launch are those of its active lanes: the first pass over each tensor at full price, what is read again in the same launch (a bias for
every row, a second pass over a row) at `Device.reread` of it; an atomic reads and writes. Flops: each floating-point element an operator makes,
each element reduced, 2MNK for a dot. Bytes of a torch op: its distinct inputs once, its outputs once; views are free.
Covered beside the plain interpreter: autotune, heuristics, bf16 (computed in fp32, rounded at casts and stores), TF32 dots, libdevice, vectorised
custom reductions and scans, addresses checked before memory is touched, and those rules of the compiler that wrong code breaks most: unknown
launch arguments, smallest dot. Not covered: coalescing, occupancy, shared memory limits, races; globals that are no constexpr; `x.device.type` is
"cpu" (`x.is_cuda` is True). What has no meaning here raises `Unsupported`, never a wrong number.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import math
import re
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry, sdpa_flop_count
from triton._C.libtriton import interpreter as memory
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import CUDAOptions, min_dot_size
from triton.language.extra import cuda
from triton.language.extra import libdevice as portable
from triton.runtime import interpreter
from triton.runtime.autotuner import Autotuner
from triton.runtime.interpreter import GridExecutor, InterpretedFunction, InterpreterBuilder, TensorHandle


class Unsupported(BaseException):
    """The candidate needs what this machine cannot simulate: neither right nor wrong. No `except Exception` of a candidate hides it."""


class IllegalAccess(BaseException):
    """An active lane outside every tensor of the launch. On a GPU it would end the process, so no `except Exception` hides it."""


@dataclass(frozen=True)
class Device:
    """A GPU as the cost model sees it: seconds per launch, bytes/s of memory, flops/s of fp32 vector units and of 16-bit tensor cores."""

    name: str
    launch_s: float
    bytes_per_s: float
    flops_per_s: float
    dot_flops_per_s: float
    scale: int = 1  # tasks judged without a GPU are about this much smaller than on one: each byte and flop counts so often
    reread: float = 0.2  # price of a byte that the same launch has read before, in bytes from memory

    def seconds(self, size: float, flops: float = 0, dot_flops: float = 0) -> float:
        """Time of one launch that moves `size` bytes."""
        compute = flops / self.flops_per_s + dot_flops / self.dot_flops_per_s
        return self.launch_s + self.scale * max(size / self.bytes_per_s, compute)


DEVICES = {"H200": Device("H200", launch_s=4e-6, bytes_per_s=4.3e12, flops_per_s=60e12, dot_flops_per_s=700e12, scale=200)}


@dataclass(frozen=True)
class Launch:
    """One Triton launch: the kernel's name, the file its code lives in, its tensor arguments (bases of descriptors included)."""

    name: str
    own_file: str
    tensors: list[torch.Tensor]


around: Callable[[Launch, Callable[[], None]], None] | None = None
_meter: Meter | None = None
_tuning: list[float] | None = None  # seconds of the launches of the config being tried
_busy = False  # a launch is under way: torch ops are its own business


class _Traffic:
    """Bytes and flops of one launch, and the address ranges it may touch."""

    def __init__(self, name: str, tensors: Iterable[torch.Tensor]):
        used: dict[tuple[int, int], int] = {}
        for tensor in tensors:
            storage = tensor.untyped_storage()
            span = storage.data_ptr(), storage.data_ptr() + storage.nbytes()
            used[span] = used.get(span, 0) + tensor.numel() * tensor.element_size()
        self.name = name
        self.spans: list[list[int]] = []  # disjoint, sorted
        self.dense: list[int] = []  # bytes of the tensors in each span
        for (start, end), size in sorted(used.items()):
            if self.spans and start < self.spans[-1][1]:
                self.spans[-1][1] = max(end, self.spans[-1][1])
                self.dense[-1] += size
            else:
                self.spans.append([start, end])
                self.dense.append(size)
        self.read = [0] * len(self.spans)
        self.written = self.flops = self.dot_flops = 0

    def touch(self, pointers: TensorHandle, mask: np.ndarray, what: str, read: bool = True, write: bool = False) -> None:
        """Count the active lanes of an access; raise IllegalAccess, before memory is touched, if one lies outside every span."""
        size = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        active = pointers.data if mask.all() else pointers.data[mask]
        if not active.size:
            return
        self.written += write * active.size * size
        low, high = int(active.min()), int(active.max()) + size
        for i, (start, end) in enumerate(self.spans):
            if start <= low and high <= end:
                self.read[i] += read * active.size * size
                return
        starts, ends = np.array([[0, 0], *self.spans], dtype=np.uint64).T  # the extra first span holds what lies below all others
        where = np.searchsorted(starts, active, side="right") - 1
        outside = int(((active >= ends[where]) | (ends[where] - active < size)).sum())
        if outside:
            text = f"{outside} of {active.size} active lanes of a {what} in {self.name} (program {_builder().grid_idx}) lie outside"
            raise IllegalAccess(f"illegal memory access: {text} every tensor passed to the kernel; check the mask and the offsets")
        for i, lanes in enumerate(np.bincount(where.ravel(), minlength=len(starts))[1:]):
            self.read[i] += read * int(lanes) * size

    def seconds(self, device: Device) -> float:
        first = sum(min(read, dense) for read, dense in zip(self.read, self.dense))
        size = self.written + first + device.reread * (sum(self.read) - first)
        return device.seconds(size, self.flops, self.dot_flops)


_IDLE = _traffic = _Traffic("", [])


def _builder() -> InterpreterBuilder:
    return interpreter.interpreter_builder


def _is_bf16(dtype: tl.dtype) -> bool:
    return dtype.scalar == tl.bfloat16


def _to_bits(x: np.ndarray) -> np.ndarray:
    """fp32 -> bf16 bits, to nearest even."""
    bits = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32)
    rounded = (bits + (((bits >> 16) & 1) + np.uint32(0x7FFF))) >> 16
    return np.where(np.isnan(x), 0x7FC0, rounded).astype(np.uint16)


def _from_bits(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _torch(fn: Callable) -> Callable:
    return lambda *arrays: fn(*(torch.from_numpy(np.array(a)) for a in arrays)).numpy()


_SAME = "cbrt ceil copysign cos cosh exp exp2 expm1 fabs floor fmod hypot isinf isnan ldexp log log10 log1p log2 nextafter rint signbit sin sinh"
LIBDEVICE = {name: getattr(np, name) for name in (_SAME + " sqrt tan tanh trunc abs").split()}
LIBDEVICE |= {name: getattr(np, "arc" + name[1:]) for name in "acos acosh asin asinh atan atan2 atanh".split()}
LIBDEVICE |= {name: _torch(getattr(torch.special, name)) for name in "erf erfc erfcx erfinv".split()}
LIBDEVICE |= {
    "pow": np.power,
    "powi": np.power,
    "nearbyint": np.rint,
    "llrint": np.rint,
    "fdivide": np.divide,
    "finite": np.isfinite,
    "isfinite": np.isfinite,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "exp10": lambda x: np.power(x.dtype.type(10), x),
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "llround": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "fdim": lambda x, y: np.maximum(x - y, 0),
    "fma": lambda x, y, z: x * y + z,
    "saturate": lambda x: np.clip(x, 0, 1),
    "lgamma": _torch(torch.lgamma),
    "tgamma": np.vectorize(math.gamma, otypes=[np.float64]),
    "normcdf": _torch(torch.special.ndtr),
    "normcdfinv": _torch(torch.special.ndtri),
    "cyl_bessel_i0": _torch(torch.special.i0),
    "cyl_bessel_i1": _torch(torch.special.i1),
    "add_rn": np.add,
    "sub_rn": np.subtract,
    "mul_rn": np.multiply,
    "div_rn": np.divide,
    "sqrt_rn": np.sqrt,
    "rcp_rn": np.reciprocal,
    "rsqrt_rn": lambda x: 1 / np.sqrt(x),
    "fma_rn": lambda x, y, z: x * y + z,
    "2int_rn": np.rint,
    "2int_rz": np.trunc,
    "2int_rd": np.floor,
    "2int_ru": np.ceil,
}


def _libdevice(symbol: str) -> Callable:
    """`__nv_powf` -> the numpy function; `f` or `d` may mark the type at either end."""
    name = re.sub(r"^(float|double)2(u?int|u?ll)_", "2int_", symbol.removeprefix("__nv_").removeprefix("fast_"))
    for candidate in (name, name[:-1], name[1:]):
        if candidate in LIBDEVICE:
            return LIBDEVICE[candidate]
    raise Unsupported(f"the libdevice function {symbol} is not simulated")


class _Builder(InterpreterBuilder):
    """The interpreter's builder that counts, checks addresses, and holds bf16 values as fp32 arrays."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("create_"):
            raise Unsupported(f"Triton's interpreter lacks {name.removeprefix('create_')}")
        raise AttributeError(name)

    def create_masked_load(self, ptrs, mask, other, *_, **__):
        dtype, mask = ptrs.get_element_ty(), np.asarray(mask.data)
        np_dtype = np.dtype(np.uint16) if _is_bf16(dtype) else interpreter._get_np_dtype(dtype)
        _traffic.touch(ptrs, mask, "load")
        other = np.zeros(ptrs.data.shape, np_dtype) if other is None else _to_bits(other.data) if _is_bf16(dtype) else other.data
        data = memory.load(ptrs.data, mask, other, np_dtype)
        return TensorHandle(_from_bits(data) if _is_bf16(dtype) else data, dtype)

    def create_masked_store(self, ptrs, value, mask, *_, **__):
        mask = np.asarray(mask.data)
        _traffic.touch(ptrs, mask, "store", read=False, write=True)
        return memory.store(ptrs.data, _to_bits(value.data) if _is_bf16(ptrs.get_element_ty()) else value.data, mask)

    def create_atomic_rmw(self, rmwOp, ptr, val, mask, sem, scope):
        if _is_bf16(val.dtype) or (rmwOp == ir.ATOMIC_OP.XCHG and val.dtype.scalar.is_floating()):
            raise Unsupported(f"this atomic on {val.dtype} is not simulated")
        _traffic.touch(ptr, mask.data, "atomic", write=True)
        return super().create_atomic_rmw(rmwOp, ptr, val, mask, sem, scope)

    def create_atomic_cas(self, ptr, cmp, val, sem, scope):
        if _is_bf16(val.dtype):
            raise Unsupported(f"this atomic on {val.dtype} is not simulated")
        _traffic.touch(ptr, np.ones(ptr.data.shape, bool), "atomic", write=True)
        return super().create_atomic_cas(ptr, cmp, val, sem, scope)

    def create_dot(self, a, b, d, input_precision, max_num_imprecise_acc):
        flops = 2 * d.data.size * a.data.shape[-1]
        bits = a.dtype.primitive_bitwidth
        if bits <= 16:
            _traffic.dot_flops += flops * bits // 16
        elif bits == 64 or input_precision == ir.INPUT_PRECISION.IEEE:
            _traffic.flops += flops
        else:  # TF32 runs at half the 16-bit rate and ignores the 13 lowest bits of each operand
            exact = input_precision != ir.INPUT_PRECISION.TF32
            _traffic.dot_flops += 2 * flops * (3 if exact else 1)
            if not exact:
                a, b = (TensorHandle((x.data.view(np.uint32) & 0xFFFFE000).view(np.float32), x.dtype) for x in (a, b))
        return super().create_dot(a, b, d, input_precision, max_num_imprecise_acc)

    def binary_op(self, lhs, rhs, op):
        out = super().binary_op(lhs, rhs, op)
        _traffic.flops += out.data.size * (out.data.dtype.kind == "f")
        return out

    def unary_op(self, arg, op):
        _traffic.flops += arg.data.size
        return super().unary_op(arg, op)

    def create_fma(self, x, y, z):
        _traffic.flops += 2 * x.data.size
        return super().create_fma(x, y, z)

    create_fabs = lambda self, arg: self.unary_op(arg, np.abs)
    create_erf = lambda self, arg: self.unary_op(arg, LIBDEVICE["erf"])
    create_rsqrt = lambda self, arg: self.unary_op(arg, LIBDEVICE["rsqrt"])
    get_bf16 = lambda self, value: TensorHandle(_from_bits(_to_bits(np.array([value]))), tl.bfloat16)

    def cast_impl(self, src, dst_type):
        data = src.data.astype(interpreter._get_np_dtype(dst_type.scalar))
        return TensorHandle(_from_bits(_to_bits(data)) if _is_bf16(dst_type) else data, dst_type.scalar)

    def create_fp_to_fp(self, src, dst_type, rounding_mode):
        if _is_bf16(dst_type) and src.dtype.primitive_bitwidth > 8 and rounding_mode != ir.ROUNDING_MODE.RTNE:
            raise Unsupported("casts to bf16 with another rounding than rtne are not simulated")
        src = TensorHandle(src.data, tl.float32) if _is_bf16(src.dtype) else src
        if not _is_bf16(dst_type):
            return super().create_fp_to_fp(src, dst_type, rounding_mode)
        return self.cast_impl(super().create_fp_to_fp(src, tl.float32, None), dst_type)

    def create_bitcast(self, src, dst_type):
        data = _to_bits(src.data) if _is_bf16(src.dtype) else src.data
        data = _from_bits(data.view(np.uint16)) if _is_bf16(dst_type) else data.view(interpreter._get_np_dtype(dst_type))
        return TensorHandle(data, dst_type.scalar)

    def create_int_to_ptr(self, src, dst_type):
        raise Unsupported("pointers made from integers are not simulated")

    def create_extern_elementwise(self, libName, libPath, symbol, argList, retType, isPure):
        data = np.asarray(_libdevice(symbol)(*(arg.data for arg in argList)))
        _traffic.flops += data.size
        return TensorHandle(data.astype(interpreter._get_np_dtype(retType.scalar)), retType.scalar)

    def create_inline_asm(self, *_):
        raise Unsupported("inline assembly is not simulated")

    def create_print(self, *_):
        pass


def _tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from _tensors(value)
        elif hasattr(value, "base"):  # a tensor descriptor, a reinterpreted tensor
            yield from _tensors([value.base])


_OPTIONS = {*CUDAOptions.__dataclass_fields__, "device", "stream"}
_execute = InterpretedFunction.run


def _run(self: InterpretedFunction, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> None:
    """A launch: InterpretedFunction.run, with the argument checks of the compiled one, through `around` and under the meter."""
    global _busy
    if warmup:
        raise Unsupported("a kernel compiled without a launch (warmup) has no simulated form")
    if unknown := kwargs.keys() - _OPTIONS - set(self.arg_names):
        raise KeyError(f"Keyword argument {min(unknown)} was specified but unrecognised")
    kwargs = {name: value for name, value in kwargs.items() if name in self.arg_names}
    bound = inspect.signature(self.fn).bind(*args, **kwargs)
    bound.apply_defaults()
    grid = tuple(grid(bound.arguments) if callable(grid) else grid)
    tensors = list(_tensors(bound.arguments.values()))
    launch = Launch(self.fn.__name__, self.fn.__code__.co_filename, tensors)

    def run() -> None:
        global _traffic
        _traffic = traffic = _Traffic(launch.name, tensors)
        try:
            _execute(self, *args, grid=grid, warmup=False, **kwargs)
        finally:
            _traffic = _IDLE
        if _tuning is not None:
            _tuning.append(traffic.seconds(_meter.device if _meter else DEVICES["H200"]))
        elif _meter is not None:
            _meter.add(launch.name, traffic.seconds(_meter.device), launch.own_file == _meter.own_file)

    _busy = True
    try:
        around(launch, run) if around else run()
    finally:
        _busy = False


def _call(self: InterpretedFunction, *args: Any, **kwargs: Any) -> Any:
    """A helper called by a kernel; the language is already patched, so nothing else is to be done."""
    if _traffic is _IDLE:
        raise RuntimeError("Cannot call @triton.jit'd outside of the scope of a kernel")
    return self.rewrite()(*args, **kwargs)


def _rank(call: Callable[[], None], *_: Any, **__: Any) -> list[float]:
    """Triton's benchmarker: simulated ms of one call, thrice (for the three quantiles); a config whose assertion fails ranks last."""
    global _tuning
    _tuning = []
    try:
        call()
        return [1e3 * sum(_tuning)] * 3
    except AssertionError:
        return [math.inf] * 3
    finally:
        _tuning = None


def _distinct(prune: Callable) -> Callable:
    """Configs that differ in warps or stages only cost the same here: the first of them is enough."""
    return lambda self, kwargs: list({str(c.kwargs): c for c in reversed(prune(self, kwargs))}.values())[::-1]


def _compile_and_exec(self: interpreter.FunctionRewriter, tree: Any) -> Callable:
    """As the interpreter's own, but it adds one name to the candidate's globals instead of all of its own, and keeps closures."""
    names = inspect.getclosurevars(self.fn).nonlocals
    scope = {**self.fn.__globals__, **names} if names else self.fn.__globals__
    scope["interpreter_semantic"] = interpreter.interpreter_semantic
    found: dict[str, Callable] = {}
    exec(compile(tree, self.filename, "exec"), scope, found)
    return found[self.fn.__name__]


class Meter(TorchDispatchMode):
    """Times what runs inside it, torch ops and Triton launches, on `device`. After: `kernels` (name, ms, launches, own), `ms`.

    own: the @triton.jit function lives in the file `own_file`."""

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
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if not _busy and _tuning is None and not _free(func):
            self.add(func._schema.name, self.device.seconds(*_torch_traffic(func, args, kwargs, out)))
        return out


_FREE = "empty empty_like empty_strided new_empty new_empty_strided _unsafe_view resize_ set_ is_same_size _has_compatible_shallow_copy_type"
_FILL = "zero_ fill_ copy_ normal_ uniform_ bernoulli_ random_ exponential_ zeros_like ones_like full_like rand_like randn_like new_zeros new_ones"
_PICK = "embedding index index_select gather take"


def _free(func: Any) -> bool:
    """Views and empty tensors launch nothing."""
    if func.namespace not in ("aten", "prim", "prims"):
        raise Unsupported(f"the custom operator {func} has no simulated time")
    views = [r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns]
    return any(views) or func.overloadpacket.__name__ in _FREE.split()


def _torch_traffic(func: Any, args: tuple, kwargs: dict, out: Any) -> tuple[float, float, float]:
    """Bytes, vector flops and tensor-core flops of one aten op: distinct inputs read once, outputs written once."""

    def size(t: torch.Tensor) -> int:
        return math.prod(n for n, stride in zip(t.shape, t.stride()) if stride or not n) * t.element_size()

    name = func.overloadpacket.__name__
    written = sum(size(t) for t in tree_leaves(out) if isinstance(t, torch.Tensor))
    reads = (args[1:] if name in _FILL.split() else args, {k: v for k, v in kwargs.items() if k != "out"})
    read = {(t.data_ptr(), t.shape): size(t) for t in tree_leaves(reads) if isinstance(t, torch.Tensor)}
    if name in _PICK.split():
        table = args[0].data_ptr(), args[0].shape
        read[table] = min(read[table], written)
    flops = 0
    if func.overloadpacket in flop_registry:
        flops = flop_registry[func.overloadpacket](*args, **kwargs, out_val=out)
    elif name == "_scaled_dot_product_flash_attention_for_cpu":
        flops = sdpa_flop_count(*(t.shape for t in args[:3]))
    half = any(t.dtype in (torch.float16, torch.bfloat16) for t in tree_leaves(out) if isinstance(t, torch.Tensor))
    return sum(read.values()) + written, 0 if half else flops, flops if half else 0


class _Redirect(TorchFunctionMode):
    """The candidate's "cuda" is this machine's memory; results that leave the device under the meter are refused (the CPU's work has no price)."""

    _HOST = {torch.Tensor.numpy, torch.Tensor.__array__, torch.Tensor.tolist}

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if func in (torch.Tensor.cuda, torch.Tensor.pin_memory):
            return args[0]
        if func in self._HOST and _meter is not None and not _busy:
            raise Unsupported(f"{func.__name__}() takes the computation off the simulated device")
        if func is torch.Tensor.to:
            args = tuple("cpu" if _is_cuda(a) else a for a in args)
        return func(*args, **{k: "cpu" if _is_cuda(v) and k == "device" else v for k, v in (kwargs or {}).items()})


def _is_cuda(value: Any) -> bool:
    return isinstance(value, (str, torch.device)) and str(value).startswith("cuda")


def _refuse(name: str) -> type:
    def __init__(self: Any, *_: Any, **__: Any) -> None:
        raise Unsupported(f"{name} is not simulated")

    return type(name.split(".")[-1], (), {"__init__": __init__})


class _Driver:
    """What kernels' authors ask of Triton's driver."""

    utils = types.SimpleNamespace(
        get_device_properties=lambda device: {
            "multiprocessor_count": 132, "max_shared_mem": 232448, "max_num_regs": 65536, "warpSize": 32,
            "sm_clock_rate": 1980000, "mem_clock_rate": 3201000, "mem_bus_width": 6144,
        }
    )  # fmt: skip
    get_current_device = staticmethod(lambda: 0)
    get_current_target = staticmethod(lambda: GPUTarget("cuda", 90, 32))
    get_active_torch_device = staticmethod(lambda: torch.device("cpu"))
    get_benchmarker = staticmethod(lambda: _rank)

    def __getattr__(self, name: str) -> Any:
        raise Unsupported(f"Triton's driver ({name}) is not simulated")


def install() -> None:
    """All hooks of this module, for the life of the process; before any candidate is loaded."""
    assert triton.knobs.runtime.interpret, "set TRITON_INTERPRET=1 before triton is imported"
    np.seterr(all="ignore")
    scope = interpreter._LangPatchScope()
    interpreter.interpreter_builder.__class__ = _Builder
    interpreter.interpreter_builder.codegen_fns["min_dot_size"] = min_dot_size(None)
    # The overflow check of each integer sum ends in a device_assert that only debug mode runs: all cost, no effect.
    interpreter.interpreter_builder.options = dataclasses.replace(_builder().options, sanitize_overflow=False)
    # The language is patched once and for good: the interpreter does it per launch and per call of a helper, a third of its time.
    interpreter._patch_lang(types.SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    tl.tensor.__index__ = lambda self: self.handle.data.item()
    for module in (cuda, cuda.libdevice):
        interpreter._patch_builtin(module, interpreter.interpreter_builder, scope)
    for name in portable.__dict__.keys() & cuda.libdevice.__dict__.keys():
        if not name.startswith("__"):
            setattr(portable, name, getattr(cuda.libdevice, name))
    interpreter._patch_lang = lambda fn: interpreter._LangPatchScope()
    plain_dtype, plain_valid = interpreter._get_np_dtype, interpreter._validate_np_data_size
    interpreter._get_np_dtype = functools.cache(
        lambda dtype: np.dtype(np.float32) if not dtype.scalar.is_ptr() and _is_bf16(dtype) else plain_dtype(dtype)
    )
    interpreter._validate_np_data_size = lambda array, dtype: (
        plain_valid(array, tl.float32 if not dtype.is_ptr() and _is_bf16(dtype) else dtype)
    )
    GridExecutor._init_args_hst = lambda self, args, kwargs: (args, kwargs)  # everything is on the host already
    GridExecutor._restore_args_dev = lambda self, *_: None
    interpreter.FunctionRewriter._compile_and_exec = _compile_and_exec
    InterpretedFunction.run, InterpretedFunction.__call__ = _run, _call
    Autotuner.do_bench = property(lambda self: _rank)
    Autotuner.prune_configs = _distinct(Autotuner.prune_configs)
    triton.runtime.driver.set_active(_Driver())
    triton.knobs.compilation.front_end_debugging = True  # the kernel's own exception, not its repr

    properties = types.SimpleNamespace(name="NVIDIA H200", major=9, minor=0, multi_processor_count=132, warp_size=32)
    torch.Tensor.is_cuda = property(lambda self: True)
    torch.compile = _refuse("torch.compile")
    for name in ("Event", "Stream", "CUDAGraph", "graph", "_lazy_init"):
        setattr(torch.cuda, name, _refuse(f"torch.cuda.{name}"))
    torch.cuda.synchronize = lambda device=None: None
    torch.cuda.current_device = lambda: 0
    torch.cuda.get_device_capability = lambda device=None: (9, 0)
    torch.cuda.get_device_name = lambda device=None: properties.name
    torch.cuda.get_device_properties = lambda device=None: properties
    torch.cuda.device = lambda device: contextlib.nullcontext()
    _Redirect().__enter__()
