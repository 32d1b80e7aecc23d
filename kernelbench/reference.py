"""What the referee knows of a task and a candidate never sees: the model, its weights, the inputs of every draw, the right outputs."""

import copy
import hashlib
import hmac
import json
import math
import random
import threading
import zlib
from collections import OrderedDict

import numpy
import torch

from kernelbench import Task
from kernelbench.compare import TOLERANCE, apart, finite, mismatch, pieces
from kernelbench.process import Fault
from kernelbench.wire import dense, flatten, leaves

# Correctness draws from other distributions than the task's own, in place: float inputs of either sign and another scale, or at least
# another scale; values near 1 and -1, whose products neither vanish nor grow (|n| of a normal n has mean 0.798). "lined": the first lines
# are negative, the last ones positive, and one is small; "flags": of ones that are all set, four in five.
MOVES = {
    "mirror": lambda value: value.mul_(-3).add_(2),
    "stretch": lambda value: value.mul_(3).add_(0.5),
    "unit": lambda value: value.copy_(torch.where(value.normal_() < 0, -1.0, 1.0) * (0.992 + 0.01 * value.abs())),
}
ASIDE = {
    "cpu": 1 << 26,
    "cuda": 3 << 29,
}  # bytes of a contestant before it holds any tensor (contexts, libraries), and of our temporaries


def _lined(value: torch.Tensor, how: set[str]) -> torch.Tensor:
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


def _free(value: torch.Tensor) -> bool:
    """Whether a task's float values are of no kind that its kernels may rely on: flags and other few numbers, shares that add up to one."""
    some = value.as_strided((min(value.numel(), 4096),), (1,)) if dense(value) else value.flatten()[:4096]
    few = value.numel() > 64 and 2 <= len(some.unique()) <= 16
    if few or all(((v == 0) | (v == 1)).all() for _, (v,) in pieces(value)):
        return False
    shares = value.dim() > 1 and value.shape[-1] > 1 and value.nbytes <= STRUCTURED
    return not (
        shares and bool((value >= 0).all()) and bool(((value.sum(-1, dtype=torch.float32) - 1).abs() < 1e-2).all())
    )


def moves(draw: int) -> tuple[str, ...]:
    """What may be done to the inputs of correctness draw 2, 3, ..: the first that the task bears."""
    if draw % 2:
        return "unit lined flags", "unit lined", "unit"
    return "mirror lined flags", "mirror lined", "mirror", "stretch"


STRUCTURED = 1 << 30  # bytes of the largest input that is looked at for a structure which its kernels may rely on
HALF = (torch.float16, torch.bfloat16)
PRECISIONS = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}  # fp32: as the task is written
WIDER = dict.fromkeys(HALF, torch.float32) | {torch.float32: torch.float64}


def _constant(t: torch.Tensor, value) -> torch.Tensor:
    """A tensor like t, full of one value, that takes no memory."""
    return torch.full((), value, dtype=t.dtype, device=t.device).expand_as(t)


def _mean(t: torch.Tensor):
    """A number of t's kind that is its finite values' mean."""
    if t.is_complex():
        return 0.0
    total, count = torch.zeros(2, dtype=torch.float64, device=t.device)
    for _, (part,) in pieces(t):
        good = part.isfinite()
        total += torch.where(good, part, 0).sum(dtype=torch.float64)
        count += good.sum()
    mean = (total / count.clamp_min(1)).item()
    return mean if t.is_floating_point() else round(mean)


def cast(value, dtype: torch.dtype | None):
    """Nested values with their float tensors as `dtype`; None: as they are."""
    if isinstance(value, torch.Tensor):
        return value.to(dtype) if dtype and value.is_floating_point() else value
    if isinstance(value, dict):
        return {key: cast(v, dtype) for key, v in value.items()}
    return type(value)(cast(v, dtype) for v in value) if type(value) in (list, tuple) else value


def on(value, device: str):
    """Nested values with their tensors on `device`; KernelBench moves a task's arguments so."""
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return {key: on(v, device) for key, v in value.items()}
    return type(value)(on(v, device) for v in value) if type(value) in (list, tuple) else value


def cast_model(model, precision: str):
    """Float parameters and buffers in that precision; KernelBench casts the same."""
    if not isinstance(model, torch.nn.Module) or precision == "fp32":
        return model
    return model.bfloat16() if precision == "bf16" else model.half()


