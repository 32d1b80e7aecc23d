"""What counts as right, told by torch-only candidates (any_code) that the gym judges, and what the referee knows of a task."""

import math
import random

import pytest
import torch

from gym import Gym, Job
from kernelbench import Task
from kernelbench.judge import Options
from kernelbench.perturb import one_signed, perturb, slots, vary
from kernelbench.process import Fault
from kernelbench.reference import ASIDE, Kept, Reference, _rounding

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
OPTIONS = {"cpu": Options(load_s=6, build_s=6, call_s=6), "cuda": Options(load_s=25, build_s=25, call_s=15)}

WORKERS = {"cpu": 2, "cuda": 8}


def instead(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
        text = text.replace(old, new)
    return text


def torch_task(name="task", forward="return x", init="pass", inputs="torch.randn(8, 32)", args="[]", extra="") -> Task:
    return Task(
        name,
        f"""import torch
import torch.nn as nn
import torch.nn.functional as F
{extra}
class Model(nn.Module):
    def __init__(self, *args, **kwargs):
        super().__init__()
        {init}

    def forward(self, x, y=None):
        {forward}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return {args}
""",
    )


def solution(task: Task, *changes: tuple[str, str]) -> str:
    return instead(task.source, ("class Model(", "class ModelNew("), *changes)


# ---------------------------------------------------------------------------------------------------------------------------
# What counts as right: name -> (task, code, status)

PROBABILITIES = torch_task(
    "probabilities",
    "return F.binary_cross_entropy(x, y)",
    inputs="torch.rand(64, 128), torch.rand(64, 128)",
)
LINEAR = torch_task(
    "linear", "return self.b(torch.relu(self.a(x)))", "self.a = nn.Linear(32, 16); self.b = nn.Linear(16, 8)"
)
NORM = torch_task("norm", "return self.norm(x)", "self.norm = nn.LayerNorm(32)")
BARE = "F.layer_norm(x, (32,))"
BATCH = torch_task("batchnorm", "return self.norm(x)", "self.norm = nn.BatchNorm2d(4)", "torch.randn(3, 4, 5, 5)")
SOFTMAX = torch_task("softmax", "return torch.softmax(x, -1)", inputs="torch.randn(4, 4096)")
RELU = torch_task("relu", "return torch.relu(x)", inputs="torch.rand(8, 32)")
LOG = torch_task("log", "return torch.log(x + 0.1)", inputs="torch.rand(8, 32)")
NEVER = torch_task("never", "return torch.log(x - 0.2) * torch.log(0.3 - x)", inputs="torch.full((8, 32), 0.25)")
CLASSES = torch_task("loss", "return F.cross_entropy(x, y)", inputs="torch.randn(8, 5), torch.randint(0, 5, (8,))")
PLACE = torch_task("place", "return x.mul_(2)")
DROPOUT = torch_task("dropout", "return F.dropout(x, 0.5)")
POSITIONAL = torch_task("positional", "return x * self.a + self.b", "self.a, self.b = args", args="[2.0, 3.0]")
KEYWORDS = torch_task("keywords", "return x * self.a", "self.a = kwargs['scale']", args='{"scale": 2.5}')
MIXED = torch_task(
    "mixed", "return x * self.a + self.b", "(self.a,), self.b = args, kwargs['bias']", args='[[2.5], {"bias": 1.0}]'
)
TABLE = torch_task("table", "return self.table(x)", "self.table = nn.Embedding(50, 4)", "torch.randint(0, 50, (6, 7))")
MANY = torch_task(
    "many",
    "return x.sum(), (x > 0, x.argmax(-1)), x[:0], [x.half(), {'b': x.bfloat16()}], x.double(), 3, None",
)
HALF = torch_task("half", "return torch.softmax(x, -1)", inputs="torch.randn(8, 512).half()")
BRAIN = torch_task("brain", "return x * 1.7 + 0.3", inputs="torch.randn(8, 512).bfloat16()")
ATTRIBUTES = torch_task(
    "attributes",
    "return x * self.scale + self.shift",
    "self.scale = nn.Parameter(torch.rand(32)); self.register_buffer('shift', torch.rand(32))",
)
TIED = torch_task(
    "tied",
    "return self.b(self.a(x))",
    "self.a = nn.Linear(32, 32, bias=False); self.b = nn.Linear(32, 32, bias=False); self.b.weight = self.a.weight",
)
EMPTY = torch_task("empty", "return x * 2", inputs="torch.randn(0, 32)")
SCALAR = torch_task("scalar", "return x * 2", inputs="torch.tensor(1.5)")
STRIDED = torch_task("strided", "return x.T + 1", inputs="torch.randn(8, 32)[:, ::2]")
CANCEL = torch_task("cancel", "return (x + 100).sum(-1) - 409600", inputs="torch.randn(64, 4096)")
TOPK = torch_task("topk", "v, i = x.topk(4, -1); return v, i", inputs="torch.randn(64, 256).round(decimals=3)")
QUANTISED = torch_task(
    "quantised",
    "o = (x * 100).round().to(torch.uint8); return o",
    inputs="torch.where(torch.rand(64, 256) < 0.004, torch.randint(0, 99, (64, 256)) / 100 + 0.005, torch.rand(64, 256))",
)
BRANCH = torch_task(
    "branch",
    "return torch.where(x.sum(-1, keepdim=True) > 0, x, x.cos())",
    inputs="(lambda h: torch.cat([torch.randn(500, 32), torch.cat([h, -h], -1)]))(torch.randn(4, 16))",
)
INIT, CALL = "self.a = nn.Linear(32, 16); self.b = nn.Linear(16, 8)", "return self.b(torch.relu(self.a(x)))"
RIGHT, WRONG = "correct", "wrong"
PACKED = """
import torch
import torch.nn as nn

class Packed(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(m, n))
        self.bias = nn.Parameter(torch.zeros(m))
        nn.init.xavier_normal_(self.weight)
        self.w = self.weight.detach().T * 2
        self.register_buffer("shift", self.bias.detach() * 2, persistent=False)

    def forward(self, x):
        return (x @ self.w + self.shift) / 2

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Packed(32, 16), Packed(16, 8)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))
"""
MEANING = {
    "softmax": (SOFTMAX, solution(SOFTMAX), RIGHT),
    "softmax: zeros": (SOFTMAX, solution(SOFTMAX, ("torch.softmax(x, -1)", "torch.zeros_like(x)")), WRONG),
    "softmax: constant": (SOFTMAX, solution(SOFTMAX, ("torch.softmax(x, -1)", "torch.full_like(x, 1 / 4096)")), WRONG),
    "softmax: its input": (SOFTMAX, solution(SOFTMAX, ("torch.softmax(x, -1)", "x * 1e-4")), WRONG),
    "softmax: uninitialised": (SOFTMAX, solution(SOFTMAX, ("torch.softmax(x, -1)", "torch.empty_like(x)")), WRONG),
    "softmax: without the maximum": (
        SOFTMAX,
        solution(SOFTMAX, ("torch.softmax(x, -1)", "x.exp() / x.exp().sum(-1, keepdim=True)")),
        RIGHT,
    ),
    "relu: identity on [0, 1)": (RELU, solution(RELU, ("torch.relu(x)", "x + 0")), WRONG),
    "relu: clamped to the task's range": (RELU, solution(RELU, ("torch.relu(x)", "x.clamp(0, 1)")), WRONG),
    "log: not made for negative inputs": (LOG, solution(LOG), RIGHT),
    "log: only near the task's range": (LOG, solution(LOG, ("x + 0.1", "x.clamp(0, 1) + 0.1")), WRONG),
    "made for no other inputs": (NEVER, solution(NEVER), RIGHT),
    "loss: integer targets": (CLASSES, solution(CLASSES), RIGHT),
    "loss: targets ignored": (CLASSES, solution(CLASSES, ("x, y)", "x, y * 0)")), WRONG),
    "positional": (POSITIONAL, solution(POSITIONAL), RIGHT),
    "positional: other arguments": (
        POSITIONAL,
        solution(POSITIONAL, ("self.a, self.b = args", "self.b, self.a = args")),
        WRONG,
    ),
    "keywords": (KEYWORDS, solution(KEYWORDS), RIGHT),
    "both": (MIXED, solution(MIXED), RIGHT),
    "embedding": (TABLE, solution(TABLE), RIGHT),
    "embedding: off by one": (TABLE, solution(TABLE, ("self.table(x)", "self.table((x + 1) % 50)")), WRONG),
    "many outputs": (MANY, solution(MANY), RIGHT),
    "many: a list for the tuple": (MANY, solution(MANY, ("(x > 0, x.argmax(-1))", "[x > 0, x.argmax(-1)]")), RIGHT),
    "many: a boolean is wrong": (MANY, solution(MANY, ("x > 0,", "x > 0.01,")), WRONG),
    "many: an integer is wrong": (MANY, solution(MANY, ("x.argmax(-1))", "x.argmin(-1))")), WRONG),
    "many: an integer of another dtype": (MANY, solution(MANY, ("x.argmax(-1))", "x.argmax(-1).int())")), WRONG),
    "many: the scalar is wrong": (MANY, solution(MANY, ("x.sum()", "x.sum() * 1.001")), WRONG),
    "many: the scalar has a dimension": (MANY, solution(MANY, ("x.sum()", "x.sum()[None]")), WRONG),
    "many: the empty one is not": (MANY, solution(MANY, ("x[:0]", "x[:1]")), WRONG),
    "many: one is missing": (MANY, solution(MANY, (", 3, None", ", 3")), WRONG),
    "many: in another order": (MANY, solution(MANY, ("3, None", "None, 3")), WRONG),
    "many: another number": (MANY, solution(MANY, ("3, None", "4, None")), WRONG),
    "many: another key": (MANY, solution(MANY, ("'b'", "'c'")), WRONG),
    "many: bfloat16 rounded twice": (MANY, solution(MANY, ("x.bfloat16()", "x.half().bfloat16()")), RIGHT),
    "many: bfloat16 is wrong": (MANY, solution(MANY, ("x.bfloat16()", "(x * 1.05).bfloat16()")), WRONG),
    "fp16": (HALF, solution(HALF, ("torch.softmax(x, -1)", "torch.softmax(x.float(), -1).half()")), RIGHT),
    "fp16: zeros": (HALF, solution(HALF, ("torch.softmax(x, -1)", "x * 0")), WRONG),
    "fp16: fp32 instead": (HALF, solution(HALF, ("torch.softmax(x, -1)", "torch.softmax(x.float(), -1)")), WRONG),
    "bf16": (BRAIN, solution(BRAIN, ("x * 1.7 + 0.3", "(x.float() * 1.7 + 0.3).bfloat16()")), RIGHT),
    # sums of 409600, 0.03 apart from each other in fp32, of which 64 is left
    "cancelled: summed in fp64": (CANCEL, solution(CANCEL, (".sum(-1)", ".double().sum(-1).float()")), RIGHT),
    "cancelled: in another order": (
        CANCEL,
        solution(CANCEL, (".sum(-1)", ".view(-1, 64, 64).sum(1).flip(-1).cumsum(-1)[:, -1]")),
        RIGHT,
    ),
    "cancelled: a little off": (CANCEL, solution(CANCEL, ("- 409600", "- 409602")), WRONG),
    "cancelled: from bf16": (CANCEL, solution(CANCEL, ("(x + 100)", "(x + 100).bfloat16().float()")), WRONG),
    "bf16: wrong": (BRAIN, solution(BRAIN, ("1.7", "1.6")), WRONG),
    "empty": (EMPTY, solution(EMPTY), RIGHT),
    "0-dim": (SCALAR, solution(SCALAR), RIGHT),
    "0-dim: wrong": (SCALAR, solution(SCALAR, ("x * 2", "x + 2")), WRONG),
    "strided": (STRIDED, solution(STRIDED, ("x.T + 1", "(x + 1).T")), RIGHT),
    "weights by name": (LINEAR, solution(LINEAR), RIGHT),
    "weights by name in another order": (
        LINEAR,
        solution(LINEAR, (INIT, "self.b = nn.Linear(16, 8); self.a = nn.Linear(32, 16)")),
        RIGHT,
    ),
    "weights by name, drawn otherwise": (LINEAR, solution(LINEAR, (INIT, f"torch.manual_seed(0); {INIT}")), RIGHT),
    "weights by seed": (
        LINEAR,
        solution(
            LINEAR,
            (INIT, "self.c = nn.Linear(32, 16); self.d = nn.Linear(16, 8)"),
            (CALL, "return self.d(torch.relu(self.c(x)))"),
        ),
        RIGHT,
    ),
    "weights by seed in another order": (
        LINEAR,
        solution(
            LINEAR,
            (INIT, "self.d = nn.Linear(16, 8); self.c = nn.Linear(32, 16)"),
            (CALL, "return self.d(torch.relu(self.c(x)))"),
        ),
        WRONG,
    ),
    "weights of another shape by seed": (
        LINEAR,
        solution(
            LINEAR,
            (CALL, "return torch.relu(x @ self.t + self.a.bias) @ self.b.weight.T + self.b.bias"),
            (
                INIT,
                "self.a = nn.Linear(32, 16); self.t = nn.Parameter(self.a.weight.detach().T.clone()); self.b = nn.Linear(16, 8)",
            ),
        ),
        RIGHT,
    ),
    "weights repacked in __init__": (
        LINEAR,
        solution(
            LINEAR,
            (CALL, "return torch.relu(x @ self.t + self.a.bias) @ self.u + self.b.bias"),
            (
                INIT,
                f"{INIT}; self.t = self.a.weight.detach().T.contiguous(); self.u = self.b.weight.detach().T.contiguous()",
            ),
        ),
        RIGHT,
    ),
    "weights repacked wrongly": (
        LINEAR,
        solution(
            LINEAR,
            (CALL, "return torch.relu(x @ self.t + self.a.bias) @ self.b.weight.T + self.b.bias"),
            (INIT, f"{INIT}; self.t = self.a.weight.detach().reshape(32, 16).contiguous()"),
        ),
        WRONG,
    ),
    "weights ignored": (LINEAR, solution(LINEAR, (CALL, "return torch.relu(x)[:, :8]")), WRONG),
    "parameters and buffers of the root": (ATTRIBUTES, solution(ATTRIBUTES), RIGHT),
    "parameters of the root, copied": (
        ATTRIBUTES,
        solution(
            ATTRIBUTES,
            ("torch.rand(32));", "torch.ones(32)); self.twice = self.scale.detach() * 2;"),
            ("x * self.scale", "x * (self.twice / 2)"),
        ),
        RIGHT,
    ),
    "a buffer ignored": (ATTRIBUTES, solution(ATTRIBUTES, (" + self.shift", "")), WRONG),
    "tied weights": (TIED, solution(TIED), RIGHT),
    "norm": (NORM, solution(NORM), RIGHT),
    "norm: weight and bias ignored": (NORM, solution(NORM, ("self.norm(x)", BARE)), WRONG),
    "norm: no weight and bias at all": (
        NORM,
        solution(NORM, ("self.norm(x)", BARE), ("self.norm = nn.LayerNorm(32)", "pass")),
        WRONG,
    ),
    "norm: bias ignored": (NORM, solution(NORM, ("self.norm(x)", "F.layer_norm(x, (32,), self.norm.weight)")), WRONG),
    "norm: other names": (
        NORM,
        solution(
            NORM,
            ("self.norm(x)", "F.layer_norm(x, (32,), self.w, self.b)"),
            (
                "self.norm = nn.LayerNorm(32)",
                "self.b = nn.Parameter(torch.zeros(32)); self.w = nn.Parameter(torch.ones(32))",
            ),
        ),
        RIGHT,
    ),
    "norm: other names, weight ignored": (
        NORM,
        solution(
            NORM,
            ("self.norm(x)", "F.layer_norm(x, (32,), None, self.b)"),
            (
                "self.norm = nn.LayerNorm(32)",
                "self.b = nn.Parameter(torch.zeros(32)); self.w = nn.Parameter(torch.ones(32))",
            ),
        ),
        WRONG,
    ),
    "batch norm in training": (BATCH, solution(BATCH), RIGHT),
    "batch norm by hand": (
        BATCH,
        solution(
            BATCH, ("self.norm(x)", "F.batch_norm(x, None, None, self.norm.weight, self.norm.bias, training=True)")
        ),
        RIGHT,
    ),
    "batch norm as in evaluation": (
        BATCH,
        solution(BATCH, ("return self.norm(x)", "self.norm.eval(); return self.norm(x)")),
        WRONG,
    ),
    "linear: initialised through data and packed": (
        LINEAR,
        solution(
            LINEAR,
            (
                INIT,
                INIT
                + "; self.apply(self.start); self.w = nn.Parameter(self.a.weight.detach().T.contiguous()); self.c = self.a.bias * 1",
            ),
            (CALL, "return self.b(torch.relu(x @ self.w + self.c))"),
            (
                "    def forward(",
                """    def start(self, module):
        if isinstance(module, nn.Linear):
            module.weight.data.normal_(0.0, 0.02)
            module.bias.data.zero_()
            with torch.no_grad():
                module.bias[2:].add_(1).sqrt_()

    def forward(""",
            ),
        ),
        RIGHT,
    ),
    "linear: packed in the modules' own constructors": (LINEAR, PACKED, RIGHT),
    "linear: packed in the modules' own constructors, wrongly": (LINEAR, PACKED.replace("T * 2", "T * 2.01"), WRONG),
    "a loss of probabilities": (PROBABILITIES, solution(PROBABILITIES), RIGHT),  # on a GPU others end the process
    "a loss of other probabilities": (PROBABILITIES, solution(PROBABILITIES, ("(x, y)", "(1 - x, y)")), WRONG),
    "in place as the reference": (PLACE, solution(PLACE), RIGHT),
    "out of place unlike the reference": (PLACE, solution(PLACE, ("x.mul_(2)", "x * 2")), RIGHT),
    "in place otherwise": (PLACE, solution(PLACE, ("return x.mul_(2)", "y = x * 2; x.zero_(); return y")), WRONG),
    "dropout": (DROPOUT, solution(DROPOUT), RIGHT),
    "dropout: none": (DROPOUT, solution(DROPOUT, ("F.dropout(x, 0.5)", "x + 0")), WRONG),
    "ties: the last place first": (
        TOPK,
        solution(TOPK, ("x.topk(4, -1); return v, i", "x.flip(-1).topk(4, -1); return v, 255 - i")),
        RIGHT,
    ),
    "ties: one place wrong": (TOPK, solution(TOPK, ("return v, i", "i[5, :2] = i[5, :2].flip(0); return v, i")), WRONG),
    "edges: rounded otherwise": (QUANTISED, solution(QUANTISED, ("(x * 100)", "(x / 0.01)")), RIGHT),
    "edges: one value off": (QUANTISED, solution(QUANTISED, ("return o", "o[3, 3] += 1; return o")), WRONG),
    "branches: the sum in another order": (BRANCH, solution(BRANCH, ("x.sum(", "x.flip(-1).sum(")), RIGHT),
    "branches: the other one in one row": (
        BRANCH,
        solution(BRANCH, ("x, x.cos())", "x, x.cos()) * (x[:, :1] != x[7, 0]) + x[7] * (x[:, :1] == x[7, 0])")),
        WRONG,
    ),
    "dropout: zeros": (DROPOUT, solution(DROPOUT, ("F.dropout(x, 0.5)", "x * 0")), WRONG),
}


@pytest.fixture(scope="module", params=DEVICES)
def meaning(request):
    with Gym(
        request.param, workers=WORKERS[request.param], seed=6, any_code=True, options=OPTIONS[request.param]
    ) as gym:
        yield dict(zip(MEANING, gym.evaluate([Job(task, code) for task, code, _ in MEANING.values()]), strict=True))


@pytest.mark.parametrize("name", MEANING)
def test_what_is_right(meaning, name):
    assert meaning[name].status == MEANING[name][2], meaning[name].message


def test_unmatched_parameters_are_named(meaning):
    assert "norm.bias, norm.weight" in meaning["norm: no weight and bias at all"].message
    assert "without a match" not in meaning["norm: weight and bias ignored"].message


# ---------------------------------------------------------------------------------------------------------------------------
# What the referee knows

DRAWS = torch_task(
    "draws",
    inputs="torch.randn(4), random.random(), torch.randint(0, 9, (20,)), [torch.rand(2), 'x']",
    extra="import random",
)
DRAWS = Task("draws", DRAWS.source.replace("y=None", "*rest"))


def values(reference: Reference, *name, **how) -> str:
    return repr([v.tolist() if isinstance(v, torch.Tensor) else v for v in reference.inputs(*name, **how)])


def test_inputs_differ_between_draws_and_keys_and_repeat_by_key():
    torch.manual_seed(0), random.seed(0)
    a, b = (Reference(DRAWS, "cpu", key) for key in (b"1" * 32, b"2" * 32))
    torch.manual_seed(1), random.seed(1)
    again = Reference(DRAWS, "cpu", b"1" * 32)
    names = [
        ("check", 0),
        ("check", 1),
        ("reference", 0),
        ("timed", "folder", 0, 0),
        ("timed", "folder", 0, 1),
        ("timed", "folder", 1, 0),
    ]
    assert [values(a, *name) for name in names] == [values(again, *name) for name in names[::-1]][::-1]
    assert len({values(r, *name) for r in (a, b) for name in names}) == 2 * len(names)
    renamed, changed = Task("another name", DRAWS.source), Task("draws", DRAWS.source + "\n")
    assert values(Reference(renamed, "cpu", b"1" * 32), "check", 0) == values(a, "check", 0)
    assert values(Reference(changed, "cpu", b"1" * 32), "check", 0) != values(a, "check", 0)


def test_moved_inputs_by_hand():
    reference = Reference(DRAWS, "cpu", b"k" * 32)
    plain, mirrored, stretched = (reference.inputs("check", 2, how=how) for how in (None, "mirror", "stretch"))
    assert torch.equal(mirrored[0], 2 - 3 * plain[0]) and torch.equal(stretched[0], 3 * plain[0] + 0.5)
    assert torch.equal(mirrored[3][0], 2 - 3 * plain[3][0])
    assert torch.equal(mirrored[2], plain[2]) and mirrored[1] == plain[1] and mirrored[3][1] == "x"
    assert reference.given("check", 2) and reference.moves["check", 2] == "mirror lined flags"
    assert torch.equal(reference.given("check", 1)[0], reference.inputs("check", 1)[0])
    (unit,) = (v for v in reference.inputs("check", 3, how="unit")[:1])
    assert ((unit.abs() - 1).abs() < 0.05).all() and not torch.equal(unit, unit.sign())


def test_moves_where_the_reference_stays_finite():
    for task, move in ((RELU, "mirror lined flags"), (LOG, "stretch"), (NEVER, None)):
        reference = Reference(task, "cpu", b"k" * 32)
        given = reference.given("check", 2)
        assert reference.moves[("check", 2)] == move
        assert (given is None) == (move is None)
        assert move is None or torch.equal(given[0], reference.inputs("check", 2, how=move)[0])
    picky = torch_task("picky", "assert x.min() >= 0; return x", inputs="torch.rand(8)")
    assert Reference(picky, "cpu", b"k" * 32).given("check", 2) is not None


def test_bold_weights_leave_a_task_that_tells_right_from_wrong():
    """A clamp whose limits change places gives one number: for one key in eight, its width negated."""
    init = "self.low, self.width = nn.Parameter(torch.tensor(-0.2)), nn.Parameter(torch.tensor(3.0))"
    task = torch_task("clamp", "return torch.minimum(torch.maximum(x, self.low), self.low + self.width)", init)
    for key in range(40):
        for reference in ((first := Reference(task, "cpu", bytes([key]) * 32)), first.by_seed()):
            (output,) = reference.expected("check", 0, inputs=reference.given("check", 0))[1]
            assert output.min() < output.max(), key


def test_integers_get_lines_where_they_are_known():
    """Rows of negative numbers for an argmax; none for numbers that a rounding decides."""
    moves = []
    for name, forward in (("argmax", "return x.argmax(-1)"), ("rounds", "return (x * 1234567.8).round().long()")):
        reference = Reference(torch_task(name, forward), "cpu", b"k" * 32)
        assert reference.given("check", 2) is not None
        moves.append(reference.moves["check", 2].split())
    assert moves[0][:2] == ["mirror", "lined"] and moves[1] == ["mirror"]


def test_lines_of_one_sign_and_a_tiny_one():
    task = torch_task("lines", inputs="torch.rand(8, 6), torch.rand(9), torch.rand(2, 2)")
    reference = Reference(task, "cpu", b"k" * 32)
    for how, tiny in (("mirror lined", 1e-3), ("unit lined", 1e-3)):
        plain, lined = reference.inputs("check", 2, how=how.split()[0]), reference.inputs("check", 2, how=how)
        x, y = plain[0], lined[0]
        assert (y[0] < 0).all() and (y[-1] > 0).all() and (y[:-1, 0] <= 0).all() and (y[1:, -1] >= 0).all()
        times = (y / x)[1:-1, 1:-1].abs()
        for few in (times[3, [0, 1, 3]], times[[0, 1, 2, 4, 5], 2]):  # a row, a column
            assert torch.allclose(few / (3 if how[0] == "m" else 1), torch.tensor(tiny), rtol=2.1, atol=0)
        others = times[[0, 1, 2, 4, 5]][:, [0, 1, 3]].round()
        assert set(others.unique().tolist()) <= ({1.0, 3.0, 9.0} if how[0] == "m" else {1.0})
        assert (how[0] == "u") or others.max() > 1  # a block of rows and one of columns weigh three times as much
        assert all(torch.equal(a, b) for a, b in zip(plain[1:], lined[1:]))  # no lines to speak of


def test_flags_that_are_all_set_are_drawn():
    task = torch_task(
        "flags",
        inputs="torch.rand(40, 50), torch.ones(40, 50, dtype=torch.bool), torch.ones(2000), torch.ones(1), torch.eye(9)",
    )
    reference = Reference(task, "cpu", b"k" * 32)
    plain, drawn = (reference.inputs("check", 2, how=how) for how in ("mirror lined", "mirror lined flags"))
    assert plain[1].all() and plain[2].all()
    assert 0.75 < drawn[1].float().mean() < 0.85 and 0.75 < drawn[2].mean() < 0.85 and drawn[1].dtype == torch.bool
    assert drawn[3] == 1 and torch.equal(drawn[4], torch.eye(9))


def test_parameters_that_are_not_random_are_moved():
    """One value, an identity, rows that are alike; of buffers only zeros and ones."""
    module = torch.nn.Module()
    first = {
        "slope": torch.full((3,), 0.25),
        "scale": torch.full((4,), 1e-6),
        "eye": torch.eye(3),
        "rows": torch.arange(4.0).repeat(2, 1),
    }
    first |= {"random": torch.tensor([[1.0, 2.0], [3.0, 4.0]]), "masked": torch.full((2,), -math.inf)}
    for name, value in first.items():
        setattr(module, name, torch.nn.Parameter(value.clone(), requires_grad=False))
    module.register_buffer("root", torch.full((3,), 0.125))
    moved = perturb(module, 7)
    assert [kind[0] for kind, _ in moved] == ["all", "all", "eye", "rows"] and all(count == 1 for _, count in moved)
    for name in ("slope", "scale", "rows"):
        off = getattr(module, name) - first[name]
        assert (0 <= off).all() and (off <= 0.5).all() and off.unique().numel() == off.numel()
    assert 0 < (module.eye - torch.eye(3)).abs().min() and (module.eye - torch.eye(3)).abs().max() <= 0.25
    assert (
        torch.equal(module.random, first["random"])
        and torch.equal(module.masked, first["masked"])
        and (module.root == 0.125).all()
    )


def test_what_the_tasks_inputs_have_in_common_stays():
    """Symmetric, triangular and sparse matrices, shares, signs: kernels may rely on what every draw of the task has."""
    make = {
        "symmetric": "(lambda a: a + a.T)(torch.randn(12, 12))",
        "lower": "torch.randn(12, 12).tril()",
        "diagonal": "torch.diag(torch.randn(40))",
        "shares": "torch.randn(9, 12).softmax(-1)",
        "signs": "torch.randn(9, 12).sign()",
        "any": "torch.randn(12, 12)",
    }
    keeps = {
        "symmetric": lambda x: torch.equal(x, x.T),
        "lower": lambda x: not x.triu(1).any(),
        "diagonal": lambda x: not (x - torch.diag(x.diag())).any(),
        "shares": lambda x: torch.allclose(x.sum(-1), torch.ones(9)) and (x >= 0).all(),
        "signs": lambda x: (x.abs() == 1).all(),
        "any": lambda x: True,
    }
    for kind, inputs in make.items():
        reference = Reference(torch_task(kind, "return x * 2", inputs=inputs), "cpu", b"k" * 32)
        plain = reference.inputs("check", 2)[0]
        for how in ("mirror lined flags", "unit lined", "mirror", "stretch"):
            moved = reference.inputs("check", 2, how=how)[0]
            assert keeps[kind](moved), (kind, how)
            assert torch.equal(moved, plain) == (kind in ("shares", "signs")), (kind, how)


def test_a_draw_on_which_the_reference_is_not_known_well_is_left_out():
    """Sums near zero: x / sum(x) in fp32 is far from itself in fp64, and every right candidate from both."""
    near = torch_task("near", "return x / x[:, 1::2].sum(-1, keepdim=True)", inputs="torch.rand(4000, 256)")
    reference = Reference(near, "cpu", b"k" * 32)
    assert reference.bears("check", 2, how="stretch") and not reference.bears("check", 3, how="unit")
    assert reference.given("check", 3) is None and reference.moves["check", 3] is None
    assert Reference(RELU, "cpu", b"k" * 32).given("check", 3) is not None


def test_expected_outputs_are_kept_and_inputs_made_again():
    reference = Reference(PLACE, "cpu", b"k" * 32)
    inputs = reference.given("check", 0)
    tree, outputs = reference.expected("check", 0, inputs=inputs)
    assert tree == {"t": 0} and torch.equal(inputs[0], outputs[0])  # as the model left them
    assert torch.equal(outputs[0], 2 * reference.given("check", 0)[0])
    again = reference.given("check", 0)
    assert reference.expected("check", 0, inputs=again)[1][0] is outputs[0] and torch.equal(2 * again[0], outputs[0])
    small = Reference(PLACE, "cpu", b"k" * 32, Kept(10))
    first, second = (small.expected("check", 0, inputs=small.given("check", 0))[1][0] for _ in range(2))
    assert first is not second and torch.equal(first, second)


def test_outputs_are_kept_up_to_a_limit_of_all_tasks_together():
    """Of 16 kB a result of 1 kB is the largest; the oldest goes when the 17th comes, unless it was asked for since."""
    kept = Kept(16 << 10)
    result = lambda n: ({"t": 0}, [torch.zeros(n, dtype=torch.uint8)])  # noqa: E731
    kept.put(("large",), result(1025))
    for i in range(16):
        kept.put((i,), result(1024))
    assert kept.get(("large",)) is None and kept.get((0,)) and kept.nbytes == 16 << 10
    kept.put((16,), result(1))
    assert kept.get((0,)) and kept.get((1,)) is None and kept.get((16,)) and kept.nbytes == 15 * 1024 + 1


BUFFERED = torch_task("buffered", "return torch.mul(x, 2, out=self.buffer)", "self.buffer = torch.empty(8, 32)")
HIDDEN = torch_task("hidden", "return self.scale", "self.register_buffer('scale', torch.ones(3))")
CONSTANT = torch_task("constant", "return x.mul_(2)", inputs="X", extra="X = torch.ones(4)")


def test_what_the_next_forward_would_overwrite_is_copied():
    for task in (BUFFERED, HIDDEN):
        reference = Reference(task, "cpu", b"k" * 32)
        (first,), (second,) = (reference.forward(reference.given("check", i), 0)[1] for i in range(2))
        assert first.data_ptr() != second.data_ptr()
    reference = Reference(CONSTANT, "cpu", b"k" * 32)
    for _ in range(2):  # a constant of the task is not what its own model makes of it
        assert reference.forward(reference.given("check", 0), 0)[1][0].tolist() == [2.0] * 4


def test_a_task_that_does_not_fit_says_so(monkeypatch):
    """1 GiB of inputs and 3 of outputs on each side, 256 KiB of weights here, there and on the way: told before anything is made of that size."""
    task = torch_task(
        "wide", "return self.a(x), x, x", "self.a = nn.Linear(256, 256, bias=False)", "torch.randn(1 << 20, 256)"
    )
    monkeypatch.setitem(ASIDE, "cpu", 1 << 26)
    need = 8 * 2**30 + 3 * 2**18 + 2**26
    assert Reference(task, "cpu", b"k" * 32, memory=need).need() == need
    with pytest.raises(Fault, match=r"the task wide needs 8\.1 GiB, this machine has 5\.0"):
        Reference(task, "cpu", b"k" * 32, memory=5 * 2**30)
    values = (("return self.a(x)", "assert x.sum().item(); return self.a(x)"), ("1 << 20", "1 << 10"))
    secret = Task("secret", instead(task.source, *values))
    reference = Reference(
        secret, "cpu", b"k" * 32, memory=2**26 + 7 * 2**20
    )  # what it returns is not known before it runs
    with pytest.raises(Fault, match="the task secret needs"):
        reference.expected("check", 0, inputs=reference.given("check", 0))


def test_sizes_without_a_gpu():
    """SMALL stands in for the module's constants where get_inputs and get_init_inputs read them."""
    task = torch_task(inputs="torch.zeros(rows, 7)", extra="rows = 4096\nSMALL = {'rows': 3}")
    assert Reference(task, "cpu", b"k" * 32).inputs("check", 0)[0].shape == (3, 7)
    width = torch_task(
        "width", init="self.layer = nn.Linear(args[0], 2)", args="[width]", extra="width = 4096\nSMALL = {'width': 3}"
    )
    assert Reference(width, "cpu", b"k" * 32).model.layer.weight.shape == (2, 3)


def test_roundings_by_hand():
    """Values of spread 1: errors of 1e-3 make 0.016; of more than 1/200 they are something else."""
    a = torch.tensor([1.0, -1.0] * 50)
    assert _rounding(a, a.double() + 1e-3)[0].item() == pytest.approx(0.016, rel=1e-3)
    assert _rounding(a, a.double() + 6e-3) is None and _rounding(a + 1e3, a.double() + 1e3 + 6e-3) is None
    assert _rounding(a, torch.where(a > 0, torch.inf, a.double()))[0].item() == 0.0
    assert _rounding(torch.ones(5), torch.ones(5, dtype=torch.float64) + 1e-7) is None  # no spread
    drawn = torch_task("drawn", "return x * torch.rand(x.shape, dtype=x.dtype)")
    reference = Reference(drawn, "cpu", b"k" * 32)
    (output,) = reference.forward(reference.given("check", 0), 5)[1]
    assert reference.doubts(reference.given("check", 0), 5, [output]) == [None]


def test_no_weight_stays_what_it_was():
    def module():
        torch.manual_seed(1)
        result = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.BatchNorm1d(16))
        result.few = torch.nn.Parameter(torch.eye(4, 8))
        result.complex = torch.nn.Parameter(torch.ones(9, dtype=torch.cfloat))
        result.count = torch.nn.Parameter(torch.ones(3, dtype=torch.int64), requires_grad=False)
        return result

    plain, varied, bold = module(), module(), module()
    assert one_signed(plain) == [
        0,
        1,
        4,
        5,
    ]  # few, complex, the norm's weight and bias (parameters of the root come first)
    vary(varied, 7), vary(bold, 7, one_signed(bold))
    for i, (a, b, c) in enumerate(zip(slots(plain), slots(varied), slots(bold), strict=True)):
        assert (a != b).any() and (b - a).abs().max() <= 0.1 * a.abs().max() + 0.0501
        if i in (1, 4, 5):
            times = torch.where(b != 0, c / b, 1.0).round()
            assert set(times.unique().tolist()) == {-1.0, 1.0, 4.0}
        elif i != 0:
            assert torch.equal(b, c)
    assert (slots(varied)[0] != 0).all() and torch.equal(plain.count, varied.count)
    again = module()
    vary(again, 7)
    assert all(torch.equal(a, b) for a, b in zip(slots(varied), slots(again)))


