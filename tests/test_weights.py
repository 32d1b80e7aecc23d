"""Moments in host memory against torch's AdamW; the sampler's copy; what ranks gather."""

import contextlib
import os
import socket

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from test_packed import small, some_ids
from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict, set_optimizer_state_dict
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode

import weights
from engine import joined
from weights import OffloadedAdamW, drop, refresh, rollout_copy, shard

HOW = {"lr": 1e-2, "betas": (0.9, 0.999), "weight_decay": 0.1}


def some_parameters(device="cpu"):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator).to(device).requires_grad_() for shape in ((3, 5), (1,), (40, 7))]


def some_gradients(parameters, step):
    generator = torch.Generator().manual_seed(step)
    for p in parameters:
        p.grad = (torch.randn(p.shape, generator=generator) * 10.0 ** (step - 3)).to(p.device)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_offloaded_adamw_is_adamw(monkeypatch, device):
    monkeypatch.setattr(weights, "PIECE", 32)  # 15, 1 and 280 elements: pieces that are full, short and alone
    ours, theirs = some_parameters(device), some_parameters(device)
    optimizers = OffloadedAdamW(ours, **HOW), torch.optim.AdamW(theirs, **HOW)
    for step in range(6):
        for parameters, optimizer in zip((ours, theirs), optimizers, strict=True):
            some_gradients(parameters, step)
            if step == 2:
                parameters[1].grad = None  # a parameter that sits out a step
            optimizer.step()
        for a, b in zip(ours, theirs, strict=True):
            torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-6)
    assert optimizers[0].state[ours[1]]["step"] == 5
    assert all(x.device.type == "cpu" for state in optimizers[0].state.values() for x in state.values())


def test_a_first_moment_in_bf16_moves_weights_nearly_alike():
    ours, theirs, start = some_parameters(), some_parameters(), some_parameters()
    optimizers = OffloadedAdamW(ours, torch.bfloat16, **HOW), torch.optim.AdamW(theirs, **HOW)
    for step in range(20):
        for parameters, optimizer in zip((ours, theirs), optimizers, strict=True):
            some_gradients(parameters, step % 3)
            optimizer.step()
    moved, wanted = (torch.cat([(p - s).flatten() for p, s in zip(x, start)]) for x in (ours, theirs))
    assert 1e-6 < (moved - wanted).norm() / wanted.norm() < 5e-3
    assert optimizers[0].state[ours[0]]["exp_avg"].dtype == torch.bfloat16


def test_moments_share_no_page():
    """Small ones too, or CUDA would refuse to pin a page twice."""
    owners = {}
    held = [weights.pages(n) for n in [4, 512, 20_480, 4096, 0, 1_000_000] * 20]
    for i, memory in enumerate(held):
        assert memory.data_ptr() % weights.PAGESIZE == 0 and not memory.any()
        first, last = memory.data_ptr() // weights.PAGESIZE, -(-(memory.data_ptr() + len(memory)) // weights.PAGESIZE)
        assert all(owners.setdefault(page, i) == i for page in range(first, last))
        memory += 1  # it is all there


@pytest.mark.parametrize("side_by_side", [False, True])
def test_the_copy_is_dropped_and_written_anew(side_by_side):
    policy = small()
    sampler = rollout_copy(policy, torch.bfloat16)
    for layer in sampler.model.layers if side_by_side else ():
        joined(layer.self_attn.q_proj, layer.self_attn.k_proj, layer.self_attn.v_proj)
    assert sampler.model.rotary_emb.inv_freq.dtype == torch.float32  # angles stay exact
    assert not any(p.requires_grad for p in sampler.parameters()) and policy.lm_head.weight.requires_grad
    with torch.no_grad():
        for p in policy.parameters():
            p.mul_(1.5)
    drop(sampler)
    assert sum(p.untyped_storage().nbytes() for p in sampler.parameters()) == 0
    refresh(sampler, policy)
    for p, q in zip(sampler.parameters(), policy.parameters(), strict=True):
        assert torch.equal(p, q.bfloat16())
    logits = [m(some_ids([6])[None]).logits.float() for m in (sampler, policy)]
    assert (logits[0] - logits[1]).abs().max() < 0.05


