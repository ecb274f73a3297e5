"""Farms on Spark: the tasks of the cluster are the workers."""
