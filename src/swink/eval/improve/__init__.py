"""Improving: a model reads why attempts failed and writes a better text, which the same evaluation judges.

found = await improve(factory, suite, "system_prompt", output="improved")
found.accepted     whether cases that no candidate has seen pass more often with the new text
found.text         the text itself, and `found.diff` what is new in it
"""

from swink.eval.improve.bettertexts import improve as improve
from swink.eval.improve.candidates import Improvement as Improvement
from swink.eval.improve.texttargets import NothingToImprove as NothingToImprove
