"""The commands of the command line, a module each; `windowlib.cli` puts them together."""
