/**
 * Texts in which a product code enters, and the form of the specification in which untag stores and answers it: 8 or 13
 * digits. Sources: GS1 General Specifications (UPC-E, check digits), ISO/IEC 15424 (AIM prefixes), GS1 Digital Link.
 */
export interface WrittenCode {
  readonly what: string
  readonly text: string
  readonly ean: string
  /** True if a person or a spreadsheet made the text: a lane does not take it for a product code. */
  readonly byHand?: true
}

const PEN = '4006381333931'
const EAN8 = '96385074'
const ISBN = '9783161484100'
const UPC = '0036000291452'
const UPC_OF_E = '0012345000065'

export const CODES: readonly WrittenCode[] = [
  { what: 'EAN-13', text: PEN, ean: PEN },
  { what: 'EAN-8', text: EAN8, ean: EAN8 },
  { what: 'GTIN-14 of a unit', text: '04006381333931', ean: PEN },
  { what: 'EAN-8 in 14 digits', text: '00000096385074', ean: EAN8 },
  { what: 'AIM prefix of EAN-13', text: `]E0${PEN}`, ean: PEN },
  { what: 'AIM prefix of EAN-8', text: `]E4${EAN8}`, ean: EAN8 },
  { what: 'AIM prefix of ITF-14', text: ']I004006381333931', ean: PEN },
  { what: 'element string', text: '0104006381333931', ean: PEN },
  { what: 'element string of DataBar', text: ']e00104006381333931', ean: PEN },
  { what: 'element string with GS', text: '\u001d010400638133393110LOT1\u001d21S1', ean: PEN },
  { what: 'element string without GS', text: '010400638133393110LOT1234567890AB21SERIAL000123', ean: PEN },
  { what: 'element string with | for GS', text: '010400638133393110LOT1|21S1', ean: PEN },
  { what: 'element string with <GS>', text: ']d2010400638133393110LOT1<GS>21S1', ean: PEN },
  { what: 'element string in brackets', text: '(01)04006381333931(17)261231', ean: PEN },
  { what: 'Digital Link', text: 'https://id.gs1.org/01/04006381333931', ean: PEN },
  { what: 'Digital Link of a brand', text: 'https://brand.example/x/01/04006381333931/10/A?17=261231', ean: PEN },
  { what: 'Digital Link with AIM prefix', text: `]Q1https://brand.example/gtin/${PEN}`, ean: PEN },
  { what: 'blanks and line end', text: ` ${PEN}\r\n`, ean: PEN },
  { what: 'spaces', text: '4 006381 333931', ean: PEN, byHand: true },
  { what: 'hyphens of an ISBN', text: '978-3-16-148410-0', ean: ISBN, byHand: true },
  { what: 'non-breaking hyphens', text: '978‑3‑16‑148410‑0', ean: ISBN, byHand: true },
  { what: 'number of a spreadsheet', text: `${PEN}.0`, ean: PEN, byHand: true },
  { what: 'number with an exponent', text: '4.006381333931E12', ean: PEN, byHand: true },
  { what: 'ISBN with an add-on', text: '978030640615751995', ean: '9780306406157' },
]

/** Codes that only an account with `acceptUpc` sells. */
export const UPC_CODES: readonly WrittenCode[] = [
  { what: 'UPC-A', text: '036000291452', ean: UPC },
  { what: 'UPC-A as EAN-13', text: UPC, ean: UPC },
  { what: 'UPC-A in 14 digits', text: '00036000291452', ean: UPC },
  { what: 'UPC-A in an element string', text: '0100036000291452', ean: UPC },
  { what: 'UPC-A in a Digital Link', text: 'https://id.gs1.org/01/00036000291452', ean: UPC },
  { what: 'UPC-A without its zero', text: '36000291452', ean: UPC, byHand: true },
  { what: 'UPC-A as number of a spreadsheet', text: '36000291452.0', ean: UPC, byHand: true },
  { what: 'UPC-E', text: '01234565', ean: UPC_OF_E },
  { what: 'UPC-E without its zero', text: '1234565', ean: UPC_OF_E, byHand: true },
  { what: 'UPC-E that the scanner names', text: ']E001234565', ean: UPC_OF_E },
  { what: 'EAN-8 with a leading zero', text: ']E401234565', ean: '0000001234565' },
]

/** Texts that are no product code, with the fault that the reader names. */
export const NO_CODES: readonly (readonly [what: string, text: string, fault: string])[] = [
  ['a word', 'Milch', 'not_a_code'],
  ['nothing', ' ', 'not_a_code'],
  ['six digits', '123456', 'not_a_code'],
  ['a UPC-A with a wrong check digit', '036000291453', 'check_digit'],
  ['a GTIN-14 with a wrong check digit', '04006381333932', 'check_digit'],
  ['an element string that was misread', '010400638133393210ABC123', 'not_a_code'],
  ['an EAN with hyphens and a wrong check digit', '4-006381-333932', 'check_digit'],
  ['the content of a case', '020400638133393115261231', 'check_digit'],
  ['a number that a spreadsheet cut', '4,00638E+12', 'rounded'],
  ['an ISBN of ten digits', '0-306-40615-2', 'isbn_10'],
  ['a compressed Digital Link', 'https://id.gs1.org/ARFKk4XB0CDKWcnpq', 'web_address'],
  ['a web address', 'https://example.com/menu', 'web_address'],
  ['a text of 501 characters', '1'.repeat(501), 'not_a_code'],
]
