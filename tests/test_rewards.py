"""Each formula by hand, against a brute-force twin, and the estimator on bandits enumerated exactly."""

import itertools
import math

import pytest
import torch

import rewards


def t(*values, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype)


# --- Reward and return


def test_turn_reward_by_hand():
    correct, speedup, coverage = t(1, 1, 1, 0), t(1.5, 9.0, 0.5, 7.0), t(0.5, 1.0, 0.0, 1.0)
    assert rewards.turn_reward(correct, speedup, coverage).tolist() == [3.0, 5.0, 1.5, 0.0]
    halves = rewards.turn_reward(correct, speedup, coverage, w_correct=0.5, w_speed=0.5, w_coverage=0.5)
    assert halves.tolist() == [1.5, 2.5, 0.75, 0.0]
    assert rewards.turn_reward(correct, speedup, coverage, w_coverage=0, clip=1.0).tolist() == [2.0, 2.0, 1.5, 0.0]


def test_a_wrong_turn_earns_nothing_whatever_its_figures():
    assert rewards.turn_reward(t(0), t(math.inf), t(math.nan)).tolist() == [0.0]


@pytest.mark.parametrize("gamma", [0.0, 0.9, 1.0])
def test_returns_to_go_twin(gamma):
    r = torch.randn(2, 3, 4, dtype=torch.float64)
    returns = rewards.returns_to_go(r, gamma)
    for p, g, k in itertools.product(range(2), range(3), range(4)):
        expected = sum(gamma ** (u - k) * r[p, g, u].item() for u in range(k, 4))
        assert returns[p, g, k].item() == pytest.approx(expected)


# --- Advantages


def test_leave_one_out_by_hand():
    returns = t(1, 2, 6, 9).reshape(1, 4, 1)
    valid = torch.tensor([1, 1, 1, 0]).reshape(1, 4, 1)
    assert rewards.leave_one_out(returns, valid).flatten().tolist() == [-3.0, -1.5, 4.5, 0.0]
    assert rewards.grpo(returns, valid).flatten().tolist() == [-2.0, -1.0, 3.0, 0.0]


def test_a_lone_sample_has_no_advantage():
    returns = t(5, 7).reshape(1, 2, 1)
    assert rewards.leave_one_out(returns, torch.tensor([1, 0]).reshape(1, 2, 1)).flatten().tolist() == [0.0, 0.0]
    assert rewards.leave_one_out(returns, torch.tensor([0, 0]).reshape(1, 2, 1)).flatten().tolist() == [0.0, 0.0]


def test_an_invalid_return_never_enters_a_baseline():
    returns = t(1, 3, math.nan).reshape(1, 3, 1)
    valid = torch.tensor([1, 1, 0]).reshape(1, 3, 1)
    assert rewards.leave_one_out(returns, valid).flatten().tolist() == [-2.0, 2.0, 0.0]
    assert rewards.grpo(returns, valid).flatten().tolist() == [-1.0, 1.0, 0.0]


def test_advantages_twin():
    generator = torch.Generator().manual_seed(0)
    returns = torch.randn(3, 5, 4, generator=generator, dtype=torch.float64)
    valid = torch.rand(3, 5, 4, generator=generator) < 0.6
    trloo, grpo = rewards.leave_one_out(returns, valid), rewards.grpo(returns, valid)
    flat = rewards.equal_returns(returns, valid)
    for p, k in itertools.product(range(3), range(4)):
        members = [g for g in range(5) if valid[p, g, k]]
        assert flat[p, k].item() == (len(members) < 2)
        for g in range(5):
            others = [returns[p, j, k].item() for j in members if j != g]
            everyone = [returns[p, j, k].item() for j in members]
            own = returns[p, g, k].item()
            loo = own - sum(others) / len(others) if g in members and others else 0.0
            assert trloo[p, g, k].item() == pytest.approx(loo)
            assert grpo[p, g, k].item() == pytest.approx(own - sum(everyone) / len(everyone) if g in members else 0.0)


def test_equal_returns_is_exact():
    returns = torch.tensor([0.1 + 0.2, 0.3]).double().reshape(1, 2, 1)
    assert not rewards.equal_returns(returns + t(0, 1e-12).reshape(1, 2, 1), torch.ones(1, 2, 1)).item()
    third = torch.full((1, 3, 1), 2.1)  # a mean over thirds is off by an ulp: the skip must not depend on A == 0
    assert rewards.equal_returns(third, torch.ones(1, 3, 1)).item()


