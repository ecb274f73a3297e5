"""From DataFrames and an operator to a query of Spark."""
