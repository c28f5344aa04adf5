"""The one password of a demo's operators: only its argon2 hash is kept, and wrong tries are slowed
down.

Argon2id with the parameters of RFC 9106 for little memory (64 MiB, 3 passes); argon2 itself
compares in constant time.
"""

from __future__ import annotations

import ipaddress
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from argon2 import PasswordHasher, extract_parameters
from argon2.exceptions import InvalidHashError, VerificationError

from gan_runtime.base.errors import SignInError

LEAST_LENGTH, MOST_LENGTH = 12, 200
FREE_TRIES = 5  # wrong ones in a row without a pause
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 15.0  # before each try from then on; a wrong one doubles it
MOST_WAITING, MOST_WAITING_OF_ONE = 20, 3  # tries at a time, and those of one address
HASHER = PasswordHasher()


def hash_of(password: str) -> str:
    """What the secrets file keeps.

    Raises SignInError for a password that is too short or too long.
    """
    if not LEAST_LENGTH <= len(password) <= MOST_LENGTH:
        raise SignInError(
            f"the password has {len(password)} characters, but allowed is {LEAST_LENGTH} to"
            f" {MOST_LENGTH}: use several words."
        )
    return HASHER.hash(password)


def is_hash(text: object) -> bool:
    """Whether it is one that `hash_of` could have made, not the password itself."""
    try:
        return (
            isinstance(text, str)
            and text.startswith("$argon2id$")
            and bool(extract_parameters(text))
        )
    except InvalidHashError:
        return False


def is_right(known_hash: str, password: str) -> bool:
    """Whether the hash is that of the password."""
    if len(password) > MOST_LENGTH:
        return False
    try:
        return HASHER.verify(known_hash, password)
    except (VerificationError, InvalidHashError, UnicodeEncodeError):
        return False


class PasswordDoor:
    """Compares one try after the other, so that nobody fills the memory with tries, and after
    several wrong ones pauses before each.

    The pause belongs to the password, not to an address, which anybody can change. A try waits for
    its turn: were it refused, wrong tries of others would keep the right password out. The right
    one ends the pause.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
        compare: Callable[[str, str], bool] = is_right,
    ) -> None:
        """`compare`: a hash and a password."""
        self._clock, self._sleep, self._compare = clock, sleep, compare
        self._turn, self._counting = threading.Lock(), threading.Lock()
        self._waiting: Counter[str] = Counter()
        self._wrong, self._compared_s = 0, 0.0

    def check(self, known_hash: str, password: str, address: str) -> None:
        """Nothing for the right password. `address`: of the browser; empty for this machine.

        Raises:
            SignInError: it is wrong, or too many tries are waiting.
        """
        with self.place(address), self._turn:
            self._sleep(max(0.0, self._compared_s + self._pause_s() - self._clock()))
            right = self._compare(known_hash, password)
            self._wrong = 0 if right else self._wrong + 1
            self._compared_s = self._clock()
        if not right:
            raise SignInError("That is not the operator password.")

    @property
    def waiting(self) -> int:
        """Tries that have a place."""
        return self._waiting.total()

    def _pause_s(self) -> float:
        doublings = self._wrong - FREE_TRIES
        return (
            min(FIRST_PAUSE_S * 2.0 ** min(doublings, 10), LONGEST_PAUSE_S)
            if doublings >= 0
            else 0.0
        )

    @contextmanager
    def place(self, address: str) -> Iterator[None]:
        """Among the waiting tries.

        Those of one address do not fill it. Raises SignInError where there is none.
        """
        who = _group(address)
        with self._counting:
            if self._waiting.total() >= MOST_WAITING or self._waiting[who] >= MOST_WAITING_OF_ONE:
                raise SignInError("Too many passwords are being tried. Try again in a minute.")
            self._waiting[who] += 1
        try:
            yield
        finally:
            with self._counting:
                self._waiting[who] -= 1
                if not self._waiting[who]:
                    del self._waiting[who]


def _group(address: str) -> str:
    """One machine can have a whole /64 of IPv6 addresses, so they count as one."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address[:100]
    return (
        str(parsed)
        if parsed.version == 4
        else str(ipaddress.ip_network((int(parsed), 64), strict=False))
    )
