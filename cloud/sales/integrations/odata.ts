import { z } from 'zod'
import type { Page } from './connector.ts'
import { VendorFault, readAnswer, readRecord } from './vendor-client.ts'

/** OData 4 lists (Business Central, SAP Business One): rows in `value`, and the address of the next page. */
const Listed = z.looseObject({ value: z.array(z.unknown()), '@odata.nextLink': z.string().nullish() })

/** Reads a page of a list. Rejects a next link outside of `base`, because requests to it would contain credentials. */
export function odataPage<S extends z.ZodType>(
  json: unknown,
  base: string,
  row: S,
  make: (row: z.output<S>) => Record<string, unknown>,
): Page {
  const { value, '@odata.nextLink': link } = readAnswer(Listed, json, 'a list')
  const records = value.map((raw) => readRecord(row, raw, make))
  if (link === undefined || link === null) return { records, next: null }
  const next = URL.canParse(link, `${base}/`) ? new URL(link, `${base}/`) : undefined
  if (next?.origin !== new URL(base).origin)
    throw new VendorFault('answer_not_understood', 'the address of the next page does not belong to the system')
  return { records, next: next.href }
}

/** Rows of a short list without pages. */
export function odataRows<S extends z.ZodType>(json: unknown, row: S): z.output<S>[] {
  return readAnswer(Listed, json, 'a list').value.map((raw) => readAnswer(row, raw, 'a list'))
}

/** Quotes a text in a filter. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}
