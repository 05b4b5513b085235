"""The merged configuration, and how it comes about: files, then ``env.yaml``, then the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import BaseModel, ValidationError

from gymkit.config import override as overrides
from gymkit.config.directive import expand
from gymkit.config.instance import Implementations, ServerInstance, parse_servers, problem_of
from gymkit.config.keys import RUN, check_top_level
from gymkit.config.relay import generated
from gymkit.config.secret import redacted
from gymkit.config.source import COMMAND_LINE, Source, gather, origin, parse, plain, read
from gymkit.config.tree import Tree, leaves, merged
from gymkit.errors import ConfigError
from gymkit.nearest import nearest
from gymkit.shipped import search_roots

DEFAULT_HOST = "127.0.0.1"
DEFAULT_HEAD_PORT = 11000

Settings = TypeVar("Settings", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class HeadServer:
    """Where the discovery endpoint listens."""

    host: str = DEFAULT_HOST
    """Host name or address."""
    port: int = DEFAULT_HEAD_PORT
    """Port; 0 means any free one."""

    @property
    def url(self) -> str:
        """Where it is reached."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Config:
    """A whole configuration, checked. Make one with ``load`` or ``Config.published``."""

    tree: Tree = field(repr=False)
    """Everything, merged and resolved. It may hold secrets: print ``to_yaml()`` instead."""
    servers: dict[str, ServerInstance]
    """The server instances by name, generated relays included."""
    head: HeadServer
    """The discovery endpoint."""
    sources: tuple[Source, ...] = field(repr=False)
    """Where the settings come from, first to last."""
    relays: tuple[str, ...] = ()
    """Environment servers that were generated, because an agent had none."""

    @classmethod
    def published(cls, text: str, name: str) -> Config:
        """What a running discovery endpoint publishes (ours or NeMo Gym's); ``name`` is its URL, for messages.

        It has been checked by whoever started it, so unknown settings pass. Raises ConfigError for anything else.
        """
        source = parse(text, name)
        try:
            tree = _resolved(source.tree, [source])
        except ConfigError:
            tree = source.tree  # a ${oc.env:…} of the other machine: nothing that a caller of its servers needs
        return _built(tree, (source,), {})

    def of_type(self, server_type: str) -> list[ServerInstance]:
        """The instances of one server type, in the order of the files."""
        return [server for server in self.servers.values() if server.server_type == server_type]

    def server(self, name: str, server_type: str) -> ServerInstance:
        """One instance. Raises ConfigError with the nearest name."""
        there = {server.name: server for server in self.of_type(server_type)}
        if name not in there:
            raise ConfigError(f"there is no {name!r} among the {server_type}; {nearest(name, there)}")
        return there[name]

    def environment_server_of(self, agent: str) -> ServerInstance:
        """The one environment server that fronts ``agent``. Raises ConfigError if there is none, or several."""
        name = self.server(agent, "responses_api_agents").name
        fronts = [server for server in self.of_type("environment_servers") if name in server.agents]
        if len(fronts) != 1:
            names = " and ".join(server.name for server in fronts)
            found = (
                f"several environment servers reference it: {names}"
                if fronts
                else "no environment server references it"
            )
            raise ConfigError(f"agent {agent} cannot be reached: {found}")
        return fronts[0]

    def settings(self, model: type[Settings]) -> Settings:
        """The top-level settings that ``model`` declares, checked by it.

        Raises ConfigError for a wrong value, and for a setting of a run that the command does not have.
        """
        fields = model.model_fields
        given = {key: value for key, value in self.tree.items() if key in fields}
        for key in self.tree.keys() & RUN - fields.keys():
            if self.tree[key] is not None:
                where = origin(key, self.sources)
                raise ConfigError(
                    f"{where}: {key} has no effect in this command, which reads {', '.join(sorted(fields))}"
                )
        try:
            return model.model_validate(given)
        except ValidationError as error:
            key, problem = problem_of(error)
            hint = f"; give +{key}=…" if problem == "is missing" else ""
            raise ConfigError(f"{origin(key, self.sources)}: {key} {problem}{hint}") from None

    def placed(self, ports: Mapping[str, int], head_port: int) -> Config:
        """The same configuration with the ports that the servers really have, by instance name."""
        tree = deepcopy(self.tree)
        servers = {}
        for name, server in self.servers.items():
            servers[name] = placed = replace(server, port=ports[name])
            block = tree[name][server.server_type]
            block[server.implementation] = {
                "entrypoint": "app.py",
                **(block[server.implementation] or {}),
                "host": placed.host,
                "port": placed.port,
            }
        head = replace(self.head, port=head_port)
        tree["head_server"] = {"host": head.host, "port": head.port}
        return replace(self, tree=tree, servers=servers, head=head)

    def to_yaml(self) -> str:
        """The configuration as YAML, secrets masked."""
        return OmegaConf.to_yaml(OmegaConf.create(redacted(self.tree)))


