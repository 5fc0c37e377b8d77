import typia from "typia";
import type { ProjectView } from "../../protocol/operations.js";
import type { Environment } from "../environment.js";
import { Fault, invalid } from "../fault.js";
import { parsed } from "../json.js";
import { codeOf } from "../store/errors.js";
import { toBytes } from "../store/json.js";
import type { Store } from "../store/port.js";
import { resolveWorkspace } from "./identity.js";
import type { ProjectsView, RegisteredProject } from "./membership.js";
import { nameOf } from "./name.js";

interface Registry {
  readonly revision: number;
  readonly projects: readonly RegisteredProject[];
}

const KEY = "projects";
const validate = typia.createValidateEquals<Registry>();

/** The registered projects: one record, changed by the operator only. Contract sections 5 and 10. */
export class Projects implements ProjectsView {
  readonly #store: Store;
  readonly #environment: Environment;
  readonly #storeIsBack: () => Promise<boolean>;
  #registry: Registry = { revision: 0, projects: [] };
  #stored: Uint8Array | null = null;
  #isReadable = true;
  #writes: Promise<unknown> = Promise.resolve();

  /** `storeIsBack` brings a faulted store back, and then has `load` called; false while it cannot be had. */
  constructor(store: Store, environment: Environment, storeIsBack: () => Promise<boolean>) {
    this.#store = store;
    this.#environment = environment;
    this.#storeIsBack = storeIsBack;
  }

  /** Reads the registry. False where what is stored does not parse: it is never treated as empty, and nothing is written. */
  async load(): Promise<boolean> {
    const stored = await this.#store.get(KEY).catch((error: unknown) => {
      if (codeOf(error) !== "STORE_DAMAGED") throw error;
      return undefined;
    });
    const outcome = stored ? validate(parsed(stored)) : undefined;
    this.#isReadable = stored === null || outcome?.success === true;
    if (stored && outcome?.success) {
      this.#registry = outcome.data;
      this.#stored = stored;
    }
    return this.#isReadable;
  }

  /** Whether anything can be said about projects. */
  get isReadable(): boolean {
    return this.#isReadable;
  }

  current(): Registry {
    return this.#registry;
  }

  /** @throws {Fault} `storage_unavailable` where the registry is damaged. */
  views(): readonly ProjectView[] {
    this.#needReadable();
    return this.#registry.projects.map(({ projectId, name, path }) => ({ projectId, name, path }));
  }

  /** Registers a directory under its canonical path; the same directory twice is one project. */
  async add(path: string, name: string | undefined): Promise<ProjectView> {
    const resolution = await resolveWorkspace(path);
    if (!resolution.ok) throw invalid("path", `an existing directory, absolute (${resolution.reason})`);
    const { identity } = resolution;
    return this.#change((registry) => {
      const known = registry.projects.find((project) => project.path === identity.path);
      if (known !== undefined) return { registry, result: viewOf(known) };
      const project: RegisteredProject = {
        projectId: this.#environment.uuid(),
        name: name?.trim() ?? nameOf(identity.path),
        path: identity.path,
        identity: { ...identity, given: identity.path },
      };
      return {
        registry: { revision: registry.revision + 1, projects: [...registry.projects, project] },
        result: viewOf(project),
      };
    });
  }

  remove(projectId: string): Promise<void> {
    return this.#change((registry) => {
      const projects = registry.projects.filter((project) => project.projectId !== projectId);
      if (projects.length === registry.projects.length) {
        throw new Fault("invalid_params", `no project is called ${JSON.stringify(projectId)}`, {
          errors: [{ path: "projectId", expected: "the id of a registered project" }],
          reason: "not_found",
        });
      }
      return { registry: { revision: registry.revision + 1, projects }, result: undefined };
    });
  }

  #change<R>(change: (registry: Registry) => { readonly registry: Registry; readonly result: R }): Promise<R> {
    const changed = this.#writes.then(async () => {
      this.#needReadable();
      if (!(await this.#storeIsBack())) throw notStored();
      const { registry, result } = change(this.#registry);
      if (registry === this.#registry) return result;
      const value = toBytes(registry);
      const outcome = await this.#store.commit({
        head: KEY,
        expected: this.#stored,
        puts: [{ key: KEY, value }],
        deletes: [],
      });
      switch (outcome.outcome) {
        case "ok":
          this.#registry = registry;
          this.#stored = value;
          return result;
        case "unknown":
          // What is there decides; by now the registry has been read again. Contract section 8.
          if ((await this.#storeIsBack()) && this.#stored !== null && Buffer.from(this.#stored).equals(value))
            return result;
          throw notStored();
        case "conflict":
          await this.load();
          throw notStored();
        case "failed":
          await this.#storeIsBack();
          throw notStored();
        default:
          return outcome satisfies never;
      }
    });
    this.#writes = changed.catch(() => undefined);
    return changed;
  }

  #needReadable(): void {
    if (this.#isReadable) return;
    throw new Fault(
      "storage_unavailable",
      "the stored project registry is damaged; stop the service and run: clankie doctor",
    );
  }
}

const notStored = (): Fault => new Fault("storage_unavailable", "the project registry was not stored");

const viewOf = ({ projectId, name, path }: RegisteredProject): ProjectView => ({ projectId, name, path });
