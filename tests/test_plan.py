"""The memory plan, by hand."""

from dataclasses import replace

import pytest
import torch

import plan
from model import load_config
from packed import ATTENTION, INPUT, PRODUCTS
from plan import GIB, PlanError, Setup, estimate, fit, levels, shape_of

BIG = shape_of(load_config("qwen-14b", random_init=True))
SMALL = shape_of(load_config("qwen-0.6b", random_init=True))
H200 = Setup(1, 1, 139 * GIB, 120 * GIB, 18_432, 18_432, offload=True)


def test_shapes_by_hand():
    """Published: 596,049,920 and 14,768,307,200 parameters."""
    layer = 5120 * 128 * (40 + 8 + 8 + 40) + 3 * 5120 * 17_408 + 2 * 5120 + 2 * 128
    assert BIG.layer == layer == 330_311_936
    assert BIG.parameters == 2 * 151_936 * 5120 + 40 * layer + 5120 == 14_768_307_200
    layer = 1024 * 128 * (16 + 8 + 8 + 16) + 3 * 1024 * 3072 + 2 * 1024 + 2 * 128
    assert SMALL.parameters == 151_936 * 1024 + 28 * layer + 1024 == 596_049_920
    assert SMALL.tied and not BIG.tied
    assert (BIG.kv(2), SMALL.kv(2)) == (163_840, 114_688)


def test_what_a_layer_keeps_by_hand():
    assert BIG.kept(INPUT, 2) == 10_240
    assert BIG.kept(ATTENTION, 2) == 10_240 + 10_240 + 160
    assert BIG.kept(PRODUCTS, 2) == 20_640 + 2 * (5120 + 1024 + 1024 + 5120 + 2 * 17_408)


@pytest.mark.parametrize("gpus", [1, 2])
def test_states_of_14b_by_hand(gpus):
    """59.07 GB of fp32 master, as much of gradients; 29.54 GB of a copy in bf16, which the update does without."""
    setup = replace(H200, gpus=gpus, local_gpus=gpus, host=250 * GIB)
    p = estimate(BIG, setup)
    assert p.update["master weights, fp32"] == p.update["gradients, fp32"] == 59_073_228_800 // gpus
    assert p.sampling["rollout copy"] == 29_536_614_400 and p.update["rollout copy"] == 0
    assert p.host == 118_146_457_600 and p.first_dtype == torch.float32
    free = 139 * GIB - 59_073_228_800 // gpus - 29_536_614_400 - 6 * GIB - 3 * GIB
    assert p.sequences == int(0.9 * free) // (163_840 * 18_432) == {1: 15, 2: 23}[gpus]
    kept = [BIG.kept(level, 2) for level in p.keep]
    assert p.update["kept activations"] == 18_432 * sum(kept) and len(kept) == 40
    assert sum(p.update.values()) <= 139 * GIB
    assert p.keep.count(PRODUCTS) >= (gpus - 1) * 25  # two GPUs leave room for most products, one for none


def test_without_offload_everything_is_on_the_gpu():
    p = estimate(SMALL, replace(H200, offload=False))
    assert p.update["moments, fp32"] == p.sampling["moments, fp32"] == 8 * 596_049_920
    assert p.update["rollout copy"] == 2 * 596_049_920 and p.host == 0
    assert p.keep == [PRODUCTS] * 28
    assert fit(SMALL, replace(H200, offload=False)) == p


def test_a_host_too_small_for_both_moments_halves_the_first():
    p = fit(BIG, replace(H200, host=110 * GIB))
    assert p.first_dtype == torch.bfloat16 and p.host == 6 * 14_768_307_200
    assert "the first in bf16" in p.table()
    with pytest.raises(PlanError, match="83 GiB of host memory, of 74"):
        fit(BIG, replace(H200, host=90 * GIB))


def test_levels_spend_the_room_by_hand():
    """Inputs first, then attention (10,400 bytes more per token and layer), then products (94,208 more)."""
    inputs = 40 * 10_240
    assert levels(BIG, 0, 2) == [INPUT] * 40
    assert levels(BIG, inputs + 2 * 10_400 + 10_399, 2) == [ATTENTION] * 2 + [INPUT] * 38
    assert levels(BIG, inputs + 40 * 10_400 + 94_208, 2) == [PRODUCTS] + [ATTENTION] * 39
    assert levels(BIG, 10**9, 2) == [PRODUCTS] * 40


