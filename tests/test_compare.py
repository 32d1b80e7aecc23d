import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from kernelbench import compare
from kernelbench.compare import Fingerprint, _scale, finite, mismatch, plainly_wrong, structure

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def f64(*values):
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize(
    "expected, error, verdict",
    [
        # rms(e) = std(e) = 1: a value may be off by 1e-4 (1 + 1), all of them together by an rms of 1e-4
        ((1, -1), (9e-5, 0), None),
        ((1, -1), (9e-5, -9e-5), None),
        (
            (1, -1),
            (1.9e-4, 0),
            "error (rms 0.000134) is large beside the spread of the expected values (std 1, scale 1)",
        ),
        ((1, -1), (2.1e-4, 0), "1 of 2 values are wrong, the first at (0,): got 1.00021, expected 1"),
        # rms(e) = 100, of which at most 1 counts: 1e-4 (1 + 100) = 0.0101, and 1e-4 * 100 = 0.01
        ((100, -100), (0.0099, 0.0099), None),
        ((100, -100), (0, 0.0102), "1 of 2 values are wrong, the first at (1,)"),
        # a small output is held to its own scale: 1e-4 (1e-3 + 1e-3) = 2e-7
        ((1e-3, -1e-3), (9e-8, 0), None),
        ((1e-3, -1e-3), (2.1e-7, 0), "1 of 2 values are wrong"),
        # nearly constant: |e| about 1000, std 0.1, so that an rms of 1e-5 is the most
        ((1000.1, 999.9), (9e-6, 9e-6), None),
        ((1000.1, 999.9), (2e-5, 2e-5), "error (rms 2e-05)"),
        # one value has no spread: 1e-4 (1 + 5) = 6e-4
        ((5,), (5.9e-4,), None),
        ((5,), (6.1e-4,), "1 of 1 values are wrong"),
        ((0, 0), (0, 0), None),
        ((0, 0), (0, 1e-12), "1 of 2 values are wrong, the first at (1,)"),
    ],
)
@pytest.mark.parametrize("device", DEVICES)
def test_tolerance_by_hand(expected, error, verdict, device):
    expected = f64(*expected).to(device)
    got = mismatch(expected + f64(*error).to(device), expected)
    assert got is None if verdict is None else verdict in got


@pytest.mark.parametrize(
    "dtype, good, bad", [(torch.float32, 3e-6, 9e-6), (torch.float16, 3e-2, 7e-2), (torch.bfloat16, 0.25, 0.5)]
)
def test_a_constant_may_be_off_by_a_few_roundings(dtype, good, bad):
    """8 eps 5 = 4.8e-6, 3.9e-2 and 0.31; a single value of 16 bits may be off by 1e-2 (1 + 5)."""
    expected = torch.full((1000,), 5.0, dtype=dtype)
    single = 1e-2 * 6 if dtype != torch.float32 else 1e-4 * 6
    assert (mismatch(expected + good, expected) is None) == (good < single)
    assert mismatch(expected + bad, expected)


def test_tolerance_by_dtype_and_on_request():
    expected = torch.tensor([1.0, -1.0])
    for dtype, right in ((torch.float32, 5e-5), (torch.float64, 5e-5), (torch.float16, 5e-3), (torch.bfloat16, 5e-3)):
        e = expected.to(dtype)
        assert mismatch(e * (1 + right), e) is None
        assert mismatch(e * (1 + 5 * right), e)
    assert mismatch(expected * 1.005, expected, tolerance=1e-2) is None
    assert mismatch(expected * 1.00005, expected, tolerance=1e-6)
    assert mismatch(expected * 1.00005, expected, tolerance=0.0)


