"""What a run looks like on a terminal."""
