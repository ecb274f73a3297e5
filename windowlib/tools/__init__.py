"""Tools that use the library: the command line, traces and drawings, conformance, the demo."""