CHEATS = {
    "zeros": lambda x, e, stale: torch.zeros_like(e),
    "the mean": lambda x, e, stale: torch.full_like(e, e.mean()),
    "the rows' means": lambda x, e, stale: e.mean(-1, keepdim=True).expand_as(e),
    "the input": lambda x, e, stale: x,
    "a stale output": lambda x, e, stale: stale,
    "shuffled": lambda x, e, stale: e.flip(-1),
    "negated": lambda x, e, stale: -e,
    "0.1 % too large": lambda x, e, stale: e * 1.001,
    "one row missing": lambda x, e, stale: torch.cat([torch.zeros_like(e[:1]), e[1:]]),
    "one value missing": lambda x, e, stale: torch.where(torch.arange(e.shape[-1]) == 7, 0, e),
}
TASKS = {
    "softmax over 4096": lambda x: x.softmax(-1),
    "softmax of nearly equal logits": lambda x: (x * 1e-5).softmax(-1),
    "tiny": lambda x: x.tanh() * 1e-9,
    "nearly constant": lambda x: 1 + 1e-4 * x.sin(),
    "log softmax": lambda x: x.log_softmax(-1),
    "gelu": torch.nn.functional.gelu,
}


@pytest.mark.parametrize("cheat", CHEATS)
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("tolerance", [None, 1e-2])
def test_what_never_passes(task, cheat, tolerance):
    if tolerance and cheat in ("0.1 % too large", "one value missing"):
        pytest.skip("a tolerance of 1e-2 is that wide")
    generator = torch.Generator().manual_seed(3)
    x, y = torch.randn(8, 4096, generator=generator), torch.randn(8, 4096, generator=generator)
    expected, stale = TASKS[task](x), TASKS[task](y)
    assert mismatch(CHEATS[cheat](x, expected, stale), expected, tolerance)


@pytest.mark.parametrize("task", TASKS)
def test_another_order_of_the_sums_passes(task):
    x = torch.randn(8, 4096, generator=torch.Generator().manual_seed(3))
    assert mismatch(TASKS[task](x.double()).float(), TASKS[task](x)) is None
    assert mismatch(TASKS[task](x.flip(-1)).flip(-1), TASKS[task](x)) is None


@pytest.mark.parametrize("device", DEVICES)
def test_non_finite_values_are_met_exactly(device):
    nan, inf = math.nan, math.inf
    expected = torch.tensor([nan, inf, -inf, 1.0, -1.0], device=device)
    assert mismatch(expected.clone(), expected) is None
    for i, value in ((0, inf), (0, 0.0), (1, -inf), (1, nan), (1, 3e38), (2, inf), (3, nan), (4, -inf)):
        output = expected.clone()
        output[i] = value
        assert f"1 of 5 values are wrong, the first at ({i},)" in mismatch(output, expected)
    everywhere = torch.full((4,), nan, device=device)
    assert mismatch(everywhere, everywhere) is None
    assert "4 of 4" in mismatch(torch.zeros(4, device=device), everywhere)
    assert "4 of 4" in mismatch(everywhere, torch.zeros(4, device=device))
    # infinite expected values do not widen the tolerance of the finite ones
    assert mismatch(torch.tensor([inf, 1.0, -1.001], device=device), torch.tensor([inf, 1.0, -1.0], device=device))


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool])
def test_integers_and_booleans_are_equal_or_wrong(dtype):
    expected = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(dtype)
    assert mismatch(expected.clone(), expected) is None
    output = expected.clone()
    output[1, 1] = 1
    assert "1 of 6 values are wrong, the first at (1, 1): got 1, expected 0 (largest difference 1)" in mismatch(
        output, expected
    )


def test_large_integers_are_not_rounded():
    expected = torch.tensor([2**60])
    assert mismatch(expected + 1, expected)


def test_complex_values_are_wrong_in_either_part():
    expected = torch.tensor([1 + 2j, -1 - 2j])
    assert mismatch(expected.clone(), expected) is None
    assert mismatch(expected * (1 + 1e-6), expected) is None
    assert "wrong" in mismatch(expected.conj().resolve_conj(), expected)
    assert "wrong" in mismatch(-expected.conj().resolve_conj(), expected)


