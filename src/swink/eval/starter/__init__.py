"""The files of the suite that `swink eval init` writes."""
