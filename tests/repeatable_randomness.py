"""Randomness of releases that is the same in every run of a test: what fails is the change's fault, never the noise's.

Releases take noise from OpenDP and words from the operating system. Here both are streams that begin anew with every test, by
its name. Files that test the randomness itself keep the real one, and so does whatever runs in a process of its own.
"""

import zlib
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from privurn.privacy import additive_noise
from privurn.privacy.entropy import WORD_BITS, SystemEntropy

REAL = {
    "test_additive_noise",
    "test_certificate_randomness",
    "test_channel_sampling",
    "test_dependency_figures",
    "test_entropy",
    "test_histogram_mechanisms",
    "test_histogram_sampling",
    "test_tied_noise",
    "test_urn_sampling",
}
"""Files whose subject is the randomness: their bounds say how often they fail."""

real_measurement = additive_noise.measurement
real_words = SystemEntropy.words


class Streams:
    """What the test that is running draws from; None: the real thing."""

    rng: np.random.Generator | None = None

    def begin(self, test: str) -> None:
        """Streams of this test's own; fixtures that several tests share are drawn from those of the first."""
        self.rng = None if Path(test.split("::", 1)[0]).stem in REAL else np.random.default_rng(zlib.crc32(test.encode()))

    def words(self, source: SystemEntropy, size: int) -> np.ndarray:
        return real_words(source, size) if self.rng is None else self.rng.integers(0, 2**WORD_BITS, size, np.int64)

    def bits(self, size: int) -> int:
        return int.from_bytes((self.rng or np.random.default_rng()).bytes(-(-size // 8))) >> (-size % 8)


class RepeatableNoise:
    """OpenDP's measurement but for the noise, which has the same law."""

    def __init__(self, streams: Streams, noise: additive_noise.NoiseKind, scale: float) -> None:
        self.streams, self.noise, self.scale = streams, noise, scale
        self.real = real_measurement(noise, scale)

    def __call__(self, values: list[int]) -> list[int]:
        if self.streams.rng is None:
            return self.real(values)
        drawn = additive_noise.simulated_noise((len(values),), noise=self.noise, scale=self.scale, rng=self.streams.rng)
        return [min(max(value + noise, -(2**63)), 2**63 - 1) for value, noise in zip(values, drawn.tolist(), strict=True)]

    def __getattr__(self, name: str) -> object:
        return getattr(self.real, name)


streams = Streams()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before the test's fixtures are made."""
    streams.begin(item.nodeid)


@pytest.fixture(scope="session", autouse=True)
def repeatable_randomness():
    """Where releases and chains without a seed get their randomness."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(additive_noise, "measurement", lru_cache(16)(lambda noise, scale: RepeatableNoise(streams, noise, scale)))
        patch.setattr(additive_noise, "AT_ONCE", 10**9)  # threads would take turns in an order of their own
        patch.setattr(SystemEntropy, "words", lambda source, size: streams.words(source, size))
        patch.setattr("secrets.randbits", streams.bits)
        yield