def test_shapes_dtypes_and_devices():
    expected = torch.ones(2, 3)
    assert mismatch(torch.ones(3, 2), expected) == "the output has shape (3, 2), expected (2, 3)"
    assert mismatch(torch.ones(2, 3, 1), expected) == "the output has shape (2, 3, 1), expected (2, 3)"
    assert mismatch(torch.ones(2, 3).half(), expected) == "the output has dtype float16, expected float32"
    assert mismatch(torch.ones(2, 3, dtype=torch.bool), expected) == "the output has dtype bool, expected float32"
    assert mismatch(torch.empty(0, 3), torch.empty(0, 3)) is None
    assert "shape" in mismatch(torch.empty(0, 4), torch.empty(0, 3))
    assert mismatch(torch.tensor(2.0002), torch.tensor(2.0)) is None  # 1e-4 (1 + 2)
    assert "1 of 1 values are wrong, the first at ()" in mismatch(torch.tensor(2.0004), torch.tensor(2.0))
    table = torch.arange(6.0).reshape(2, 3)
    assert mismatch(table.T.contiguous().T, table) is None  # whatever the strides
    assert mismatch(table.T, table.T.contiguous()) is None


def test_the_place_is_right_in_every_chunk(monkeypatch):
    monkeypatch.setitem(compare.CHUNK, "cpu", 4)
    expected = torch.arange(4.0, 16.0).reshape(3, 4)
    output = expected.clone()
    output[2, 1] = 0
    assert "the first at (2, 1): got 0, expected 13" in mismatch(output, expected)
    assert mismatch(expected + 3e-4, expected) is None  # std 3.45 over all chunks, 1.1 in each
    assert "error (rms 0.0004)" in mismatch(expected + 4e-4, expected)


def test_structure():
    one, two = {"t": 0}, {"t": 1}
    assert structure(one, one) is None
    assert structure([one, [two, 3]], [one, [two, 3]]) is None
    assert structure([one], one) == "the forward returned 1 outputs, expected one tensor"
    assert structure(one, [one, two]) == "the forward returned one tensor, expected 2 outputs"
    assert structure([one, two], [one]) == "the forward returned 2 outputs, expected 1"
    assert structure(None, one) == "the forward returned None, expected one tensor"
    assert structure([one, 4], [one, 3]) == "the forward returned 4, expected 3"
    assert "expected 2 outputs" in structure([one, one], [one, [two, one]])
    named, other = {"d": [["a", one]]}, {"d": [["b", one]]}
    assert structure(named, named) is None
    assert structure(named, one) and structure(one, named) and structure(named, other)
    assert structure({"d": [["a", one], ["b", two]]}, {"d": [["b", two], ["a", one]]})


def test_sums_whose_terms_cancel():
    """fp32 values of scale 1000 carry roundings of 1e-4 each, however small the sum is: 32 of them (3.8e-3) are no fault, 100 are."""
    expected = torch.tensor([1000.0, -1000.0, 0.0])
    assert mismatch(expected + torch.tensor([0, 0, 2e-3]), expected) is None
    assert mismatch(expected + torch.tensor([0, 0, 1e-2]), expected)


def test_doubt_about_the_expected_values_is_allowed_for():
    expected = torch.tensor([1.0, -1.0, 0.5]).half()
    doubt = torch.tensor([0.1, 0.0, 0.0])
    off = torch.tensor([0.08, 0.0, 0.0]).half()
    assert mismatch(expected + off, expected) and mismatch(expected + off, expected, None, doubt) is None
    assert mismatch(expected - off.flip(0), expected, None, doubt)


def test_numbers_of_eight_bits():
    x = torch.tensor([0.0, 1.0, -16.0, 448.0]).to(torch.float8_e4m3fn)
    step = torch.tensor([0.0, 1.125, -18.0, 416.0]).to(torch.float8_e4m3fn)  # each one step off
    far = torch.tensor([0.0, 1.5, -16.0, 448.0]).to(torch.float8_e4m3fn)
    assert finite(x) and mismatch(x, x) is None and "wrong" in mismatch(far, x)
    assert mismatch(torch.cat([x] * 60 + [step]), torch.cat([x] * 61)) is None  # a rounding here and there


