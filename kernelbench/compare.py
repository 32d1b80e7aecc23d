"""Is an output right? Tolerances by dtype and relative to the scale of the expected output."""

import math

import torch

CHUNK = 1 << 26  # values that are compared at once
TOLERANCE = {torch.float64: 1e-4, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 1e-2}


def mismatch(
    output: torch.Tensor, expected: torch.Tensor, tolerance: float | None = None, doubt: torch.Tensor | None = None
) -> str | None:
    """None where `output` is right, else where, how many and how far it is wrong.

    Floats: |o - e| <= tol (min(1, rms(e)) + |e|) (and a few roundings of a large rms(e)) everywhere, and rms(o - e) <= tol std(e) (or a few roundings of rms(e)): an output of
    tiny or nearly constant values is held to its own scale, so that zeros, a constant or the input itself never pass for it.
    `doubt`: how far each expected value itself may be off. Integers and booleans: equal. Non-finite expected values must be met exactly. Compared in chunks, in float64 on the CPU.
    """
    if output.shape != expected.shape:
        return f"the output has shape {tuple(output.shape)}, expected {tuple(expected.shape)}"
    if output.dtype != expected.dtype:
        return f"the output has dtype {str(output.dtype)[6:]}, expected {str(expected.dtype)[6:]}"
    if expected.numel() == 0:
        return None
    if expected.is_complex():
        output, expected = torch.view_as_real(output), torch.view_as_real(expected)
    o_flat, e_flat = output.reshape(-1), expected.reshape(-1)
    if not expected.dtype.is_floating_point:
        wrong = o_flat != e_flat
        return _where(wrong, o_flat, e_flat, expected.shape) if wrong.any() else None
    tol = TOLERANCE.get(expected.dtype, 1e-4) if tolerance is None else tolerance
    wide = torch.float64 if expected.device.type == "cpu" else torch.float32
    finite = torch.isfinite(e_flat)
    values = e_flat if finite.all() else e_flat[finite]
    if values.numel():
        total = values.numel()
        mean = values.sum(dtype=torch.float64) / total
        square = sum(c.to(wide).square().sum(dtype=torch.float64) for c in values.split(CHUNK)) / total
        rms, std = square.sqrt().item(), (square - mean.square()).clamp_min(0).sqrt().item()
    else:
        rms = std = 0.0
    roundings = 32 if expected.dtype in (torch.float32, torch.float64) else 0  # in sums whose terms cancel
    slack = max(tol * min(1.0, rms), roundings * torch.finfo(expected.dtype).eps * rms)
    error = 0.0
    doubts = (torch.zeros(()).expand(len(e_flat)) if doubt is None else doubt.reshape(-1)).split(CHUNK)
    for start, o, e, d in zip(range(0, len(e_flat), CHUNK), o_flat.split(CHUNK), e_flat.split(CHUNK), doubts):
        o, e, d = o.to(wide), e.to(wide), d.to(e.device, wide)
        good = torch.isfinite(e)
        wrong = torch.where(good, ~((o - e).abs() <= slack + tol * e.abs() + d), ~((o == e) | (o.isnan() & e.isnan())))
        if wrong.any():
            return _where(wrong, o, e, expected.shape, start)
        error += torch.where(good, ((o - e).abs() - d).clamp_min(0), 0).square().sum(dtype=torch.float64).item()
    error = math.sqrt(error / expected.numel())
    allowed = max(tol * std, 8 * torch.finfo(expected.dtype).eps * rms)
    if values.numel() > 1 and error > allowed:
        return f"the output's error (rms {error:.3g}) is large beside the spread of the expected values (std {std:.3g}, scale {rms:.3g})"
    return None


def _where(wrong, o, e, shape, start: int = 0) -> str:
    """In words: the values of one chunk, which begins at the flat index `start`, that are wrong."""
    i = int(wrong.to(torch.uint8).argmax())
    index, at = [], start + i
    for size in reversed(shape):
        index, at = [at % size, *index], at // size
    worst = (o.double() - e.double()).abs().nan_to_num(nan=math.inf, posinf=math.inf).max().item()
    got, want = o[i].item(), e[i].item()
    text = f"{int(wrong.sum())} of {wrong.numel()} values are wrong, the first at {tuple(index)}: got {got:.6g}, expected {want:.6g}"
    return text + f" (largest difference {worst:.3g})"


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
