"""Is an output right? Tolerances by dtype and relative to the scale of the expected output."""

import importlib
import math
import random
from collections.abc import Iterator

import torch

CHUNK = {"cpu": 1 << 18, "cuda": 1 << 23}  # values that are compared at once
SINGLE = {"cuda"}  # where float32 is compared as it is
FUSED = 1 << 24  # values of an output from which on Triton kernels of our own do it there
EIGHT = {torch.float8_e4m3fn: 0.125, torch.float8_e5m2: 0.25}  # tolerance of 8-bit floats: one step
EIGHT |= {torch.float8_e4m3fnuz: 0.125, torch.float8_e5m2fnuz: 0.25}
TOLERANCE = {torch.float64: 1e-4, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 1e-2}


def pieces(*tensors: torch.Tensor, start: int = 0) -> Iterator[tuple[int, list[torch.Tensor]]]:
    """Tensors of one shape piece by piece, in row-major order: (flat index of the first value, CHUNK values of each at most, flat). Nothing
    large is copied, whatever the strides."""
    n, most = tensors[0].numel(), CHUNK[tensors[0].device.type]
    if n <= most:
        yield start, [t.reshape(-1) for t in tensors]
    elif all(t.is_contiguous() for t in tensors):
        for i, parts in enumerate(zip(*(t.view(-1).split(most) for t in tensors))):
            yield start + i * most, list(parts)
    else:
        rows = max(1, most * len(tensors[0]) // n)
        for parts in zip(*(t.split(rows) for t in tensors)):
            yield from pieces(*(p.squeeze(0) if rows == 1 else p for p in parts), start=start)
            start += parts[0].numel()


def finite(t: torch.Tensor) -> bool:
    return not t.is_floating_point() or all(_wide(part).isfinite().all() for _, (part,) in pieces(t))


def _wide(t: torch.Tensor) -> torch.Tensor:
    """Numbers of 8 bits as such that can be reckoned with."""
    return t.float() if t.dtype in EIGHT else t


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors of one shape hold equal values; what is not a number equals what is none."""
    return all(torch.equal(x, y) or bool(((x == y) | (x != x) & (y != y)).all()) for _, (x, y) in pieces(a, b))


def apart(a: torch.Tensor, b: torch.Tensor) -> tuple[float, float]:
    """Root mean square of a - b, where both are finite, and the standard deviation of a there."""
    count, off, total, square = torch.zeros(4, dtype=torch.float64, device=a.device)
    for _, (x, y) in pieces(a, b):
        good = x.isfinite() & y.isfinite()
        x, y = torch.where(good, x, 0).double(), torch.where(good, y, 0).double()
        count += good.sum()
        off += (x - y).square().sum()
        total += x.sum()
        square += x.square().sum()
    n = count.clamp_min(1)
    return (off / n).sqrt().item(), (square / n - (total / n).square()).clamp_min(0).sqrt().item()


class Wrong(str):
    """What is wrong with an output. few: so few of its values that a tie or a value on an edge may have been decided otherwise."""

    few = False


def mismatch(
    output: torch.Tensor,
    expected: torch.Tensor,
    tolerance: float | None = None,
    doubt: torch.Tensor | None = None,
    brief: bool = False,
) -> Wrong | None:
    """None where `output` is right, else where, how many and how far it is wrong.

    Floats: |o - e| <= tol (min(1, rms(e)) + |e|) (and a few roundings of a large rms(e)) everywhere, and rms(o - e) <= tol std(e) (or a few roundings of rms(e)): an output of
    tiny or nearly constant values is held to its own scale, so that zeros, a constant or the input itself never pass for it.
    `doubt`: how far each expected value itself may be off. Integers and booleans: equal. Non-finite expected values must be met exactly. Compared in chunks, in float64
    on the CPU. brief: without saying where and how far, and no further than the first wrong chunk.
    """
    if output.shape != expected.shape:
        return Wrong(f"the output has shape {tuple(output.shape)}, expected {tuple(expected.shape)}")
    if output.dtype != expected.dtype:
        return Wrong(f"the output has dtype {str(output.dtype)[6:]}, expected {str(expected.dtype)[6:]}")
    if expected.numel() == 0:
        return None
    if expected.is_complex():
        output, expected = torch.view_as_real(output), torch.view_as_real(expected)
    if expected.dtype in EIGHT:  # one step of their own
        tolerance = EIGHT[expected.dtype] if tolerance is None else tolerance
        return mismatch(output.float(), expected.float(), tolerance, brief=brief)
    if not expected.dtype.is_floating_point:
        return _faults([output, expected], torch.eq, brief)
    tol = TOLERANCE.get(expected.dtype, 1e-4) if tolerance is None else tolerance
    count, rms, std, wide = _scale(expected)
    roundings = 32 if expected.dtype in (torch.float32, torch.float64) else 0  # in sums whose terms cancel
    slack = max(tol * min(1.0, rms), roundings * torch.finfo(expected.dtype).eps * rms)
    error = torch.zeros((), dtype=torch.float64, device=expected.device)

    def right(o, e, d=None):
        o, e = o.to(wide), e.to(wide)
        off, most = (o - e).abs_(), e.abs().mul_(tol).add_(slack)
        good = off <= (most if d is None else most.add_(d))
        off = off if d is None else off.sub_(d).clamp_min_(0)
        if count < expected.numel():
            known = e.isfinite()
            good, off = torch.where(known, good, (o == e) | (o.isnan() & e.isnan())), torch.where(known, off, 0)
        error.add_(torch.linalg.vector_norm(off).double().square())
        return good

    doubts = [] if doubt is None else [doubt.to(expected.device).view_as(expected)]
    fused = _fused(output, expected) if wide == torch.float32 and not doubts else None
    number, squares = fused.right(output, expected, tol, slack) if fused else (0, 0.0)
    if number == expected.numel():
        error.fill_(squares)
    elif text := _faults([output, expected, *doubts], right, brief):
        return text
    error = math.sqrt(error.item() / expected.numel())
    allowed = max(tol * std, 8 * torch.finfo(expected.dtype).eps * rms)
    if count > 1 and error > allowed:
        return Wrong(
            f"the output's error (rms {error:.3g}) is large beside the spread of the expected values (std {std:.3g}, scale {rms:.3g})"
        )
    return None


def plainly_wrong(output: torch.Tensor, expected: torch.Tensor, tolerance: float | None = None) -> bool:
    """Whether more than one value in a hundred is off by more than the spread of all: no rounding, no tie and no value on an edge explains
    that. Looks at no more pieces than it must; False where mismatch has to tell."""
    if (
        output.shape != expected.shape
        or output.dtype != expected.dtype
        or expected.dtype not in (torch.float32, torch.float64)
    ):
        return False
    tol = TOLERANCE[expected.dtype] if tolerance is None else tolerance
    _, rms, std, wide = _scale(expected)
    least, count = max(std, 100 * torch.finfo(expected.dtype).eps * rms) + tol * rms, 0
    for _, (o, e) in pieces(output, expected):
        o, e = o.to(wide), e.to(wide)
        count += int((((o - e).abs_() <= e.abs().mul_(tol).add_(least)).logical_not_() & e.isfinite()).sum())
        if count > few(expected.shape):
            return True
    return False


def few(shape: torch.Size) -> int:
    """So many wrong values of such an output may be ties, or values on an edge."""
    return max(8, math.prod(shape) // 100)


def _scale(t: torch.Tensor) -> tuple[int, float, float, torch.dtype]:
    """Of t's finite values: how many there are, their root mean square, their standard deviation; and in which precision t can be compared:
    on a GPU in float32, where its values are all finite and far from that one's ends."""
    count, total, square = torch.zeros(3, dtype=torch.float64, device=t.device)
    if t.device.type in SINGLE and t.dtype != torch.float64:
        near = next(pieces(t))[1][0].float().mean().item()  # without it the sums lose nothing
        off, power = (s / t.numel() for s in _sums(t, near))
        mean, variance = near + off, max(0.0, power - off * off)
        if 1e-24 < mean * mean + variance < 1e30:  # so are the squares of its errors
            return t.numel(), math.sqrt(mean * mean + variance), math.sqrt(variance), torch.float32
    for _, (part,) in pieces(t):
        good = part.isfinite()
        part = torch.where(good, part, 0).double()
        count += good.sum()
        total += part.sum()
        square += part.square().sum()
    mean, square = total / count.clamp_min(1), square / count.clamp_min(1)
    return int(count), square.sqrt().item(), (square - mean.square()).clamp_min(0).sqrt().item(), torch.float64


def _sums(t: torch.Tensor, near: float) -> tuple[float, float]:
    """Of t - near in float32: the sum, the sum of squares."""
    if fused := _fused(t):
        return fused.sums(t, near)
    total, square = torch.zeros(2, dtype=torch.float64, device=t.device)
    for _, (part,) in pieces(t):
        part = part.float() - near
        total += part.sum()
        square += torch.linalg.vector_norm(part).double().square()
    return total.item(), square.item()


def _fused(*tensors: torch.Tensor):
    """The module that compares such tensors, or None."""
    t = tensors[0]
    if t.device.type not in SINGLE or t.numel() < FUSED or not all(map(torch.Tensor.is_contiguous, tensors)):
        return None
    return importlib.import_module("kernelbench.fused")  # imports Triton


def warm(device: str):
    """Compiles what compares large outputs there."""
    if device in SINGLE:
        importlib.import_module("kernelbench.fused").warm(device)


def _faults(tensors: list[torch.Tensor], right, brief: bool) -> "Wrong | None":
    """What is wrong with tensors[0], where right(*pieces of all) tells which values are right. Only where some are not, each piece is waited for."""
    good = torch.zeros((), dtype=torch.int64, device=tensors[1].device)
    for _, parts in pieces(*tensors):
        now = right(*parts).sum()
        if brief and now < parts[0].numel():
            return Wrong("some values are wrong")
        good += now
    if good == tensors[1].numel():
        return None
    faults = Faults(tensors[1].shape)
    for start, parts in pieces(*tensors):
        faults.add(start, ~right(*parts), *parts[:2])
    return faults.text()


class Fingerprint:
    """Tells later whether a dense tensor still holds what it holds now: a sum of its bits, each word times a random number of its own."""

    factors: dict = {}  # device -> random numbers for one piece

    def __init__(self, t: torch.Tensor):
        self.t, self.sum = t, self._sum(t)

    def __call__(self) -> torch.Tensor:
        """What t held then: t itself, or, where it has changed, nothing that is known."""
        if self._sum(self.t) == self.sum:
            return self.t
        unknown = math.nan if self.t.is_floating_point() else 77
        return torch.full((), unknown, dtype=self.t.dtype, device=self.t.untyped_storage().device).expand_as(self.t)

    @classmethod
    def _sum(cls, t: torch.Tensor) -> int:
        home = t.untyped_storage().device
        aligned = math.gcd(t.storage_offset() * t.element_size(), t.nbytes, 8)
        word = {8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.int8}[aligned]
        if home not in cls.factors:
            generator = torch.Generator(home).manual_seed(random.SystemRandom().getrandbits(63))
            numbers = torch.empty(CHUNK[home.type], dtype=torch.int64, device=home)
            cls.factors[home] = numbers.random_(-(2**63), None, generator=generator)
        total = torch.zeros((), dtype=torch.int64, device=home)
        flat = t.as_strided((t.numel(),), (1,)).view(word)
        for part in flat.split(CHUNK[home.type]):
            total = total * 1_000_003 + (part * cls.factors[home][: len(part)]).sum()
        return int(total)


def nearer(output: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Of two expected outputs, at each place the value that `output` is closer to; a's where that cannot be told."""
    if output.shape != a.shape or a.shape != b.shape or not output.dtype == a.dtype == b.dtype or a.dtype in EIGHT:
        return a
    numbers = output.is_floating_point() or output.is_complex()
    return torch.where((output - b).abs() < (output - a).abs() if numbers else output == b, b, a)


class Faults:
    """The wrong values of an output of the given shape, gathered from its pieces."""

    def __init__(self, shape: torch.Size):
        self.shape, self.count, self.worst = shape, 0, 0.0

    def add(self, start: int, wrong: torch.Tensor, o: torch.Tensor, e: torch.Tensor):
        if not wrong.any():
            return
        if not self.count:
            i = int(wrong.to(torch.uint8).argmax())
            self.first, self.got, self.want = start + i, o[i].item(), e[i].item()
        self.count += int(wrong.sum())
        off = (o.double() - e.double()).abs().nan_to_num(nan=math.inf, posinf=math.inf)
        self.worst = max(self.worst, off.max().item())

    def text(self) -> Wrong | None:
        if not self.count:
            return None
        index, at = [], self.first
        for size in reversed(self.shape):
            index, at = [at % size, *index], at // size
        text = f"{self.count} of {math.prod(self.shape)} values are wrong, the first at {tuple(index)}: "
        text = Wrong(text + f"got {self.got:.6g}, expected {self.want:.6g} (largest difference {self.worst:.3g})")
        text.few = self.count <= few(self.shape)
        return text


def structure(output, expected) -> str | None:
    """None where two flattened outputs have the same form."""
    if isinstance(output, list) != isinstance(expected, list) or _named(output) != _named(expected):
        return f"the forward returned {_kind(output)}, expected {_kind(expected)}"
    if isinstance(expected, list):
        if len(output) != len(expected):
            return f"the forward returned {len(output)} outputs, expected {len(expected)}"
        return next((m for m in map(structure, output, expected) if m), None)
    if _named(expected) == ["t"]:
        return None
    if isinstance(expected, dict):
        return structure(output["d"], expected["d"])
    if isinstance(output, float) and isinstance(expected, float) and math.isclose(output, expected, rel_tol=1e-4):
        return None
    return None if output == expected else f"the forward returned {output!r}, expected {expected!r}"


def _named(tree) -> list[str] | None:
    return list(tree) if isinstance(tree, dict) else None


def _kind(tree) -> str:
    if isinstance(tree, list):
        return f"{len(tree)} outputs"
    return "one tensor" if _named(tree) == ["t"] else "a dict" if isinstance(tree, dict) else repr(tree)
