"""Trajectories -> tensors, log-probs of the sampled tokens, gradients of the whole batch's loss.

Shapes: P prompts of this process, G samples, K turns, B rows (one per turn: P * G * K, or some of them), T sampled tokens of
the longest answer. Answers are aligned at their first token; masks come from lengths, never from pad ids.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributed import ReduceOp

from model import token_logprobs
from processes import WORLD, all_reduce
from rewards import policy_loss
from rollout import Trajectory, Turn


@dataclass
class Outcomes:
    """What the verdicts say, as (P, G, K) tensors, and the turns behind them."""

    correct: Tensor
    speedup: Tensor
    coverage: Tensor
    coverage_raw: Tensor
    valid: Tensor
    turns: list[Turn | None]  # P * G * K; None where the rollout ended before
    status: list[str]  # P * G * K


def outcomes(groups: Sequence[Sequence[Trajectory]], n_samples: int, n_turns: int) -> Outcomes:
    turns = [t.turns[k] if k < len(t.turns) else None for group in groups for t in group for k in range(n_turns)]
    verdicts = [turn.verdict if turn else None for turn in turns]
    shape = (len(groups), n_samples, n_turns)

    def grid(values: list, dtype=torch.float32) -> Tensor:
        return torch.tensor(values, dtype=dtype).reshape(shape)

    return Outcomes(
        correct=grid([bool(v and v.correct) for v in verdicts], torch.bool),
        speedup=grid([v.speedup if v else 0.0 for v in verdicts]),
        coverage=grid([v.coverage if v else 0.0 for v in verdicts]),
        coverage_raw=grid([v.coverage_raw if v else 0.0 for v in verdicts]),
        valid=grid([bool(turn and turn.valid) for turn in turns], torch.bool),
        turns=turns,
        status=[
            v.status if v else ("out_of_context" if turn else "none") for v, turn in zip(verdicts, turns, strict=True)
        ],
    )


def sampled_tokens(turns: Sequence[Turn | None]) -> tuple[Tensor, Tensor]:
    """The sampler's log-probs (B, T) and the mask of sampled tokens (B, T), from lengths; T is the longest answer."""
    width = max((len(turn.ids) for turn in turns if turn), default=0) or 1
    logp, mask = torch.zeros(len(turns), width), torch.zeros(len(turns), width, dtype=torch.bool)
    for row, turn in enumerate(turns):
        if turn and turn.ids:
            assert len(turn.ids) == len(turn.logp), f"{len(turn.ids)} tokens, {len(turn.logp)} log-probs"
            logp[row, : len(turn.ids)] = torch.tensor(turn.logp)
            mask[row, : len(turn.ids)] = True
    return logp, mask


def answer_logprobs(policy, turns: Sequence[Turn], width: int, temperature: float) -> Tensor:
    """log π of each sampled token, (B, T) with T = width, 0 beyond each answer; differentiable."""
    device = next(policy.parameters()).device
    length = max(len(turn.prompt_ids) + len(turn.ids) for turn in turns)
    ids = torch.zeros(len(turns), length, dtype=torch.long)
    mask, wanted = torch.zeros_like(ids), torch.zeros_like(ids)  # right padding
    for row, turn in enumerate(turns):
        start, end = len(turn.prompt_ids), len(turn.prompt_ids) + len(turn.ids)
        ids[row, :end] = torch.tensor(turn.prompt_ids + turn.ids)
        mask[row, :end] = 1
        wanted[row, start:end] = 1
    logp = token_logprobs(policy, ids.to(device), mask.to(device), temperature, wanted.to(device))  # (B, length)
    at = torch.tensor([len(turn.prompt_ids) for turn in turns])[:, None] + torch.arange(width)  # (B, T)
    ends = torch.tensor([len(turn.prompt_ids) + len(turn.ids) for turn in turns])[:, None]
    picked = logp.gather(1, at.clamp(max=length - 1).to(device))
    return torch.where((at < ends).to(device), picked, 0.0)


def micro_batches(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Indices in chunks of `size`, long rows together; as many chunks on each process (a sharded model's forward is joint)."""
    order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
    chunks = [order[i : i + size] for i in range(0, len(order), size)]
    most = int(all_reduce([len(chunks)], ReduceOp.MAX)[0])
    return chunks + [[]] * (most - len(chunks))


IDLE = Turn(prompt_ids=[0], ids=[0], logp=[0.0], text="", code=None, verdict=None, valid=False)  # fills an empty chunk


@torch.no_grad()
def recompute_logprobs(
    policy, turns: Sequence[Turn | None], width: int, temperature: float, micro_batch: int
) -> Tensor:
    """log π_old (B, T): the trainer's own opinion of every sampled token, before the update."""
    logp = torch.zeros(len(turns), width)
    rows = [row for row, turn in enumerate(turns) if turn and turn.ids]
    for chunk in micro_batches([len(turns[row].prompt_ids) + len(turns[row].ids) for row in rows], micro_batch):
        scores = answer_logprobs(policy, [turns[rows[i]] for i in chunk] or [IDLE], width, temperature)
        if chunk:
            logp[[rows[i] for i in chunk]] = scores.float().cpu()
    return logp


def accumulate_gradients(
    policy,
    turns: Sequence[Turn],
    logp_old: Tensor,
    advantage: Tensor,
    weight: Tensor,
    n_rows: float,
    micro_batch: int,
    temperature: float = 1.0,
    **clips: float,
) -> float:
    """Adds the gradient of the whole batch's loss to the policy; returns this process's share of the loss.

    turns (B rows of this process), logp_old and weight (B, T), advantage (B,); n_rows counts over all processes.
    The sharded backward averages over the processes, the loss is a sum: hence the factor WORLD.
    """
    total = 0.0
    for chunk in micro_batches([len(turn.prompt_ids) + len(turn.ids) for turn in turns], micro_batch):
        logp = answer_logprobs(policy, [turns[i] for i in chunk] or [IDLE], weight.shape[1], temperature)
        old, a, w = (
            x[chunk].to(logp.device) if chunk else torch.zeros_like(logp) for x in (logp_old, advantage, weight)
        )
        loss = policy_loss(logp, old, a if chunk else a[:, 0], w, n_rows, **clips)
        (loss * WORLD).backward()
        total += loss.item()
    return total
