"""Guarantees: profiles, accounting, calibration, entropy, ledger, certificates."""
