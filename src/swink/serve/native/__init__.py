"""The native protocol of a served agent: what programs outside this repository are written against."""

from swink.serve.native.door import NativeDoor as NativeDoor
