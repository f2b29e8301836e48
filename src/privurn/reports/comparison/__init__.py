"""How far a release is from the confidential data: distances, comparisons and pictures, all for the custodian's eyes only."""
