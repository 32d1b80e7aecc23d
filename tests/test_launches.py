"""What own kernels write, told by launches made by hand: `run` stands for a kernel, on plain tensors."""

import pytest
import torch

from kernelbench import launches as launches_module
from kernelbench.launches import Launches, Library, _near, _tensors, held, other_weights, rehearse
from kernelbench.simulate import Launch

MINE, OTHER = "candidate.py", "library.py"


def code(name: str):
    scope = {}
    exec(f"def {name}(): pass", scope)
    return scope[name].__code__


ROW_MAX, CHAIN = code("row_max"), code("chain")


def launch(launches: Launches, run, *tensors: torch.Tensor, name="chain", file=MINE, which=CHAIN):
    launches.around(Launch(name, file, list(tensors), which), run)


def test_counts_by_kernel_and_owner():
    launches, x = Launches("cpu", MINE), torch.zeros(3)
    launches.begin("count", None, [x], None)
    for _ in range(2):
        launch(launches, lambda: x.add_(1), x)
    launch(launches, lambda: x.add_(1), x, name="row_max", which=ROW_MAX)
    launch(launches, lambda: x.add_(1), x, file=OTHER, which=ROW_MAX)  # another function of the same name
    assert x.tolist() == [4, 4, 4]
    rows = [["chain", True, 2], ["row_max", True, 1], ["chain (2)", False, 1]]
    assert launches.report() == {"launches": rows, "copies": [], "took": [], "differs": False}


def test_tensors_of_a_launch_wherever_they_are():
    x, y, z = (torch.full((2,), float(i)) for i in range(3))
    descriptor = type("TensorDescriptor", (), {"base": y})()
    found = _tensors([4, x, (descriptor, [z, "text"]), None, (), 2.0])
    assert [int(t[0]) for t in found] == [0, 1, 2] and found[1] is y


def test_what_a_graph_records_is_replaced_by_what_was_written_before(monkeypatch):
    launches, x, o, scratch = Launches("cpu", MINE), torch.ones(4), torch.zeros(4), torch.zeros(4, dtype=torch.int32)
    run = lambda: (o.copy_(x * 2), scratch.add_(3))  # noqa: E731
    launches.begin("record", None, [x], None)
    launch(launches, run, x, o, scratch)
    monkeypatch.setattr(launches_module, "_capturing", lambda device: True)
    x.fill_(5)
    for mode, kernel, left, number in (
        ("swap", None, 2.0, 3),
        ("noise", "chain", -777.0, 1),
        ("noise", "another", 10.0, 4),
        ("count", None, 10.0, 7),
    ):
        launches.begin(mode, kernel, [x], None)
        launch(launches, run, x, o, scratch)
        assert (o.tolist(), scratch.tolist()) == ([left] * 4, [number] * 4), mode
        assert x.tolist() == [5] * 4


def test_the_rehearsal_uses_what_the_tests_use(monkeypatch):
    """On a GPU the first use of each of torch's kernels takes long: what a rehearsal leaves out, everybody waits for."""
    used = set()
    for name in ("_near", "_noise", "_equal", "_repeats", "_alike", "_kept"):
        original = getattr(launches_module, name)
        spy = lambda *a, name=name, original=original: used.add(name) or original(*a)  # noqa: E731
        monkeypatch.setattr(launches_module, name, spy)
    rehearse("cpu")
    assert used == {"_near", "_noise", "_equal", "_repeats", "_alike", "_kept"}


def test_noise_replaces_what_one_kernel_changes():
    launches = Launches("cpu", MINE)
    x, o, p = torch.ones(1000), torch.full((1000,), 5.0), torch.full((1000,), 5.0)
    launches.begin("noise", "chain", [x], None)
    launch(launches, lambda: o[:600].copy_(x[:600] * 2), x, o)
    launch(launches, lambda: p.copy_(x * 2), x, p, name="row_max", which=ROW_MAX)
    assert (o[:600].abs() >= 10).all() and (o[:600] < 0).any() and o.isfinite().all()
    assert (o[600:] == 5).all() and (p == 2).all() and (x == 1).all()


def test_large_inputs_are_not_copied(monkeypatch):
    """Of those that a kernel leaves alone it is known what they held: what they hold. What it writes into one of them is replaced all the same."""
    monkeypatch.setitem(launches_module.LARGE, "cpu", 0)
    copied, original = [], launches_module._kept
    monkeypatch.setattr(launches_module, "_kept", lambda t: copied.append(t) or original(t))
    launches, x, o = Launches("cpu", MINE), torch.ones(1000), torch.full((1000,), 5.0)
    launches.begin("noise", "chain", [x], None)
    launch(launches, lambda: o.copy_(x * 2), x, o)
    assert [t is o for t in copied] == [True] and (x == 1).all() and (o.abs() >= 10).all()
    launches.begin("noise", "chain", [x], None)
    launch(launches, lambda: x[:500].copy_(x[:500] * 2), x)
    assert (x[:500].abs() >= 10).all()
    launches.begin("record", None, [x], None)
    launch(launches, lambda: o.copy_(x), x, o)
    assert launches.report()["copies"] == ["chain"]
    assert launches.forget() and launches.written == {} and not launches.forget()