def load(
    tokens: Sequence[str] = (),
    *,
    flags: Mapping[str, Any] | None = None,
    search_dirs: Iterable[str | Path] = (),
    implementations: Implementations | None = None,
) -> Config:
    """Merge and check a configuration.

    Parameters: ``tokens`` are Hydra overrides (``+config_paths=[a.yaml]``, ``+limit=3``), ``flags`` settings that were
    given in another form, by key; ``search_dirs`` come first in the look-up of relative paths; ``implementations`` says
    what is known of implementations, so that their settings are checked (others pass unchecked).
    An ``env.yaml`` on a search root is merged over the files and under the command line.
    Raises ConfigError: one sentence with the file, the key and the nearest right name.
    """
    roots = search_roots(search_dirs)
    given = [
        *overrides.parse(tokens),
        *(overrides.Override(key, value, once=True) for key, value in (flags or {}).items()),
    ]
    command_line = Source(COMMAND_LINE, overrides.as_tree(given))
    environment = _env_file(roots)
    holder = next((source for source in (command_line, *environment) if source.tree.get("config_paths")), command_line)
    files = [*gather(holder.tree.get("config_paths"), roots, holder.name), *environment]
    beneath = _merged(files)
    overrides.check_existing(given, beneath)
    raw = expand(merged(beneath, command_line.tree))
    sources = (*files, command_line)
    _check_missing(raw)
    relays = generated(raw)
    tree = _resolved({**raw, **relays}, sources)
    check_top_level(tree, raw, sources, environment)
    return replace(_built(tree, sources, implementations or {}), relays=tuple(relays))


def _env_file(roots: Iterable[Path]) -> list[Source]:
    path = next((folder / "env.yaml" for folder in roots if (folder / "env.yaml").is_file()), None)
    return [read(path, "env.yaml")] if path else []


def _merged(sources: Iterable[Source]) -> Tree:
    tree: Tree = {}
    for source in sources:
        tree = merged(tree, source.tree)
    return tree


def _check_missing(tree: Tree) -> None:
    missing = [path for path, value in leaves(tree) if value == "???"]
    if missing:
        flags = " ".join(f"++{path}=…" for path in missing)
        raise ConfigError(f"values still to be given (???): {', '.join(missing)}; for example {flags}")


def _resolved(tree: Tree, sources: Sequence[Source]) -> Tree:
    config = OmegaConf.create(tree)
    try:
        OmegaConf.resolve(config)
    except OmegaConfBaseException as error:
        key = _unresolvable(config, tree)
        reason = str(error).splitlines()[0].rpartition("resolving interpolation: ")[2].strip('"')
        wanted = reason.partition("'")[2].partition("'")[0]
        hint = f"; {nearest(wanted, tree)}" if "Interpolation key" in reason else ""
        raise ConfigError(f"{origin(key, sources)}: {key} cannot be resolved: {reason}{hint}") from None
    return plain(config)


def _unresolvable(config: DictConfig, tree: Tree) -> str:
    for path, value in leaves(tree):
        if isinstance(value, str) and "${" in value:
            try:
                OmegaConf.select(config, path)
            except OmegaConfBaseException:
                return path
    return "an interpolation"


def _built(tree: Tree, sources: tuple[Source, ...], implementations: Implementations) -> Config:
    default_host = tree.get("default_host") or DEFAULT_HOST
    servers = parse_servers(tree, default_host, sources, implementations)
    return Config(tree, servers, _head(tree, default_host, sources), sources)


def _head(tree: Tree, default_host: str, sources: Sequence[Source]) -> HeadServer:
    fields = tree.get("head_server") or {}
    where = origin("head_server", sources)
    if not isinstance(fields, dict):
        raise ConfigError(f"{where}: head_server must hold host and port")
    for key in fields:
        if key not in ("host", "port"):
            raise ConfigError(f"{where}: head_server.{key} is not a setting; {nearest(key, ('host', 'port'))}")
    port = fields.get("port", DEFAULT_HEAD_PORT)
    if type(port) is not int or not 0 <= port <= 65535:
        raise ConfigError(f"{where}: head_server.port must be a number from 0 to 65535")
    return HeadServer(str(fields.get("host") or default_host), port)
