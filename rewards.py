"""The mathematics of the method: verdicts -> reward -> return -> advantage -> what to keep -> loss.

Pure functions of tensors and scalars; imports torch only, so that any of them can be copied out on its own.
"Eq." refers to the paper (arXiv 2602.05885); formulas without a number follow its text and released code. What departs
from them is said where it is computed.

Shapes: P prompts, G samples per prompt (a group), K turns, T sampled tokens of a turn, B rows (a row is one turn).
A (P, G, K) mask `valid` says which turns have a known outcome. `valid` enters the baselines; a `keep` mask only
selects rows for the loss.

    python -m doctest rewards.py
"""

import torch
from torch import Tensor

# --- Reward and return -------------------------------------------------------------------------------------------


def turn_reward(
    correct: Tensor,
    speedup: Tensor,
    coverage: Tensor,
    w_correct: float = 1.0,
    w_speed: float = 1.0,
    w_coverage: float = 1.0,
    clip: float = 3.0,
) -> Tensor:
    """Reward of a turn, Eq. 8 (PR: with the profiling term).

        R = C · (w_correct + w_speed · min(s, clip) + w_coverage · c)

    C: correct and not a hack, s = reference time / kernel time, c: the candidate's own share of the kernel time, in
    [0, 1]. Everything that is not correct earns 0. All (P, G, K).

    >>> turn_reward(torch.tensor([1, 1, 0]), torch.tensor([1.5, 9.0, 2.0]), torch.tensor([0.5, 1.0, 1.0])).tolist()
    [3.0, 5.0, 0.0]
    """
    reward = w_correct + w_speed * speedup.clamp(max=clip) + w_coverage * coverage
    return torch.where(correct.bool(), reward, torch.zeros_like(reward))


def returns_to_go(rewards: Tensor, gamma: float = 1.0) -> Tensor:
    """Return of each turn: what a rollout earns from that turn on, (P, G, K).

        G_t = Σ_{u ≥ t} γ^(u-t) R_u

    >>> returns_to_go(torch.tensor([[[0.0, 2.0, 4.0]]]), gamma=0.5).tolist()
    [[[2.0, 4.0, 4.0]]]
    """
    returns = rewards.clone()
    for t in range(rewards.shape[-1] - 2, -1, -1):
        returns[..., t] += gamma * returns[..., t + 1]
    return returns


# --- Advantage: baselines inside each (prompt, turn) group, dim 1 of (P, G, K) -------------------------------------


def leave_one_out(returns: Tensor, valid: Tensor) -> Tensor:
    """TRLOO (the paper's estimator): the baseline of a sample is the mean return of the OTHER valid samples of its prompt and turn.

        A_i = G_i - 1/(N-1) · Σ_{j ≠ i} G_j        N = valid samples of the group

    A sample that has no others (N = 1) has no baseline: A = 0 (the released code uses A = G). Invalid: A = 0.

    >>> leave_one_out(torch.tensor([[[1.0], [2.0], [6.0], [9.0]]]), torch.tensor([[[1], [1], [1], [0]]])).flatten()
    tensor([-3.0000, -1.5000,  4.5000,  0.0000])
    """
    valid = valid.bool()
    g = torch.where(valid, returns, torch.zeros_like(returns))
    n = valid.sum(dim=1, keepdim=True)  # (P, 1, K)
    others = (g.sum(dim=1, keepdim=True) - g) / (n - 1).clamp(min=1)
    return torch.where(valid & (n > 1), g - others, torch.zeros_like(g))


def grpo(returns: Tensor, valid: Tensor) -> Tensor:
    """GRPO's advantage without the standard deviation: the mean includes the sample itself. For comparison only.

        A_i = G_i - 1/N · Σ_j G_j = (1 - 1/N) · TRLOO's A_i

    >>> grpo(torch.tensor([[[1.0], [2.0], [6.0]]]), torch.ones(1, 3, 1)).flatten().tolist()
    [-2.0, -1.0, 3.0]
    """
    valid = valid.bool()
    g = torch.where(valid, returns, torch.zeros_like(returns))
    mean = g.sum(dim=1, keepdim=True) / valid.sum(dim=1, keepdim=True).clamp(min=1)
    return torch.where(valid, g - mean, torch.zeros_like(g))


def equal_returns(returns: Tensor, valid: Tensor) -> Tensor:
    """(P, K): groups whose valid returns are all equal (or that have fewer than two). They carry no signal.

    >>> equal_returns(torch.tensor([[[0.0, 1.0], [0.0, 2.0], [5.0, 1.0]]]), torch.tensor([[[1, 1], [1, 1], [0, 1]]]))
    tensor([[ True, False]])
    """
    high = returns.masked_fill(~valid.bool(), -torch.inf).amax(dim=1)
    low = returns.masked_fill(~valid.bool(), torch.inf).amin(dim=1)
    return high <= low


# --- Which turns enter the loss ------------------------------------------------------------------------------------


