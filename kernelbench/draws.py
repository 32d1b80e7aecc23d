"""Inputs that differ from a task's own, as far as kernels may not rely on what those have in common."""

import math
import random

import torch

from kernelbench.compare import pieces
from kernelbench.wire import dense, place

# Correctness draws from other distributions than the task's own, in place: float inputs of either sign and another scale, or at least
# another scale; values near 1 and -1, whose products neither vanish nor grow (|n| of a normal n has mean 0.798). "lined": the first lines
# are negative, the last ones positive, a row and a channel are tiny; "flags": what is the same everywhere is moved as well.
MOVES = {
    "mirror": lambda value: value.mul_(-3).add_(2),
    "stretch": lambda value: value.mul_(3).add_(0.5),
    "unit": lambda value: value.copy_(torch.where(value.normal_() < 0, -1.0, 1.0) * (0.992 + 0.01 * value.abs())),
}
STRUCTURED = 1 << 30  # bytes of the largest input that is looked at for a structure which its kernels may rely on
HALF = (torch.float16, torch.bfloat16)


def places(tensors: list[torch.Tensor]) -> set[int]:
    """Where the memory of tensors begins; 0 for none."""
    return {place(t) for t in tensors} - {0}


def moves(draw: int) -> tuple[str, ...]:
    """What may be done to the inputs of correctness draw 2, 3, ..: the first that the task bears."""
    if draw % 2:
        return "unit lined flags", "unit lined", "unit"
    return "mirror lined flags", "mirror lined", "mirror", "stretch"


