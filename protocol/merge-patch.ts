/** RFC 7396 JSON Merge Patch over plain JSON, without mutation. Contract section 5, `conversation_delta`. */

type Members = Readonly<Record<string, unknown>>;

const isMembers = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** An object whose members are data, also one named `__proto__`. */
function withMember(target: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, enumerable: true, writable: true, configurable: true });
}

/** The patch that turns `from` into `to`. A member that is null in `to` is patched away: absent means the same. */
export function mergePatch(from: Members, to: Members): Members {
  const patch: Record<string, unknown> = {};
  for (const name of Object.keys(from)) {
    if (from[name] !== null && (to[name] === undefined || !Object.hasOwn(to, name))) withMember(patch, name, null);
  }
  for (const [name, next] of Object.entries(to)) {
    const previous = Object.hasOwn(from, name) ? from[name] : undefined;
    if (next === undefined || previous === next) continue;
    if (isMembers(previous) && isMembers(next)) {
      const inner = mergePatch(previous, next);
      if (Object.keys(inner).length > 0) withMember(patch, name, inner);
    } else if (!sameJson(previous ?? null, next)) {
      withMember(patch, name, next);
    }
  }
  return patch;
}

/** Applies a patch; `target` stays as it is. */
export function applyMergePatch(target: unknown, patch: unknown): unknown {
  if (!isMembers(patch)) return patch;
  const result: Record<string, unknown> = {};
  if (isMembers(target)) for (const [name, value] of Object.entries(target)) withMember(result, name, value);
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else withMember(result, name, applyMergePatch(Object.hasOwn(result, name) ? result[name] : undefined, value));
  }
  return result;
}

function sameJson(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((value, index) => sameJson(value, other[index]));
  }
  if (!isMembers(one) || !isMembers(other)) return false;
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && sameJson(one[name], other[name]))
  );
}