def test_what_changes_nothing_that_would_show_is_no_work():
    """A kernel that computes again what stands there already: to the last bits but one."""
    old = torch.randn(1000)
    assert _near(old * (1 + 1e-6), old).all() and not _near(old * 1.001, old)[old.abs() > 0.5].any()
    assert _near(torch.tensor([1, 2]), torch.tensor([1, 3])).tolist() == [True, False]
    launches, o = Launches("cpu", MINE), old.clone()
    launches.begin("noise", "chain", [], None)
    launch(launches, lambda: o.mul_(1 + 1e-6), o)
    assert torch.equal(o, old)


def test_swap_brings_what_was_written_on_other_inputs():
    launches = Launches("cpu", MINE)

    def forward(x):
        o, m = torch.full_like(x, 9.0), torch.full_like(x, 9.0)
        launch(launches, lambda: m.copy_(x * 3), x, m, name="row_max", which=ROW_MAX)
        launch(launches, lambda: o.copy_(m + 1), m, o)
        launch(launches, lambda: o.copy_(m + 1), m, o)  # writes what is there
        return o

    x, y = torch.tensor([1.0, 2.0]), torch.tensor([5.0, 7.0])
    launches.begin("record", None, [x], None)
    assert forward(x).tolist() == [4, 7]
    launches.begin("swap", None, [y], None)
    assert forward(y).tolist() == [4, 7]
    launches.begin("count", None, [y], None)
    assert forward(y).tolist() == [16, 22]


@pytest.mark.parametrize(
    "write, given, copy",
    [
        (lambda o, x: o.copy_(x), False, True),
        (lambda o, x: o.copy_(x + 0.0), False, True),
        (lambda o, x: o[:2].copy_(x[:2]), False, True),
        (lambda o, x: o.copy_(x), True, True),  # of the model's own input, as it is: anybody could have read that
        (lambda o, x: o.copy_(x + 1e-5), True, False),  # but not of what is nearly that
        (lambda o, x: o[:2].copy_(x[:2]), True, False),  # nor of a part
        (lambda o, x: o.copy_(x.flip(0)), True, False),
        (lambda o, x: o.copy_(x * 1.00005), False, True),  # within the tolerance of 1e-4
        (lambda o, x: o.copy_(x * 1.001), False, False),
        (lambda o, x: o.copy_(x * 2), False, False),
        (lambda o, x: o.copy_(x.flip(0)), False, False),
        (lambda o, x: None, False, False),
    ],
)
def test_copies(write, given, copy):
    launches, x, o = Launches("cpu", MINE), torch.tensor([1.0, 2.0, 3.0]), torch.full((3,), 9.0)
    launches.begin("copies", None, [x] if given else [], None)
    launch(launches, lambda: write(o, x), x, o)
    assert launches.report()["copies"] == (["chain"] if copy else [])


def test_a_kernel_that_copies_now_and_then_is_none_that_copies():
    launches, x, o = Launches("cpu", MINE), torch.tensor([1.0, 2.0]), torch.full((2,), 9.0)
    launches.begin("copies", None, [], None)
    launch(launches, lambda: o.copy_(x), x, o)
    launch(launches, lambda: o.copy_(x * 2), x, o)
    assert launches.report()["copies"] == []


