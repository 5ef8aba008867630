"""Snapshots: the files of a directory before and after what tools did to them, so that it can be undone.

turn with a tool that may write
  before ──tools──→ after            a `FilesChanged` record in the session: what the tools changed
                                     what changed between after and the next before, a person changed

rewind to a prompt  =  undo all changes since; what a person changed meanwhile is left unless they confirm
redo                =  undo the rewind, which is a change like any other

They are kept beside the sessions, by content: an unchanged file is there once. Left out are `.git`, what git
ignores (unless a tool names the file), credentials, and files that are too large.
"""
