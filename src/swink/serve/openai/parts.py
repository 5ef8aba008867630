"""The parts of a message's content, as OpenAI's protocols name them: text, images, files and sound."""

from base64 import b64decode
from collections.abc import Callable
from typing import Any, TypeVar

from swink.errors import InvalidInput
from swink.messages import Audio, Document, Image, Text
from swink.serve.wire import Refused, fields

T = TypeVar("T")


def block_of(part: Any, where: str) -> Text | Image | Document | Audio:
    """The block that a part is; raises `Refused` for what an agent cannot be given."""
    match part:
        case str(text) | {"type": "text" | "input_text" | "output_text", "text": str(text)}:
            return Text(text)
        case {"type": "refusal", "refusal": str(text)}:
            return Text(text)
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            return _image(url, where)
        case {"type": "input_image", "image_url": str(url)}:
            return _image(url, where)
        case {"type": "input_audio", "input_audio": {"data": str(data)}}:
            return _made(Audio.from_bytes, _decoded(data, where), where)
        case {"type": "file", "file": {"file_data": str(data)}}:
            return _document(data, fields(part["file"]).get("filename"), where)
        case {"type": "input_file", "file_data": str(data)}:
            return _document(data, fields(part).get("filename"), where)
        case {"type": "file" | "input_file" | "input_image"}:
            raise Refused(400, f"{where} names a stored file, and none are here; send its data")
        case {"type": str(kind)}:
            raise Refused(
                400, f"{where} has a part of type {kind[:40]!r}; text, images, files and sound are taken"
            )
        case _:
            raise Refused(400, f"{where} has a part that is no object with a type")


def _image(url: str, where: str) -> Image:
    if url.startswith("data:"):
        return _made(Image.from_bytes, _inline(url, where), where)
    if url.startswith(("https://", "http://")):
        return Image.from_url(url)
    raise Refused(400, f"{where} has an image whose URL is neither a data URL nor http or https")


def _document(data: str, title: Any, where: str) -> Document:
    content = _inline(data, where) if data.startswith("data:") else _decoded(data, where)
    name = title if isinstance(title, str) else None
    return _made(lambda content: Document.from_bytes(content, title=name), content, where)


def _inline(url: str, where: str) -> bytes:
    head, comma, data = url.partition(",")
    if not comma or not head.endswith(";base64"):
        raise Refused(400, f"{where} has a data URL that is not base64")
    return _decoded(data, where)


def _decoded(data: str, where: str) -> bytes:
    try:
        return b64decode(data, validate=True)
    except ValueError:
        raise Refused(400, f"{where} has data that is not base64") from None


def _made(make: Callable[[bytes], T], data: bytes, where: str) -> T:
    try:
        return make(data)
    except InvalidInput as error:
        raise Refused(400, f"{where}: {error}") from None