@pytest.mark.parametrize("turned", [False, True])
def test_large_tensors_are_treated_piece_by_piece(monkeypatch, turned):
    """As the small ones are, down to the last value of the last piece; what held one value takes no memory."""
    monkeypatch.setitem(launches_module.CHUNK, "cpu", 7)
    monkeypatch.setitem(launches_module.LARGE, "cpu", 0)
    x = torch.arange(60.0).reshape(5, 12)
    o = torch.full((12, 5), 9.0).T if turned else torch.full((5, 12), 9.0)
    launches = Launches("cpu", MINE)
    launches.begin("copies", None, [], None)
    launch(launches, lambda: o.copy_(x), x, o)
    assert launches.report()["copies"] == ["chain"]
    launches.begin("copies", None, [], None)
    launch(launches, lambda: o[-1, -1].add_(1), x, o)
    launch(launches, lambda: o.copy_(x), x, o)
    assert launches.report()["copies"] == []
    o.fill_(9.0)
    launches.begin("noise", "chain", [], None)
    launch(launches, lambda: o[-1, 3:].copy_(x[-1, 3:]), x, o)
    assert (o[-1, 3:].abs() >= 10).all() and (o[:-1] == 9).all() and (o[-1, :3] == 9).all()
    assert torch.equal(x, torch.arange(60.0).reshape(5, 12))
    launches.begin("record", None, [], None)
    launch(launches, lambda: o.copy_(x * 2), x, o)
    launches.begin("swap", None, [], None)
    launch(launches, lambda: (o.copy_(x * 3), x.mul_(0)), x, o)
    assert torch.equal(o, 2 * x) and x[0, 1] == 1  # what it wrote then, and what was there where it wrote nothing
    constant, varied = launches_module._kept(torch.full((5, 12), 3.0)), launches_module._kept(x)
    assert not any(constant.stride()) and constant.shape == (5, 12) and torch.equal(varied, x)


@pytest.mark.parametrize(
    "o, write, copy",
    [
        (torch.full((3,), 9.0, dtype=torch.float64), lambda o, x: o.copy_(x), True),  # rounded back later
        (torch.full((7,), 9.0), lambda o, x: o[2:5].copy_(x), True),
        (torch.full((7,), 9.0), lambda o, x: o[2:5].copy_(x.flip(0)), False),
        (torch.full((3,), 9), lambda o, x: o.copy_(x), True),
    ],
)
def test_copies_in_another_form(o, write, copy):
    launches, x = Launches("cpu", MINE), torch.tensor([1.0, 2.0, 3.0])
    launches.begin("copies", None, [], None)
    launch(launches, lambda: write(o, x), x, o)
    assert launches.report()["copies"] == (["chain"] if copy else [])


def test_detours_that_end_where_they_began():
    """What a library computed is doubled and halved, and returned: neither kernel copies, and both are for nothing. What made the
    library's input before that was not."""
    launches, inputs = Launches("cpu", MINE), torch.tensor([1.0, 2.0, 3.0])

    def forward(x, last):
        h, y, z = torch.zeros(3), torch.zeros(3), torch.zeros(3)
        launch(launches, lambda: h.copy_(x + 1), x, h, name="row_max", which=ROW_MAX)
        result = h.square()  # the library
        launch(launches, lambda: y.copy_(result * 2), result, y)
        launch(launches, lambda: z.copy_(y / last), y, z)
        launches.end([z])
        return launches.report()["copies"]

    found = []
    for mode, last in (("count", 2), ("record", 2), ("copies", 2), ("copies", 3)):
        launches.begin(mode, None, [inputs], None)
        found.append(forward(inputs, last))
    assert found == [[], ["chain"], ["chain"], []]


def test_an_output_that_was_there_before_only_in_part():
    launches, x = Launches("cpu", MINE), torch.tensor([1.0, 2.0, 3.0])
    for mode in ("count", "copies"):
        launches.begin(mode, None, [], None)
        o = torch.zeros(3)
        launch(launches, lambda o=o: o.copy_(x * 2), x, o)
        launches.end([x, o])
    assert launches.report()["copies"] == []


@pytest.mark.parametrize("capturing", [False, True])
def test_own_tampering_never_raises(capturing, monkeypatch):
    """Expanded arguments, leaves that require grad: what did not change is left alone, and what did is written once. In graphs too."""
    x, leaf = torch.zeros(1, 3), torch.ones(3, requires_grad=True)
    launches = Launches("cpu", MINE)

    def bump():
        with torch.no_grad():
            x.add_(1), leaf.add_(1)

    for mode in ("record", "swap", "noise", "huge"):
        monkeypatch.setattr(launches_module, "_capturing", lambda device, mode=mode: capturing and mode != "record")
        with torch.no_grad():
            x.zero_(), leaf.fill_(1)
        launches.begin(mode, "chain", [], None)
        with torch.enable_grad():
            launch(launches, bump, x.expand(2, 3), leaf, torch.ones(2).expand(2, 2))
    assert (x.abs() > 100).all() and (leaf.abs() > 100).all()  # replaced


def test_weights_are_found_without_calling_the_model():
    class Hides(torch.nn.Linear):
        def state_dict(self, *args, **options):
            raise RuntimeError

        def parameters(self, recurse=True):
            raise RuntimeError

    model = torch.nn.Sequential(Hides(2, 3), torch.nn.BatchNorm1d(3))
    assert sorted(tuple(t.shape) for t in held(model)) == sorted([(3, 2), (3,), (3,), (3,), (3,), (3,), ()])
    before = [t.clone() for t in held(model)]
    with other_weights(model):
        changed = [not torch.equal(t, old) for t, old in zip(held(model), before)]
    assert sum(changed) == 6 and all(
        torch.equal(t, old) for t, old in zip(held(model), before)
    )  # one counter of one step


