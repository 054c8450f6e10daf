/** One step of the schema. */
export interface Migration {
  readonly name: string
  /** Statements in portable SQL: `bigint` for whole numbers, `text` for the rest. */
  readonly statements: readonly string[]
}
