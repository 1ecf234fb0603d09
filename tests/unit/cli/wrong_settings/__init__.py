"""Wrong inputs by area, a module each with its `CASES`; `test_wrong_settings.py` types every one of them."""
