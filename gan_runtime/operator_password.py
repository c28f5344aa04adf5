"""The one password of a demo's operators: only its argon2 hash is kept, and wrong tries are slowed down.

Argon2id with the parameters of RFC 9106 for little memory (64 MiB, 3 passes); argon2 itself compares in constant time.
"""

from __future__ import annotations

import ipaddress
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from gan_runtime.errors import SignInError

LEAST_LENGTH, MOST_LENGTH = 12, 200
FREE_TRIES, SECONDS_PER_TRY = 5, 30.0  # of one address: so many wrong ones at once, then one each so long
FREE_TRIES_OF_ALL, SECONDS_PER_TRY_OF_ALL = 60, 1.0
MOST_ADDRESSES = 10_000  # remembered at a time
ALL = "all"
HASHER = PasswordHasher()


def hash_of(password: str) -> str:
    """What the secrets file keeps. Raises SignInError for a password that is too short or too long."""
    if not LEAST_LENGTH <= len(password) <= MOST_LENGTH:
        raise SignInError(
            f"the password has {len(password)} characters, but allowed is {LEAST_LENGTH} to {MOST_LENGTH}: use several words."
        )
    return HASHER.hash(password)


def is_hash(text: str) -> bool:
    """Whether it is one that `hash_of` could have made, not the password itself."""
    return text.startswith("$argon2id$") and len(text) < 300


class PasswordDoor:
    """Compares one try at a time, so that nobody fills the memory with tries, and keeps whoever was wrong too often waiting."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._one_at_a_time = threading.Lock()
        self._debts: OrderedDict[str, tuple[float, float]] = OrderedDict()  # address → tries owed, and when

    def check(self, known_hash: str, password: str, address: str) -> None:
        """Nothing for the right password. `address`: of the browser; empty for this machine.

        Raises:
            SignInError: it is wrong, or too many were; the message says how long to wait.
        """
        who = _group(address)
        with self._one_at_a_time:
            wait_s = max(
                self._wait_s(who, FREE_TRIES, SECONDS_PER_TRY),
                self._wait_s(ALL, FREE_TRIES_OF_ALL, SECONDS_PER_TRY_OF_ALL),
            )
            if wait_s > 0:
                raise SignInError(f"Too many wrong passwords: try again in {wait_s:.0f} s.")
            if _is_right(known_hash, password):
                self._debts.pop(who, None)
                return
            self._owe(who, SECONDS_PER_TRY)
            self._owe(ALL, SECONDS_PER_TRY_OF_ALL)
        raise SignInError("That is not the operator password.")

    def _tries(self, who: str, seconds: float) -> float:
        tries, then = self._debts.get(who, (0.0, 0.0))
        return max(0.0, tries - (self._clock() - then) / seconds)

    def _wait_s(self, who: str, free: int, seconds: float) -> float:
        return max(0.0, (self._tries(who, seconds) - free + 1) * seconds)

    def _owe(self, who: str, seconds: float) -> None:
        self._debts[who] = (self._tries(who, seconds) + 1, self._clock())
        self._debts.move_to_end(who)
        while len(self._debts) > MOST_ADDRESSES:
            self._debts.popitem(last=False)


def _is_right(known_hash: str, password: str) -> bool:
    if len(password) > MOST_LENGTH:
        return False
    try:
        return HASHER.verify(known_hash, password)
    except (VerificationError, InvalidHashError, UnicodeEncodeError):
        return False


def _group(address: str) -> str:
    """One machine can have a whole /64 of IPv6 addresses, so they count as one."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address[:100]
    return str(parsed) if parsed.version == 4 else str(ipaddress.ip_network((int(parsed), 64), strict=False))