# --- The estimator on bandits: every outcome of a group of samples, weighted by its probability


def expected_gradient(estimator, samples):
    """E[Σ_i A_i ∇log π(a_i) / N] over all groups of one-turn samples, and ∇ E[reward]."""
    logits = torch.tensor([0.3, -0.5, 0.1], dtype=torch.float64, requires_grad=True)
    payoff = t(1.0, 4.0, -2.0)
    log_pi = logits.log_softmax(0)
    true = torch.autograd.grad((log_pi.exp() * payoff).sum(), logits, retain_graph=True)[0]
    estimate = torch.zeros(3, dtype=torch.float64)
    for arms in itertools.product(range(3), repeat=samples):
        picked = log_pi[list(arms)]
        returns = payoff[list(arms)].reshape(1, samples, 1)
        advantage = estimator(returns, torch.ones(1, samples, 1))
        loss = (advantage.flatten() * picked).sum() / samples
        estimate += picked.sum().exp().item() * torch.autograd.grad(loss, logits, retain_graph=True)[0]
    return estimate, true


@pytest.mark.parametrize("samples", [2, 3, 4])
def test_trloo_is_unbiased_and_grpo_is_short_by_one_in_n(samples):
    estimate, true = expected_gradient(rewards.leave_one_out, samples)
    assert torch.allclose(estimate, true, atol=1e-12)
    estimate, true = expected_gradient(rewards.grpo, samples)
    assert torch.allclose(estimate, (1 - 1 / samples) * true, atol=1e-12)
    assert true.abs().max() > 0.1


def test_trloo_is_unbiased_over_two_turns_through_the_loss():
    """Turn 2's policy depends on turn 1's arm; gradients come from policy_loss itself, as train.py calls it."""
    first = torch.tensor([0.2, -0.3], dtype=torch.float64, requires_grad=True)
    second = torch.tensor([[0.5, -0.1], [-0.4, 0.7]], dtype=torch.float64, requires_grad=True)
    pay_1, pay_2 = t(1.0, -0.5), torch.tensor([[0.0, 2.0], [3.0, -1.0]], dtype=torch.float64)
    log_1, log_2 = first.log_softmax(0), second.log_softmax(1)
    paths = list(itertools.product(range(2), range(2)))
    value = sum((log_1[a] + log_2[a, b]).exp() * (pay_1[a] + pay_2[a, b]) for a, b in paths)
    true = torch.autograd.grad(value, (first, second), retain_graph=True)
    samples, estimate = 3, [torch.zeros(2, dtype=torch.float64), torch.zeros(2, 2, dtype=torch.float64)]
    for group in itertools.product(paths, repeat=samples):
        reward = torch.stack([torch.stack([pay_1[a], pay_2[a, b]]) for a, b in group])[None]  # (1, G, 2)
        returns = rewards.returns_to_go(reward)
        advantage = rewards.leave_one_out(returns, torch.ones(1, samples, 2)).flatten()
        logp = torch.stack([x for a, b in group for x in (log_1[a], log_2[a, b])])[:, None]  # (G * 2, 1)
        loss = rewards.policy_loss(logp, logp.detach(), advantage, torch.ones_like(logp), n_rows=samples, scale=1)
        grads = torch.autograd.grad(loss, (first, second), retain_graph=True)
        for total, grad in zip(estimate, grads, strict=True):
            total -= logp.sum().exp().item() * grad
    for total, grad in zip(estimate, true, strict=True):
        assert torch.allclose(total, grad, atol=1e-12)


# --- PRS, MRS, importance weights


def test_keep_by_coverage_by_hand():
    coverage = t(0.2, 0.30, 0.325, 0.375, 0.40, 1.0)
    keep = rewards.keep_by_coverage(torch.ones(6), coverage, uniform=t(*[0.5] * 6))
    assert keep.tolist() == [False, False, False, True, True, True]  # p = 0, 0, 0.25, 0.75, 1, 1
    assert rewards.keep_by_coverage(torch.ones(6), coverage, uniform=t(*[0.0] * 6)).tolist() == [False] * 2 + [True] * 4
    assert rewards.keep_by_coverage(torch.zeros(6), coverage, uniform=t(*[0.999] * 6)).all()
    hard = rewards.keep_by_coverage(torch.ones(6), coverage, 0.325, 0.0, uniform=t(*[0.999] * 6))
    assert hard.tolist() == [False, False, True, True, True, True]
    assert rewards.keep_by_coverage(torch.ones(6), coverage, -math.inf, 0.1, uniform=t(*[0.999] * 6)).all()


