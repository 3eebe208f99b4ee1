"""Judge masked attention: problems, checks, and what they come to."""
