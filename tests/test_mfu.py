"""Idle gaps of a trace by hand; the benchmark itself, small, on the CPU."""

import random
import re

import pytest

import mfu
import processes
from feedback import feedback


def event(cat, name, ts, dur):
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur}


def test_idle_gaps_by_hand():
    """Busy 0-10, 4-30 (another stream, longer), 50-60, 61-100, 400-500 us; idle 20 + 1 + 300 of 500."""
    trace = [event("kernel", "a", 0, 10), event("gpu_memcpy", "b", 4, 26), event("kernel", "c", 50, 10)]
    trace += [event("kernel", "d", 61, 39), event("gpu_memset", "e", 400, 100)]
    trace += [event("cpu_op", "outer", 0, 500), event("cuda_runtime", "cudaLaunchKernel", 240, 20)]
    trace += [event("gpu_user_annotation", "step", 0, 500), {"ph": "M", "name": "process_name"}]
    share, gaps = mfu.idle_gaps(trace[::-1], n=2)
    assert share == pytest.approx(321 / 500)
    assert gaps == [mfu.Gap(0.3, "d", "e", "cudaLaunchKernel"), mfu.Gap(0.02, "b", "c", "outer")]
    assert mfu.idle_gaps([]) == (0.0, [])


def test_rows_fill_a_micro_batch():
    assert mfu.some_rows(400, 1000, False, random.Random(0)) == [400, 400]
    for seed in range(20):
        lengths = mfu.some_rows(400, 1000, True, random.Random(seed))
        assert 1000 - 100 < sum(lengths) <= 1000 and max(lengths) <= 400 and min(lengths) >= 100


def test_the_benchmark_counts_tokens_and_flop(capsys, monkeypatch):
    """2 N FLOP forward and 4 N backward per token: against a peak of 6 N tokens per second the utilisation is rate / tokens."""
    ticks = iter(range(100))
    monkeypatch.setattr(mfu.time, "perf_counter", lambda: next(ticks))  # each timed thing takes a second
    n = 2 * 259 * 128 + 2 * (4 * 128 * 128 + 3 * 128 * 341 + 2 * 128 + 2 * 32) + 128
    try:
        mfu.Train(model="tiny", row=32, tokens=64, micro_batches=3, device="cpu", peak=6.0 * n * 192).run()
    finally:
        processes.leave()
    out = capsys.readouterr().out
    assert re.search(r"forward and backward: 192 tokens/s, 0.333 s per micro-batch", out), out
    assert "model FLOP utilisation 100.0%" in out and "optimizer step 1.00 s" in out


def test_a_whole_step_updates_and_refreshes(capsys):
    try:
        how = {"prompts": 1, "samples": 3, "turns": 2, "max_response": 5, "context": 1024}
        mfu.Step(model="tiny", tasks="toy/train:2", device="cpu", offload=True, **how).run()
    finally:
        processes.leave()
    lines = re.findall(r"step (\d): (\d+) rows, \|g\| ([\d.e-]+)", capsys.readouterr().out)
    assert [line[0] for line in lines] == ["1", "2"]
    assert all(int(rows) > 0 and float(norm) > 0 for _, rows, norm in lines)


def test_dice_say_all_that_a_model_is_told():
    dice = mfu.Dice(0)
    texts = [feedback(dice.roll(), 1000, len) for _ in range(20)]
    assert {text.split()[0] for text in texts} == {"Correct.", "The"}
    assert any(re.search(r"take 1 ms, PyTorch 1\.\d+ ms: speed-up 1\.\d\d", text) for text in texts)


def test_kernels_are_counted_by_step():
    busy = [(0, 300, "a"), (300, 310, "b"), (400, 500, "a"), (500, 530, "b"), (530, 560, "b")]
    lines = [line.split() for line in mfu.kernels(busy, 2, "step")]
    assert " ".join(lines[0]) == "a step: 2 kernels and copies, 0.235 ms"
    assert lines[1:] == [["85.1%", "1.0", "x", "200.0", "us", "a"], ["14.9%", "1.5", "x", "23.3", "us", "b"]]
