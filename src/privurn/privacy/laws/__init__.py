"""One law of privacy loss a file: what a mechanism may tell about one record, exactly."""
