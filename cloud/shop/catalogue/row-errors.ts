import { z } from 'zod'
import { Failure } from '../../platform/foundation/failure.ts'
import { validate } from '../../platform/operations/validation.ts'
import { isUpc, upcRefusal } from './ean.ts'
import { eanOfRequest } from './named-product.ts'
import { ProductInput } from './schema.ts'

/** Error of one row of an import. */
export const RowError = z.strictObject({
  index: z.int().describe('Index in the list of rows, from 0.'),
  row: z.int().optional().describe('Row number in the file, from 1.'),
  ean: z.string().nullable(),
  field: z.string(),
  code: z.string(),
  message: z.string(),
})
export type RowError = z.infer<typeof RowError>

/** Maximum number of errors in the response; further errors are only counted. */
export const ROW_ERRORS_LIMIT = 1_000
/** Maximum number of errors reported for one row. */
const ERRORS_OF_ROW = 5

export interface RowErrors {
  readonly listed: readonly RowError[]
  /** Number of all errors, also of those that `listed` omits. */
  count(): number
  add(error: RowError): void
}

/** Collects errors up to `ROW_ERRORS_LIMIT`. */
export function rowErrors(): RowErrors {
  const listed: RowError[] = []
  let count = 0
  return {
    listed,
    count: () => count,
    add(error) {
      if (++count <= ROW_ERRORS_LIMIT) listed.push(error)
    },
  }
}

/** Names that files use for fields of the API. */
const FILE_NAMES: Readonly<Record<string, string>> = {
  isOrganic: 'is_organic',
  isVegan: 'is_vegan',
  depositVat: 'deposit_vat',
}

/** Adds the error of a UPC in an account that does not accept it. Returns true if it did. */
export function refuseUpc(
  ean: string,
  isAccepted: boolean,
  at: { index: number; row?: number },
  errors: RowErrors,
): boolean {
  if (isAccepted || !isUpc(ean)) return false
  const { code, message } = upcRefusal(ean)
  errors.add({ ...at, ean, field: 'ean', code, message: `ean: ${message}` })
  return true
}

/** Validates one row. Returns undefined and adds the errors if the row is invalid, worded by `explain`. */
export function checkRow(
  raw: unknown,
  at: { index: number; row?: number },
  errors: RowErrors,
  explain: (field: string, message: string) => string = (_, message) => message,
): (ProductInput & { ean: string }) | undefined {
  try {
    const { barcode, ean, ...product } = validate(ProductInput, raw)
    return { ...product, ean: eanOfRequest({ ean, barcode }) }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    const stated = raw as { ean?: unknown; barcode?: unknown } | null
    const ean = stated?.ean ?? stated?.barcode
    for (const { path, code, message } of (error.extras.details ?? []).slice(0, ERRORS_OF_ROW)) {
      const field = at.row === undefined ? path : (FILE_NAMES[path] ?? path)
      errors.add({
        ...at,
        ean: typeof ean === 'string' ? ean.slice(0, 40) : null,
        field,
        code,
        message: explain(field, message),
      })
    }
    return undefined
  }
}
