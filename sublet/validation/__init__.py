"""The one validator of settings and configurations: it builds everything that a service builds from its section.

`given` reads the user's input and remembers where each key is, `sections` builds as the services do, `findings` reports
all problems at once.
"""