def test_keep_by_coverage_keeps_the_stated_share():
    uniform = torch.rand(20_000, generator=torch.Generator().manual_seed(1))
    keep = rewards.keep_by_coverage(torch.ones(20_000), torch.full((20_000,), 0.37), uniform=uniform)
    assert keep.float().mean().item() == pytest.approx(0.7, abs=0.015)


def test_keep_by_mismatch_by_hand():
    """Two turns of 2 and 1 tokens: the mean of d runs over the rollout's three tokens, padding aside."""
    rollout = t(-1, -2, -3, 99).reshape(1, 2, 2)
    mask = torch.tensor([[[1, 1], [1, 0]]])
    for d, kept in (([0.003, 0.0, -0.0003], True), ([0.003, 0.0001, 0.0], False), ([-0.003, 0.0, 0.0], True)):
        old = rollout + t(*d, 5).reshape(1, 2, 2)  # means 0.0009, 0.001033, -0.001: exp(-0.001) = 0.9990005
        assert rewards.keep_by_mismatch(old, rollout, mask).tolist() == [[kept, kept]], d
    old = rollout + t(-0.0031, 0, 0, 0).reshape(1, 2, 2)  # exp(-0.001033) < 0.999
    assert rewards.keep_by_mismatch(old, rollout, mask).tolist() == [[False, False]]
    assert rewards.keep_by_mismatch(old, rollout, mask, band=math.inf, veto=0).tolist() == [[True, True]]


def test_the_veto_drops_its_turn_only():
    rollout = torch.zeros(1, 2, 2, dtype=torch.float64)
    old = t(math.log(0.9e-4), -math.log(0.9e-4), 0, 0).reshape(1, 2, 2)  # the mean is 0: inside the band
    assert rewards.keep_by_mismatch(old, rollout, torch.ones(1, 2, 2)).tolist() == [[False, True]]
    assert rewards.keep_by_mismatch(old, rollout, torch.ones(1, 2, 2), veto=0.8e-4).tolist() == [[True, True]]


def test_a_rollout_without_tokens_is_kept():
    nothing = torch.full((1, 2, 3), math.nan)
    assert rewards.keep_by_mismatch(nothing, nothing, torch.zeros(1, 2, 3)).tolist() == [[True, True]]


def test_keep_by_mismatch_twin():
    generator = torch.Generator().manual_seed(2)
    rollout = -torch.rand(4, 6, 3, 5, generator=generator, dtype=torch.float64)
    noise = torch.randn(4, 6, 3, 5, generator=generator, dtype=torch.float64)
    old = rollout + noise * torch.tensor([0.001, 0.003, 0.01, 4.0])[:, None, None, None]
    mask = torch.rand(4, 6, 3, 5, generator=generator) < 0.7
    keep = rewards.keep_by_mismatch(old, rollout, mask)
    for p, g in itertools.product(range(4), range(6)):
        places = [(k, i) for k in range(3) for i in range(5) if mask[p, g, k, i]]
        d = {place: (old - rollout)[p, g][place].item() for place in places}
        inside = 0.999 <= math.exp(sum(d.values()) / len(d)) <= 1.001
        for k in range(3):
            vetoed = any(math.exp(x) < 1e-4 for (turn, _), x in d.items() if turn == k)
            assert keep[p, g, k].item() == (inside and not vetoed)
    assert 0 < keep.sum() < keep.numel()


def test_importance_weights_and_mismatch_by_hand():
    old, rollout = t(0.5, 0.5, 0.1).log(), t(0.4, 0.1, 0.2).log()
    assert rewards.importance_weights(old, rollout).tolist() == pytest.approx([1.25, 2.0, 0.5])
    assert rewards.importance_weights(old, rollout, cap=1.0).tolist() == pytest.approx([1.0, 1.0, 0.5])
    k1, k3 = rewards.mismatch(old, rollout)
    assert k1.tolist() == pytest.approx([-math.log(1.25), -math.log(5), math.log(2)])
    assert k3.tolist() == pytest.approx([0.25 - math.log(1.25), 4 - math.log(5), -0.5 + math.log(2)])


