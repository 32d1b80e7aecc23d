"""Generated small tasks, each with solutions of known quality: the world in which the tiny policy learns.

    toy = make("train", seed=0, index=17, device="cpu")
    toy.task.source                            2-5 elementwise operators; 3 in 10 end in a reduction or norm of the rows
    toy.solution("fused", random.Random(0))    one kernel
    toy.solution("half", random.Random(0))     about half of the chain in one kernel, or the chain in two
    toy.solution("lazy", random.Random(0))     one operator in Triton, the rest in torch
    toy.solution("broken", random.Random(0))   fails, or gives wrong numbers, in a way in which models fail

One operator is one line of the reference and one line of a kernel, with the same names (`x = x * 1.5` in both), because
a tiny policy must learn to copy them; only row endings may take up to three. Texts do not depend on the sizes.
Compositions (sequences of operator names, constants left out) of train and test are disjoint: crc32 % 8 == 0 is test.

A chain is drawn until, on a fixed normal sample: every stretch of it matters (without it the output differs clearly),
the output is neither constant nor mostly one value, and float32 agrees with float64 to a fifth of the judge's tolerance
on the sample and on its negated, scaled and shifted versions. The same comparison shows that a broken solution with
other operators or constants is really wrong. Not covered: broadcast operands, dtypes besides float32, more than 2 axes.
"""

import ast
import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from kernelbench import Task

__all__ = ["QUALITIES", "Toy", "make"]

QUALITIES = ("broken", "lazy", "half", "fused")

FACTORS = ("0.1", "0.25", "0.5", "0.75", "1.5", "2.0", "2.5", "3.0")
SHIFTS = ("0.1", "0.25", "0.5", "0.75", "1.0", "1.5", "2.0")
BOUNDS = ("0.5", "1.0", "1.5", "2.0")
SLOPES = ("0.1", "0.25", "0.5")


@dataclass(frozen=True)
class Op:
    """One operator: what becomes of x in torch ({} is a constant or a tensor's name), its value in numpy, the constants
    it may take, how many kernels eager torch launches for it, and its lines in Triton (default: tl for torch)."""

    torch: str
    value: Callable
    arguments: tuple[str, ...] = ("",)
    kernels: int = 1
    triton: tuple[str, ...] = ()


def _sigmoid(x):
    return 0.5 * np.tanh(0.5 * x) + 0.5


def _softmax(x):
    x = np.exp(x - x.max(1, keepdims=True))
    return x / x.sum(1, keepdims=True)


def _rms_norm(x):
    return x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5)


