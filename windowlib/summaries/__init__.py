"""What a window keeps instead of its tuples: folds, summarizers, slices."""
