"""The referee's side of the processes that run candidates: the zygote, its forks, and who may use the GPU when. Imports no torch."""

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time

from kernelbench import sandbox
from kernelbench.channel import BadMessage, Channel, Closed


class Stop(Exception):
    """The evaluation ends here with this status."""

    def __init__(self, status: str, message: str, hack: str | None = None):
        super().__init__(message)
        self.status, self.message, self.hack = status, message, hack


class Fault(Exception):
    """The gym's own failure (a task that cannot run, a dead zygote): a gym_error, never a reward."""


class Died(Fault):
    """The zygote is dead; a new one may fare better."""


class Zygote:
    """The process whose forks are the contestants."""

    BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from kernelbench.contestant import zygote; zygote(int(sys.argv[2]), sys.argv[3])"

    def __init__(self, device: str):
        self.device = device
        ours, theirs = socket.socketpair()
        root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        self.process = subprocess.Popen(
            [sys.executable, "-c", self.BOOT, root, str(theirs.fileno()), device],
            pass_fds=[theirs.fileno()],
            env=sandbox.environment(device),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        self.control, self.lock, self.exits, self.jobs, self.dead = Channel(ours), threading.Lock(), {}, 0, False

    def ready(self) -> "Zygote":
        """Itself, once it can fork: it imports for seconds. Fault where it did not start."""
        try:
            self.control.recv(timeout=300)
        except (Closed, TimeoutError) as error:
            raise Fault(f"the process that runs kernels did not start: {error}") from error
        threading.Thread(target=self._listen, daemon=True).start()
        return self

    def _listen(self):
        try:
            while True:
                message, _ = self.control.recv()
                with self.lock:
                    done = self.exits.get(message["exit"])
                if done:  # else it was given up: it took long to die
                    done.set_result(message["code"])
        except (OSError, BadMessage):
            with self.lock:
                self.dead = True
                for done in self.exits.values():
                    done.set_result(None)

    def fork(self, config: dict) -> "Process":
        ours, theirs = socket.socketpair()
        with theirs, self.lock:
            if self.dead:
                raise Died("the process that runs kernels died")
            self.jobs += 1
            job, self.exits[self.jobs] = self.jobs, Exit()
            try:
                self.control.send({"job": job, "config": config}, [theirs.fileno()])
            except OSError as error:
                self.dead = True  # `_listen` may not know yet, and the next attempt needs another one
                raise Died("the process that runs kernels died") from error
        return Process(self, job, Channel(ours))

    def kill(self, job: int):
        self._tell({"kill": job})

    def _tell(self, message: dict):
        with self.lock, contextlib.suppress(OSError):  # a dead zygote's forks are dead
            self.control.send(message)

    @contextlib.contextmanager
    def alone(self, job: int):
        """While inside, all contestants but this one stand still, and none is forked."""
        self._tell({"alone": job})
        try:
            yield
        finally:
            self._tell({"alone": None})

    def close(self):
        self.control.sock.close()  # the zygote ends what its contestants left, and itself
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(2)
        self.process.kill()
        self.process.wait()


class Exit:
    """The exit code of a contestant (minus the signal that killed it), once it is known; None if the zygote died."""

    def __init__(self):
        self.event, self.code = threading.Event(), None

    def set_result(self, code):
        self.code = code
        self.event.set()


class Process:
    """One contestant, as the referee sees it."""

    def __init__(self, zygote: Zygote, job: int, channel: Channel):
        self.zygote, self.job, self.channel, self.phase, self.dead = zygote, job, channel, "start", False

    def ask(self, message: dict, fds=(), timeout: float = 30.0) -> tuple[dict, list[int]]:
        """The reply. Stop when the candidate raised, died, hung or babbled."""
        self.tell(message, fds)
        return self.reply(timeout)

    def tell(self, message: dict, fds=()):
        self.phase = message["do"]
        try:
            self.channel.send(message, fds)
        except Closed:
            raise self._died() from None

    def answers(self, timeout: float) -> bool:
        """Whether something comes within so many seconds."""
        poll = select.poll()  # descriptors may be many
        poll.register(self.channel.sock, select.POLLIN)
        return bool(poll.poll(1e3 * timeout))

    def reply(self, timeout: float) -> tuple[dict, list[int]]:
        reply, got = self._reply(timeout)
        if self.phase not in ("call", "block"):  # no tensors belong to it
            for fd in got:
                os.close(fd)
            got = []
        return reply, got

    def more(self, timeout: float) -> dict:
        """The second message of a reply."""
        reply, got = self._reply(timeout)
        for fd in got:
            os.close(fd)
        return reply

    def _reply(self, timeout: float) -> tuple[dict, list[int]]:
        try:
            reply, got = self.channel.recv(timeout)
        except TimeoutError:
            self.dead = True  # to us: whatever it says now answers an old question
            raise Stop(
                "timeout", f"No answer within {timeout:.0f} s in the phase '{self.phase}'; the process was killed."
            ) from None
        except Closed:
            raise self._died() from None
        except BadMessage as error:
            raise Stop(
                "hack", f"The candidate's process sent something that is no reply: {error}", "protocol"
            ) from None
        if "error" in reply or "tampered" in reply:
            for fd in got:
                os.close(fd)
            if "tampered" in reply:
                text = f"The code changes {str(reply['tampered'])[:200]}, which is not its own."
                raise Stop("hack", text, "tampering")
            raise Stop(*self._failed(reply["error"]))
        return reply, got

    def first(self, timeout: float) -> dict:
        """The layers of its sandbox."""
        try:
            first = self.channel.recv(timeout)[0]
        except (Closed, TimeoutError, BadMessage) as error:
            first = {"failed": repr(error)}
        if "sandbox" not in first:
            raise Died(f"a process for the kernel could not be started: {first.get('failed')}")
        return first["sandbox"]

    def _died(self) -> Exception:
        self.dead = True
        done = self.zygote.exits[self.job]
        done.event.wait(5)
        if self.zygote.dead:
            return Died("the process that runs kernels died")
        if done.code is None:
            return Stop("runtime_error", f"The process stopped answering in the phase '{self.phase}'.")
        how = f"killed by {signal.Signals(-done.code).name}" if done.code < 0 else f"exit code {done.code}"
        return Stop("runtime_error", f"The process crashed ({how}) in the phase '{self.phase}'.")

    def _failed(self, error) -> tuple[str, str]:
        error = error if isinstance(error, dict) else {}
        text = str(error.get("text", "?"))[:4000]
        if error.get("unsupported") and self.zygote.device == "cpu":
            return "unsupported", text
        return "compile_error" if error.get("compile") or self.phase == "load" else "runtime_error", text

    def close(self) -> bool:
        """Kill it; whether it is known to be dead."""
        self.channel.sock.close()
        done = self.zygote.exits[self.job]
        if not done.event.is_set():
            self.zygote.kill(self.job)
            done.event.wait(10)
        with self.zygote.lock:
            self.zygote.exits.pop(self.job, None)
        return done.event.is_set()


class Turnstile:
    """Many at once may use the GPU, or one alone for timing. For each change all must leave, so those who want to be alone gather for
    `patience` seconds while the others still come in; then nobody comes in until each of them was alone."""

    def __init__(self, patience: float = 0.25):
        self.condition, self.inside, self.alone, self.waiting = threading.Condition(), 0, False, 0
        self.patience, self.since = patience, 0.0  # when the first of those who wait came
        self.thread = threading.local()

    @contextlib.contextmanager
    def shared(self):
        if getattr(self.thread, "inside", False):
            yield
            return
        with self.condition:
            self.condition.wait_for(lambda: not self.alone and not (self.waiting and self._gathered()))
            self.inside += 1
        self.thread.inside = True
        try:
            yield
        finally:
            self.thread.inside = False
            with self.condition:
                self.inside -= 1
                self.condition.notify_all()

    def _gathered(self) -> bool:
        return time.monotonic() - self.since >= self.patience

    @contextlib.contextmanager
    def exclusive(self):
        with self.condition:
            self.since = self.since if self.waiting else time.monotonic()
            self.waiting += 1
            self.condition.wait_for(lambda: not self.alone and not self.inside)
            self.waiting, self.alone = self.waiting - 1, True
        self.thread.inside = True
        try:
            yield
        finally:
            self.thread.inside = False
            with self.condition:
                self.alone = False
                self.condition.notify_all()
