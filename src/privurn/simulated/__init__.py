"""Made-up tables to try everything on: nobody is in them, and they are the same every time."""