class Gathered(TorchDispatchMode):
    """What collectives give: (elements, dtype) of each."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        if "all_gather" in str(function) or "broadcast" in str(function):
            self.seen.append((out.numel(), out.dtype))
        return out


def worker(rank, port, folder):
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    try:
        policy = small(kv_heads=1)  # 16 rows of k and v: 301 and 160 divide unevenly, too
        sampler = rollout_copy(policy, torch.bfloat16)
        policy = shard(policy, torch.float32, gathered=True)
        optimizer = OffloadedAdamW(policy.parameters(), **HOW)

        whole = []  # of each pass and layer, whether its weights stayed gathered

        def update(policy, optimizer, step):
            lengths = [[9, 4], [7, 8]][rank]
            wanted = torch.ones(sum(lengths), dtype=torch.bool)
            logp, _ = policy.score(some_ids(lengths, seed=10 * step + rank), lengths, wanted)
            (logp.sum() * 2).backward()  # the ranks' gradients are averaged
            whole.append([not isinstance(layer.mlp.up_proj.weight, DTensor) for layer in policy.model.layers])
            weights.reshard(policy)
            assert all(isinstance(p, DTensor) for p in policy.parameters())
            optimizer.step()
            optimizer.zero_grad()

        update(policy, optimizer, 1)
        dcp.save({"optimizer": get_optimizer_state_dict(policy, optimizer)}, checkpoint_id=folder / "optimizer")
        again = small(kv_heads=1)
        refresh(again, policy)
        again = shard(again, torch.float32)
        resumed = OffloadedAdamW(again.parameters(), **HOW)
        state = {"optimizer": get_optimizer_state_dict(again, resumed)}
        dcp.load(state, checkpoint_id=folder / "optimizer")
        set_optimizer_state_dict(again, resumed, state["optimizer"])
        for p, q in ((policy, optimizer), (again, resumed)):
            update(p, q, 2)
        assert whole == [[True, True], [True, True], [False, False]]
        with torch.no_grad():  # leaves all layers gathered
            policy.score(some_ids([5]), [5], torch.ones(5, dtype=torch.bool))
        with Gathered() as gathered:
            refresh(sampler, policy)
        state = {name: weights.full(p.detach()) for name, p in policy.named_parameters()}
        other = {name: weights.full(p.detach()) for name, p in again.named_parameters()}
        torch.save((state, other, dict(sampler.named_parameters()), gathered.seen), folder / f"rank {rank}")
    finally:
        dist.destroy_process_group()


def test_two_ranks_with_moments_on_the_host(tmp_path):
    """Two updates on two ranks equal AdamW's on one, also through a checkpoint, whether weights stay gathered or not; refresh gathers shards in half precision, a tensor at
    a time, and nothing in fp32."""
    with contextlib.closing(socket.socket()) as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.start_processes(worker, (port, tmp_path), nprocs=2, start_method="forkserver")  # see ranks.py
    policy = small(kv_heads=1)
    optimizer = torch.optim.AdamW(policy.parameters(), **HOW)
    for step in (1, 2):
        for rank, lengths in enumerate(([9, 4], [7, 8])):
            wanted = torch.ones(sum(lengths), dtype=torch.bool)
            ids = some_ids(lengths, seed=10 * step + rank)
            weights.score(policy, ids, lengths, wanted)[0].sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    largest = max(p.numel() for p in policy.parameters())
    for rank in (0, 1):
        state, again, sampler, gathered = torch.load(tmp_path / f"rank {rank}", weights_only=False)
        for name, p in policy.named_parameters():
            torch.testing.assert_close(state[name], p.detach(), atol=2e-5, rtol=0)
            assert torch.equal(again[name], state[name]), name
            assert torch.equal(sampler[name], state[name].bfloat16())
        assert len(gathered) == len(state)
        assert all(dtype == torch.bfloat16 and n <= largest + 2 * 64 for n, dtype in gathered), gathered


def test_muon_moves_a_matrix_along_its_singular_vectors():
    """Its singular values end near 1 (by hand: one step of the quintic takes 1 to 0.701, five take it to 0.6964); the steps are those of torch's Muon."""
    assert torch.allclose(weights.orthogonal(torch.tensor([[3.0]])), torch.tensor([[0.6964]]), atol=1e-4)
    left = torch.linalg.qr(torch.randn(60, 40))[0]
    right = torch.linalg.qr(torch.randn(40, 40))[0]
    values = torch.logspace(0, -2.4, 40)
    for x in (left * values @ right.T, (left * values @ right.T).T):
        found = (
            left.T @ (y := weights.orthogonal(x)) @ right
            if x.shape[0] == 60
            else right.T @ (y := weights.orthogonal(x)) @ left
        )
        assert y.shape == x.shape and (found - torch.diag(found.diag())).abs().max() < 1e-4
        assert 0.65 < found.diag().min() and found.diag().max() < 1.25
    mine = [torch.randn(20, 12, requires_grad=True), torch.randn(12, 12, requires_grad=True)]
    twins = [m.detach().clone().requires_grad_() for m in mine]
    ours = weights.Muon(mine, 0.01)
    theirs = torch.optim.Muon(twins, lr=0.01, weight_decay=0.01, adjust_lr_fn="match_rms_adamw")
    for _ in range(3):
        before = [m.detach().clone() for m in mine]
        for m, t in zip(mine, twins, strict=True):
            m.grad = torch.randn_like(m)
            t.grad = m.grad.clone()
        ours.step()
        theirs.step()
        for m, t, b in zip(mine, twins, before, strict=True):
            assert (m - t).norm() < 0.05 * (m - b).norm()  # theirs iterates in bfloat16
