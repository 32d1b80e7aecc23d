"""What the referee knows of a task and a candidate never sees: the model, its weights, the inputs of every draw, the right outputs."""

import copy
import hashlib
import hmac
import json
import math
import random
import threading
from collections import OrderedDict

import numpy
import torch

from kernelbench import Task
from kernelbench.compare import TOLERANCE, apart, finite, mismatch, pieces
from kernelbench.draws import HALF, cast, move, moves, nudged, places
from kernelbench.perturb import one_signed, perturb, slots, vary
from kernelbench.process import Fault
from kernelbench.room import Live
from kernelbench.wire import flatten, leaves

ASIDE = {
    "cpu": 1 << 26,
    "cuda": 3 << 29,
}  # bytes of a contestant before it holds any tensor (contexts, libraries), and of our temporaries


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


def nbytes(value) -> int:
    return sum(t.nbytes for t in leaves(value))


def _widened(value, wide: torch.dtype):
    if isinstance(value, torch.Tensor):
        return value.to(torch.promote_types(value.dtype, wide)) if value.is_floating_point() else value
    return type(value)(_widened(v, wide) for v in value) if isinstance(value, (list, tuple)) else value


def _rounding(a: torch.Tensor, exact: torch.Tensor) -> torch.Tensor | None:
    """16 times the root mean square of a's roundings; None where it is more than 1/200 of the values' spread: then it is no rounding (other
    random numbers in another precision), or the values are nothing else."""
    off, std = apart(a, exact)
    return _constant(a, 16 * off) if 200 * off <= std else None


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

    def clear(self):
        with self.lock:
            self.nbytes = 0
            self.results.clear()

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
        self.like = None  # inputs and outputs on the meta device
        self.scratch = (
            0  # most bytes that a forward takes beyond these, first by its operators' outputs, then as measured
        )
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
            self.precision, self.how, self.varied, self.weights_lock = precision, "name", False, threading.RLock()
            self._construct()

    def _construct(self, bold: bool = False):
        self.seed = self._seed("weights")
        with torch.device(self.device):  # as the candidate's is built
            self.model = self.names["Model"](*copy.deepcopy(self.args), **self.kwargs).to(self.device)
        self.bold, self.dared = one_signed(self.model), bold
        self.moved = perturb(self.model, self.seed, bold=bold)
        self.model = cast_model(self.model, self.precision)
        self.weights = {n: t.detach() for n, t in [*self.model.named_parameters(), *self.model.named_buffers()]}

    def vary(self):
        """Settles the weights, which are then no more those that the model starts with; before they are used. Bold ones, if the model bears them."""
        with self.weights_lock:
            if self.varied:
                return
            self.varied, seed = True, self.number("vary") % 2**31
            vary(self.model, seed)
            if self.bold:
                kept = [slot.clone() for slot in slots(self.model)]
                vary(self.model, seed + 1, self.bold)
                if not self._bears_bold():
                    for slot, old in zip(slots(self.model), kept, strict=True):
                        slot.copy_(old)

    def by_seed(self) -> "Reference":
        """The same for candidates that construct the same weights under other names: those of the seed, moved by what they are (see perturb)."""
        other = copy.copy(self)
        other.how, other.varied = "seed", True
        for bold in (True, False):
            with self.generating:
                other._construct(bold)
            if not bold or other._bears_bold():
                return other

    def _bears_bold(self) -> bool:
        """Whether the model bears its weights, and still tells inputs apart: a clamp's limits may have changed places."""
        if not self.bears("check", 0, how=None):
            return False
        outputs = self.forward(self.inputs("check", 0), self.number("call", "check", 0) % 2**31)[1]
        return any(t.numel() < 2 or mismatch(_constant(t, _mean(t)), t) for t in outputs)

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
        """Bytes of the weights, the inputs and (of a task that is not small) the outputs, as far as they can be told without computing anything;
        and what a forward takes beyond these."""
        sizes, live = [0, 0, 0], Live()
        try:
            with torch.device("meta"), torch.no_grad():
                model = self.names["Model"](*copy.deepcopy(self.args), **self.kwargs)
                sizes[0] = nbytes([*map(torch.Tensor.detach, [*model.parameters(), *model.buffers()])])
                given = list(self.names["get_inputs"]())
                sizes[1] = nbytes(given)
                unrolled = any(isinstance(m, torch.nn.RNNBase) for m in model.modules())  # there: minutes
                if 8192 * sum(sizes) > self.memory and not unrolled:
                    with live:
                        flatten(model(*given), outputs := [])
                    sizes[2], self.scratch = nbytes(outputs), max(0, live.most - nbytes(outputs))
        except Exception:  # noqa: BLE001 the task's own code: some of it needs values, which shows when it has them
            pass
        return sizes

    def need(self) -> int:
        """Bytes that an evaluation takes at least, on both sides together: inputs and outputs on each, the weights here, there and on their way."""
        weights, inputs, outputs = self.sizes
        return 3 * weights + 2 * (inputs + outputs + self.scratch) + ASIDE[self.device]

    def large(self) -> bool:
        """Whether an evaluation takes an eighth of the memory or more: then nothing else should lie there."""
        return 8 * self.need() > self.memory

    def fit(self):
        """Fault where there is not even room for what a forward takes between inputs and outputs on one side."""
        if (least := self.need() - self.scratch) > self.memory:
            here = "this GPU" if self.device == "cuda" else "this machine"
            text = f"needs {least / 2**30:.1f} GiB, {here} has {self.memory / 2**30:.1f}"
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
            if how and "flags" in how:  # one tensor for several arguments
                first = [next(j for j, u in enumerate(given) if u is v) for v in given]
                given = [v.roll(i) if isinstance(v, torch.Tensor) and first[i] < i else v for i, v in enumerate(given)]
            return [move(on(cast(v, self.dtype), self.device), how, constants) for v in given]

    def forward(self, inputs, seed: int, model: torch.nn.Module | None = None):
        """(tree, output tensors): what a right candidate must give. The inputs are then as the call left them. Fault when the task fails."""
        self.vary()
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
        """What `outputs` would be in more precision; None where that is not known. Of integers alone: from inputs in more precision."""
        floats = [t for t in outputs if t.is_floating_point()] or leaves(inputs)
        wide = next((w for d, w in WIDER.items() if any(t.dtype == d for t in floats)), None)
        if wide is None or self.large():
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
        for i in range(0 if self.large() else 24):
            inputs = self.given(*name)
            with self.generating:
                seed_torch(self.number("nearby", *name, i))
                inputs = [nudged(v) for v in inputs]
            try:
                yield self.forward(inputs, seed)[1]
            except Fault:
                return

    def unknown(self, how: str | None) -> bool:
        """Whether nobody can tell if the task is made for inputs so moved: a large one's outputs in more precision would not fit."""
        return self.large() and "lined" in (how or "lined")

    def bears(self, *name, how: str | None) -> bool:
        """Whether the task is made for such inputs: stays finite, and its outputs in fp32 are known eight times better than they are compared;
        else a right candidate, with roundings of its own, could be wrong; integers alone are the same in more precision. Where that cannot be
        told, or of other dtypes, lines are too much."""
        if self.unknown(how):
            return False
        seed = self.number("call", *name) % 2**31
        try:
            outputs = self.forward(self.inputs(*name, how=how), seed)[1]
        except Fault:
            return False
        if not all(map(finite, outputs)):
            return False
        singles = [i for i, t in enumerate(outputs) if t.dtype == torch.float32]
        whole = [i for i, t in enumerate(outputs) if not t.is_floating_point() and not t.is_complex()]
        known = (singles or whole) and not self.large()
        exact = self._exact(self.inputs(*name, how=how), seed, outputs) if known else None
        if exact is None:
            return "lined" not in (how or "lined")
        tolerance = TOLERANCE[torch.float32] / 8
        if any(mismatch(outputs[i], exact[i].float(), tolerance, brief=True) for i in singles):
            return False
        return bool(singles) or "lined" not in (how or "lined") or all(torch.equal(outputs[i], exact[i]) for i in whole)

    def control(self, draws: int, tolerance: float | None = None) -> str | None:
        """What passes for the right output in all of the correctness draws without any work: zeros, the mean, an input, the output on other
        inputs. None for a task that tells right from wrong."""
        stale = self.expected("reference", 0, inputs=self.given("reference", 0))[1]
        left = None
        for draw in range(draws):
            if (inputs := self.given("check", draw)) is None:
                continue
            expected = self.expected("check", draw, inputs=inputs)[1]
            controls = {"zeros": [_constant(t, 0) for t in expected]}
            if any(t.numel() > 1 for t in expected):  # else it is the answer itself
                controls["their mean"] = [_constant(t, _mean(t)) for t in expected]
            controls["the output for other inputs"] = stale
            del inputs  # as the model left them
            controls |= {f"input {i}": [t] for i, t in enumerate(leaves(self.given("check", draw)))}
            left = [
                name
                for name, outputs in controls.items()
                if (left is None or name in left)
                and len(outputs) == len(expected)
                and not any(mismatch(o, e, tolerance, brief=True) for o, e in zip(outputs, expected))
            ]
            del expected, controls  # before there are others
            if not left:
                return None
        return left[0] if left else None

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
        key = (self.task.key, self.how, *name)
        given = None if self.like else on_meta(inputs)
        with self.lock:
            result = self.kept.get(key) or self.forward(inputs, self.number("call", *name) % 2**31)
        if given is not None:
            self.like, self.sizes[1:] = (given, on_meta(result[1])), [nbytes(given), nbytes(result[1])]
            self.fit()
        if name[0] != "knockout":
            self.kept.put(key, result)
        return result
