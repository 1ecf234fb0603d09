"""One validator of settings and configurations: everything that a service builds of its section is built from it here.

`given` reads what a person has given and remembers where it stands, `sections` builds as the services do, `findings`
says all that is wrong at once.
"""
