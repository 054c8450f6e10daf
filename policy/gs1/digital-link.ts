import { itemOf, type ScannedItem } from './gs1-fields.ts'
import { hasValidCheckDigit, toGtin14 } from './gtin.ts'

/** Maximum length of a scanned link, characters. */
const MAX_LENGTH = 500
const LINK =
  /^https?:\/\/[^/?#]+(?:\/[^?#]*?)?\/(?:01|gtin)\/(\d{8}|\d{12,14})((?:\/[^/?#]+\/[^/?#]+){0,3})\/?(?:\?([^#]*))?(?:#.*)?$/i

/** Older keys of GS1 Digital Link, in words. */
const OLDER_KEYS: Readonly<Record<string, string>> = { lot: '10', exp: '17', ser: '21' }

/**
 * Parses a GS1 Digital Link with a GTIN on any host: `https://id.gs1.org/01/09506000134352/21/ABC?17=…` (GS1 Digital
 * Link URI Syntax 1.4). Accepts the older keys `gtin`, `lot`, `exp` and `ser`. Undefined for any other text, also for
 * the compressed form, whose GTIN is not readable.
 */
export function parseDigitalLink(text: string): ScannedItem | undefined {
  if (text.length > MAX_LENGTH) return undefined
  const [, gtin = '', path = '', query = ''] = LINK.exec(text) ?? []
  const gtin14 = hasValidCheckDigit(gtin) ? toGtin14(gtin) : undefined
  if (gtin14 === undefined) return undefined
  const fields = new Map<string, string>()
  const steps = path.split('/').slice(1)
  for (let i = 0; i + 1 < steps.length; i += 2) addField(fields, steps[i], steps[i + 1])
  for (const pair of query.split(/[&;]/)) addField(fields, ...(pair.split('=', 2) as [string, string?]))
  return itemOf(gtin14, fields)
}

function addField(fields: Map<string, string>, key = '', escaped = ''): void {
  const identifier = OLDER_KEYS[key.toLowerCase()] ?? key
  const value = unescaped(escaped)
  if (value !== undefined && !fields.has(identifier)) fields.set(identifier, value)
}

function unescaped(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
