"""Who may reach and change the dashboard: addresses that it listens on, and the password of its
operators.

Only an argon2 hash of the password is stored, and wrong tries are slowed down. Argon2id has the
parameters of RFC 9106 for little memory (64 MiB, 3 passes); argon2 compares in constant time.
"""

from __future__ import annotations

import ipaddress
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from argon2 import PasswordHasher, extract_parameters
from argon2.exceptions import InvalidHashError, VerificationError

from gan_runtime.base.errors import SignInError

LEAST_LENGTH, MOST_LENGTH = 12, 200
FREE_TRIES = 5  # wrong tries in a row without a pause
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 15.0  # before each further try; doubled by a wrong one
MOST_WAITING, MOST_WAITING_PER_ADDRESS = 20, 3  # tries at a time, in all and of one address
HASHER = PasswordHasher()
LEAST_MEMORY_KIB, MOST_MEMORY_KIB, MOST_PASSES, MOST_LANES = 8_192, 1_048_576, 10, 16
# 16 bytes of salt and 32 of the hash, in base64.
_HASH = re.compile(
    r"\$argon2id\$v=19\$m=[0-9]{1,9},t=[0-9]{1,9},p=[0-9]{1,9}\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}"
)


def hash_of(password: str) -> str:
    """The hash for the secrets file. Raises SignInError for a password that is too short or too
    long.
    """
    if not LEAST_LENGTH <= len(password) <= MOST_LENGTH:
        raise SignInError(
            f"the password has {len(password)} characters, but allowed are {LEAST_LENGTH} to"
            f" {MOST_LENGTH}: use several words."
        )
    return HASHER.hash(password)


def is_hash(text: object) -> bool:
    """Whether the text is a whole hash as of `hash_of`, not the password itself. Other parameters
    are valid if a comparison takes seconds at most.
    """
    if not isinstance(text, str) or not _HASH.fullmatch(text):
        return False
    parameters = extract_parameters(text)
    return (
        LEAST_MEMORY_KIB <= parameters.memory_cost <= MOST_MEMORY_KIB
        and 1 <= parameters.time_cost <= MOST_PASSES
        and 1 <= parameters.parallelism <= MOST_LANES
    )


def is_right(stored_hash: str, password: str) -> bool:
    """Whether the hash belongs to the password."""
    if len(password) > MOST_LENGTH:
        return False
    try:
        return HASHER.verify(stored_hash, password)
    except (VerificationError, InvalidHashError, UnicodeEncodeError):
        return False


class PasswordCheck:
    """Compares one try at a time, so that many tries cannot fill the memory, and pauses before each
    after several wrong ones.

    The pause belongs to the password, not to an address, which an attacker can change. A try waits
    for its turn: if it were refused, wrong tries of others would lock the operator out. The right
    password ends the pause.
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

    def check(self, stored_hash: str, password: str, address: str) -> None:
        """`address`: of the browser; empty for this machine.

        Raises:
            SignInError: the password is wrong, or too many tries are waiting.
        """
        with self.place(address), self._turn:
            self._sleep(max(0.0, self._compared_s + self._pause_s() - self._clock()))
            right = self._compare(stored_hash, password)
            self._wrong = 0 if right else self._wrong + 1
            self._compared_s = self._clock()
        if not right:
            raise SignInError("That is not the operator password.")

    @property
    def waiting(self) -> int:
        """The number of tries that wait."""
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
        """Counts a try as waiting, with a limit for each address. Raises SignInError above the
        limits.
        """
        who = _group(address)
        with self._counting:
            if (
                self._waiting.total() >= MOST_WAITING
                or self._waiting[who] >= MOST_WAITING_PER_ADDRESS
            ):
                raise SignInError("Too many sign-ins are waiting. Try again in a minute.")
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
    parsed = ip_address(address)
    if parsed is None:
        return address[:100]
    if parsed.version == 4:
        return str(parsed)
    return str(ipaddress.ip_network((int(parsed), 64), strict=False))


def is_loopback(name: str) -> bool:
    """Whether only this machine reaches a server there: 127.0.0.1, ::1, localhost. Any other name
    may lead to another machine.
    """
    address = ip_address(name)
    return name.lower() == "localhost" if address is None else address.is_loopback


def is_wildcard(name: str) -> bool:
    """Whether it means every address of this machine: 0.0.0.0, ::."""
    address = ip_address(name)
    return address is not None and address.is_unspecified


def url(address: str, port: int, is_secure: bool, wildcard: str) -> str:
    """The address for a browser; `wildcard`: the host to open where the server listens on every
    address.
    """
    host = wildcard if is_wildcard(address) else address
    scheme = "https" if is_secure else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def ip_address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The parsed address; None for the name of a host."""
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
