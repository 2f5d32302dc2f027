"""Filling large holes with what is seen elsewhere: a global objective over patches, lowered from coarse to fine."""
