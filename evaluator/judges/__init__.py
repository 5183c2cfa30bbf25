"""Judges: each proposes, for every sub-requirement, a claim and the witness it stands on."""
