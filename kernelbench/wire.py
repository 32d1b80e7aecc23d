"""What crosses between the referee and a contestant: plain data (messages: channel.py), and tensors in memory that the other side opens.

A memfd on the CPU, a CUDA allocation of its own (CUDA IPC) on a GPU: an IPC handle exposes its whole allocation, so what is shared never
lies beside anything else. Nothing is ever unpickled. The referee treats all that it receives as hostile: sizes, types and extents are
checked, memory of the CPU is read into a copy (a memfd can shrink under a mapping).
"""

import ctypes
import fcntl
import math
import mmap
import os
import random

import torch

from kernelbench.channel import BadMessage

ALIGN = 512
GRAIN = 2 << 20  # bytes of a large page: memory that is no multiple of it is mapped in smaller ones on the other side
PIECES, WIDTH = 1024, 1024  # of a large output so many pieces of so many bytes are taken at once
ARENA = 1 << 28  # bytes of shared memory that are kept for the next contestant


_frombuffer = torch.frombuffer  # the simulated device has another one, which copies (simulate.py)


# ---------------------------------------------------------------------------------------------------------------------------
# Tensors in memory that the other side can open


class _Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 64)]


def _cuda(name: str, *args):
    """A call of the CUDA driver; RuntimeError with its name on failure (an OutOfMemoryError where that is it). Needs a current context."""
    global _driver
    if _driver is None:
        _driver = ctypes.CDLL("libcuda.so.1")
        _driver.cuIpcOpenMemHandle_v2.argtypes = [ctypes.c_void_p, _Handle, ctypes.c_uint]
    code = getattr(_driver, name)(*args)
    if code == 2:
        raise torch.OutOfMemoryError(f"CUDA out of memory in {name}")
    if code:
        raise RuntimeError(f"{name} failed with CUDA error {code}")


_driver = None


class _Raw:
    """A stretch of device memory in the form that torch.as_tensor takes without a copy."""

    def __init__(self, pointer: int, nbytes: int):
        self.__cuda_array_interface__ = {"shape": (nbytes,), "typestr": "|u1", "data": (pointer, False), "version": 3}


def dense(t: torch.Tensor) -> bool:
    """Whether t's elements fill one stretch of memory without gaps or overlaps, in whatever order."""
    step = 1
    for stride, size in sorted((s, n) for s, n in zip(t.stride(), t.shape) if n > 1):
        if stride != step:
            return False
        step *= size
    return True


