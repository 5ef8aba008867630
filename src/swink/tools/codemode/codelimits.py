"""Limits of a program."""

from msgspec import Struct

from swink.errors import MisuseError


class CodeLimits(Struct, frozen=True):
    """What one program may use: seconds of its own (not those of its calls), bytes, calls, printed bytes.

    Args:
        memory: bytes
    """

    seconds: float = 10.0
    memory: int = 256 * 1024 * 1024
    calls: int = 500
    printed: int = 200_000

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
                raise MisuseError(f"CodeLimits: {name} is {value!r}; pass a number above 0")
