"""Policy of the check rules: silenced rules and changed severities."""

from steno.check.checkup import Policy, make_policy
from steno.errors import BadRequest
from steno.store.config import Config, read_config


def load_check_policy(silence: tuple[str, ...] = (), severity: tuple[str, ...] = ()) -> Policy:
    """Return the policy from the config file and the options; options take precedence.

    Raises:
        BadRequest: A rule or severity does not exist; for the config file, the message includes the line.
    """
    config = read_config()
    _reject_unknown_rules(config)
    severities = dict(config.severity)
    for override in severity:
        name, equals, level = override.partition("=")
        if not equals:
            raise BadRequest(
                f"invalid severity {override!r}: not ID=LEVEL", hint="Use ID=LEVEL, for example tools.unanswered=info."
            )
        severities[name] = level
    return make_policy([*config.silence, *silence], severities)


def _reject_unknown_rules(config: Config) -> None:
    silenced = [(name, [name], None) for name in config.silence]
    reweighted = [(name, (), {name: level}) for name, level in config.severity.items()]
    for name, silence, severity in [*silenced, *reweighted]:
        try:
            make_policy(silence, severity)
        except BadRequest as error:
            raise config.error_at(name, str(error), error.hint) from error
