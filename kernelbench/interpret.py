"""Triton's interpreter, made to count and made right: addresses checked before memory is touched, bytes and flops per launch, bf16, libdevice.

`patch()` once per process, TRITON_INTERPRET=1 set before triton is imported; `simulate.install()` does it and adds time and launches.

What the plain interpreter lacks or gets wrong: bf16 (here computed in fp32, rounded at casts and stores), TF32 dots, libdevice, custom reductions and
scans (one Python call per element there, log2(n) here), closures, a candidate's missing imports (which it fills in), the compiler's smallest dot,
and speed: it patches the language anew in each launch and each call of a helper, and checks each integer sum for overflow without effect.
Not covered: shared memory limits, races, globals that are no constexpr, atomics on bf16, dot_scaled, inline assembly, pointers made from integers.
What has no meaning here raises `Unsupported`: never a wrong number.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from triton._C.libtriton import interpreter as memory
from triton._C.libtriton import ir
from triton.backends.nvidia.compiler import min_dot_size
from triton.language.extra import libdevice as portable
from triton.language.extra.cuda import libdevice
from triton.runtime import interpreter
from triton.runtime.interpreter import GridExecutor, InterpretedFunction, TensorHandle

from kernelbench import language
from kernelbench.language import NotTriton, Unsupported


class IllegalAccess(BaseException):
    """An active lane outside every tensor of the launch. A BaseException, because on a GPU it would end the process."""


class Traffic:
    """Bytes and flops of one launch, and the addresses it may touch."""

    def __init__(self, name: str, tensors: Iterable[torch.Tensor]):
        self.name = name
        used: dict[tuple[int, int], int] = {}
        for tensor in tensors:
            start, size = tensor.untyped_storage().data_ptr(), tensor.untyped_storage().nbytes()
            used[start, start + size] = used.get((start, start + size), 0) + tensor.numel() * tensor.element_size()
        # [start, end, bytes of the tensors there, bytes read, lowest and highest address read], disjoint and sorted
        self.spans: list[list[int]] = []
        for (start, end), size in sorted(used.items()):
            if self.spans and start < self.spans[-1][1]:
                self.spans[-1][1:3] = max(end, self.spans[-1][1]), self.spans[-1][2] + size
            else:
                self.spans.append([start, end, min(size, end - start), 0, end, start])
        self.written = self.flops = self.dot_flops = 0

    def touch(self, pointers: TensorHandle, mask: np.ndarray, what: str) -> None:
        """Counts the active lanes of a "load", "store" or "atomic"; IllegalAccess if one of them lies outside every span."""
        size = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        active = pointers.data if mask.all() else pointers.data[mask]
        if not active.size:
            return
        self.written += size * active.size * (what != "load")
        low, high = int(active.min()), int(active.max()) + size
        for span in self.spans:
            if span[0] <= low and high <= span[1]:
                if what != "store":
                    span[3:] = span[3] + size * active.size, min(span[4], low), max(span[5], high)
                return
        bounds = np.array([[0, 0], *(span[:2] for span in self.spans)], dtype=np.uint64)  # row 0: below every span
        where = np.searchsorted(bounds[:, 0], active, side="right") - 1
        ends = bounds[where, 1]
        if outside := int(((active >= ends) | (ends - active < size)).sum()):
            place = f"{self.name}, program {interpreter.interpreter_builder.grid_idx}, {what}"
            text = f"{outside} of {active.size} active lanes lie outside every tensor passed to the kernel"
            raise IllegalAccess(f"illegal memory access: {place}: {text}; check its mask and offsets")
        for i, span in enumerate(self.spans if what != "store" else (), 1):
            if (there := active[where == i]).size:
                span[3] += size * there.size
                span[4:] = min(span[4], int(there.min())), max(span[5], int(there.max()) + size)

    @staticmethod
    def _once(span: list[int]) -> int:
        """Bytes that can be read for the first time: of the tensors that were passed, or from the first to the last that was read."""
        return max(span[2], span[5] - span[4])

    @property
    def first(self) -> int:
        """Bytes written, and read for the first time."""
        return self.written + sum(min(span[3], self._once(span)) for span in self.spans)

    @property
    def again(self) -> int:
        """Bytes read again: what exceeds one pass over the tensors of a span."""
        return sum(max(0, span[3] - self._once(span)) for span in self.spans)


IDLE = Traffic("", [])
traffic = IDLE  # of the launch under way
_NP_DTYPES = {"bf16": np.dtype(np.float32)}  # bf16 values live in fp32 arrays
_plain_np_dtype = interpreter._get_np_dtype


def _np_dtype(dtype: tl.dtype) -> np.dtype:
    if dtype.scalar.is_ptr():
        return np.dtype(np.uint64)
    if dtype.scalar.name not in _NP_DTYPES:
        _NP_DTYPES[dtype.scalar.name] = _plain_np_dtype(dtype.scalar)
    return _NP_DTYPES[dtype.scalar.name]


def _to_bits(x: np.ndarray) -> np.ndarray:
    """fp32 -> bf16 bits, to nearest even."""
    bits = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32)
    rounded = (bits + (((bits >> 16) & 1) + np.uint32(0x7FFF))) >> 16
    return np.where(np.isnan(x), 0x7FC0, rounded).astype(np.uint16)


def _from_bits(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _tf32(x: np.ndarray) -> np.ndarray:
    return (np.ascontiguousarray(x).view(np.uint32) & 0xFFFFE000).view(np.float32)


def _torch(fn: Callable) -> Callable:
    def call(*arrays):
        with torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction():
            return fn(*(torch.from_numpy(np.array(a)) for a in arrays)).numpy()

    return call


_FP8 = dict(fp8e5="e5m2", fp8e4nv="e4m3fn", fp8e4b8="e4m3fnuz", fp8e5b16="e5m2fnuz")
_FP8 = {name: getattr(torch, f"float8_{its}") for name, its in _FP8.items()}


def _numbers(data: np.ndarray, dtype: tl.dtype) -> np.ndarray:
    """What the bits of an 8-bit float stand for, in fp32; other floats as they are."""
    if dtype.primitive_bitwidth > 8:
        return data
    return _torch(lambda bits: bits.view(_FP8[dtype.name]).float())(data)


def _convert_float(data: np.ndarray, source: tl.dtype, target: tl.dtype, rounding: Any) -> np.ndarray:
    """Numbers of `source` as those of `target`, 8-bit floats as their bits: to nearest even, or towards zero. As on a GPU, the largest 8-bit
    number stands for all beyond it."""
    if "fp8e4b15" in (source.name, target.name):
        raise Unsupported("fp8e4b15 is not simulated")
    x = _numbers(data, source)
    if target.primitive_bitwidth > 8:
        out = x.astype(_np_dtype(target))
    else:
        kind, most = _FP8[target.name], torch.finfo(_FP8[target.name]).max
        out = _torch(lambda x: x.to(kind).view(torch.uint8))(np.clip(x.astype(np.float32), -most, most))
    if rounding == ir.ROUNDING_MODE.RTZ:
        bits = out.view(f"u{out.dtype.itemsize}")
        out = (bits - (np.abs(_numbers(out, target)) > np.abs(x))).astype(bits.dtype).view(out.dtype)
    return out


def _named(words: str, module: Any) -> dict[str, Callable]:
    """ "name" or "name=its name in the module"."""
    return {word.split("=")[0]: getattr(module, word.split("=")[-1]) for word in words.split()}


_NUMPY = """abs acos=arccos acosh=arccosh add_rn=add asin=arcsin asinh=arcsinh atan=arctan atan2=arctan2 atanh=arctanh cbrt ceil copysign cos cosh
    div_rn=divide exp exp2 expm1 fabs fdivide=divide finite=isfinite floor fmod hypot isfinite isinf isnan ldexp llrint=rint log log10 log1p log2
    mul_rn=multiply nearbyint=rint nextafter pow=power powi=power rcp_rn=reciprocal rint signbit sin sinh sqrt sqrt_rn=sqrt sub_rn=subtract tan tanh
    to_rd=floor to_rn=rint to_ru=ceil to_rz=trunc trunc"""
_SPECIAL = """cyl_bessel_i0=i0 cyl_bessel_i1=i1 erf erfc erfcx erfinv j0=bessel_j0 j1=bessel_j1 lgamma=gammaln normcdf=ndtr normcdfinv=ndtri
    y0=bessel_y0 y1=bessel_y1"""
_LIBDEVICE: dict[str, Callable] = {
    **_named(_NUMPY, np),
    **{name: _torch(fn) for name, fn in _named(_SPECIAL, torch.special).items()},
    "exp10": lambda x: np.power(x.dtype.type(10), x),
    "fdim": lambda x, y: np.maximum(x - y, 0),
    "fma": lambda x, y, z: x * y + z,
    "fma_rn": lambda x, y, z: x * y + z,
    "rsqrt_rn": lambda x: 1 / np.sqrt(x),
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "rhypot": lambda x, y: 1 / np.hypot(x, y),
    "norm3d": lambda x, y, z: np.sqrt(x * x + y * y + z * z),
    "sinpi": lambda x: np.sin(np.pi * x),
    "cospi": lambda x: np.cos(np.pi * x),
    "remainder": lambda x, y: x - y * np.rint(x / y),
    "scalbn": lambda x, n: np.ldexp(x, n),
    "logb": lambda x: np.floor(np.log2(np.abs(x))).astype(x.dtype),
    "ilogb": lambda x: np.floor(np.log2(np.abs(x))).astype(np.int32),
    "llround": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x).astype(np.int64),
    "popc": lambda x: np.bitwise_count(x.view(f"u{x.dtype.itemsize}")),
    "clz": lambda x: x.dtype.itemsize * 8 - np.ceil(np.log2(x.astype(np.float64) % 2.0 ** (8 * x.dtype.itemsize) + 1)),
    "ffs": lambda x: np.where(x == 0, 0, np.log2((x & -x).astype(np.float64) % 2.0 ** (8 * x.dtype.itemsize)) + 1),
    "mul24": lambda x, y: (x << 8 >> 8) * (y << 8 >> 8),
    "mulhi": lambda x, y: x.astype(np.int64) * y.astype(np.int64) >> 32,
    "float_as_int": lambda x: x.view(np.int32),
    "int_as_float": lambda x: x.view(np.float32),
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "saturate": lambda x: np.clip(x, 0, 1),
    "hadd": lambda x, y: (x & y) + ((x ^ y) >> 1),
    "rhadd": lambda x, y: (x | y) - ((x ^ y) >> 1),
    "sad": lambda x, y, z: np.where(x > y, x - y, y - x).view(z.dtype) + z,
    "brev": lambda x: _reversed(x),
    "byte_perm": lambda x, y, s: _permuted(x, y, s),
    "jn": lambda n, x: _bessel(n, x),
    "double2hiint": lambda x: (x.view(np.int64) >> 32).astype(np.int32),
    "double2loint": lambda x: x.view(np.int64).astype(np.int32),
    "float_as_uint": lambda x: x.view(np.uint32),
    "uint_as_float": lambda x: x.view(np.float32),
    "double_as_longlong": lambda x: x.view(np.int64),
    "longlong_as_double": lambda x: x.view(np.float64),
    "norm4d": lambda x, y, z, t: np.sqrt(x * x + y * y + z * z + t * t),
    "rnorm3d": lambda x, y, z: 1 / np.sqrt(x * x + y * y + z * z),
    "rnorm4d": lambda x, y, z, t: 1 / np.sqrt(x * x + y * y + z * z + t * t),
    "erfcinv": _torch(lambda x: torch.special.ndtri(x.double() / 2) / -math.sqrt(2)),
    "tgamma": np.vectorize(math.gamma, otypes=[np.float64]),
}


def _bessel(n: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Bessel functions of the first kind and of integer order, as the mean of their integral's values, which converges with all speed."""
    size = np.abs(x, dtype=np.float64)
    most = int(np.max(size + np.abs(n), initial=0, where=np.isfinite(size)))
    if most > 4000:
        raise Unsupported("jn of large arguments is not simulated")
    at = (np.arange(64 + most) + 0.5) * np.pi / (64 + most)
    return np.cos(n[..., None] * at - x[..., None].astype(np.float64) * np.sin(at)).mean(-1)


