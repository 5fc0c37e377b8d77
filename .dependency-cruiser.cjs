// Arrows point one way: clients → protocol; server → machines → protocol. machines and protocol do no I/O.
const product = "^(machines|protocol|server|clients)/";

module.exports = {
  forbidden: [
    {
      name: "protocol-is-pure",
      comment: "protocol/ is language only: itself and typia. It runs in a browser and does no I/O.",
      severity: "error",
      from: { path: "^protocol/" },
      to: { pathNot: "^protocol/|(^|/)node_modules/(typia|@typia)/" },
    },
    {
      name: "machines-are-pure",
      comment: "machines/ is rules only: itself, protocol/, xstate and typia. It runs in a browser and does no I/O.",
      severity: "error",
      from: { path: "^machines/" },
      to: { pathNot: "^(machines|protocol)/|(^|/)node_modules/(xstate|typia|@typia)/" },
    },
    {
      name: "server-below-clients",
      comment: "server/ stands on machines/ and protocol/; it knows no client.",
      severity: "error",
      from: { path: "^server/" },
      to: { path: "^(clients|bench|scripts)/" },
    },
    {
      name: "clients-speak-protocol",
      comment:
        "Clients know the service by its protocol. Only the commands in clients/cli/local/ run or inspect it here.",
      severity: "error",
      from: { path: "^clients/", pathNot: "^clients/(cli/local|device/chart)/" },
      to: { path: "^(server|machines|bench|scripts)/" },
    },
    {
      name: "chart-page-shows-the-machine",
      comment: "The page /chart shows the rules and so may read machines/, which run in a browser; it knows no server.",
      severity: "error",
      from: { path: "^clients/device/chart/" },
      to: { path: "^(server|bench|scripts)/" },
    },
    {
      name: "local-commands-only-from-the-cli",
      severity: "error",
      from: { path: "^clients/", pathNot: "^clients/cli/" },
      to: { path: "^clients/cli/local/" },
    },
    {
      name: "page-runs-in-a-browser",
      comment: "The device page has no Node.",
      severity: "error",
      from: { path: "^clients/device/" },
      to: { dependencyTypes: ["core"] },
    },
    {
      name: "nothing-imports-tests",
      severity: "error",
      from: { pathNot: "^test/" },
      to: { path: "^test/" },
    },
    {
      name: "product-needs-no-development-package",
      severity: "error",
      from: { path: product },
      to: { dependencyTypes: ["npm-dev"], dependencyTypesNot: ["type-only"], pathNot: "(^|/)node_modules/@types/" },
    },
    { name: "no-cycles", severity: "error", from: {}, to: { circular: true } },
    { name: "everything-resolves", severity: "error", from: {}, to: { couldNotResolve: true } },
  ],
  options: {
    doNotFollow: { path: "(^|/)node_modules/" },
    exclude: { path: "^(dist|test/scripts/fixtures)/" },
    tsConfig: { fileName: "tsconfig.json" },
    tsPreCompilationDeps: true,
    moduleSystems: ["es6", "cjs"],
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "node", "types", "default"],
      mainFields: ["module", "main", "types"],
    },
  },
};
