/** Nothing the contract describes is nested deeper; a patch that is cannot be a snapshot's. */
const DEEPEST = 32;

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Applies an RFC 7396 merge patch and returns the new value; neither argument changes, and what the patch does not name
 * is shared. Only own members count, so that a member called `__proto__` or `constructor` is a member like any other.
 * Throws a `RangeError` for a patch that is nested too deep.
 */
export function mergePatch(target: unknown, patch: unknown, depth = 0): unknown {
  if (!isObject(patch)) return patch;
  if (depth > DEEPEST) throw new RangeError("the patch is nested too deep");
  const members = new Map(isObject(target) ? Object.entries(target) : []);
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) members.delete(name);
    else members.set(name, mergePatch(members.get(name), value, depth + 1));
  }
  return Object.fromEntries(members);
}