KINDS = {
    "normal": lambda n: torch.randn(n),
    "far from zero": lambda n: torch.randn(n) * 1e-2 + 1e3,
    "one value": lambda n: torch.full((n,), 7.3),
    "tiny": lambda n: torch.randn(n) * 1e-20,
    "beyond the squares of float32": lambda n: torch.randn(n) * 1e25,
    "half": lambda n: torch.randn(n).half(),
    "bfloat16 that sums to more than it holds": lambda n: torch.randn(n).abs().bfloat16() * 1e36,
    "not all finite": lambda n: torch.randn(n).masked_fill(torch.rand(n) < 0.01, math.inf),
    "late and large": lambda n: torch.arange(n) * 1e3,
    "doubles": lambda n: torch.randn(n, dtype=torch.float64),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", KINDS)
def test_single_precision_says_what_double_precision_says(kind, device, monkeypatch):
    """A GPU compares float32 without a detour over float64; here the CPU does, piece by piece, beside the plain formulas."""
    torch.manual_seed(0)
    expected = KINDS[kind](5000).float() if kind == "late and large" else KINDS[kind](5000)
    monkeypatch.setitem(compare.CHUNK, device, 512)
    known = expected[expected.isfinite()].double()
    found = []
    for single in ({device}, set()):
        monkeypatch.setattr(compare, "SINGLE", single)
        count, rms, std, _ = _scale(expected.to(device))
        assert count == len(known)
        assert rms == pytest.approx(known.square().mean().sqrt().item(), rel=1e-5)
        assert std == pytest.approx(known.std(correction=0).item(), rel=1e-4, abs=1e-7 * rms)
        said = []
        for error in (0.0, 0.5, 0.9, 1.1, 2.0, 100.0, math.nan):
            for where in (slice(None), slice(-1, None), slice(4000, 4020)):
                output = expected.clone()
                output[where] += (error * 1e-4 * (std + expected[where].abs().nan_to_num(posinf=0))).to(expected.dtype)
                said.append(mismatch(output.to(device), expected.to(device)) is None)
                assert said[-1] == (mismatch(output.to(device), expected.to(device), brief=True) is None)
        found.append(said)
    assert found[0] == found[1] and found[0][0] and not any(found[0][-3:])


FUSED = """
import math, sys
import torch
from kernelbench import compare, fused

compare.SINGLE, compare.FUSED, fused.PROGRAMS, fused.BLOCK = {"cpu"}, 1, 7, 64
torch.manual_seed(0)
for n in (1, 64, 65, 1000):
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        t = (torch.randn(n) * 3 + 100).to(dtype)
        o = (t + torch.randn(n) * 0.02).to(dtype)
        total, square = fused.sums(t, 99.5)
        assert math.isclose(total, (t.double() - 99.5).sum().item(), rel_tol=1e-5, abs_tol=1e-4)
        assert math.isclose(square, (t.double() - 99.5).square().sum().item(), rel_tol=1e-5)
        number, squares = fused.right(o, t, 1e-4, 5e-3)
        off = (o.double() - t.double()).abs()
        assert number == (off <= 1e-4 * t.double().abs() + 5e-3).sum()
        assert math.isclose(squares, off.square().sum().item(), rel_tol=1e-5, abs_tol=1e-9)
bad = torch.full((100,), math.nan)
assert fused.right(bad, torch.zeros(100), 1.0, 1.0)[0] == 0 and math.isnan(fused.sums(bad, 0.0)[0])
asked, find = set(), compare._fused
for fuse in (lambda *t: asked.add(len(t)) or find(*t), lambda *t: None):
    compare._fused = fuse
    torch.manual_seed(1)
    said = []
    for offset, size in ((0, 1), (1e3, 1e-2), (0, 1e-20), (0, 1e25)):
        expected = offset + size * torch.randn(500)
        for error in (0, 0.5e-4, 0.9e-4, 1.1e-4, 3e-4, math.nan):
            for where in (slice(None), slice(-1, None)):
                output = expected.clone()
                output[where] += error * (size + expected[where].abs())
                said.append(str(compare.mismatch(output, expected)))
                said.append(compare.mismatch(output.view(2, -1).T, expected.view(2, -1).T, brief=True) is None)
    print(said)
assert asked == {1, 2}
"""


def test_triton_kernels_say_what_torch_says():
    """On the CPU they are interpreted, in a process of their own; the outcome of every comparison is the same with them and without."""
    env = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(Path(compare.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", FUSED], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    one, other = done.stdout.splitlines()
    assert one == other and "'None'" in one and "values are wrong" in one and "error (rms" in one


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_large_outputs_on_a_gpu(dtype, monkeypatch):
    """More values than 32 bits count, but for one wrong value in the last place."""
    n = (1 << 31) + 12_345
    expected = torch.randn(n, device="cuda", dtype=dtype)
    output = expected.clone()
    monkeypatch.setattr(compare, "_faults", None)  # the kernels alone
    assert mismatch(output, expected) is None
    monkeypatch.undo()
    output[-1] += 9
    assert f"1 of {n} values are wrong, the first at ({n - 1},)" in mismatch(output, expected)
    count, rms, std, _ = _scale(expected)
    assert (count, rms, std) == (n, pytest.approx(1, rel=1e-3), pytest.approx(1, rel=1e-3))


def test_briefly_no_more_than_the_first_wrong_piece_is_looked_at(monkeypatch):
    monkeypatch.setitem(compare.CHUNK, "cpu", 100)
    seen, original = [], compare.pieces
    monkeypatch.setattr(compare, "pieces", lambda *t: (seen.append(i) or piece for i, piece in enumerate(original(*t))))
    expected = torch.arange(1000)
    assert mismatch(expected, expected, brief=True) is None and seen == list(range(10))
    seen.clear()
    assert mismatch(expected + (expected > 250), expected, brief=True) and seen == [0, 1, 2]
    seen.clear()
    assert "749 of 1000 values are wrong, the first at (251,)" in mismatch(expected + (expected > 250), expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("single", [True, False])
def test_what_is_plainly_wrong(single, device, monkeypatch):
    """Of 10,000 values of spread 1 more than 100 must be off by more than that; further on nothing is looked at."""
    monkeypatch.setattr(compare, "SINGLE", {device} if single else set())
    monkeypatch.setitem(compare.CHUNK, device, 1000)
    torch.manual_seed(0)
    expected = torch.randn(10_000, device=device)
    for number, off, plainly in ((101, 1.1, True), (100, 1e6, False), (10_000, 0.9, False), (10_000, math.nan, True)):
        output = expected.clone()
        output[-number:] += off
        assert plainly_wrong(output, expected) is plainly
        assert mismatch(output, expected) and not mismatch(expected, expected)
    assert not plainly_wrong(expected, expected) and not plainly_wrong(expected[1:], expected)
    assert not plainly_wrong(expected.half() + 9, expected.half())  # may be a rounding of the reference's own
    assert not plainly_wrong(expected.long() + 9, expected.long())  # or a tie
    for most in (1e3, math.inf):  # infinities that should be there
        expected[:200] = most
        assert not plainly_wrong(expected + 1e-3, expected)
    seen, original = [], compare.pieces
    monkeypatch.setattr(compare, "pieces", lambda *t: (seen.append(i) or piece for i, piece in enumerate(original(*t))))
    assert plainly_wrong(expected + 1e3, expected) and seen[-2:] == [9, 0]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "change",
    {
        "one bit of one value": lambda t: t[-1:].view(torch.int16).bitwise_xor_(1),
        "all values move on": lambda t: t.copy_(t.roll(1)),
        "two pieces change places": lambda t: t.copy_(torch.cat([t[512:1024], t[:512], t[1024:]])),
        "a zero's sign": lambda t: t[5].neg_(),
        "the sum stays": lambda t: (t[7].add_(1), t[9].sub_(1)),
    }.items(),
    ids=lambda pair: pair[0],
)
@pytest.mark.parametrize("offset, n", [(0, 1600), (1, 1601), (2, 1602), (3, 1600)])
def test_a_fingerprint_tells_what_has_changed(change, offset, n, device, monkeypatch):
    """Of float16 values at every alignment, and of transposed ones."""
    monkeypatch.setitem(compare.CHUNK, device, 512)
    monkeypatch.setattr(Fingerprint, "factors", {})
    t = torch.randn(n + 8, device=device).half()[offset : offset + n]
    t[5] = 0
    for view in (t, t.view(2, -1).T) if n % 2 == 0 else (t,):
        old = Fingerprint(view)
        assert old() is view
        before = t.clone()
        change[1](t)
        assert not torch.equal(t.view(torch.int16), before.view(torch.int16))
        assert old().isnan().all() and old().shape == view.shape
        t.copy_(before)
        assert old() is view
