"""Is an output right? Tolerances by dtype and relative to the scale of the expected output."""

import math
from collections.abc import Iterator

import torch

CHUNK = {"cpu": 1 << 18, "cuda": 1 << 23}  # values that are compared at once
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
    output: torch.Tensor, expected: torch.Tensor, tolerance: float | None = None, doubt: torch.Tensor | None = None
) -> Wrong | None:
    """None where `output` is right, else where, how many and how far it is wrong.

    Floats: |o - e| <= tol (min(1, rms(e)) + |e|) (and a few roundings of a large rms(e)) everywhere, and rms(o - e) <= tol std(e) (or a few roundings of rms(e)): an output of
    tiny or nearly constant values is held to its own scale, so that zeros, a constant or the input itself never pass for it.
    `doubt`: how far each expected value itself may be off. Integers and booleans: equal. Non-finite expected values must be met exactly. Compared in chunks, in float64 on the CPU.
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
        return mismatch(output.float(), expected.float(), EIGHT[expected.dtype] if tolerance is None else tolerance)
    faults = Faults(expected.shape)
    if not expected.dtype.is_floating_point:
        for start, (o, e) in pieces(output, expected):
            faults.add(start, o != e, o, e)
        return faults.text()
    tol = TOLERANCE.get(expected.dtype, 1e-4) if tolerance is None else tolerance
    wide = torch.float64 if expected.device.type == "cpu" else torch.float32
    count, total, square, error = torch.zeros(4, dtype=torch.float64, device=expected.device)
    for _, (e,) in pieces(expected):
        good = torch.isfinite(e)
        e = torch.where(good, e, 0).to(wide)
        count += good.sum()
        total += e.sum(dtype=torch.float64)
        square += e.square().sum(dtype=torch.float64)
    mean, square = total / count.clamp_min(1), square / count.clamp_min(1)
    rms, std = square.sqrt().item(), (square - mean.square()).clamp_min(0).sqrt().item()
    roundings = 32 if expected.dtype in (torch.float32, torch.float64) else 0  # in sums whose terms cancel
    slack = max(tol * min(1.0, rms), roundings * torch.finfo(expected.dtype).eps * rms)
    doubt = torch.zeros((), device=expected.device).expand_as(expected) if doubt is None else doubt.view_as(expected)
    for start, (o, e, d) in pieces(output, expected, doubt.to(expected.device)):
        o, e, d = o.to(wide), e.to(wide), d.to(wide)
        good, off = torch.isfinite(e), (o - e).abs()
        faults.add(
            start, torch.where(good, ~(off <= slack + tol * e.abs() + d), ~((o == e) | (o.isnan() & e.isnan()))), o, e
        )
        error += torch.where(good, (off - d).clamp_min(0), 0).square().sum(dtype=torch.float64)
    if text := faults.text():
        return text
    error = math.sqrt(error.item() / expected.numel())
    allowed = max(tol * std, 8 * torch.finfo(expected.dtype).eps * rms)
    if count > 1 and error > allowed:
        return Wrong(
            f"the output's error (rms {error:.3g}) is large beside the spread of the expected values (std {std:.3g}, scale {rms:.3g})"
        )
    return None


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
        text.few = self.count <= max(8, math.prod(self.shape) // 100)
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
