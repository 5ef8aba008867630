"""Fixtures of the tests of memory."""

from tests.postgres import postgres as postgres
