"""The commands of the command line, one module each; what a command needs is imported when it runs."""
