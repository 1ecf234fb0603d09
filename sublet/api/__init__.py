"""What a wheel may import of Sublet: a module for each kind of extension, and the names in its `__all__`.

`policy` is for the advisor, `plugin` for the evictor, `source` for metrics, `field` for the reporter, `events` for who
reads or makes eviction events. docs/api.md says what is promised about these names; every other module of Sublet may
move or change at any time.
"""
