"""Sizing policies: one file each, found by scanning this folder.

To add one, write `services/advisor/policies/<name>.py`:

    class Settings(PolicySettings):
        '''Bounds and a sentence for every field; users set `advisor.policies.<name>.<field>`.'''

    def judge(state, view, now_s, settings):
        '''What the tenants need: the new state and a `Demand` of cores and bytes, with its reasons.'''

    POLICY = Policy(name="<name>", settings=Settings, start=lambda: None, judge=judge)

and select it with `advisor.policy: <name>`. A policy is pure: it reads the view (`services.advisor.core.view`), keeps
what it must remember in its state, and never sees a clock, a file or the bus. What every policy must hold to is
checked by tests/unit/advisor/test_policy_laws.py over all files of this folder: the same for every order of the
containers, more load never means less for the tenants, and a missing figure is never taken for a small one.
"""
