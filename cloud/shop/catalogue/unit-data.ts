import { z } from 'zod'
import { parseEpc } from '../../../policy/gs1/epc.ts'
import { isoDate, type ScannedItem } from '../../../policy/gs1/gs1-fields.ts'
import { readProductCode } from '../../../policy/gs1/product-code.ts'
import { isSerial } from '../../../policy/gs1/serial.ts'
import { invalid } from '../../platform/foundation/failure.ts'

/** Lot, expiry and serial of a unit of goods, as 2D codes and tags with EPC+ contain them (ADR 0043). */

export const UNIT_FIELDS = ['lot', 'expiry', 'serial'] as const
type UnitField = (typeof UNIT_FIELDS)[number]
export type UnitData = { readonly [field in UnitField]?: string }

const Gs1Text = z
  .string()
  .refine(isSerial, 'must be 1 to 20 of the characters A–Z a–z 0–9 ! " % & \' ( ) * + , - . / : ; < = > ? _')

/** Fields of a unit in a request. */
export const UnitInput = {
  lot: Gs1Text.optional().describe('Batch or lot (GS1 application identifier 10), if `ean` does not contain it.'),
  expiry: z.iso
    .date()
    .optional()
    .describe('Last day on which the unit may be sold (17), if `ean` does not contain it.'),
  serial: Gs1Text.optional().describe('Serial of GS1 (21), if neither `ean` nor the EPC contains it.'),
}

/** Fields of a unit in an answer. */
export const UnitOutput = {
  lot: z.string().optional(),
  expiry: z.string().optional(),
  serial: z.string().optional(),
}

/** What a request says about a unit, and in which fields. */
type Sources = { readonly [field in UnitField | 'ean']?: string | undefined } & { epc?: string | null | undefined }

/**
 * Lot, expiry and serial from the fields of a request, from its product code and from its EPC. Throws 400 if two of
 * them differ. `path`: path of the fields with a dot at its end.
 */
export function unitDataOf({ ean, epc, ...stated }: Sources, nowMs: number, path = ''): UnitData {
  const year = new Date(nowMs).getUTCFullYear()
  const code = ean === undefined ? undefined : readProductCode(ean)
  const contents = [
    ['ean', code?.ok ? contentOf(code.code, year) : {}],
    ['epc', epc ? contentOf(parseEpc(epc) ?? {}, year) : {}],
  ] as const
  const unit: { [field in UnitField]?: string } = {}
  for (const field of UNIT_FIELDS) {
    let [value, source] = [stated[field], field as string]
    for (const [name, content] of contents) {
      const read = content[field]
      if (read !== undefined && value !== undefined && read !== value)
        throw invalid(
          `${path}${source}`,
          `the ${field} is "${value}" here and "${read}" in ${name}: send what belongs to this unit`,
          'unit_differs',
        )
      if (value === undefined) [value, source] = [read, name]
    }
    if (value !== undefined) unit[field] = value
  }
  return unit
}

/** A date that does not exist is left out. */
function contentOf({ lot, expiry, serial }: Partial<ScannedItem>, year: number): Sources {
  return { lot, expiry: expiry === undefined ? undefined : isoDate(expiry, year), serial }
}
