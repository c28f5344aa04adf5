"""The look at this host, in the background: pages draw at once and fill in what it offers
when that is known.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future, wait

from gan_runtime.hardware import hosts
from gan_runtime.hardware.hosts import Host


class HostLook:
    """Asks `hosts.probe` once and keeps its answer, a refusal too; every method may be called
    from any thread.
    """

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        self._answer: Future[Host] | None = None

    def begin(self) -> None:
        """Starts looking, without waiting, unless that was done before."""
        self._begun()

    def again(self) -> None:
        """Forgets the answer and starts looking anew."""
        with self._one_at_a_time:
            self._answer = None
        self.begin()

    def answer(self) -> Host:
        """What this host offers, as soon as it is known; the look takes some seconds.

        Raises AcceleratorError.
        """
        return self._begun().result()

    def has_ended(self, patience_s: float) -> bool:
        """Whether `answer` has something to say at once; waits for that at most `patience_s`
        seconds.
        """
        return bool(wait([self._begun()], patience_s).done)

    def _begun(self) -> Future[Host]:
        with self._one_at_a_time:
            if self._answer is None:
                self._answer = Future()
                # A daemon, as a hung accelerator must not keep the dashboard from ending.
                threading.Thread(
                    target=_look, args=(self._answer,), name="host-look", daemon=True
                ).start()
            return self._answer


def _look(answer: Future[Host]) -> None:
    try:
        answer.set_result(hosts.probe())
    except BaseException as error:  # whoever asks for the answer gets it
        answer.set_exception(error)
