"""Sizing policies: one file each, found by scanning this folder.

To add one, copy `template.py`, or write `services/advisor/policies/<name>.py`:

    class Settings(PolicySettings):
        '''Bounds and a sentence for every field; users set `advisor.policies.<name>.<field>`.'''

    def judge(state, view, now_s, settings):
        '''Return the new state, and a `Demand` of cores and bytes with its reasons.'''

    POLICY = Policy(name="<name>", settings=Settings, start=lambda: None, judge=judge)

Then select it with `advisor.policy: <name>`. A wheel registers a policy in the entry point group
`sublet.advisor.policies` (`services.advisor.registry`). The advisor calls the policy once for every region of the
node: `view.region` names the region, `view.containers` are its containers, `view.size_cpus` is its current size.

A policy is pure: it reads the view (`services.advisor.core.model.view`), keeps what it remembers in its state, and
never sees a clock, a file or the bus. tests/unit/advisor/test_policy_laws.py checks every file of this folder against
the laws of policies: the order of containers does not matter, more load never means less for the tenants, and a missing
figure never counts as a small one.

If a policy raises, returns something that is not a demand, or takes longer than `advisor.policy_budget_ms`, canonical
replaces it for `advisor.policy_retry_s`, and the advisor's health and the advice say why.
"""
