"""Built on the library: the command line, traces and drawings, conformance, the demo."""
