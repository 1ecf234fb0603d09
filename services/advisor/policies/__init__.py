"""Sizing policies: one file each, found by scanning this folder.

To add one, copy `template.py`, which says what each part is for, or write `services/advisor/policies/<name>.py`:

    class Settings(PolicySettings):
        '''Bounds and a sentence for every field; users set `advisor.policies.<name>.<field>`.'''

    def judge(state, view, now_s, settings):
        '''What the tenants need: the new state and a `Demand` of cores and bytes, with its reasons.'''

    POLICY = Policy(name="<name>", settings=Settings, start=lambda: None, judge=judge)

and select it with `advisor.policy: <name>`. A wheel of one's own registers a policy in the entry point group
`sublet.advisor.policies` instead (`services.advisor.registry`). A policy is asked for every region of the node apart:
`view.region` names it, `view.containers` are its own, `view.size_cpus` is its size now.

A policy is pure: it reads the view (`services.advisor.core.model.view`), keeps what it must remember in its state,
and never sees a clock, a file or the bus. What every policy must hold to is checked by
tests/unit/advisor/test_policy_laws.py over all files of this folder: the same for every order of the containers, more
load never means less for the tenants, and a missing figure is never taken for a small one.

A policy that raises, returns what is no demand, or needs longer than `advisor.policy_budget_ms` is passed over for
`advisor.policy_retry_s`: canonical decides, and the advisor's health and the advice say why.
"""