def test_mismatch_estimates_kl_exactly_when_enumerated():
    old, rollout = t(0.7, 0.2, 0.1).log(), t(0.5, 0.3, 0.2).log()
    kl = (rollout.exp() * (rollout - old)).sum()
    for estimate in rewards.mismatch(old, rollout):
        assert (rollout.exp() * estimate).sum().item() == pytest.approx(kl.item())


def test_importance_weights_undo_the_sampler():
    """Expected over the sampler's draws, weighted values are the trainer's expectation (where the cap does not bite)."""
    old, rollout, value = t(0.6, 0.3, 0.1).log(), t(0.4, 0.4, 0.2).log(), t(1.0, -2.0, 5.0)
    weighted = (rollout.exp() * rewards.importance_weights(old, rollout) * value).sum()
    assert weighted.item() == pytest.approx((old.exp() * value).sum().item())


# --- Loss


def test_policy_loss_by_hand():
    old = t(-1, -1, -1, -1).reshape(1, 4)
    ratio = t(1.0, 1.5, 0.5, 9.0).reshape(1, 4)
    weight = t(1.0, 1.0, 2.0, 0.0).reshape(1, 4)
    plus = rewards.policy_loss(old + ratio.log(), old, t(2.0), weight, n_rows=4, scale=10)
    assert plus.item() == pytest.approx(-(2 * 1.0 + 2 * 1.28 + 2 * 2 * 0.5) / 40)  # min(r A, clip(r) A): 1, 1.28, 0.5
    minus = rewards.policy_loss(old + ratio.log(), old, t(-2.0), weight, n_rows=4, scale=10)
    assert minus.item() == pytest.approx(2 * (1.0 + 1.5 + 2 * 0.8) / 40)
    far = rewards.policy_loss(old + math.log(9), old, t(-2.0), torch.ones(1, 4), n_rows=1, scale=1)
    assert far.item() == pytest.approx(4 * 2 * 3)  # dual clip


def test_policy_loss_twin():
    generator = torch.Generator().manual_seed(3)
    logp, old = (-3 * torch.rand(4, 6, generator=generator, dtype=torch.float64) for _ in range(2))
    advantage = torch.randn(4, generator=generator, dtype=torch.float64)
    weight = torch.rand(4, 6, generator=generator, dtype=torch.float64).round(decimals=1)
    total = 0.0
    for row, col in itertools.product(range(4), range(6)):
        r, a = math.exp((logp - old)[row, col].item()), advantage[row].item()
        j = min(r * a, min(max(r, 0.8), 1.28) * a)
        total += weight[row, col].item() * (max(j, 3 * a) if a < 0 else j)
    loss = rewards.policy_loss(logp, old, advantage, weight, n_rows=7)
    assert loss.item() == pytest.approx(-total / 7000)


def test_policy_gradient_at_ratio_one_and_no_gradient_where_nothing_counts():
    logp = t(-1.0, -2.0, -3.0).reshape(1, 3).requires_grad_()
    old = torch.cat([logp.detach()[:, :2], t(math.nan).reshape(1, 1)], dim=1)  # masked places may hold anything
    loss = rewards.policy_loss(logp, old, t(-4.0), t(1.0, 0.5, 0.0).reshape(1, 3), n_rows=2, scale=1000)
    loss.backward()
    assert logp.grad.tolist()[0] == pytest.approx([4 / 2000, 2 / 2000, 0.0])  # -w A / (N scale)


def test_rejected_rows_are_zeros_and_nothing_is_normalised_again():
    logp, old = torch.full((3, 2), -1.0), torch.full((3, 2), -1.0)
    advantage, weight = torch.tensor([1.0, 2.0, 4.0]), torch.ones(3, 2)
    kept = weight.clone()
    kept[2] = 0
    both = rewards.policy_loss(logp[:2], old[:2], advantage[:2], weight[:2], n_rows=3)
    assert rewards.policy_loss(logp, old, advantage, kept, n_rows=3).item() == both.item() == pytest.approx(-6 / 3000)