STRUCTURED = {
    "halves": "torch.randn(8, 16).repeat(1, 2)",
    "rotation": "torch.linalg.qr(torch.randn(16, 16))[0]",
    "unit vectors": "F.normalize(torch.randn(40, 16), dim=-1)",
    "shares of columns": "torch.randn(16, 40).softmax(0)",
}
ORDERED = {
    "rows in order": "torch.randn(8, 16).sort(-1).values",
    "falling": "torch.randn(20).sort(descending=True).values",
    "equal steps": "torch.linspace(0, 4, 20)",
}


@pytest.mark.parametrize("how", ["mirror lined flags", "unit lined flags"])
def test_order_stays_and_steps_do_not(how):
    for inputs in ORDERED.values():
        reference = Reference(torch_task("ordered", "return x * 2", inputs=inputs), "cpu", b"k" * 32)
        plain, moved = reference.inputs("check", 2)[0], reference.inputs("check", 2, how=how)[0]
        steps = moved.diff() / plain.diff()
        assert (steps > 0).all() and steps.max() > 1.5 * steps.min()
    for inputs in STRUCTURED.values():
        reference = Reference(torch_task("structured", "return x * 2", inputs=inputs), "cpu", b"k" * 32)
        assert torch.equal(reference.inputs("check", 2)[0], reference.inputs("check", 2, how=how)[0]), inputs


