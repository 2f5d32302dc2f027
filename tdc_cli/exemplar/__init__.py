"""Filling large holes with what is seen elsewhere: a global objective over patches, solved from coarse to fine."""
