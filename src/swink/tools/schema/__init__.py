"""Schemas: JSON Schema from types and signatures, validation, and data made into values.

```
signature                parameters of a function
shape  partials          a schema and its type; values that are still arriving
conversion  docstrings   the schema of a type, and its values
constraints  msgspec_hooks what annotations say; what msgspec does not know
hints                    type hints taken apart
```
"""

from swink.tools.schema.conversion import schema_of
from swink.tools.schema.docstrings import parse_docstring
from swink.tools.schema.partials import partial_json, partial_value
from swink.tools.schema.shape import Shape, check_is_type, copy_json
from swink.tools.schema.signature import Signature, check_shape

__all__ = [
    "Shape",
    "Signature",
    "check_is_type",
    "check_shape",
    "copy_json",
    "parse_docstring",
    "partial_json",
    "partial_value",
    "schema_of",
]