def test_what_is_the_same_everywhere_is_moved_too():
    make = "torch.zeros(9, 9), torch.zeros(50, dtype=torch.bool), torch.full((50,), 12), 2.0, {'a': torch.rand(8)}"
    task = torch_task("same", "return x", inputs=make, extra="Y = torch.randn(9, 9)")
    reference = Reference(task, "cpu", b"k" * 32)
    zeros, flags, lengths, number, named = reference.inputs("check", 2, how="mirror lined flags")
    assert (zeros != 0).all() and zeros.abs().max() <= 0.5 and 0 < flags.sum() < 25
    assert lengths.min() >= 6 and lengths.max() == 12 and len(lengths.unique()) > 3 and number != 2.0
    assert named["a"].min() < 0
    thrice = Reference(
        torch_task("thrice", "return x", inputs="Y, Y, Y * 1", extra="Y = torch.randn(9, 9)"), "cpu", b"k" * 32
    )
    a, b, c = thrice.inputs("check", 2, how="unit lined flags")
    assert not torch.equal(a, b)
    a, b, c = thrice.inputs("check", 1)
    assert torch.equal(a, b) and torch.equal(a, c)


def test_perturbed_by_value_shape_and_occurrence():
    def module(**slots):
        result = torch.nn.Module()
        for name, value in slots.items():
            setattr(result, name, torch.nn.Parameter(value, requires_grad=False))
        return result

    a = module(w=torch.ones(5), b=torch.zeros(5), v=torch.ones(5), u=torch.full((5,), 2.0), e=torch.empty(0))
    b = module(z=torch.zeros(5), y=torch.ones(5), x=torch.ones(5))
    perturb(a, 7), perturb(b, 7)
    assert torch.equal(a.w, b.y) and torch.equal(a.v, b.x) and torch.equal(a.b, b.z)
    assert not torch.equal(a.w, a.v) and 2 <= a.u.min() < a.u.max() < 2.5
    assert 1 <= a.w.min() and a.w.max() < 1.5 and -0.25 <= a.b.min() and a.b.max() < 0.25 and a.b.unique().numel() == 5
    other = module(w=torch.ones(5))
    perturb(other, 8)
    assert not torch.equal(other.w, a.w)


