"""Many pictures: `folders` says which files become what, `run` does them side by side, `summary` tells what came of it."""
