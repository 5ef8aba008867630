"""The page of a served agent: one offline page on the native door, and the little it needs beside it."""

from swink.serve.page.choices import Choosing as Choosing
from swink.serve.page.choices import ModelOffer as ModelOffer
from swink.serve.page.choices import ModeOffer as ModeOffer
from swink.serve.page.choices import PageChoice as PageChoice
from swink.serve.page.choices import PageChoices as PageChoices
from swink.serve.page.entry import Entry as Entry
from swink.serve.page.pagedoor import PageDoor as PageDoor