@pytest.mark.parametrize(
    "forward, passes",
    [
        ("return torch.relu(x - 1e6)", "zeros"),
        ("return x - x.mean() * 0 + 0", "input 0"),
        ("return torch.softmax(x, -1)", None),
        ("return torch.softmax(x * 1e-6, -1)", None),
        ("return torch.softmax(x * 1e-9, -1)", "their mean"),
        ("return torch.full_like(x, 2.5), x", None),
        ("return torch.arange(8.0, device=x.device)", "the output for other inputs"),
        ("return (x > 1e6).int()", "zeros"),
        ("return x * 1e-20", None),
        ("return x.sum()", None),
    ],
)
def test_tasks_that_cannot_tell_right_from_wrong(forward, passes):
    reference = Reference(torch_task("control", forward), "cpu", b"key")
    assert reference.control(4) == passes


def test_buffers_of_ones_own_are_not_moved():
    """A build by seed moves as many zeros and ones of each size as the reference had, first come first served."""
    mine, theirs = torch.nn.Module(), torch.nn.Module()
    for module, names in ((theirs, ["running_a"]), (mine, ["running_a", "running_dummy", "box"])):
        for name in names:
            module.register_buffer(name, torch.zeros(4))
    moved = perturb(theirs, 7)
    kind = ["all", 0.0, 0.0, 4]
    assert moved == [[kind, 1]] and perturb(mine, 7, moved) == [[kind, 2]]
    assert torch.equal(mine.running_a, theirs.running_a) and mine.running_a.all()
    assert not mine.running_dummy.any() and not mine.box.any()
    assert perturb(torch.nn.Linear(2, 2), 7, []) == []
