import gc
import json
import os
import socket
import struct
import threading
import types

import pytest
import torch

from kernelbench.channel import MAX_MESSAGE, BadMessage, Channel, Closed
from kernelbench.wire import (
    Opened,
    Shared,
    dense,
    flatten,
    gate,
    references,
    unflatten,
    view,
)


def descriptors():
    return sorted(os.listdir("/proc/self/fd"))


@pytest.fixture
def pair():
    gc.collect()  # what other tests left open is closed now and not while we count
    ours, theirs = socket.socketpair()
    before = descriptors()
    with ours, theirs:
        yield Channel(ours), theirs
        assert descriptors() == before, "descriptors leaked"


def frame(data: bytes, fds: int = 0) -> bytes:
    return struct.pack("<IB", len(data), fds) + data


# Messages


def test_messages_and_descriptors_arrive_in_order(pair):
    ours, theirs = pair
    peer = Channel(theirs)
    read, write = os.pipe()
    peer.send({"first": [1, 2.5, None, "é"]}, [write])
    peer.send({"second": "x" * 100_000})
    message, (fd,) = ours.recv(timeout=10)
    os.write(fd, b"hello")
    assert message == {"first": [1, 2.5, None, "é"]} and os.read(read, 5) == b"hello"
    assert ours.recv(timeout=10) == ({"second": "x" * 100_000}, [])
    for each in (fd, read, write):
        os.close(each)


def test_a_message_in_pieces(pair):
    ours, theirs = pair

    def drip():
        for byte in frame(b'{"a": 1}'):
            theirs.send(bytes([byte]))

    thread = threading.Thread(target=drip)
    thread.start()
    assert ours.recv(timeout=10) == ({"a": 1}, [])
    thread.join()


@pytest.mark.parametrize(
    "data, words",
    [
        (struct.pack("<IB", MAX_MESSAGE + 1, 0), "descriptors"),
        (b"\xff" * 5, "descriptors"),
        (frame(b"{}", fds=1), "0 descriptors of 1"),
        (frame(b"{'a': 1}"), "Expecting"),
        (frame(b""), "Expecting"),
        (frame(b"\xff\xfe\x80"), "decode"),
        (frame(b'{"a": 1} x'), "Extra data"),
        (frame(b"[1]"), "JSON object"),
        (frame(b"3"), "JSON object"),
        (frame(b"null"), "JSON object"),
        (frame(b'{"a": ' + b"9" * 10_000 + b"}"), "digits"),
        (frame(b"[" * 100_000), "recursion"),
        (frame(b'{"a":' * 100_000), "recursion"),
    ],
)
def test_what_is_no_message(pair, data, words):
    ours, theirs = pair
    threading.Thread(target=theirs.sendall, args=(data,)).start()
    with pytest.raises(BadMessage, match=words):
        ours.recv(timeout=10)


@pytest.mark.parametrize("data", [b"", b"\x01", frame(b"{}")[:5], frame(b'{"a": 1}')[:-1]])
@pytest.mark.parametrize("fds", [0, 1])
def test_a_peer_that_leaves_in_mid_message(pair, data, fds):
    ours, theirs = pair
    if data and fds:
        socket.send_fds(theirs, [data[:4] + b"\x01" + data[5:] if len(data) > 4 else data], [0])
    else:
        theirs.sendall(data)
    theirs.shutdown(socket.SHUT_RDWR)
    with pytest.raises(Closed):
        ours.recv(timeout=10)


@pytest.mark.parametrize("sent, said", [(1, 0), (2, 1), (1, 2), (65, 65), (200, 200)])
def test_descriptors_of_another_number_are_refused_and_closed(pair, sent, said):
    ours, theirs = pair
    socket.send_fds(theirs, [frame(b"{}", fds=said)], [0] * sent)
    with pytest.raises(BadMessage, match="descriptors"):
        ours.recv(timeout=10)


