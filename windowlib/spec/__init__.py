"""What a window is, without its contents: policies, specifications, SPL text, order of events."""
