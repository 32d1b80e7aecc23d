"""Supervised fine-tuning: the cold start of the tiny policy, and any model on collected trajectories.

    python sft.py                                                  the tiny policy, on toy solutions (a few minutes, one core)
    python sft.py --model qwen-8b --data runs/rollouts.jsonl       any model, on JSONL from rollout.py
    torchrun --nproc-per-node 8 sft.py --model qwen-8b --data ...  the same, sharded over GPUs

Rows are whole conversations: task, answer, verdict, next answer, ... Only the answers (with their end token) are in the loss; each
batch is normalised by its number of such tokens, over all ranks.

The cold start leaves room for RL on purpose: it learns to copy from right solutions first, then from a mix in which many answers
are broken or lazy. It serves toy tasks of both sizes (CPU and GPU).

Departures from the paper: its cold-start data are 8,920 five-turn conversations of GPT-5; ours are made by kernelbench/toy.py.
Not covered: packing of rows, several epochs with a schedule per epoch.
"""