def test_descriptors_of_what_is_no_object_are_closed(pair):
    ours, theirs = pair
    socket.send_fds(theirs, [frame(b"[]", fds=1)], [0])
    with pytest.raises(BadMessage, match="JSON object"):
        ours.recv(timeout=10)


def test_silence_and_dripping_both_end_at_the_deadline(pair):
    """A peer that sends a byte now and then could hold a reader for 8 million times the time-out."""
    ours, theirs = pair
    with pytest.raises(TimeoutError):
        ours.recv(timeout=0.05)
    over = threading.Event()

    def drip():
        socket.send_fds(theirs, [struct.pack("<IB", MAX_MESSAGE, 1)], [0])
        while not over.wait(0.02):
            theirs.send(b" ")

    thread = threading.Thread(target=drip)
    thread.start()
    with pytest.raises(TimeoutError):
        ours.recv(timeout=0.3)
    over.set()
    thread.join()


def test_sending_to_nobody(pair):
    ours, theirs = pair
    theirs.shutdown(socket.SHUT_RDWR)
    with pytest.raises(Closed):
        ours.send({"a": "x" * 1_000_000})


# Tensors

ZOO = {
    str(dtype)[6:]: torch.tensor([[0, 1, 2], [3, 100, 5]]).to(dtype)
    for dtype in (
        *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64),
        *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
    )
} | {
    "0-dim": torch.tensor(3.5),
    "0-dim bool": torch.tensor(True),
    "empty": torch.empty(0),
    "empty rows": torch.empty(3, 0, 2, dtype=torch.int32),
    "channels last": torch.arange(120.0).reshape(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "transposed": torch.arange(6.0).reshape(2, 3).T,
    "every second": torch.arange(10.0)[::2],
    "expanded": torch.tensor([[1.0], [2.0]]).expand(2, 3),
    "a slice": torch.arange(100.0)[37:41],
    "not a number": torch.tensor([float("nan"), float("inf")]),
    "requires grad": torch.nn.Parameter(torch.ones(2)),
}


@pytest.mark.parametrize("limit", [None, 1 << 20])
def test_tensors_cross_unchanged(limit):
    """Through JSON, with their strides where they fill their memory."""
    shared, before = Shared(list(ZOO.values()), "cpu"), descriptors()
    got = Opened("cpu").tensors(json.loads(json.dumps(shared.spec)), [os.dup(shared.fds[0])], limit)
    assert limit is None or descriptors() == before  # a mapping holds on to its own
    for (name, sent), arrived in zip(ZOO.items(), got, strict=True):
        assert arrived.dtype == sent.dtype and arrived.shape == sent.shape, name
        assert torch.equal(arrived.nan_to_num(7), sent.nan_to_num(7)), name
        if dense(sent):
            assert [s for s, n in zip(arrived.stride(), sent.shape) if n > 1] == [
                s for s, n in zip(sent.stride(), sent.shape) if n > 1
            ], name
    shared.close()
    assert shared.fds == []
    assert torch.equal(got[1], ZOO["float32"])  # closed for new readers only


def test_memory_is_shared_without_a_limit_and_private_with_one():
    shared = Shared([torch.zeros(3)], "cpu")
    (seen,) = Opened("cpu").tensors(shared.spec, [os.dup(shared.fds[0])])
    (copy,) = Opened("cpu").tensors(shared.spec, [os.dup(shared.fds[0])], 1 << 20)
    seen[1] = 5.0
    assert shared.tensors[0].tolist() == [0, 5, 0] and copy.tolist() == [0, 0, 0]
    shared.close()


def test_memory_is_used_again_for_other_tensors():
    shared = Shared([torch.zeros(3)], "cpu")
    (seen,) = Opened("cpu").tensors(shared.spec, [os.dup(shared.fds[0])])
    shared.fill([torch.tensor([1.0, 2.0, 3.0])])
    assert seen.tolist() == [1, 2, 3]
    shared.fill([torch.tensor([7, 8], dtype=torch.int32)])
    assert seen.view(torch.int32).tolist()[:2] == [7, 8] and shared.tensors[0].dtype == torch.int32
    fds, large = list(shared.fds), torch.arange(1000.0)
    shared.fill([large, torch.ones(2)])
    (first, second) = Opened("cpu").tensors(shared.spec, [os.dup(shared.fds[0])])
    assert torch.equal(first, large) and second.tolist() == [1, 1] and len(shared.fds) == len(fds)
    assert seen.view(torch.int32).tolist()[:2] == [7, 8]  # whoever holds the old memory keeps it
    shared.close()


@pytest.mark.parametrize("rows, large", [(2000, 6), (1 << 19, 1001), (1 << 19, 1002)])
def test_places_on_a_gpu_by_hand(monkeypatch, rows, large):
    """Multiples of 512 bytes in a multiple of 2 MiB, whatever the tensors take; behind them all, alone, the two numbers of the gate at 0."""

    def allocate(shared, nbytes):
        shared.memory = torch.empty(nbytes, dtype=torch.uint8)
        shared.gate.zero_()

    monkeypatch.setattr(Shared, "_allocate", allocate)
    meta = lambda *shape: torch.empty(*shape, device="meta")  # noqa: E731
    shared = Shared([], "cuda")
    assert shared.memory.numel() == 2 << 20
    shared.lay([meta(3), meta(128), meta(129), meta(5), meta(rows, large)])
    assert [spec["offset"] for spec in shared.spec["tensors"]] == [0, 512, 1024, 2048, 2560]
    (place,) = gate(shared.spec)["tensors"]
    assert 2560 + 4 * rows * large <= place["offset"] == shared.memory.numel() - 512
    assert shared.memory.numel() % (2 << 20) == 0 and shared.memory.numel() - 4 * rows * large < 5 << 20
    assert view(shared.memory, place).data_ptr() == shared.gate.data_ptr() and shared.gate.tolist() == [0, 0]
    if rows < 1 << 19:
        for tensor in shared.tensors:
            tensor.fill_(7)
        assert shared.gate.tolist() == [0, 0]


def test_the_other_side_cannot_pull_the_memory_away():
    shared = Shared([torch.ones(3)], "cpu")
    with pytest.raises(PermissionError):
        os.ftruncate(shared.fds[0], 0)
    assert shared.tensors[0].tolist() == [1, 1, 1]
    shared.close()


def test_dense():
    assert (
        dense(torch.ones(2, 3))
        and dense(torch.ones(2, 3).T)
        and dense(torch.ones(1, 5)[:, 1:])
        and dense(ZOO["channels last"])
    )
    assert (
        not dense(torch.ones(2, 3)[:, 1:])
        and not dense(torch.ones(2, 1).expand(2, 3))
        and not dense(torch.ones(9)[::3])
    )


GOOD = {"dtype": "float32", "shape": [2, 3], "stride": [3, 1], "offset": 8}


def test_a_view_by_hand():
    memory = torch.zeros(32, dtype=torch.uint8)
    view(memory, GOOD)[1, 2] = 1.0  # the float at byte 8 + 4 (3 + 2), the last one inside
    assert memory.view(torch.float32).tolist() == [0, 0, 0, 0, 0, 0, 0, 1]
    assert view(memory, GOOD | {"shape": [10**6, 2], "stride": [0, 1]}).shape == (
        10**6,
        2,
    )  # no more memory than two values


@pytest.mark.parametrize(
    "change",
    [
        {"offset": 12},
        {"offset": 9},
        {"offset": -4},
        {"offset": 10**30},
        {"offset": True},
        {"offset": 8.0},
        {"offset": None},
        {"shape": [3, 3]},
        {"shape": [2, 4]},
        {"shape": [2, -3]},
        {"shape": [6]},
        {"shape": [2, 3, 1]},
        {"shape": [10**30, 1]},
        {"shape": [2**62, 4], "stride": [0, 0]},
        {"shape": [0, 10**30]},
        {"shape": [1, 3], "stride": [10**30, 1]},
        {"shape": ["2", 3]},
        {"shape": "23"},
        {"shape": None},
        {"shape": {"2": 3}},
        {"stride": [4, 1]},
        {"stride": [3, 2]},
        {"stride": [-3, 1]},
        {"stride": [10**30, 1]},
        {"dtype": "float64"},
        {"dtype": "nn"},
        {"dtype": "no_such"},
        {"dtype": 3},
        {"dtype": None},
        {"dtype": "float32.__class__"},
    ],
)
def test_views_outside_their_memory_are_refused(change):
    fd = os.memfd_create("tensors")
    os.ftruncate(fd, 32)
    spec = {"tensors": [GOOD | change]}
    for limit in (None, 1 << 20):
        with pytest.raises(BadMessage):
            Opened("cpu").tensors(spec, [os.dup(fd)], limit)
    os.close(fd)


@pytest.mark.parametrize(
    "spec", [None, 3, {}, {"tensors": None}, {"tensors": 3}, {"tensors": [None]}, {"tensors": [{}]}, {"tensors": [[1]]}]
)
def test_specs_of_no_form_are_refused_and_their_descriptors_closed(spec):
    before = descriptors()
    fds = [os.memfd_create("x"), os.memfd_create("y")]
    os.ftruncate(fds[0], 64)
    with pytest.raises(BadMessage):
        Opened("cpu").tensors(spec, fds, 1 << 20)
    assert descriptors() == before


def test_memory_that_is_none_too_large_or_shrinks(monkeypatch):
    spec = {"tensors": [{"dtype": "float32", "shape": [4], "stride": [1], "offset": 0}]}

    def refused(fds, words, limit=1000):
        with pytest.raises(BadMessage, match=words):
            Opened("cpu").tensors(spec, fds, limit)

    def memory(size):
        fd = os.memfd_create("x")
        os.ftruncate(fd, size)
        return fd

    refused([], "no tensors")
    refused([os.pipe()[0]], ".")
    refused([os.open("/", os.O_RDONLY)], ".", 1 << 20)
    refused([os.open("/dev/zero", os.O_RDONLY)], ".")
    refused([memory(0)], ".")
    refused([memory(0)], ".", None)
    refused([memory(8)], "outside its memory")
    refused([memory(1001)], "1001 bytes of outputs where 1000 were the most")
    refused([memory(1 << 50)], "outputs where 1000")
    monkeypatch.setattr(os, "fstat", lambda fd: types.SimpleNamespace(st_size=64))  # what it was a moment ago
    refused([memory(32)], "shrank")


# Trees


def test_trees_of_outputs():
    a, b = torch.zeros(1), torch.ones(2)
    value = (a, [b, None, 3, 2.5, "x", True], {"k": (a,)})
    tensors = []
    tree = json.loads(json.dumps(flatten(value, tensors)))
    assert tree == [{"t": 0}, [{"t": 1}, None, 3, 2.5, "x", True], {"d": [["k", [{"t": 2}]]]}]
    assert [t is u.detach() or torch.equal(t, u) for t, u in zip(tensors, (a, b, a), strict=True)] == [True] * 3
    assert unflatten(tree, [10, 11, 12]) == [10, [11, None, 3, 2.5, "x", True], {"k": [12]}]
    assert references(tree) == {0, 1, 2} and references([tree[1], 5]) == {1} and references(None) == set()


class Disguised(torch.Tensor):
    """A subclass could answer anything when it is asked for its values."""


@pytest.mark.parametrize("value", [torch.ones(2).as_subclass(Disguised), object(), {1, 2}, 3j, b"x", torch.float32])
def test_only_plain_tensors_and_json_cross(value):
    with pytest.raises(TypeError, match="expected, not"):
        flatten([value], [])


@pytest.mark.parametrize(
    "tree", [{}, {"t": 2}, {"t": -1}, {"t": True}, {"t": "0"}, {"t": 0.0}, {"t": None}, {"x": 0}, [{"t": 0}, {"t": 9}]]
)
def test_references_to_no_tensor(tree):
    with pytest.raises(BadMessage):
        unflatten(tree, [torch.ones(1), torch.ones(1)])
