"""What the config file makes of the rules."""

from steno.check.policy import Policy, make_policy
from steno.errors import BadRequest
from steno.store.config import Config, read_config

__all__ = ["policy_of"]


def policy_of(silence: tuple[str, ...] = (), severity: tuple[str, ...] = ()) -> Policy:
    """Return what the config file and the options make of the rules; options win.

    Raises:
        BadRequest: there is no such rule or severity; of the file, the line is named.
    """
    config = read_config()
    _refuse_unknown(config)
    weights = dict(config.severity)
    for each in severity:
        name, equals, level = each.partition("=")
        if not equals:
            raise BadRequest(f"not ID=LEVEL: {each!r}", hint="such as tools.unanswered=info")
        weights[name] = level
    return make_policy([*config.silence, *silence], weights)


def _refuse_unknown(config: Config) -> None:
    single = [(name, [name], None) for name in config.silence]
    weighed = [(name, (), {name: level}) for name, level in config.severity.items()]
    for name, silence, severity in [*single, *weighed]:
        try:
            make_policy(silence, severity)
        except BadRequest as error:
            raise config.complaint(name, str(error), error.hint) from error
