"""Sources read figures: one file each, with one public object `SOURCE`, found by scanning this folder."""
