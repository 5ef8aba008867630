"""Scale: agents on existing engines, for those who run one; each needs the extra of its name."""
