/**
 * Which `Host` and `Origin` a request may name, so that no foreign page and no rebound name reaches the service.
 * Contract section 5.
 */
export interface HostRules {
  /** Names the service was told it has, lower case, without a port. */
  readonly names: ReadonlySet<string>;
  /** Further origins whose pages may connect. */
  readonly origins: ReadonlySet<string>;
}

const LOOPBACK_NAMES = ["localhost", "127.0.0.1", "[::1]"];
const ANY_ADDRESS = new Set(["0.0.0.0", "::", "[::]"]);

/** The rules for a service that listens on `host`: that name, the loopback names, and what it was told besides. */
export function hostRules(host: string, allowHosts: readonly string[], allowOrigins: readonly string[]): HostRules {
  const own = ANY_ADDRESS.has(host) ? [] : [host.includes(":") && !host.startsWith("[") ? `[${host}]` : host];
  return {
    names: new Set([...LOOPBACK_NAMES, ...own, ...allowHosts].map((name) => name.toLowerCase())),
    origins: new Set(allowOrigins.map((origin) => originOf(origin) ?? origin)),
  };
}

/** Is this `Host` header a name of the service? */
export function hostIsKnown(rules: HostRules, host: string | undefined): boolean {
  const name = host === undefined ? undefined : /^(\[[0-9a-f:.]+\]|[^:[\]]+)(?::\d{1,5})?$/i.exec(host)?.[1];
  return name !== undefined && rules.names.has(name.toLowerCase());
}

/** May a page of this origin connect? A client that is no page sends none. */
export function originMayConnect(rules: HostRules, origin: string | undefined, host: string | undefined): boolean {
  if (origin === undefined) return true;
  const given = originOf(origin);
  if (given === null) return false;
  return rules.origins.has(given) || new URL(given).host === host?.toLowerCase();
}

/** An http(s) origin in its normal form, or null. */
export function originOf(text: string): string | null {
  if (!URL.canParse(text)) return null;
  const url = new URL(text);
  return url.protocol === "http:" || url.protocol === "https:" ? url.origin : null;
}