class Shared:
    """Tensors laid out in an allocation of its own: `spec` and `fds` go into a message, `tensors` view the memory. `fill` reuses the memory
    for other tensors: to allocate, share, open and free cost the GPU's driver milliseconds each, and it does one thing at a time."""

    def __init__(self, tensors: list[torch.Tensor], device: str):
        self.device, self.fds, self.pointers, self.memory, self.handle = device, [], [], torch.empty(0), None
        self.fill(tensors)

    def lay(self, tensors: list[torch.Tensor]):
        """Places for `tensors` in the same memory; where that is too small, in new memory (the old one lives until `close`): on a GPU a
        multiple of 2 MiB, or what the contestant reads first is read in 54 us instead of 43 (82 MB on an H200, 2.6 GB through CUDA IPC, and
        1 KiB more). What is last in the memory is the gate (clock.Gate)."""
        specs, offset = [], 0
        for t in tensors:
            stride = t.stride() if dense(t) else t.contiguous().stride()
            specs.append(_spec(t) | {"stride": list(stride), "offset": offset})
            offset = _up(offset + t.numel() * t.element_size(), ALIGN)
        if offset + ALIGN > self.memory.numel():
            most = min(2 * self.memory.numel(), ARENA)
            self._allocate(_up(max(offset + ALIGN, most), GRAIN if self.device == "cuda" else ALIGN))
        self.spec = {"tensors": specs, "nbytes": self.memory.numel(), "handle": self.handle}
        self.tensors = [view(self.memory, spec) for spec in specs]

    def fill(self, tensors: list[torch.Tensor]):
        """Copies of `tensors` in these places."""
        self.lay(tensors)
        for mine, given in zip(self.tensors, tensors):
            mine.copy_(given)

    def refill(self, tensors: list[torch.Tensor]):
        """Other values of the same form into the first of `tensors`, at once: a clock may be running."""
        mine = self.tensors[: len(tensors)]
        if [(t.shape, t.dtype) for t in tensors] != [(t.shape, t.dtype) for t in mine]:
            raise ValueError("the task's inputs have another form in every draw")
        if mine:
            torch._foreach_copy_(mine, tensors)

    def _allocate(self, nbytes: int):
        if self.device == "cpu":
            fd = os.memfd_create("tensors", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.ftruncate(fd, nbytes)
            fcntl.fcntl(
                fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
            )  # else the other side could pull it away
            self._close_fds()
            self.fds, self.memory = [fd], _frombuffer(mmap.mmap(fd, nbytes), dtype=torch.uint8)
            return
        pointer, handle = ctypes.c_uint64(), _Handle()
        _cuda("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(nbytes))
        self.pointers.append(pointer.value)
        _cuda("cuIpcGetMemHandle", ctypes.byref(handle), pointer)
        self.handle, self.memory = bytes(handle).hex(), torch.as_tensor(_Raw(pointer.value, nbytes), device="cuda")
        self.gate.zero_()

    @property
    def gate(self) -> torch.Tensor:
        """Two int32, see clock.Gate."""
        return self.memory[-ALIGN : 8 - ALIGN].view(torch.int32)

    def _close_fds(self):
        for fd in self.fds:
            os.close(fd)
        self.fds = []

    def close(self):
        self._close_fds()
        self.tensors, self.memory = [], torch.empty(0)
        while self.pointers:
            _cuda("cuMemFree_v2", ctypes.c_uint64(self.pointers.pop()))


def gate(spec: dict) -> dict:
    """The spec of the shared memory's gate."""
    return spec | {"tensors": [{"dtype": "int32", "shape": [2], "stride": [1], "offset": spec["nbytes"] - ALIGN}]}


def _up(number: int, step: int) -> int:
    return -(-number // step) * step


def view(memory: torch.Tensor, spec: dict) -> torch.Tensor:
    """The tensor that `spec` describes inside `memory` (uint8). BadMessage when it does not lie within."""
    dtype = getattr(torch, spec["dtype"]) if isinstance(spec["dtype"], str) else None
    shape, stride, offset = spec["shape"], spec["stride"], spec["offset"]
    numbers = [*shape, *stride, offset]
    if (
        not isinstance(dtype, torch.dtype)
        or len(shape) != len(stride)
        or any(type(n) is not int or n < 0 for n in numbers)
    ):
        raise BadMessage(f"no tensor: {str(spec)[:200]}")
    if math.prod(shape) == 0:
        return torch.empty(shape, dtype=dtype, device=memory.device)
    extent = (1 + sum((n - 1) * s for n, s in zip(shape, stride))) * dtype.itemsize
    if offset + extent > memory.numel() or offset % dtype.itemsize:
        raise BadMessage("a tensor outside its memory")
    return memory[offset : offset + extent].view(dtype).as_strided(shape, stride)


def _read(fd: int, nbytes: int) -> bytearray:
    data, at = bytearray(nbytes), 0
    while at < nbytes:
        n = os.preadv(fd, [memoryview(data)[at:]], at)
        if n == 0:
            raise BadMessage("memory that shrank while it was read")
        at += n
    return data


class Opened:
    """What the other side shares: opens each memory once, closes all of it at the end."""

    def __init__(self, device: str):
        self.device, self.pointers = device, {}

    def tensors(self, spec: dict, fds: list[int], limit: int | None = None, only: set[int] | None = None) -> list:
        """The tensors of a message. With a `limit` (bytes) CPU memory is read into a private copy, and more than that is refused. On a GPU
        those not in `only` stay None: opening a handle costs the driver a millisecond."""
        try:
            if self.device == "cuda":
                wanted = [t if only is None or i in only else None for i, t in enumerate(spec["tensors"])]
                return [t and view(self._segment(t.get("handle", spec.get("handle"))), t) for t in wanted]
            nbytes = os.fstat(fds[0]).st_size
            if limit is None:
                memory = _frombuffer(mmap.mmap(fds[0], nbytes), dtype=torch.uint8)
            elif nbytes > limit:
                raise BadMessage(f"{nbytes} bytes of outputs where {limit} were the most")
            else:
                memory = _frombuffer(_read(fds[0], nbytes), dtype=torch.uint8)
            return [view(memory, t) for t in spec["tensors"]]
        except BadMessage:
            raise
        except (
            KeyError,
            IndexError,
            TypeError,
            ValueError,
            AttributeError,
            OSError,
            RuntimeError,
            OverflowError,
        ) as error:
            raise BadMessage(f"no tensors: {error!r}") from error
        finally:
            for fd in fds:
                os.close(fd)

    def _segment(self, handle: str) -> torch.Tensor:
        if handle == "":  # tensors without elements
            return torch.empty(0, dtype=torch.uint8, device="cuda")
        if handle not in self.pointers:
            pointer = ctypes.c_uint64()
            _cuda("cuIpcOpenMemHandle_v2", ctypes.byref(pointer), _Handle.from_buffer_copy(bytes.fromhex(handle)), 1)
            self.pointers[handle] = pointer.value
        base, size = ctypes.c_uint64(), ctypes.c_size_t()  # what the driver says, not what the message says
        _cuda("cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), ctypes.c_uint64(self.pointers[handle]))
        return torch.as_tensor(_Raw(self.pointers[handle], size.value), device="cuda")

    def close(self):
        """Unmap everything."""
        while self.pointers:
            _cuda("cuIpcCloseMemHandle", ctypes.c_uint64(self.pointers.popitem()[1]))


class Held:
    """An output of a timed forward, which nobody can change any more once it is taken: a copy, or, of a large one, the output itself and
    pieces of it from secret places, which are read at once and must still be there when all of it has been checked."""

    def __init__(self, t: torch.Tensor, whole: bool):
        n = max(1, WIDTH // t.element_size())
        self.given, self.places, rows = t, None, t.numel() // n
        if whole or not dense(t) or rows < PIECES:
            self.t = torch.empty_like(t)
            return
        self.t, self.rows = t, t.as_strided((rows, n), (n, 1))
        generator = torch.Generator(t.device).manual_seed(random.SystemRandom().getrandbits(63))
        self.places = torch.randint(rows, (PIECES,), device=t.device, generator=generator)
        self.taken = torch.empty(PIECES, n, dtype=t.dtype, device=t.device)

    def take(self):
        """Queued on the GPU; nothing is allocated."""
        if self.places is None:
            self.t.copy_(self.given)
        else:
            torch.index_select(self.rows, 0, self.places, out=self.taken)
        self.given = None

    def moved(self) -> bool:
        return self.places is not None and not torch.equal(
            self.rows[self.places].view(torch.uint8), self.taken.view(torch.uint8)
        )


def _spec(t: torch.Tensor) -> dict:
    return {"dtype": str(t.dtype).removeprefix("torch."), "shape": list(t.shape), "stride": list(t.stride())}


def export(tensors: list[torch.Tensor]) -> dict:
    """The spec of CUDA tensors that lie in torch's own segments, without a copy (a copy where the memory is somebody else's)."""
    specs, handles = [], {}
    for t in tensors:
        t = t if dense(t) else t.contiguous()
        if not t.numel():
            specs.append(_spec(t) | {"offset": 0, "handle": ""})
            continue
        base, size, handle = ctypes.c_uint64(), ctypes.c_size_t(), _Handle()
        for attempt in (t, None):
            t = t.clone() if attempt is None else t
            _cuda("cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), ctypes.c_uint64(t.data_ptr()))
            if base.value in handles:
                break
            try:
                _cuda("cuIpcGetMemHandle", ctypes.byref(handle), base)
                handles[base.value] = bytes(handle).hex()
                break
            except RuntimeError:  # memory of another process cannot be shared on
                if attempt is None:
                    raise
        specs.append(_spec(t) | {"offset": t.data_ptr() - base.value, "handle": handles[base.value]})
        kept.append(t)
    return {"tensors": specs}


kept: list[torch.Tensor] = []  # outputs stay alive until the next command


_detach = torch._C.TensorBase.detach  # whatever becomes of torch.Tensor
_resolve_conj, _resolve_neg = torch.resolve_conj, torch.resolve_neg  # the bits that say so do not cross


def flatten(value, tensors: list[torch.Tensor], exact: bool = False):
    """`value` as plain JSON in which tensors are {"t": index}; they are appended to `tensors`. TypeError on anything else. exact: tuples
    and dtypes survive; without it a tuple is the list that it might as well be."""
    if isinstance(value, torch.Tensor):
        if type(value) not in (torch.Tensor, torch.nn.Parameter):
            raise TypeError(f"a plain torch.Tensor was expected, not {type(value).__name__}")
        tensors.append(_resolve_neg(_resolve_conj(_detach(value))))
        return {"t": len(tensors) - 1}
    if isinstance(value, (list, tuple)):  # what a subclass holds, whatever it would say that it holds
        items = [flatten(v, tensors, exact) for v in (tuple if isinstance(value, tuple) else list).__iter__(value)]
        return {"u": items} if exact and isinstance(value, tuple) else items
    if isinstance(value, dict):
        pairs = sorted(dict.items(value), key=lambda pair: repr(pair[0]))
        return {"d": [[flatten(k, tensors), flatten(v, tensors, exact)] for k, v in pairs]}
    if exact and isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"a tensor or a tuple of tensors was expected, not {type(value).__name__}")


def leaves(value) -> list[torch.Tensor]:
    """The tensors in nested lists, tuples and dicts."""
    if isinstance(value, dict):
        value = list(value.values())
    return (
        [t for v in value for t in leaves(v)]
        if isinstance(value, (list, tuple))
        else [value][: type(value) is torch.Tensor]
    )


def place(t: torch.Tensor) -> int:
    """Where t's memory begins; 0 for a tensor that has none of its own (sparse ones)."""
    return t.untyped_storage().data_ptr() if t.layout == torch.strided else 0


def references(tree) -> set[int]:
    """The indices of the tensors that a flattened value refers to."""
    if isinstance(tree, list):
        return set().union(*map(references, tree))
    if isinstance(tree, dict):
        return set().union(*map(references, tree["d"])) if "d" in tree else {tree.get("t")}
    return set()


def unflatten(tree, tensors: list[torch.Tensor]):
    """The inverse of `flatten` (tuples come back as lists unless flattened exactly). BadMessage where the tree does not fit."""
    if isinstance(tree, list):
        return [unflatten(v, tensors) for v in tree]
    if isinstance(tree, dict):
        if "d" in tree:
            return {unflatten(k, tensors): unflatten(v, tensors) for k, v in tree["d"]}
        if "u" in tree:
            return tuple(unflatten(v, tensors) for v in tree["u"])
        if "dtype" in tree:
            return getattr(torch, tree["dtype"])
        if type(tree.get("t")) is not int or not 0 <= tree["t"] < len(tensors):
            raise BadMessage("a reference to no tensor")
        return tensors[tree["t"]]
    return tree
