"""Server instances: the blocks ``instance: {server type: {implementation: {…}}}`` as typed objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ValidationError

from gymkit.config.keys import SERVER_TYPES, is_server
from gymkit.config.source import Source, origin, setter
from gymkit.config.tree import Tree
from gymkit.errors import ConfigError
from gymkit.nearest import nearest

DOMAINS = (
    *("math", "coding", "agent", "knowledge", "instruction_following", "long_context", "safety", "games"),
    *("translation", "e2e", "rlhf", "other"),
)

_COMMON = frozenset({"datasets", "entrypoint", "host", "name", "num_workers", "port"})
_OF_RESOURCES = frozenset({"allowed_agents", "allowed_model_types", "description", "domain", "value", "verified"})


@dataclass(frozen=True, slots=True)
class Implementation:
    """What the caller knows of one implementation, so that its settings can be checked before anything starts."""

    config: type[BaseModel]
    """The model of its settings, without references and without what every server has (host, port, entrypoint, …)."""
    references: Mapping[str, str] = field(default_factory=dict)
    """Its required references: field to server type."""
    optional_references: Mapping[str, str] = field(default_factory=dict)
    """References that it can do without: field to server type."""


Implementations = Mapping[tuple[str, str], Implementation]
"""(server type, implementation) to what is known of it."""


@dataclass(frozen=True, slots=True)
class ServerReference:
    """A field ``{type: …, name: …}`` that points at another instance."""

    server_type: str
    """One of SERVER_TYPES."""
    name: str
    """The instance's name."""


@dataclass(frozen=True, slots=True)
class ServerInstance:
    """One server of a configuration."""

    name: str
    """The top-level key."""
    server_type: str
    """One of SERVER_TYPES."""
    implementation: str
    """The name under the server type."""
    host: str
    """The address it listens on."""
    port: int | None
    """Its port; None means any free one."""
    references: dict[str, ServerReference]
    """Field to the instance it points at."""
    settings: Tree = field(repr=False)
    """The implementation's own settings as written."""
    config: BaseModel | None = field(repr=False)
    """The settings as the implementation's model; None for an implementation the caller does not know."""
    entrypoint: Path | None = None
    """The Python file that ``entrypoint`` names, where it lies beside the configuration; None where none does."""

    @property
    def url(self) -> str:
        """Where it is reached. Raises ConfigError before it has a port."""
        if self.port is None:
            raise ConfigError(f"{self.name} has no port yet")
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def agents(self) -> list[str]:
        """The agents it references, in the order of its fields."""
        return [ref.name for ref in self.references.values() if ref.server_type == "responses_api_agents"]


def parse_servers(
    tree: Tree, default_host: str, sources: Sequence[Source], implementations: Implementations
) -> dict[str, ServerInstance]:
    """The server instances of ``tree`` by name, references checked.

    Raises ConfigError: not exactly one implementation, a bad host, port or domain, an unknown or wrong setting of a
    known implementation, a missing reference, or one to an instance that does not exist.
    """
    names = [name for name, block in tree.items() if is_server(block)]
    servers = {name: _Reader(name, tree[name], sources, implementations).read(default_host) for name in names}
    for server in servers.values():
        _check_references(server, servers, sources)
    return servers