def _reversed(x: np.ndarray) -> np.ndarray:
    """The bits of each integer in the other order."""
    bits = np.unpackbits(np.ascontiguousarray(x).view(np.uint8).reshape(-1, x.dtype.itemsize), axis=1)
    return np.packbits(bits[:, ::-1], axis=1).view(x.dtype).reshape(x.shape)


def _permuted(x: np.ndarray, y: np.ndarray, selector: np.ndarray) -> np.ndarray:
    """Four bytes of the eight of y and x, by the lowest three bits of the selector's four lowest nibbles."""
    both, out = y.astype(np.uint32).astype(np.uint64) << 32 | x.astype(np.uint32), np.zeros(x.shape, np.uint64)
    for i in range(4):
        place = selector.astype(np.uint64) >> 4 * i & 7
        out |= (both >> 8 * place & 255) << 8 * i
    return out.astype(np.uint32).view(np.int32)


def _libdevice(symbol: str) -> Callable:
    """`__nv_powf` -> np.power: an `f` or `d` at either end marks the type."""
    name = re.sub(
        r"^(float|double)2(u?int|u?ll)_|^(u?int|u?ll|double)2(float|double)_(?=rn)",
        "to_",
        symbol.removeprefix("__nv_").removeprefix("fast_"),
    )
    for candidate in (name, name[:-1], name[1:], name.removesuffix("ll")):
        if candidate in _LIBDEVICE:
            return _LIBDEVICE[candidate]
    raise Unsupported(f"the libdevice function {symbol} is not simulated")


