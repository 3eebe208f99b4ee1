"""The gate of a release: a configuration file, and failures that are recorded as known."""
