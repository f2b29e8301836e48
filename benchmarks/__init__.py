"""Speed and memory, one question a file, as ratios to a bound or peer measured in the same run."""
