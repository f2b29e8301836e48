import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # urn_laws: brute-force laws shared by the exact tests