UNARY = {
    "mul": Op("x * {}", lambda x, c: x * c, FACTORS),
    "add": Op("x + {}", lambda x, c: x + c, SHIFTS),
    "sub": Op("x - {}", lambda x, c: x - c, SHIFTS),
    "square": Op("x * x", lambda x, _: x * x),
    "abs": Op("torch.abs(x)", lambda x, _: np.abs(x)),
    "relu": Op("torch.relu(x)", lambda x, _: np.maximum(x, 0), triton=("tl.maximum(x, 0.0)",)),
    "sigmoid": Op("torch.sigmoid(x)", lambda x, _: _sigmoid(x)),
    "tanh": Op("torch.tanh(x)", lambda x, _: np.tanh(x), triton=("2.0 * tl.sigmoid(2.0 * x) - 1.0",)),
    "clamp": Op(
        "torch.clamp(x, -{0}, {0})",
        lambda x, c: np.clip(x, -c, c),
        BOUNDS,
        triton=("tl.minimum(tl.maximum(x, -{0}), {0})",),
    ),
    "silu": Op("x * torch.sigmoid(x)", lambda x, _: x * _sigmoid(x), kernels=2),
    "leaky": Op("torch.where(x > 0, x, x * {})", lambda x, c: np.where(x > 0, x, x * c), SLOPES, kernels=3),
    "bell": Op("torch.exp(-x * x)", lambda x, _: np.exp(-x * x), kernels=3),
    "root": Op("torch.sqrt(torch.abs(x) + 1.0)", lambda x, _: np.sqrt(np.abs(x) + 1), kernels=3),
    "softsign": Op("x / (1.0 + torch.abs(x))", lambda x, _: x / (1 + np.abs(x)), kernels=3),
}
BINARY = {
    "add_tensor": Op("x + {}", lambda x, y: x + y),
    "sub_tensor": Op("x - {}", lambda x, y: x - y),
    "mul_tensor": Op("x * {}", lambda x, y: x * y),
    "max_tensor": Op("torch.maximum(x, {})", lambda x, y: np.maximum(x, y)),
}
ONLY_REAL = (
    "tl.where(mask, x, 0.0)",
    'tl.where(mask, x, -float("inf"))',
)  # the neutral element in the padding of a row
REDUCTIONS = {
    "sum": Op("torch.sum(x, dim=1)", lambda x, _: x.sum(1), triton=(f"tl.sum({ONLY_REAL[0]})",)),
    "mean": Op("torch.mean(x, dim=1)", lambda x, _: x.mean(1), triton=(f"tl.sum({ONLY_REAL[0]}) / cols",)),
    "max": Op("torch.amax(x, dim=1)", lambda x, _: x.max(1), triton=(f"tl.max({ONLY_REAL[1]})",)),
}
RMS = "x / tl.sqrt(tl.sum(x * x) / cols + 1e-5)"
NORMS = {
    "softmax": Op(
        "torch.softmax(x, dim=1)",
        lambda x, _: _softmax(x),
        triton=(ONLY_REAL[1], "tl.exp(x - tl.max(x))", "x / tl.sum(x)"),
    ),
    "rms_norm": Op(
        "x / torch.sqrt(torch.mean(x * x, dim=1, keepdim=True) + 1e-5)",
        lambda x, _: _rms_norm(x),
        kernels=5,
        triton=(ONLY_REAL[0], RMS),
    ),
    "layer_norm": Op(
        "torch.nn.functional.layer_norm(x, x.shape[1:])",
        lambda x, _: _rms_norm(x - x.mean(1, keepdims=True)),
        triton=(f"tl.where(mask, x - tl.sum({ONLY_REAL[0]}) / cols, 0.0)", RMS),
    ),
}
ENDINGS = {**REDUCTIONS, **NORMS}
OPS = {**UNARY, **BINARY, **ENDINGS}

KERNEL_NAMES = ("fused_kernel", "op_kernel", "chain_kernel")
BLOCKS = (1024, 2048, 4096)


@dataclass(frozen=True)
class Step:
    """One operator of a chain; `argument` is its constant ("1.5"), its second tensor ("y" or "z"), or ""."""

    name: str
    argument: str = ""

    @property
    def torch(self) -> str:
        return "x = " + OPS[self.name].torch.format(self.argument)

    @property
    def triton(self) -> list[str]:
        lines = OPS[self.name].triton or (OPS[self.name].torch.replace("torch.", "tl."),)
        return ["x = " + line.format(self.argument) for line in lines]


@dataclass(frozen=True)
class Part:
    """Consecutive steps of a candidate: in a Triton kernel of its own (`own`), or as torch lines."""

    own: bool
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Toy:
    """A generated task, its chain, and the sizes of its tensors (rows, cols; float32)."""

    task: Task
    steps: tuple[Step, ...]
    rows: int
    cols: int
    device: str

    @property
    def ops(self) -> tuple[str, ...]:
        """The composition: operator names in order."""
        return tuple(step.name for step in self.steps)

    def solution(self, quality: str, rng: random.Random) -> str:
        """The text of a candidate of that quality (one of QUALITIES); `rng` picks among several."""
        if quality == "broken":
            return _broken(self, rng)
        return _render(self.steps, {"fused": _fused, "half": _half, "lazy": _lazy}[quality](self.steps, rng), rng)


def make(split: str, seed: int, index: int, device: str = "cpu") -> Toy:
    """Toy task number `index` of a split ("train" or "test"); deterministic. The device sets the sizes only."""
    rng = random.Random(f"{split} {seed} {index}")
    while True:
        steps = _draw(rng)
        names = " ".join(step.name for step in steps)
        if (zlib.crc32(names.encode()) % 8 == 0) == (split == "test") and _sound(steps):
            break
    rows, cols = _sizes(rng, steps, device)
    return Toy(Task(f"toy/{split}/{index}", _source(steps, rows, cols)), steps, rows, cols, device)