class _Builder(interpreter.InterpreterBuilder):
    """The interpreter's builder that counts, checks addresses, and holds bf16 values as fp32 arrays."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("grid_idx", "grid_dim"):
            raise AttributeError(name)
        raise Unsupported(f"Triton's interpreter lacks {name.removeprefix('create_')}")

    def create_masked_load(self, ptrs, mask, other, *_, **__):
        dtype, mask = ptrs.get_element_ty(), np.asarray(mask.data)
        traffic.touch(ptrs, mask, "load")
        other = np.zeros(ptrs.data.shape, _np_dtype(dtype)) if other is None else other.data
        if dtype.is_bf16():
            return TensorHandle(_from_bits(memory.load(ptrs.data, mask, _to_bits(other), np.dtype(np.uint16))), dtype)
        return TensorHandle(memory.load(ptrs.data, mask, other, _np_dtype(dtype)), dtype)

    def create_masked_store(self, ptrs, value, mask, *_, **__):
        mask = np.asarray(mask.data)
        traffic.touch(ptrs, mask, "store")
        return memory.store(ptrs.data, _to_bits(value.data) if ptrs.get_element_ty().is_bf16() else value.data, mask)

    def create_atomic_rmw(self, rmwOp, ptr, val, mask, sem, scope):
        if val.dtype.scalar.is_bf16() or (rmwOp == ir.ATOMIC_OP.XCHG and val.dtype.scalar.is_floating()):
            raise Unsupported(f"this atomic on {val.dtype.scalar} is not simulated")
        traffic.touch(ptr, np.asarray(mask.data), "atomic")
        return super().create_atomic_rmw(rmwOp, ptr, val, mask, sem, scope)

    def create_atomic_cas(self, ptr, cmp, val, sem, scope):
        if val.dtype.scalar.is_bf16():
            raise Unsupported("atomics on bf16 are not simulated")
        traffic.touch(ptr, np.ones(ptr.data.shape, bool), "atomic")
        return super().create_atomic_cas(ptr, cmp, val, sem, scope)

    def create_dot(self, a, b, d, input_precision, max_num_imprecise_acc):
        flops, bits = 2 * d.data.size * a.data.shape[-1], a.dtype.scalar.primitive_bitwidth
        if bits <= 16:
            traffic.dot_flops += flops * bits // 16
        elif bits == 64 or input_precision == ir.INPUT_PRECISION.IEEE:
            traffic.flops += flops
        elif input_precision == ir.INPUT_PRECISION.TF32:  # half the rate; the 13 lowest bits are ignored
            traffic.dot_flops += 2 * flops
            a, b = (TensorHandle(_tf32(x.data), x.dtype) for x in (a, b))
        else:
            traffic.dot_flops += 6 * flops
        return super().create_dot(a, b, d, input_precision, max_num_imprecise_acc)

    def binary_op(self, lhs, rhs, op):
        out = super().binary_op(lhs, rhs, op)
        if out.data.dtype == bool:  # a comparison, whatever was compared
            out = TensorHandle(out.data, tl.int1)
        traffic.flops += out.data.size * (out.data.dtype.kind == "f")
        return out

    def unary_op(self, arg, op):
        traffic.flops += arg.data.size
        return super().unary_op(arg, op)

    def create_fma(self, x, y, z):
        traffic.flops += 2 * z.data.size
        return super().create_fma(x, y, z)

    def create_clampf(self, arg, lo, hi, propagate_nans):
        traffic.flops += 2 * arg.data.size
        every = propagate_nans == tl.PropagateNan.ALL
        return self.ternary_op(arg, lo, hi, np.clip if every else lambda x, lo, hi: np.fmin(np.fmax(x, lo), hi))

    def create_maxnumf(self, lhs, rhs):
        return self.binary_op(lhs, rhs, np.fmax)

    def create_minnumf(self, lhs, rhs):
        return self.binary_op(lhs, rhs, np.fmin)

    def create_descriptor_reduce(self, kind, desc, value, indices):
        op = kind.name.removeprefix("DESCRIPTOR_REDUCE_KIND.")
        dtype = value.dtype.scalar
        op = {"ADD": "FADD"}.get(op, op) if dtype.is_floating() else op
        op = f"U{op}" if op in ("MIN", "MAX") and dtype.is_int_unsigned() else op
        if op not in ir.ATOMIC_OP.__members__ or (op != "FADD" and dtype.is_floating()):
            raise Unsupported(f"the descriptor's atomic {kind.name} on {dtype} is not simulated")
        pointers, mask = desc.materialize_pointers(indices)
        order, mask = ir.MEM_SEMANTIC.RELAXED, TensorHandle(mask, tl.int1)
        return self.create_atomic_rmw(getattr(ir.ATOMIC_OP, op), pointers, value, mask, order, None)

    def create_fabs(self, arg):
        return self.unary_op(arg, np.abs)

    def create_erf(self, arg):
        return self.unary_op(arg, _LIBDEVICE["erf"])

    def create_rsqrt(self, arg):
        return self.unary_op(arg, _LIBDEVICE["rsqrt"])

    def get_bf16(self, value):
        return self.cast_impl(self.get_fp32(value), tl.bfloat16)

    def cast_impl(self, src, dst_type):
        data = src.data.astype(_np_dtype(dst_type))
        return TensorHandle(_from_bits(_to_bits(data)) if dst_type.scalar.is_bf16() else data, dst_type.scalar)

    def create_fp_to_fp(self, src, dst_type, rounding_mode):
        src = TensorHandle(src.data, tl.float32) if src.dtype.scalar.is_bf16() else src
        if not dst_type.scalar.is_bf16():
            data = _convert_float(src.data, src.dtype.scalar, dst_type.scalar, rounding_mode)
            return TensorHandle(data, dst_type.scalar)
        if src.dtype.scalar.primitive_bitwidth > 8:
            raise Unsupported("casts to bf16 that do not round to nearest are not simulated")
        return self.cast_impl(super().create_fp_to_fp(src, tl.float32, None), dst_type)

    def create_bitcast(self, src, dst_type):
        data = _to_bits(src.data) if src.dtype.scalar.is_bf16() else src.data
        data = _from_bits(data.view(np.uint16)) if dst_type.scalar.is_bf16() else data.view(_np_dtype(dst_type))
        return TensorHandle(data, dst_type.scalar)

    def create_extern_elementwise(self, libName, libPath, symbol, argList, retType, isPure):
        data = np.asarray(_libdevice(symbol)(*(arg.data for arg in argList)))
        traffic.flops += data.size
        return TensorHandle(data.astype(_np_dtype(retType)), retType.scalar)

    def create_int_to_ptr(self, src, dst_type):
        raise Unsupported("pointers made from integers are not simulated")

    def create_inline_asm(self, *_):
        raise Unsupported("inline assembly is not simulated")

    def create_print(self, *_):
        pass


def _combine(op: Any, dtypes: list[tl.dtype], left: list[np.ndarray], right: list[np.ndarray]) -> list[np.ndarray]:
    """The combine function of a reduction or scan, on whole arrays."""
    if not isinstance(op.combine_fn, InterpretedFunction):
        raise NotTriton("a reduction needs a @triton.jit function")
    pairs = [*zip(left, dtypes), *zip(right, dtypes)]
    out = op.combine_fn(*(tl.tensor(TensorHandle(x, t), tl.block_type(t, list(x.shape))) for x, t in pairs))
    return [x.handle.data for x in (out if isinstance(out, (tuple, tl.tuple)) else (out,))]


def _reduce(self: interpreter.ReduceOps, tensors: tuple) -> list[tl.tensor]:
    """generic_reduce as a tree over neighbours: log2(n) calls of the combine function instead of one for each element."""
    dtypes, axis, rank = [x.dtype for x in tensors], self.axis or 0, tensors[0].handle.data.ndim
    data = [x.handle.data.ravel() if self.axis is None else x.handle.data for x in tensors]
    while (n := data[0].shape[axis]) > 1:
        left, right = ([np.take(x, range(first, n, 2), axis) for x in data] for first in (0, 1))
        data = _combine(self, dtypes, left, right)
    if not self.keep_dims:
        data = [x.squeeze(axis) for x in data]
    elif self.axis is None:
        data = [x.reshape((1,) * rank) for x in data]
    return [self.to_tensor(x, t) for x, t in zip(data, dtypes)]


def _scan(self: interpreter.ScanOps, tensors: tuple) -> list[tl.tensor]:
    """generic_scan in log2(n) steps (Hillis and Steele 1986): x[i] = x[i - step] * x[i] for i >= step."""
    dtypes, data = [x.dtype for x in tensors], [x.handle.data for x in tensors]
    shape, axis = data[0].shape, self.axis % data[0].ndim
    index, step = np.arange(shape[axis]).reshape([-1 if i == axis else 1 for i in range(len(shape))]), 1
    while step < shape[axis]:
        ahead = _combine(self, dtypes, [np.roll(x, step, axis) for x in data], data)
        data = [np.where(index >= step, new, old) for new, old in zip(ahead, data)]
        step *= 2
    return [self.to_tensor(x, t) for x, t in zip(data, dtypes)]


_plain_check_tensor = interpreter.ReduceScanOpInterface.check_tensor


def _check_tensor(self: interpreter.ReduceScanOpInterface, tensors: tuple) -> None:
    _plain_check_tensor(self, tensors)
    traffic.flops += sum(x.handle.data.size for x in tensors)


def _call(self: InterpretedFunction, *args: Any, **kwargs: Any) -> Any:
    """A helper called by a kernel."""
    if traffic is IDLE:
        raise RuntimeError("Cannot call @triton.jit'd outside of the scope of a kernel")
    return self.rewrite()(*args, **kwargs)


def refuse(name: str, error: type[Unsupported] = Unsupported) -> type:
    """Stands in for a function or class that cannot be had here."""

    def __init__(self: Any, *_: Any, **__: Any) -> None:
        raise error(f"{name} is not simulated")

    return type(name.split(".")[-1], (), {"__init__": __init__})


def patch() -> None:
    """All of the above, for the life of the process."""
    assert triton.knobs.runtime.interpret, "set TRITON_INTERPRET=1 before triton is imported"
    vars(triton.knobs.runtime)["interpret"] = True  # remembered; a candidate that asks is on a GPU
    os.environ.pop("TRITON_INTERPRET", None)
    np.seterr(all="ignore")
    builder = interpreter.interpreter_builder
    builder.__class__ = _Builder
    builder.codegen_fns["min_dot_size"] = min_dot_size(None)
    # The overflow check of each integer sum ends in a device_assert that only debug mode runs: half of the interpreter's time, no effect.
    builder.options = dataclasses.replace(builder.options, sanitize_overflow=False)
    interpreter._get_np_dtype = _np_dtype
    interpreter._validate_np_data_size = lambda array, dtype: (
        dtype.is_ptr() or 8 * array.itemsize <= max(8, 32 if dtype.scalar.is_bf16() else dtype.primitive_bitwidth)
    )
    interpreter._patch_lang(types.SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    interpreter._patch_builtin(libdevice, builder, interpreter._LangPatchScope())
    interpreter._patch_lang = lambda fn: interpreter._LangPatchScope()  # once is enough
    for name in vars(portable).keys() & vars(libdevice).keys():
        if not name.startswith("_"):
            setattr(portable, name, getattr(libdevice, name))
    tl.range = language.loop
    plain_argument = interpreter._implicit_cvt
    interpreter._implicit_cvt = lambda value: (  # a float is an fp32 number, a flag one bit, as compiled
        interpreter.interpreter_semantic.to_tensor(value) if type(value) in (float, bool) else plain_argument(value)
    )
    tl.tensor.__index__ = lambda self: self.handle.data.item()
    # what an operator of a constexpr on a tensor gives is a tensor
    tl.constexpr.__new__ = lambda cls, value: value if isinstance(value, tl.tensor) else object.__new__(cls)
    language.complete()
    interpreter._convert_float = _convert_float
    interpreter.ReduceScanOpInterface.check_tensor = _check_tensor
    interpreter.ReduceOps.generic_reduce, interpreter.ScanOps.generic_scan = _reduce, _scan
    interpreter.FunctionRewriter._compile_and_exec = language.compile_and_exec
    interpreter.FunctionRewriter._find_def, interpreter.FunctionRewriter.rewrite_ast = (
        language.find_def,
        language.rewrite,
    )
    InterpretedFunction.__call__ = _call
    GridExecutor._init_args_hst = lambda self, args, kwargs: (args, kwargs)  # everything is on the host already
    GridExecutor._restore_args_dev = lambda self, *_: None
    triton.knobs.compilation.front_end_debugging = True  # a kernel's own exception, not its repr