def test_ones_own_result_passed_on_is_no_copy_but_a_library_s_is():
    launches, a, b = Launches("cpu", MINE), torch.zeros(4), torch.zeros(4)
    for library, copies in ((False, []), (True, ["row_max"])):
        a.zero_(), b.zero_()
        launches.begin("copies", None, [], None)
        launch(launches, lambda: a.numpy().__iadd__(3), a)
        if library:
            a.mul_(2)  # torch counts what it writes
        launch(launches, lambda: b.numpy().__iadd__(a.numpy()), a, b, name="row_max", which=ROW_MAX)
        assert launches.report()["copies"] == copies


@pytest.mark.parametrize(
    "library, write, took",
    [
        (lambda x: x.softmax(-1), lambda o, x: o.copy_(x.softmax(-1)), True),  # wherever the kernel had it from
        (lambda x: x.softmax(-1), lambda o, x: o.copy_(x.softmax(-1) * 1.0001), True),
        (lambda x: x.softmax(-1), lambda o, x: o.copy_(x.softmax(-1) * 1.01), False),
        (lambda x: x.softmax(-1).data.mul_(0), lambda o, x: o.copy_(x.softmax(-1)), True),  # as it was
        (lambda x: (x[:8].exp(), x[8:].exp()), lambda o, x: o.copy_(x.exp()), True),  # in two halves,
        (lambda x: (x[::2].exp(), x[1::2].exp()), lambda o, x: o.copy_(x.exp()), True),  # rows in turn,
        (lambda x: (x[:, ::2].exp(), x[:, 1::2].exp()), lambda o, x: o.copy_(x.exp()), True),  # columns in turn
        (lambda x: x[:8].exp(), lambda o, x: o.copy_(x.exp()), False),  # the other half is work
        (lambda x: x.mm(x.mT), lambda o, x: o.copy_(x.mm(x.mT).relu()), False),
        (lambda x: torch.zeros_like(x), lambda o, x: o.zero_(), False),  # that anybody can
        (lambda x: x.view(-1), lambda o, x: o.copy_(x + 1), False),
    ],
)
def test_what_a_library_computed_is_no_work(library, write, took):
    launches, x, o = Launches("cpu", MINE), torch.randn(16, 16), torch.full((16, 16), 9.0)
    launches.begin("copies", None, [x], None)
    with Library(launches):
        library(x)
        launch(launches, lambda: write(o, x), o)
    assert launches.report()["took"] == launches.report()["copies"] == (["chain"] if took else [])


def test_a_kernel_copies_if_most_of_its_bytes_are_copies():
    launches, x, o, few = Launches("cpu", MINE), torch.randn(64), torch.zeros(64), torch.zeros(4)
    for values, copies in ((few, ["chain"]), (torch.zeros(64), [])):
        o.zero_()
        launches.begin("copies", None, [], None)
        launch(launches, lambda: values.add_(3), values)  # noqa: B023
        launch(launches, lambda: o.copy_(x), x, o)
        assert launches.report()["copies"] == copies


@pytest.mark.parametrize("kind", [torch.nn.Parameter, torch.nn.Buffer, torch.Tensor.clone])
def test_what_a_library_makes_of_a_weight(kind):
    """A view is nothing computed: a kernel that writes it in another order works. What an operator computes, of whatever kind the weight, is."""
    launches, weight = Launches("cpu", MINE), kind(torch.randn(8, 16))
    for look, took in ((lambda: weight.t(), []), (lambda: weight.exp(), ["chain"]), (lambda: weight + 1, ["chain"])):
        launches.begin("copies", None, [], None)
        with torch.no_grad(), Library(launches):
            o = torch.zeros((seen := look()).shape)
            launch(launches, lambda: o.copy_(seen), seen, o)  # noqa: B023
        assert launches.report()["took"] == took


def test_a_library_s_tensors_without_memory_are_no_fault():
    launches, o = Launches("cpu", MINE), torch.zeros(4, 4)
    x = torch.eye(4).to_sparse()
    for given in (x, x.to_sparse_csr()):
        o.zero_()
        launches.begin("copies", None, [given], None)
        with Library(launches):
            y = (given * 2) @ torch.arange(16.0).view(4, 4)
            launch(launches, lambda: o.copy_(y), o)  # noqa: B023
        assert launches.report()["took"] == ["chain"]
