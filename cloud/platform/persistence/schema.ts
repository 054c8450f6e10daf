import type { Selectable } from 'kysely'
import type { DB } from './tables.ts'

/**
 * Types of the tables, made from migrations/ by `npm run generate`. Times are ms since 1970 (`_ms`) or seconds (`_s`,
 * `iat`, `exp`), money is whole cents, booleans are 1 and 0, JSON is text.
 */
export type Schema = DB

/** A row of a table as queries return it. */
export type Row<Table extends keyof Schema> = Selectable<Schema[Table]>