def test_at_work_by_hand():
    """Of 14B, one GPU: 3.11 GB of the head's weights and gradient, a layer of 330 M parameters (twice in half precision, its gradient in
    fp32), and 16,384 tokens of what it computes. Measured on an H200: 125.3 GiB at the peak where all layers keep their input."""
    temporary = 2 * (5 * 17_408 + (5 * 40 + 6 * 8) * 128 + 6 * 5120)
    by_hand = 4 * 151_936 * 5120 + 8 * 330_311_936 + 16_384 * (temporary + 4 * 5120)
    assert plan.at_work(BIG, 1, 2, 16_384) == by_hand
    measured = 125.3 * GIB
    assert abs(2 * 59_073_228_800 + by_hand + 40 * 16_384 * 10_240 - measured) < 0.02 * measured
    few = (
        4 * 151_936 * 5120 + 3 * 2 * 2**28 + 5 * 2 * 5120 * 10
    )  # of ten tokens, logits and hidden states would be more
    assert plan.at_work(BIG, 1, 2, 10) == max(few, 4 * 151_936 * 5120 + 8 * 330_311_936 + 10 * (temporary + 4 * 5120))


def test_weights_stay_gathered_where_there_is_room_beside_all_products():
    of_8b = shape_of(load_config("qwen-8b", random_init=True))
    setup = replace(H200, micro_tokens=16_384, context=16_384)
    p = fit(of_8b, setup)
    assert p.gathered and p.update["gathered weights"] == 2 * 8_190_735_360 and "stay gathered" in p.table()
    less = fit(of_8b, replace(setup, memory=setup.memory - 8 * GIB))
    assert not less.gathered and less.keep == p.keep == [PRODUCTS] * 36
    assert not fit(BIG, H200).gathered
    for memory in range(77, 139):  # never at the price of a run that fits
        fit(of_8b, replace(setup, micro_tokens=1024, context=1024, memory=memory * GIB))


def test_refusals_name_what_would_fit():
    with pytest.raises(
        PlanError, match=r"needs \d+ GiB of 139 per GPU. It would fit with --offload or with 2 GPUs"
    ) as e:
        fit(BIG, replace(H200, offload=False))
    assert "\n" not in str(e.value)
    long = replace(H200, micro_tokens=100_000)
    with pytest.raises(PlanError, match="with --micro-tokens 18432"):
        fit(BIG, long)
    fit(BIG, replace(long, micro_tokens=18_432))
    with pytest.raises(PlanError, match="would fit with 4 GPUs"):
        fit(BIG, replace(H200, memory=79 * GIB, host=500 * GIB))
    fit(BIG, replace(H200, memory=79 * GIB, host=500 * GIB, gpus=4, local_gpus=4))
    with pytest.raises(PlanError, match="smaller model"):
        fit(BIG, replace(H200, memory=20 * GIB))
    with pytest.raises(PlanError, match="longest row: at least --context"):
        fit(BIG, replace(H200, micro_tokens=4096))


def test_the_table_adds_up():
    p = fit(BIG, H200)
    rows = [line.split() for line in p.table().splitlines()]
    total = next(row for row in rows if row[:2] == ["in", "all"])
    assert float(total[-1]) == pytest.approx(sum(p.update.values()) / GIB, abs=0.06)
    assert float(total[-2]) == pytest.approx(sum(p.sampling.values()) / GIB, abs=0.06)
    assert p.peak == sum(p.update.values()) - plan.OTHER


@pytest.mark.gpu
def test_the_run_of_a_tiny_machine_is_planned(capsys):
    from train import parse

    args, p = plan.of_run(parse(["--model", "qwen-0.6b", "--random-init", "--device", "cuda"]))
    assert p.keep == [PRODUCTS] * 28 and not args.offload
    assert "master weights" in capsys.readouterr().out