def _lined(value: torch.Tensor, how: list[str]) -> torch.Tensor:
    rows = value.dim() > 1
    for axis in (-1, 0) if rows else ():
        length = value.shape[axis]
        if length > 3 and "mirror" in how:  # parts that are left out of a sum show
            value.narrow(axis, int(torch.randint(length - length // 4 + 1, ())), length // 4).mul_(3)
        if length > 3:
            value.select(axis, 0).abs_().neg_()
            value.select(axis, -1).abs_()
    for axis in (0, 1) if rows else ():  # rows, channels
        if value.shape[axis] > 3:
            value.select(axis, value.shape[axis] // 2).mul_(1e-3)
    return value


def cast(value, dtype: torch.dtype | None):
    """Nested values with their float tensors as `dtype`; None: as they are."""
    if isinstance(value, torch.Tensor):
        return value.to(dtype) if dtype and value.is_floating_point() else value
    if isinstance(value, dict):
        return {key: cast(v, dtype) for key, v in value.items()}
    return type(value)(cast(v, dtype) for v in value) if type(value) in (list, tuple) else value


def _free(value: torch.Tensor, symmetric: bool) -> bool:
    """Whether a task's float values are of no kind that its kernels may rely on: flags and other few numbers, values that come several times,
    shares that add up to one, unit vectors, rotations."""
    some = value.as_strided((min(value.numel(), 4096),), (1,)) if dense(value) else value.flatten()[:4096]
    some = some[some != 0]
    kinds = len(some.unique())
    often = value.dtype not in HALF and not symmetric and 4 * kinds <= 3 * len(some)
    if value.numel() > 64 and kinds > 1 and (kinds <= 16 or often):
        return False
    if all(((v == 0) | (v == 1)).all() for _, (v,) in pieces(value)):
        return False
    if value.dim() < 2 or value.nbytes > STRUCTURED:
        return True
    one = lambda sums: bool(((sums - 1).abs() < 1e-2).all())  # noqa: E731
    wide = [axis for axis, size in enumerate(value.shape) if size > 1]
    if bool((value >= 0).all()) and any(one(value.sum(axis, dtype=torch.float32)) for axis in wide):
        return False
    return not any(one(value.float().square().sum(axis)) for axis in wide)  # a rotation's rows are unit vectors


def _all_alike(value: torch.Tensor) -> bool:
    first = value[(0,) * value.dim()]
    return all(bool((part == first).all()) for _, (part,) in pieces(value))


def move(value, how: str | None, constants: set[int]):
    """Nested values, the floats among them moved in place by MOVES[the first word of `how`]; constants: where memory begins that stays as it
    is. "flags": also what is the same everywhere (zeros, ones, full lengths), and numbers of Python's."""
    words = (how or "").split()
    if type(value) is dict:
        return {key: move(v, how, constants) for key, v in value.items()}
    if type(value) in (list, tuple):
        return type(value)(move(v, how, constants) for v in value)
    if type(value) is float and "flags" in words and math.isfinite(value):
        return value * random.uniform(0.5, 1.5)
    if not isinstance(value, torch.Tensor):
        return value
    value = value.detach()
    value = value.clone() if places([value]) & constants else value  # else it would be changed
    if value.is_complex() and how:
        return torch.view_as_complex(move(torch.view_as_real(value.resolve_conj()).clone(), how, constants))
    if "flags" in words and value.numel() > 1 and _all_alike(value):
        return _constant_moved(value, words)
    return _moved(value, words) if how and value.is_floating_point() else value


def _constant_moved(value: torch.Tensor, words: list[str]) -> torch.Tensor:
    """Of ones: weights, or flags of which four in five are set; of zeros: numbers, or flags of which one in five is; of larger integers, as
    lengths that are all full: any from half of it on."""
    first, whole = value.flatten()[0].item(), not value.is_floating_point() and value.dtype != torch.bool
    chance = torch.rand(value.shape, device=value.device)
    if first == 1:
        return value.copy_(chance + 0.5 if "unit" in words and value.is_floating_point() else chance < 0.8)
    if first == 0 and not whole:
        return value.copy_(chance - 0.5 if value.is_floating_point() else chance < 0.2)
    if whole:
        return value.random_(first // 2, first + 1) if first > 1 and "mirror" in words else value
    return _moved(value, words)


def _moved(value: torch.Tensor, words: list[str]) -> torch.Tensor:
    looked = value.nbytes <= STRUCTURED
    square = looked and 1 < value.dim() and value.shape[-1] == value.shape[-2] > 1
    symmetric = square and torch.equal(value, value.mT)
    if not _free(value, symmetric):
        return value
    value = value if dense(value) else value.clone()
    if symmetric and bool((torch.linalg.cholesky_ex(value.float()).info == 0).all()):
        return value.mul_(3)  # positive definite
    steps = value.diff() if looked and value.dim() and value.shape[-1] > 2 else None
    if steps is not None and bool((steps >= 0).all() or (steps <= 0).all()):  # in order: steps of other lengths
        steps = value.diff(prepend=value[..., :1]) * (torch.rand(value.shape, device=value.device) + 0.5)
        return value.copy_((value[..., :1] * 3 + 0.5) + 3 * steps.cumsum(-1))
    empty = value == 0 if looked else None
    empty = empty if empty is not None and 8 * int(empty.sum()) >= value.numel() else None  # a triangle, a band
    for _, (part,) in pieces(value.as_strided((value.numel(),), (1,))):
        MOVES[words[0]](part)
    value = _lined(value, words) if "lined" in words and not symmetric else value
    value = torch.triu(value) + torch.triu(value, 1).mT if symmetric else value
    return value if empty is None else value.masked_fill_(empty, 0)


def nudged(value):
    """Nested values whose floats are up to two roundings larger or smaller; of half precision up to one."""
    if isinstance(value, torch.Tensor):
        if not value.is_floating_point() or value.element_size() == 1:
            return value
        most = 1 if value.dtype in HALF else 2
        steps = torch.randint(-most, most + 1, value.shape, device=value.device, dtype=torch.int8)
        return value + value * steps * torch.finfo(value.dtype).eps
    return type(value)(map(nudged, value)) if isinstance(value, (list, tuple)) else value
