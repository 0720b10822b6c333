"""Engine `local` with real processes."""