class _Reader:
    """Reads one instance; holds what its messages name."""

    def __init__(self, name: str, block: Tree, sources: Sequence[Source], implementations: Implementations) -> None:
        self.name = name
        self.source = origin(name, sources)
        self.sources = sources
        self.server_type, self.implementation, self.fields = self._unwrap(block)
        self.known = implementations.get((self.server_type, self.implementation))

    def read(self, default_host: str) -> ServerInstance:
        self._check_domain()
        references = self._references()
        own = {key: value for key, value in self.fields.items() if key not in references and key not in self._shared()}
        return ServerInstance(
            self.name,
            self.server_type,
            self.implementation,
            host=self._host(default_host),
            port=self._port(),
            references=references,
            settings=own,
            config=self._typed(own, references),
            entrypoint=self._entrypoint(),
        )

    def _entrypoint(self) -> Path | None:
        named = self.fields.get("entrypoint")
        source = setter(f"{self.name}.{self.server_type}.{self.implementation}.entrypoint", self.sources)
        if not isinstance(named, str) or source is None or source.folder is None:
            return None
        path = source.folder / named
        return path if path.is_file() else None

    def _unwrap(self, block: Tree) -> tuple[str, str, Tree]:
        types = [key for key in block if key in SERVER_TYPES]
        strange = [key for key in block if key not in SERVER_TYPES]
        if len(types) > 1 or strange:
            problem = f"{strange[0]!r} is no server type" if strange else f"it has {len(types)} server types"
            raise ConfigError(f"{self.source}: {self.name} must hold exactly one server type, but {problem}")
        inner = block[types[0]]
        if not isinstance(inner, dict) or len(inner) != 1:
            raise ConfigError(f"{self.source}: {self.name}.{types[0]} must hold exactly one implementation")
        [(implementation, fields)] = inner.items()
        if fields is not None and not isinstance(fields, dict):
            raise ConfigError(f"{self.source}: {self.name}.{types[0]}.{implementation} must hold settings")
        return types[0], implementation, fields or {}

    def _shared(self) -> frozenset[str]:
        return _COMMON | _OF_RESOURCES if self.server_type == "resources_servers" else _COMMON

    def _refuse(self, key: str, problem: str) -> ConfigError:
        path = f"{self.name}.{self.server_type}.{self.implementation}.{key}"
        return ConfigError(f"{origin(path, self.sources)}: {path} {problem}")

    def _host(self, default: str) -> str:
        host = self.fields.get("host") or default
        if not isinstance(host, str):
            raise self._refuse("host", "must be a host name or an address")
        return host

    def _port(self) -> int | None:
        port = self.fields.get("port")
        if port is not None and (type(port) is not int or not 0 <= port <= 65535):
            raise self._refuse("port", "must be a number from 0 to 65535")
        return port or None

    def _check_domain(self) -> None:
        domain = self.fields.get("domain")
        if domain is not None and self.server_type == "resources_servers" and domain not in DOMAINS:
            raise self._refuse("domain", f"is not one of the domains; {nearest(str(domain), DOMAINS)}")

    def _references(self) -> dict[str, ServerReference]:
        expected = {**self.known.references, **self.known.optional_references} if self.known else {}
        references = {}
        for key, value in self.fields.items():
            if not isinstance(value, dict) or not isinstance(value.get("name"), str):
                continue
            default = expected.get(key, "responses_api_agents" if key == "agent_server" else None)
            server_type = value.get("type", default)
            if server_type in SERVER_TYPES and value.keys() <= {"type", "name"}:
                references[key] = ServerReference(server_type, value["name"])
            elif key in expected:
                raise self._refuse(f"{key}.type", f"is no server type; {nearest(str(server_type), SERVER_TYPES)}")
        return references

    def _typed(self, own: Tree, references: Iterable[str]) -> BaseModel | None:
        if self.known is None:
            return None
        fields = self.known.config.model_fields
        known = {*fields, *self.known.references, *self.known.optional_references, *self._shared()}
        for key in [*own, *references]:
            if key not in known:
                raise self._refuse(key, f"is not a setting of {self.implementation}; {nearest(key, known)}")
        for key, server_type in self.known.references.items():
            if key not in references:
                raise self._refuse(key, f"is missing; it names what to use: {key}: {{type: {server_type}, name: …}}")
        try:
            return self.known.config.model_validate(own)
        except ValidationError as error:
            raise self._refuse(*problem_of(error)) from None


def problem_of(error: ValidationError) -> tuple[str, str]:
    """The first problem pydantic found: dotted key, what is wrong. The value is not shown, as it may be a secret."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "missing":
        return key, "is missing"
    message = first["msg"].removeprefix("Value error, ").removeprefix(f"{key} ")
    return key, f"is wrong: {message[:1].lower()}{message[1:]}"


def _check_references(server: ServerInstance, servers: Mapping[str, ServerInstance], sources: Sequence[Source]) -> None:
    for key, ref in server.references.items():
        target = servers.get(ref.name)
        if target is not None and target.server_type == ref.server_type:
            continue
        there = [other.name for other in servers.values() if other.server_type == ref.server_type]
        where = origin(f"{server.name}.{server.server_type}.{server.implementation}.{key}.name", sources)
        raise ConfigError(
            f"{where}: {server.name}.{key} names {ref.name!r}, but no instance of {ref.server_type} has that "
            f"name; {nearest(ref.name, there)}"
        )
