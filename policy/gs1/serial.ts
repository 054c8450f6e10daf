/**
 * The alphanumeric serial number of an item, GS1 application identifier 21: 1–20 characters of the
 * "AI encodable character set 82" (GS1 General Specifications §7.11), and its form inside EPC URIs,
 * where seven of them are written as escapes (TDS annex A).
 */

/** Whether `text` may stand as an alphanumeric serial number: 1–20 characters of set 82. */
export function isSerial(text: string): boolean {
  return /^[!"%-?A-Z_a-z]{1,20}$/.test(text)
}

/** Whether an SGTIN-96 can carry `text`: a number up to 2³⁸ − 1 and no leading zero, which it would lose. */
export function isNumericSerial(text: string): boolean {
  return /^(?:0|[1-9]\d{0,11})$/.test(text) && Number(text) < 2 ** 38
}

/** `serial` as an EPC URI writes it. */
export function escapeSerial(serial: string): string {
  return serial.replace(/["%&/<>?]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
}

/**
 * The serial that an EPC URI writes as `text`, its length unchecked. Undefined unless each character
 * has the one form that TDS annex A gives it: no bare `/`, no `%41` for an A. Escapes are read in both cases.
 */
export function unescapeSerial(text: string): string | undefined {
  if (!/^(?:[!'-.0-;=A-Z_a-z]|%(?:2[256Ff]|3[CEFcef]))+$/.test(text)) return undefined
  return text.replace(/%(..)/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
}
