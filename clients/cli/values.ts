import { InvalidArgumentError } from "commander";

/** Parsers of option values: strict, so that `1x` is a mistake and no 1. */

/** A whole number from `min` to `max`. */
export function wholeNumber(min = 0, max = 0xffff_ffff): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d{1,10}$/.test(text) || value < min || value > max)
      throw new InvalidArgumentError(`It is no whole number from ${min} to ${max}.`);
    return value;
  };
}

/** One of a few words. */
export function oneOf<T extends string>(...words: readonly T[]): (text: string) => T {
  return (text) => {
    const word = words.find((candidate) => candidate === text);
    if (word === undefined) throw new InvalidArgumentError(`It is one of ${words.join(", ")}.`);
    return word;
  };
}

/** Collects an option that may be given several times. */
export function collect<T>(
  parse: (text: string) => T,
): (text: string, before: readonly T[] | undefined) => readonly T[] {
  return (text, before) => [...(before ?? []), parse(text)];
}
