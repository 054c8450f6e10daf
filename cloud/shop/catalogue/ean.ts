import { z } from 'zod'
import { eanOfGtin14, hasValidCheckDigit } from '../../../policy/gs1/gtin.ts'
import { readProductCode, type CodeFault } from '../../../policy/gs1/product-code.ts'
import { invalid } from '../../platform/foundation/failure.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { prepared } from '../../platform/persistence/prepared.ts'

/** What to do about a text that is no product code. */
const REMEDIES: Readonly<Record<CodeFault | 'case', string>> = {
  not_a_code: 'is not a product code: send the 8 or 13 digits of the EAN, or what the scanner read',
  check_digit: 'has a wrong last digit, or another digit is wrong: compare it with the printed code',
  rounded: 'was rounded by a spreadsheet: format the column as text, and write all digits',
  isbn_10: 'is an ISBN of 10 digits: send the 13 digits that begin with 978',
  web_address:
    'is a web address without a readable GTIN, perhaps a compressed GS1 Digital Link: scan the EAN, or send a link ' +
    'with /01/ and the GTIN',
  case: 'is the code of a case of goods: send the code of one unit',
}

/** Reading of a text as the EANs under which a product may be stored, the likelier first. */
function read(text: string): { eans: readonly [string, ...string[]] } | { fault: CodeFault | 'case' } {
  const result = readProductCode(text)
  if (!result.ok) return { fault: result.fault }
  const { gtin14, otherGtin14 } = result.code
  const ean = eanOfGtin14(gtin14)
  const other = otherGtin14 === undefined ? undefined : eanOfGtin14(otherGtin14)
  if (ean === undefined) return { fault: 'case' }
  return { eans: other === undefined ? [ean] : [ean, other] }
}

/** EANs under which the product of a text may be stored, the likelier first; empty if the text is no product code. */
export function eansOf(text: string): readonly string[] {
  const result = read(text)
  return 'eans' in result ? result.eans : []
}

/** The text in the form of the specification, to compare; other texts unchanged. */
export function comparableCode(text: string): string {
  return eansOf(text)[0] ?? text
}

/** An EAN to store: any text that `readProductCode` reads becomes 8 or 13 digits (ADR catalogue). */
export const Ean = z
  .string()
  .transform((text, context) => {
    const result = read(text)
    if ('eans' in result) return result.eans[0]
    context.addIssue({ code: 'custom', message: `"${shown(text)}" ${REMEDIES[result.fault]}`, input: text })
    return z.NEVER
  })
  .describe('The EAN in any form that scanners send and people write. It is stored as 8 or 13 digits.')

function shown(text: string): string {
  const line = text.replaceAll(/[\u0000-\u001f\u007f]/g, ' ')
  return line.length > 40 ? `${line.slice(0, 40)}…` : line
}

/** True for a UPC-A, and for an EAN-8 with a leading zero. The account must accept them. */
export function isUpc(ean: string): boolean {
  return ean.startsWith('0')
}

const upcSetting = prepared((db, p: { tenant: string }) =>
  db.selectFrom('account_setting').select('accept_upc').where('tenant', '=', p.tenant),
)

/** The account setting `acceptUpc`. */
export async function acceptsUpc(db: Db, tenant: string): Promise<boolean> {
  const [row] = await upcSetting(db, { tenant })
  return row?.accept_upc === 1
}

/** Error of a UPC in an account that does not accept it. */
export function upcRefusal(ean: string): { code: string; message: string } {
  return {
    code: 'upc_not_accepted',
    message: `${ean} is a UPC, which this account does not accept: set acceptUpc with updateAccountSettings`,
  }
}

/** Throws 400 for a UPC in an account that does not accept it. */
export async function assertAcceptable(db: Db, tenant: string, ean: string): Promise<void> {
  if (!isUpc(ean) || (await acceptsUpc(db, tenant))) return
  const { code, message } = upcRefusal(ean)
  throw invalid('ean', message, code)
}

/** Why no product has this code, as the continuation of "is not in the catalogue"; empty for an ordinary EAN. */
export async function whyUnknown(db: Db, tenant: string, text: string): Promise<string> {
  const result = read(text)
  if ('fault' in result) return `: "${shown(text)}" ${REMEDIES[result.fault]}`
  const upc = result.eans.find(isUpc)
  if (upc === undefined || result.eans[0] !== upc || (await acceptsUpc(db, tenant))) return ''
  return `: ${upcRefusal(upc).message}`
}

/** Warning for an EAN with a wrong check digit; undefined if the check digit is right. */
export function eanWarning(ean: string): string | undefined {
  return hasValidCheckDigit(ean) ? undefined : `ean ${ean}: the last digit is not the correct check digit`
}