def keep_by_coverage(
    correct: Tensor, coverage_raw: Tensor, threshold: float = 0.3, width: float = 0.1, *, uniform: Tensor
) -> Tensor:
    """PRS: a correct turn is kept with a probability that grows with its coverage; other turns always. (P, G, K)

        keep = u < p,   p = clip((c_raw - threshold) / width, 0, 1)  if C else 1,   u ~ U[0, 1) drawn by the caller

    width 0 is the hard test c_raw >= threshold; threshold -inf keeps everything.

    >>> u = torch.full((4,), 0.5)
    >>> keep_by_coverage(torch.tensor([1, 1, 1, 0]), torch.tensor([0.30, 0.34, 0.36, 0.0]), uniform=u).tolist()
    [False, False, True, True]
    """
    p = (coverage_raw - threshold) / width if width > 0 else (coverage_raw >= threshold).to(uniform.dtype)
    return (uniform < p.clamp(0, 1)) | ~correct.bool()


def keep_by_mismatch(
    logp_old: Tensor, logp_rollout: Tensor, mask: Tensor, band: float = 0.001, veto: float = 1e-4
) -> Tensor:
    """MRS, Eq. 6: drop rollouts (and turns) on which trainer and sampler disagree about what the sampler did.

        d = log π_old - log π_rollout per token
        a rollout is kept iff 1 - band ≤ exp(mean of d over all tokens of all its turns) ≤ 1 + band
        a turn is dropped if any of its tokens has exp(d) < veto

    logp_old (the trainer's own recomputation), logp_rollout, mask: (..., K, T); mask is True on the sampled tokens of
    valid turns. Returns (..., K). A rollout without tokens is kept. band inf and veto 0 keep everything.

    >>> old, rollout = torch.tensor([[[-1.0, -2.0], [-3.0, 0.0]]]), torch.tensor([[[-1.0, -2.0], [-3.0009, 0.0]]])
    >>> keep_by_mismatch(old, rollout, torch.tensor([[[1, 1], [1, 0]]])).tolist()
    [[True, True]]
    >>> keep_by_mismatch(old, rollout, torch.tensor([[[1, 1], [1, 0]]]), band=0.0002).tolist()
    [[False, False]]
    """
    mask = mask.bool()
    d = torch.where(mask, logp_old - logp_rollout, 0.0).double()
    mean = d.sum(dim=(-2, -1)) / mask.sum(dim=(-2, -1)).clamp(min=1)  # (...)
    inside = (mean.exp() >= 1 - band) & (mean.exp() <= 1 + band)
    vetoed = (d.exp() < veto).any(dim=-1)  # (..., K)
    return inside.unsqueeze(-1) & ~vetoed


def importance_weights(logp_old: Tensor, logp_rollout: Tensor, cap: float = 2.0) -> Tensor:
    """Truncated importance weight of each token, any shape: the sampler was not quite the policy that is trained.

        w = min(π_old / π_rollout, cap)

    >>> importance_weights(torch.tensor([0.5, 0.5]).log(), torch.tensor([0.4, 0.1]).log())
    tensor([1.2500, 2.0000])
    """
    return (logp_old - logp_rollout).clamp(-20, 20).exp().clamp(max=cap)


def mismatch(logp_old: Tensor, logp_rollout: Tensor) -> tuple[Tensor, Tensor]:
    """Per token, any shape: k1 and k3, whose means over the sampler's tokens estimate KL(π_rollout ‖ π_old) >= 0.

        d = log π_old - log π_rollout,    k1 = -d,    k3 = exp(d) - 1 - d

    >>> k1, k3 = mismatch(torch.tensor([0.2]).log(), torch.tensor([0.1]).log())
    >>> round(k1.item(), 4), round(k3.item(), 4)
    (-0.6931, 0.3069)
    """
    d = (logp_old - logp_rollout).clamp(-20, 20)
    return -d, d.exp() - 1 - d


# --- Loss ----------------------------------------------------------------------------------------------------------


def policy_loss(
    logp: Tensor,
    logp_old: Tensor,
    advantage: Tensor,
    weight: Tensor,
    n_rows: float,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
    dual_clip: float = 3.0,
    scale: float = 1000.0,
) -> Tensor:
    """The clipped surrogate, summed over the tokens of some rows; add up over micro-batches and ranks.

        r = π_θ / π_old
        J = min(r A, clip(r, 1 - clip_low, 1 + clip_high) A),   and J = max(J, dual_clip · A) where A < 0
        loss = - 1 / (N_rows · scale) · Σ_tokens weight · J

    logp (with gradient), logp_old, weight: (B, T); advantage: (B,). weight = importance weight on the sampled tokens of
    kept turns, 0 elsewhere. n_rows counts every valid turn of the whole batch, over all ranks and before rejection: a
    rejected row acts as a zero, nothing is normalised again.

    >>> row = torch.full((1, 2), -1.0)
    >>> round(policy_loss(row, row, torch.tensor([2.0]), torch.tensor([[1.0, 0.5]]), n_rows=1, scale=1).item(), 4)
    -3.0
    >>> round(policy_loss(row + 1, row, torch.tensor([2.0]), torch.tensor([[1.0, 0.5]]), n_rows=1, scale=1).item(), 4)
    -3.84
    """
    on = weight != 0
    ratio = torch.where(on, logp - logp_old, 0.0).clamp(-20, 20).exp()
    a = advantage.unsqueeze(-1)
    objective = torch.minimum(ratio * a, ratio.clamp(1 - clip_low, 1 + clip_high) * a)
    objective = torch.where(a < 0, torch.maximum(objective, dual_clip * a), objective)
    return -(torch.where(on, weight, 0.0) * objective).sum() / (n_rows * scale)
