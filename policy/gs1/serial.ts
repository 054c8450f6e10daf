/**
 * Serial number of an item (GS1 application identifier 21): 1–20 characters of character set 82 (GS1 General
 * Specifications §7.11). EPC URIs escape seven of these characters (TDS annex A).
 */

/** True if `text` is a valid serial number. */
export function isSerial(text: string): boolean {
  return /^[!"%-?A-Z_a-z]{1,20}$/.test(text)
}

/** True if an SGTIN-96 can store `text`: a number up to 2³⁸ − 1 without leading zeros. */
export function isNumericSerial(text: string): boolean {
  return /^(?:0|[1-9]\d{0,11})$/.test(text) && Number(text) < 2 ** 38
}

/** Escapes a serial for an EPC URI. */
export function escapeSerial(serial: string): string {
  return serial.replace(/["%&/<>?]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
}

/**
 * Unescapes a serial of an EPC URI; does not check its length. Accepts only the forms of TDS annex A, for example no
 * bare `/` and no `%41` for A. Escapes may be upper or lower case.
 */
export function unescapeSerial(text: string): string | undefined {
  if (!/^(?:[!'-.0-;=A-Z_a-z]|%(?:2[256Ff]|3[CEFcef]))+$/.test(text)) return undefined
  return text.replace(/%(..)/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
}
