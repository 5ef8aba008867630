"""The PostgreSQL server of the tests is there for served agents, too."""

from tests.postgres import postgres as postgres
