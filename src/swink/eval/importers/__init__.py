"""Importers: published benchmarks as suites, with the scorers that their results are compared by."""

from swink.eval.importers.importing import FORMATS as FORMATS
from swink.eval.importers.importing import import_cases as import_cases
from swink.eval.importers.importing import write_cases as write_cases
from swink.eval.importers.rows import BadRows as BadRows