def seed_torch(seed: int):
    """What torch.manual_seed does for the CPU and the GPU at hand, in 10 us instead of 200: it is called for every draw and timed forward."""
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.default_generators[torch.cuda.current_device()].manual_seed(seed)


def on_meta(value):
    """The same without its tensors' values: shapes, strides and dtypes take no memory."""
    if isinstance(value, torch.Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    if isinstance(value, dict):
        return {k: on_meta(v) for k, v in value.items()}
    return type(value)(map(on_meta, value)) if type(value) in (list, tuple) else value


def places(tensors: list[torch.Tensor]) -> set[int]:
    """Where the memory of tensors begins; 0 for none."""
    return {t.untyped_storage().data_ptr() for t in tensors} - {0}


def nbytes(value) -> int:
    return sum(t.nbytes for t in leaves(value))


def _widened(value, wide: torch.dtype):
    if isinstance(value, torch.Tensor):
        return value.to(torch.promote_types(value.dtype, wide)) if value.is_floating_point() else value
    return type(value)(_widened(v, wide) for v in value) if isinstance(value, (list, tuple)) else value


def _nudged(value):
    """Nested values whose floats are up to two roundings larger or smaller; of half precision up to one."""
    if isinstance(value, torch.Tensor):
        if not value.is_floating_point() or value.element_size() == 1:
            return value
        most = 1 if value.dtype in HALF else 2
        steps = torch.randint(-most, most + 1, value.shape, device=value.device, dtype=torch.int8)
        return value + value * steps * torch.finfo(value.dtype).eps
    return type(value)(map(_nudged, value)) if isinstance(value, (list, tuple)) else value


def _rounding(a: torch.Tensor, exact: torch.Tensor) -> torch.Tensor | None:
    """16 times the root mean square of a's roundings; None where it is more than 1/200 of the values' spread: then it is no rounding (other
    random numbers in another precision), or the values are nothing else."""
    off, std = apart(a, exact)
    return _constant(a, 16 * off) if 200 * off <= std else None


def _initial(slot: torch.Tensor) -> tuple | None:
    """What a float parameter or buffer was given instead of random numbers, with its size: ones, zeros, and of parameters any one value, a
    multiple of the identity, rows that are all alike. None for anything else."""
    flat = slot.detach().flatten()
    first, last, n = float(flat[0]), float(flat[-1]), slot.numel()
    if (slot == first).all():
        learnt = isinstance(slot, torch.nn.Parameter) or first in (0.0, 1.0)
        return ("all", first, first, n) if learnt and math.isfinite(first) else None
    if not isinstance(slot, torch.nn.Parameter) or slot.dim() < 2 or not slot.isfinite().all():
        return None
    diagonal = (
        slot.dim() == 2 and slot.shape[0] == slot.shape[1] and not flat[1]
    )  # else not worth a matrix of the same size
    if diagonal and torch.equal(slot, first * torch.eye(len(slot), dtype=slot.dtype, device=slot.device)):
        return ("eye", first, last, n)
    return ("rows", first, last, n) if len(slot) > 1 and (slot == slot[:1]).all() else None


def perturb(module: torch.nn.Module, seed: int, most: list | None = None) -> list:
    """Moves every float parameter and running statistic that is not random (see `_initial`) off its values, by up to 0.5 (zeros and identities by up to
    0.25 either way), so that a candidate which ignores it, or has its first values written out, is wrong. By seed, values, number of elements and occurrence
    alone: the same under other names, in another order, with other shapes.
    Returns how many there were, [[what, first, last, number of elements], count] each; of a kind no more than in `most`, what another model returned."""
    seen, limits = {}, {tuple(kind): count for kind, count in most or []}
    running = [slot for name, slot in module.named_buffers() if name.rpartition(".")[2].startswith("running_")]
    for slot in [*module.parameters(), *running]:
        if not slot.is_floating_point() or not slot.numel() or (kind := _initial(slot)) is None:
            continue
        seen[kind] = seen.get(kind, 0) + 1
        if most is not None and seen[kind] > limits.get(kind, 0):  # a buffer of its own
            continue
        generator = torch.Generator().manual_seed(zlib.crc32(repr((seed, kind, seen[kind])).encode()))
        noise = torch.rand(slot.numel(), generator=generator) * 0.5
        noise -= 0.25 if kind[0] == "eye" or kind[:2] == ("all", 0) else 0.0
        slot.data += noise.view(slot.shape).to(slot.device, slot.dtype)
    return [[list(kind), count] for kind, count in seen.items()]


class Kept:
    """Expected outputs that are kept for the next candidates of their tasks: `limit` bytes of all tasks together, of one draw a sixteenth of
    it; those that were not asked for longest go first."""

    def __init__(self, limit: int):
        self.limit, self.nbytes, self.lock, self.results = limit, 0, threading.Lock(), OrderedDict()

    def get(self, key: tuple) -> tuple | None:
        with self.lock:
            if key in self.results:
                self.results.move_to_end(key)
            return self.results.get(key)

    def put(self, key: tuple, result: tuple):
        with self.lock:
            if key in self.results or 16 * nbytes(result) > self.limit:
                return
            self.results[key], self.nbytes = result, self.nbytes + nbytes(result)
            while self.nbytes > self.limit:
                self.nbytes -= nbytes(self.results.popitem(last=False)[1])


class Reference:
    """A task's model with its weights, its inputs by name of the draw, its expected outputs; filled in lazily, shared by a task's candidates.

    memory: bytes of the device; Fault for a task that needs more. Inputs are made again whenever they are needed, and what uses them may
    change them, so that of a large task no more lies in memory at once than the contestant's inputs and outputs and as much here."""

    generating = threading.Lock()  # torch's default generators are global

    def __init__(
        self,
        task: Task,
        device: str,
        key: bytes,
        kept: Kept | None = None,
        memory: float = math.inf,
        precision: str = "fp32",
    ):
        self.task, self.device, self.key, self.kept, self.memory = task, device, key, kept or Kept(1 << 30), memory
        self.lock, self.timing_lock, self.timing = threading.Lock(), threading.Lock(), None
        self.moves, self.plan, self.passes = {}, None, None
        self.dtype, self.resident_lock, self.work = PRECISIONS[precision], threading.Lock(), None
        self.beside = -math.inf, [], []  # when it was timed last, its samples, the GPU's states meanwhile
        self.like, self.scratch = (
            None,
            0,
        )  # inputs and outputs on the meta device; most bytes that a forward takes beyond these
        self.names = {"__name__": "task"}
        exec(compile(task.source, task.name, "exec"), self.names)
        if device == "cpu":
            self.names.update(self.names.get("SMALL", {}))
        with self.generating:
            self._seed("init")
            init = self.names["get_init_inputs"]()
            keyword = (
                isinstance(init, (list, tuple))
                and len(init) == 2
                and isinstance(init[0], (list, tuple))
                and isinstance(init[1], dict)
            )
            self.args, self.kwargs = (
                (list(init[0]), init[1]) if keyword else ([], init) if isinstance(init, dict) else (list(init), {})
            )
            self.args, self.kwargs = (cast(on(value, device), self.dtype) for value in (self.args, self.kwargs))
            self.sizes = self._sizes()
            self.fit()
            self.seed = self._seed("weights")
            with torch.device(device):  # as the candidate's is built
                self.model = self.names["Model"](*copy.deepcopy(self.args), **self.kwargs).to(device)
            self.moved = perturb(self.model, self.seed)
            self.model = cast_model(self.model, precision)
        self.weights = {n: t.detach() for n, t in [*self.model.named_parameters(), *self.model.named_buffers()]}

    def number(self, *name) -> int:
        """63 secret bits that depend on the run's key, the task and `name` alone."""
        text = json.dumps([self.task.key, *name]).encode()
        return int.from_bytes(hmac.new(self.key, text, hashlib.sha256).digest()[:8], "big") >> 1

    def _seed(self, *name) -> int:
        seed = self.number(*name)
        seed_torch(seed)
        random.seed(seed)
        numpy.random.seed(seed % 2**32)
        return seed

    def _sizes(self) -> list[int]:
        """Bytes of the weights, the inputs and (of a large task) the outputs, as far as they can be told without computing anything."""
        sizes = [0, 0, 0]
        try:
            with torch.device("meta"), torch.no_grad():
                model = self.names["Model"](*copy.deepcopy(self.args), **self.kwargs)
                sizes[0] = nbytes([*map(torch.Tensor.detach, [*model.parameters(), *model.buffers()])])
                given = list(self.names["get_inputs"]())
                sizes[1] = nbytes(given)
                unrolled = any(isinstance(m, torch.nn.RNNBase) for m in model.modules())  # there: minutes
                if 16 * sum(sizes) > self.memory and not unrolled:
                    flatten(model(*given), outputs := [])
                    sizes[2] = nbytes(outputs)
        except Exception:  # noqa: BLE001 the task's own code: some of it needs values, which shows when it has them
            pass
        return sizes

    def need(self) -> int:
        """Bytes that an evaluation takes at least, on both sides together: inputs and outputs on each, the weights here, there and on their way."""
        weights, inputs, outputs = self.sizes
        return 3 * weights + 2 * (inputs + outputs + self.scratch) + ASIDE[self.device]

    def fit(self):
        if self.need() > self.memory:
            here = "this GPU" if self.device == "cuda" else "this machine"
            text = f"needs {self.need() / 2**30:.1f} GiB, {here} has {self.memory / 2**30:.1f}"
            raise Fault(f"the task {self.task.name} {text}")

    def inputs(self, *name, how: str | None = None):
        """Fresh inputs of the draw `name`, the float ones among them moved by MOVES[how]. Fault when the task cannot make them."""
        with self.generating:
            self._seed("inputs", *name)
            try:
                with torch.device(self.device):
                    given = list(self.names["get_inputs"]())
            except torch.OutOfMemoryError:
                raise
            except Exception as error:  # noqa: BLE001 the task's own code
                raise Fault(
                    f"get_inputs of the task {self.task.name} fails: {type(error).__name__}: {error}"
                ) from error
            constants = places(leaves([v for name, v in self.names.items() if name != "__builtins__"]))
            return [self._move(v, how, constants) for v in given]

    def _move(self, value, how, constants):
        if isinstance(value, torch.Tensor):
            value = cast(value.detach().to(self.device), self.dtype)
            value = value.clone() if places([value]) & constants else value  # else it would be changed
            words = set((how or "").split())
            if words and "flags" in words and value.numel() > 1 and bool((value == 1).all()):
                return value.copy_(torch.rand(value.shape, device=value.device) < 0.8)
            if not how or not value.is_floating_point() or not _free(value):
                return value
            ordered = value.dim() == 1 and len(value) > 1 and (value.diff() >= 0).all()
            value = value if dense(value) else value.clone()
            empty = value == 0 if value.nbytes <= STRUCTURED else None
            empty = empty if empty is not None and 8 * int(empty.sum()) >= value.numel() else None  # a triangle, a band
            square = 1 < value.dim() and value.shape[-1] == value.shape[-2] > 1 and value.nbytes <= STRUCTURED
            symmetric = square and torch.equal(value, value.mT)
            for _, (part,) in pieces(value.as_strided((value.numel(),), (1,))):
                MOVES["stretch" if ordered else how.split()[0]](part)
            value = _lined(value, words) if "lined" in words and not ordered and not symmetric else value
            value = torch.triu(value) + torch.triu(value, 1).mT if symmetric else value
            return value if empty is None else value.masked_fill_(empty, 0)
        return type(value)(self._move(v, how, constants) for v in value) if isinstance(value, (list, tuple)) else value

    def forward(self, inputs, seed: int, model: torch.nn.Module | None = None):
        """(tree, output tensors): what a right candidate must give. The inputs are then as the call left them. Fault when the task fails."""
        model, tensors = model or self.model, []
        with torch.no_grad(), self.generating:
            seed_torch(seed)
            try:
                tree = flatten(model(*inputs), tensors)
            except torch.OutOfMemoryError:
                raise
            except Exception as error:  # noqa: BLE001 the task's own code
                raise Fault(f"the task {self.task.name} fails: {type(error).__name__}: {error}") from error
            held = leaves([list(vars(m).values()) for m in model.modules()]) + [*model.parameters(), *model.buffers()]
            held = places(held)  # the next call may write there
            return tree, [
                t.clone() if places([t]) & held or t.untyped_storage().nbytes() > 2 * t.nbytes else t for t in tensors
            ]

    def doubts(self, inputs, seed: int, outputs: list[torch.Tensor]) -> list[torch.Tensor | None]:
        """How far `outputs` are from those of the same model in more precision: a right candidate may lie on either side. Of half precision
        by value; of fp32, whose roundings depend on the order of sums, 16 times the root mean square, and only where that is little beside
        the spread of the values. None for other outputs, or where the model does not work so or does not fit."""
        exact = self._exact(inputs, seed, outputs)
        if exact is None:
            return [None] * len(outputs)
        pairs = list(zip(outputs, exact))
        if exact[0].dtype == torch.float64:
            return [_rounding(a, b) if a.dtype == torch.float32 else None for a, b in pairs]
        return [(a.float() - b.float()).abs().nan_to_num(0) if a.dtype in HALF else None for a, b in pairs]

    def _exact(self, inputs, seed: int, outputs: list[torch.Tensor]) -> list[torch.Tensor] | None:
        """What `outputs` would be in more precision; None where that is not known."""
        wide = next((w for d, w in WIDER.items() if any(t.dtype == d for t in outputs)), None)
        if wide is None or 8 * self.need() > self.memory:
            return None
        with self.generating:
            model = copy.deepcopy(self.model).to(wide)
        try:
            exact = self.forward(_widened(inputs, wide), seed, model)[1]
        except Fault:
            return None
        return exact if [t.shape for t in exact] == [t.shape for t in outputs] else None

    def nearby(self, *name, seed: int):
        """The outputs for inputs that are one or two roundings off, again and again, each time by chance: where ties and values on an edge
        (a maximum's place, a rounding to integers, a comparison) fall otherwise, a right candidate may be there too."""
        for i in range(24 if 8 * self.need() <= self.memory else 0):
            inputs = self.given(*name)
            with self.generating:
                seed_torch(self.number("nearby", *name, i))
                inputs = [_nudged(v) for v in inputs]
            try:
                yield self.forward(inputs, seed)[1]
            except Fault:
                return

    def bears(self, *name, how: str) -> bool:
        """Whether the task is made for such inputs: stays finite, and its outputs in fp32 are known eight times better than they are compared;
        else a right candidate, with roundings of its own, could be wrong. Where that cannot be told, or of other dtypes, lines are too much."""
        seed = self.number("call", *name) % 2**31
        try:
            outputs = self.forward(self.inputs(*name, how=how), seed)[1]
        except Fault:
            return False
        if not all(map(finite, outputs)):
            return False
        singles = [i for i, t in enumerate(outputs) if t.dtype == torch.float32]
        exact = self._exact(self.inputs(*name, how=how), seed, outputs) if singles else None
        if exact is None:
            return "lined" not in how
        tolerance = TOLERANCE[torch.float32] / 8
        return not any(mismatch(outputs[i], exact[i].float(), tolerance) for i in singles)

    def control(self, draws: int, tolerance: float | None = None) -> str | None:
        """What passes for the right output in all of the correctness draws without any work: zeros, the mean, an input, the output on other
        inputs. None for a task that tells right from wrong."""
        stale = self.expected("reference", 0, inputs=self.given("reference", 0))[1]
        left = None
        for draw in range(draws):
            if (inputs := self.given("check", draw)) is None:
                continue
            expected = self.expected("check", draw, inputs=inputs)[1]
            controls = {
                "zeros": [_constant(t, 0) for t in expected],
                "their mean": [_constant(t, _mean(t)) for t in expected],
                "the output for other inputs": stale,
            }
            if all(t.numel() <= 1 for t in expected):
                del controls["their mean"]  # the answer itself
            del inputs  # as the model left them
            controls |= {f"input {i}": [t] for i, t in enumerate(leaves(self.given("check", draw)))}
            passed = {
                name
                for name, outputs in controls.items()
                if len(outputs) == len(expected)
                and not any(mismatch(o, e, tolerance) for o, e in zip(outputs, expected))
            }
            left = passed if left is None else left & passed
            if not left:
                return None
        return next((name for name in controls if name in left), None) if left else None

    def given(self, *name):
        """The inputs of a draw. Those of draws named ("check", 2), ("check", 3).. are moved where the reference stays finite on them; None
        where no move leaves it so."""
        if name[0] != "check" or name[1] < 2:
            return self.inputs(*name)
        with self.lock:
            draw = name[:2]
            if draw not in self.moves:
                self.moves[draw] = next((how for how in moves(name[1]) if self.bears(*name, how=how)), None)
        return None if self.moves[draw] is None else self.inputs(*name, how=self.moves[draw])

    def expected(self, *name, inputs):
        """(tree, output tensors) of the model on the draw's `inputs`, which may be changed. Kept where they are small enough."""
        key = (self.task.key, *name)
        given = None if self.like else on_meta(inputs)
        with self.lock:
            result = self.kept.get(key) or self.forward(inputs, self.number("call", *name) % 2**31)
        if given is not None:
            self.like, self.sizes[1:] = (given, on_meta(result[1])), [nbytes(given), nbytes(result[1])]
            self.fit()
        if name[0] != "knockout":
            self.kept.put(key, result)
        return result
