"""Pictures by what lies near: a Gaussian field over the whole picture, and groups of similar patches."""