# ----------------------------------------------------------------------------------------------------------------------
# The task


def _draw(rng: random.Random) -> tuple[Step, ...]:
    length = rng.choice((2, 3, 3, 4, 4, 5))
    binary = rng.choice((0, 0, 1, 1, 1, 2)) if length > 2 else rng.choice((0, 0, 1))
    where = sorted(rng.sample(range(length), binary))
    steps = []
    for i in range(length):
        if i in where:
            steps.append(Step(rng.choice(list(BINARY)), "y" if i == where[0] else "z"))
        else:
            name = rng.choice(list(UNARY))
            steps.append(Step(name, rng.choice(UNARY[name].arguments)))
    if rng.random() < 0.33:
        steps.append(Step(rng.choice(list(ENDINGS))))
    return tuple(steps)


def _sizes(rng: random.Random, steps: tuple[Step, ...], device: str) -> tuple[int, int]:
    """(rows, cols): up to 32 by 500 for the interpreter, 12 to 34 MB for a GPU; 1 in 10 cols is a power of two."""
    regular = rng.random() < 0.1
    if device == "cpu":
        cols = rng.choice((128, 256)) if regular else rng.randint(100, 500)
        return rng.randint(8, 16 if steps[-1].name in ENDINGS else 32), cols
    cols = rng.choice((1024, 2048, 4096, 8192)) if regular else rng.randint(1000, 8192)
    return max(1024, min(8192, rng.randint(3_000_000, 8_000_000) // cols)), cols


def _source(steps: tuple[Step, ...], rows: int, cols: int) -> str:
    tensors = _tensors(steps)
    body = "\n".join("        " + step.torch for step in steps)
    return f"""import torch


class Model(torch.nn.Module):
    def forward(self, {", ".join(tensors)}):
{body}
        return x


rows, cols = {rows}, {cols}


def get_inputs():
    return [{", ".join(["torch.randn(rows, cols)"] * len(tensors))}]


def get_init_inputs():
    return []
"""


def _tensors(steps: tuple[Step, ...]) -> list[str]:
    return ["x"] + sorted({step.argument for step in steps if step.name in BINARY})


@cache
def _sample(kind: str, dtype: str) -> dict[str, np.ndarray]:
    normal = np.random.default_rng(0).standard_normal((3, 16, 128))
    scale, shift = {"plain": (1, 0), "negated": (-1, 0), "scaled": (4, 0), "shifted": (1, 2), "zeros": (0, 0)}[kind]
    return dict(zip("xyz", (scale * normal + shift).astype(np.float32).astype(dtype), strict=True))


def _value(steps: tuple[Step, ...], kind: str = "plain", dtype: str = "float32") -> np.ndarray:
    """What a chain gives on the sample: (16, 128), or (16,) after a reduction."""
    tensors = _sample(kind, dtype)
    x = tensors["x"]
    for name, argument in ((step.name, step.argument) for step in steps):
        x = OPS[name].value(x, tensors[argument] if name in BINARY else x.dtype.type(argument or 0))
    return x


def _differs(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether at least 1 in 20 entries differ by more than 2 % of a's scale; NaN differs from everything."""
    return a.shape != b.shape or not (np.abs(a - b) <= 0.02 * np.abs(a).max()).mean() > 0.95


def _sound(steps: tuple[Step, ...]) -> bool:
    """Whether a chain is worth judging: see the module's docstring."""
    kernels = [OPS[step.name].kernels for step in steps]
    if sum(kernels) < 3 or 1 not in kernels[: len(_elementwise(steps))]:  # no half-fused or no lazy solution
        return False
    with np.errstate(all="ignore"):
        for kind in ("plain", "negated", "scaled", "shifted"):
            exact = _value(steps, kind, "float64")
            allowed = 2e-5 * (min(1, np.sqrt((exact**2).mean())) + np.abs(exact))
            if not (np.abs(_value(steps, kind) - exact) <= allowed).all():  # NaN and infinity fail too
                return False
        value = _value(steps)
        scale = np.abs(value).max()
        if value.std() < 0.02 * scale or (np.abs(value - np.median(value)) < 1e-6 * scale).mean() > 0.7:
            return False
        stretches = [(i, j) for i in range(len(steps)) for j in range(i + 1, len(steps) + 1)]
        return all(_differs(value, _value(steps[:i] + steps[j:])) for i, j in stretches)


def _elementwise(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    return steps[:-1] if steps and steps[-1].name in ENDINGS else steps


# ----------------------------------------------------------------------------------------------------------------------
# Right solutions


def _fused(steps: tuple[Step, ...], rng: random.Random) -> list[Part]:
    return [Part(True, steps)]


def _lazy(steps: tuple[Step, ...], rng: random.Random) -> list[Part]:
    i = rng.choice([i for i, step in enumerate(_elementwise(steps)) if OPS[step.name].kernels == 1])
    return [Part(False, steps[:i]), Part(True, steps[i : i + 1]), Part(False, steps[i + 1 :])]


def _half(steps: tuple[Step, ...], rng: random.Random) -> list[Part]:
    """A kernel for a stretch of the chain, or two kernels: estimated speed-up 1.3 to 2.2, well below the fused one's
    where the chain permits."""
    n = len(steps)
    plans = [[Part(True, steps[:i]), Part(True, steps[i:])] for i in range(1, n)]
    stretches = [(i, j) for i in range(n) for j in range(i + 1, n + 1) if j - i < n]
    plans += [[Part(False, steps[:i]), Part(True, steps[i:j]), Part(False, steps[j:])] for i, j in stretches]
    fused, speedup = _speedup(steps, [Part(True, steps)]), [_speedup(steps, plan) for plan in plans]
    highest = max(1.35, min(2.2, 0.75 * fused))
    good = [plan for plan, s in zip(plans, speedup, strict=True) if 1.3 <= s <= highest]
    return rng.choice(good) if good else plans[int(np.argmin([abs(s - 1.4) for s in speedup]))]


def _speedup(steps: tuple[Step, ...], plan: list[Part]) -> float:
    """The estimated speed-up of a plan: by kernel launches or by tensors read and written, whichever is lower."""

    def traffic(part: tuple[Step, ...]) -> int:  # tensors that cross memory if `part` is one kernel
        return len(_tensors(part)) + (part[-1].name not in REDUCTIONS)

    def eager(part: tuple[Step, ...]) -> list[int]:  # an operator of k kernels makes k round trips
        kernels = [OPS[step.name].kernels for step in part]
        return [sum(kernels), sum(traffic((s,)) + 2 * (k - 1) for s, k in zip(part, kernels, strict=True))]

    parts = [part for part in plan if part.steps]
    costs = np.sum([[1, traffic(part.steps)] if part.own else eager(part.steps) for part in parts], axis=0)
    return float((eager(steps) / costs).min())


def _render(chain: tuple[Step, ...], plan: list[Part], rng: random.Random) -> str:
    """The candidate's text; `chain` is the task's, and gives forward's arguments."""
    plan = [part for part in plan if part.own or part.steps]
    names = rng.sample(KERNEL_NAMES, sum(part.own for part in plan))
    block = rng.choice(BLOCKS)
    kernels, body, result = [], [], "x"
    for k, part in enumerate(plan):
        if not part.own:
            body += [step.torch for step in part.steps]
            continue
        name = names[len(kernels)]
        kernels.append(_kernel(name, part.steps))
        body += _launch(name, part.steps, block)
        if k + 1 < len(plan):
            body.append("x = o")
        else:
            result = "o"
    lines = ["import torch", "import triton", "import triton.language as tl", "\n", *kernels]
    lines += ["class ModelNew(torch.nn.Module):", f"    def forward(self, {', '.join(_tensors(chain))}):"]
    return "\n".join(lines + ["        " + line for line in [*body, f"return {result}", ""]]).rstrip() + "\n"


def _kernel(name: str, steps: tuple[Step, ...]) -> str:
    """A kernel over blocks of all elements, or over one row each if the steps end in a row operator."""
    tensors = _tensors(steps)
    pointers = ", ".join(f"{t}_ptr" for t in [*tensors, "o"])
    rowwise = _elementwise(steps) != steps
    lines = ["@triton.jit", f"def {name}({pointers}, {'cols' if rowwise else 'n'}, BLOCK: tl.constexpr):"]
    lines.append(f"    i = tl.program_id(0) * {'cols' if rowwise else 'BLOCK'} + tl.arange(0, BLOCK)")
    lines.append("    mask = tl.arange(0, BLOCK) < cols" if rowwise else "    mask = i < n")
    lines += [f"    {t} = tl.load({t}_ptr + i, mask)" for t in tensors]
    lines += ["    " + line for step in steps for line in step.triton]
    reduced = rowwise and steps[-1].name in REDUCTIONS
    lines.append("    tl.store(o_ptr + tl.program_id(0), x)" if reduced else "    tl.store(o_ptr + i, x, mask)")
    return "\n".join(lines) + "\n\n"


def _launch(name: str, steps: tuple[Step, ...], block: int) -> list[str]:
    tensors = ", ".join([*_tensors(steps), "o"])
    if _elementwise(steps) == steps:
        launch = f"{name}[(triton.cdiv(n, {block}),)]({tensors}, n, {block})"
        return ["o = torch.empty_like(x)", "n = x.numel()", launch]
    empty = "torch.empty(rows, device=x.device)" if steps[-1].name in REDUCTIONS else "torch.empty_like(x)"
    return ["rows, cols = x.shape", f"o = {empty}", f"{name}[(rows,)]({tensors}, cols, triton.next_power_of_2(cols))"]


# ----------------------------------------------------------------------------------------------------------------------
# Broken solutions. Each way: (toy, plan, rng) -> a text, or None where it does not apply or would break nothing.


def _broken(toy: Toy, rng: random.Random) -> str:
    plan = rng.choice((_fused, _fused, _half, _lazy))(toy.steps, rng)
    while (text := rng.choice(WAYS)(toy, plan, rng)) is None:
        pass
    return text


def _other_steps(toy: Toy, plan: list[Part], rng: random.Random) -> str | None:
    """An operator dropped, swapped with the next one, another one, or with another constant or tensor."""
    k, i = rng.choice([(k, i) for k, part in enumerate(plan) for i in range(len(part.steps))])
    steps = list(plan[k].steps)
    name, argument = steps[i].name, steps[i].argument
    change = rng.choice(("drop", "swap", "operator", "operator", "argument", "argument"))
    if change == "drop":
        del steps[i]
    elif change == "swap" and not ENDINGS.keys() & {step.name for step in steps[i : i + 2]}:
        steps[i : i + 2] = reversed(steps[i : i + 2])
    elif change == "operator":
        family = next(family for family in (UNARY, BINARY, REDUCTIONS, NORMS) if name in family)
        name = rng.choice(list(family))
        steps[i] = Step(name, argument if family is BINARY else rng.choice(OPS[name].arguments))
    else:
        steps[i] = Step(name, rng.choice(_tensors(toy.steps)[1:] if name in BINARY else OPS[name].arguments))
    plan = [*plan[:k], Part(plan[k].own, tuple(steps)), *plan[k + 1 :]]
    with np.errstate(all="ignore"):
        wrong = _value(tuple(step for part in plan for step in part.steps))
    return _render(toy.steps, plan, rng) if _differs(_value(toy.steps), wrong) else None


def _no_where(toy: Toy, plan: list[Part], rng: random.Random) -> str | None:
    """A row kernel that lets the padding (loaded as zeros) count."""
    if len(plan) > 1 or toy.ops[-1] not in ("sum", "mean", "softmax"):
        return None
    row, zero = _value(toy.steps[:-1]), _value(toy.steps[:-1], "zeros")  # (16, 128) each
    padding = (1 << (toy.cols - 1).bit_length()) - toy.cols
    row = np.concatenate([row, zero[:, : 128 * padding // toy.cols]], 1)
    wrong = _softmax(row)[:, :128] if toy.ops[-1] == "softmax" else row.sum(1) / (128 if toy.ops[-1] == "mean" else 1)
    if not _differs(_value(toy.steps), wrong):
        return None
    text = _render(toy.steps, plan, rng)
    return text.replace(f"tl.sum({ONLY_REAL[0]})", "tl.sum(x)").replace(f"    x = {ONLY_REAL[1]}\n", "")


def _no_parenthesis(toy: Toy, plan: list[Part], rng: random.Random) -> str | None:
    text = _render(toy.steps, plan, rng)
    line = rng.choice([line for line in text.split("\n") if "tl." in line or "torch.empty" in line or ")](" in line])
    text = text.replace(line, "".join(line.rsplit(")", 1)), 1)
    try:
        ast.parse(text)
    except SyntaxError:
        return text
    return None


def _few_programs(toy: Toy, plan: list[Part], rng: random.Random) -> str | None:
    """The end of the output is never written."""
    text, n = _render(toy.steps, plan, rng), toy.rows * toy.cols
    for block in BLOCKS:
        if f"cdiv(n, {block})" in text and n % block and n > block:
            return text.replace(f"(triton.cdiv(n, {block}),)", rng.choice([f"(n // {block},)", "(1,)"]), 1)
    return text.replace("[(rows,)]", "[(rows // 2,)]") if "[(rows,)]" in text else None


def _no_mask(toy: Toy, plan: list[Part], rng: random.Random) -> str | None:
    """Reads and writes beyond the tensors: sure to be noticed only where every address is checked (interpreter)."""
    text, n = _render(toy.steps, plan, rng), toy.rows * toy.cols
    if toy.device != "cpu" or not any(f"cdiv(n, {block})" in text and n % block for block in BLOCKS):
        return None
    return text.replace("    mask = i < n\n", "").replace(" + i, mask)", " + i)").replace(" + i, x, mask)", " + i, x)")


def _edit(*pairs: tuple[str, str], unless: Callable[[Toy], bool] = lambda toy: False) -> Callable:
    """A way that puts one text for another, where the candidate holds it."""

    def way(toy: Toy, plan: list[Part], rng: random.Random) -> str | None:
        text = _render(toy.steps, plan, rng)
        old, new = rng.choice(pairs)
        return text.replace(old, new, 1) if old in text and not unless(toy) else None

    return way


RETURN = "        return o\n"
MISSPELT = (  # names that are defined nowhere
    ("tl.store(o_ptr", "tl.store(out_ptr"),
    ("i = tl.program_id", "offs = tl.program_id"),
    ("    mask = ", "    m = "),
    ("    x = tl.load(x_ptr", "    a = tl.load(x_ptr"),
    ("        o = torch.empty", "        out = torch.empty"),
    ("        n = x.numel()\n", ""),
    ("        rows, cols = x.shape\n", ""),
)
INVENTED = (  # functions that Triton does not have, or that do not work on its tensors
    ("tl.maximum(x, 0.0)", "tl.relu(x)"),
    ("tl.maximum(x, 0.0)", "torch.relu(x)"),
    ("2.0 * tl.sigmoid(2.0 * x) - 1.0", "tl.tanh(x)"),
    ("x * tl.sigmoid(x)", "tl.silu(x)"),
    ("x = tl.sigmoid(", "x = torch.sigmoid("),
    ("triton.next_power_of_2", "triton.next_power"),
    ("torch.empty", "tl.empty"),
)
ARGUMENTS = (  # parameters missing from a kernel, arguments missing from a launch
    ("_ptr, n, BLOCK", "_ptr, BLOCK"),
    ("_ptr, cols, BLOCK", "_ptr, BLOCK"),
    (", y_ptr", ""),
    ("](x, y, ", "](x, "),
    (", o, n", ", n"),
    ("o, cols, triton", "o, triton"),
)
WAYS = (
    *[_other_steps] * 8,
    *(_no_where, _no_where, _no_parenthesis, _few_programs, _no_mask),
    *(_edit(*MISSPELT), _edit(*INVENTED), _edit(*INVENTED), _edit(*ARGUMENTS)),
    _edit(("import torch\n", ""), ("import triton\n", ""), ("import triton.language as tl\n", "")),
    _edit((RETURN, ""), ("        return x\n", ""), (RETURN, RETURN.replace("o", "x"))),
    _edit(("triton.next_power_of_2(cols)", "cols"), unless=lambda toy: toy.cols & (toy.cols - 1) == 0),
    _edit(("o = torch.empty(rows, device=x.device)", "o = torch.empty_like(x)")),
    _edit(
        (RETURN, "        return o[0]\n"), (RETURN, "        return o.sum()\n"), (RETURN, "        return o.half()\n")
    ),
)
