/** Folder with the data that each release wrote. */
export declare const FIXTURES: string
/** SHA-256 of the sources of the schema. */
export declare function schemaHash(base?: string): string
/** The hash of the schema of the committed data of a release; undefined without data. */
export declare function fixtureHash(version: string, base?: string): string | undefined
/** Images that the Dockerfile and the Compose files name without a digest. */
export declare function unpinnedImages(base?: string): string[]
/** Why the checkout cannot be released as `version`; empty if it can. */
export declare function releaseFaults(checkout: {
  version: string
  changelog: string
  status: string
  fixture: string | undefined
  schema: string
  today: string
  unpinned: readonly string[]
}): string[]
