"""What weights are judged with: never those that a model starts with, as far as they are no random numbers. A candidate which relies on them (a gain
of one, a bias of zero, layers that are copies of each other) is wrong."""

import zlib

import torch


def slots(module: torch.nn.Module) -> list[torch.Tensor]:
    """A model's parameters and running statistics that are numbers, each as real numbers."""
    running = [slot for name, slot in module.named_buffers() if name.rpartition(".")[2].startswith("running_")]
    found = [t.detach() for t in (*module.parameters(), *running) if t.is_floating_point() or t.is_complex()]
    return [torch.view_as_real(t) if t.is_complex() else t for t in found if t.numel()]


def one_signed(module: torch.nn.Module) -> list[int]:
    """Which of the slots are parameters whose values are all of one sign, or one value: gains, biases, slopes."""
    count = sum(t.numel() > 0 for t in module.parameters() if t.is_floating_point() or t.is_complex())
    return [i for i, slot in enumerate(slots(module)[:count]) if (slot >= 0).all() or (slot <= 0).all()]


def _initial(slot: torch.Tensor) -> tuple | None:
    """What a slot was given instead of random numbers, with its size: one value, a multiple of the identity, rows that are all alike, few
    values or many of them alike, values in order, or all of about one size. None for anything else."""
    flat = slot.flatten()
    first, last, n = float(flat[0]), float(flat[-1]), slot.numel()
    if not slot.isfinite().all():
        return None
    if (slot == first).all():
        return ("all", first, first, n)
    square = slot.dim() == 2 and slot.shape[0] == slot.shape[1]
    if square and not flat[1] and torch.equal(slot, first * torch.eye(len(slot), dtype=slot.dtype, device=slot.device)):
        return ("eye", first, last, n)
    if slot.dim() > 1 and len(slot) > 1 and (slot == slot[:1]).all():
        return ("rows", first, last, n)
    some = flat[:: max(1, n // 4096)]
    order = some.diff()
    few = n > 3 and len(some.unique()) <= max(len(some) // 8, min(16, len(some) // 2))
    ordered = n > 7 and bool((order >= 0).all() or (order <= 0).all())
    even = n > 7 and float(some.float().std()) < 0.4 * abs(float(some.float().mean()))
    return (f"like {_digest(slot)}", first, last, n) if few or ordered or even else None


def _digest(slot: torch.Tensor) -> int:
    """Of up to some 4096 of its values."""
    some = slot.flatten()[:: max(1, slot.numel() // 4096)]
    return zlib.crc32(some.cpu().contiguous().view(torch.uint8).numpy())


def perturb(module: torch.nn.Module, seed: int, most: list | None = None, bold: bool = False) -> list:
    """Moves every slot that is not random (see `_initial`), or the same as one before it, off its values, by up to 0.5 (what has zeros by up to
    0.25 either way); bold: of those of one value and of one sign some values are negated, some become four times as large.
    By seed, values, number of elements and occurrence alone: the same under other names, in another order, with other shapes.
    Returns how many there were, [[what, first, last, number of elements], count] each; of a kind no more than in `most`, what another model returned."""
    seen, limits, before = {}, {tuple(kind): count for kind, count in most or []}, set()
    signed = one_signed(module) if bold else []
    for i, slot in enumerate(slots(module)):
        n, content = slot.numel(), _digest(slot) if slot.numel() > 3 else None
        kind = _initial(slot)
        if kind is None and content in before:
            kind = (f"again {content}", 0.0, 0.0, n)
        if kind is None and i in signed and n > 7:
            kind = (f"sign {content}", 0.0, 0.0, n)
        before |= {content} - {None}
        if kind is None:
            continue
        seen[kind] = seen.get(kind, 0) + 1
        if most is not None and seen[kind] > limits.get(kind, 0):  # a buffer of its own
            continue
        generator = torch.Generator().manual_seed(zlib.crc32(repr((seed, kind, seen[kind])).encode()))
        noise = torch.rand(n, generator=generator) * (0.0 if kind[0].startswith("sign") else 0.5)
        either = kind[0] == "eye" or kind[:2] == ("all", 0) or (kind[0] not in ("all", "rows") and not slot.all())
        slot += (noise - 0.25 if either else noise).view(slot.shape).to(slot.device, slot.dtype)
        if i in signed:
            slot *= _bold(torch.rand(n, generator=generator)).view(slot.shape).to(slot.device, slot.dtype)
    return [[list(kind), count] for kind, count in seen.items()]


def _bold(chance: torch.Tensor) -> torch.Tensor:
    """-1 for one in eight, 4 for one in eight, 1 for the others; of two and more, each for one at least."""
    if chance.numel() > 1:
        low, high = chance.min().clamp_min(1 / 8), chance.max().clamp_max(7 / 8)
    else:
        low, high = 1 / 8, 7 / 8
    return torch.where(chance <= low, -1.0, torch.where(chance >= high, 4.0, 1.0))


def vary(module: torch.nn.Module, seed: int, bold: list[int] = ()):
    """Moves every slot, random or not, by up to a tenth of each value, and where there are few values by up to 0.05 too: nothing that weights have
    in common after their initialisation stays. bold: of these slots one value in eight is negated, and one in eight four times as large."""
    for i, slot in enumerate(slots(module)):
        generator = torch.Generator(slot.device).manual_seed(zlib.crc32(repr((seed, "vary", i)).encode()))
        draw = lambda: torch.rand(slot.shape, generator=generator, device=slot.device).to(slot.dtype)  # noqa: E731, B023
        few = len(slot.flatten()[:4096].unique()) <= 16
        slot *= 0.9 + 0.2 * draw()
        if few:
            slot += 0.1 * draw() - 0.05
        if i in bold:
            slot *= _bold(draw()).to(slot.dtype)
