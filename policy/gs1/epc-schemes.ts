import { checkDigit } from './gtin.ts'
import { isSerial, decodeSgtin } from './sgtin.ts'

/**
 * Content of the EPC memory of a tag in a scheme of GS1 (EPC Tag Data Standard 2.3, section 14).
 *
 *     classic   header 8 | filter 3 | partition 3 | company prefix and reference | serial
 *     EPC+      header 8 | +AIDC data 1 | filter 3 | date 20 of a DSGTIN+ | GS1 key | serial | +AIDC data or hostname
 *
 * A partition says where the company prefix ends. EPC+ stores the key in decimal digits without this border.
 */
interface EpcContent {
  readonly scheme: string
  /** Digits that begin with the company prefix of the tag's owner. */
  readonly owner: string
  /** Values by application identifier, the GS1 key first. */
  readonly fields: ReadonlyMap<string, string>
}

/** A GS1 key: its application identifier, and its digits without check digit from company prefix and reference. */
interface Key {
  readonly identifier: string
  /** True if the first digit of the reference stands before the company prefix (indicator or extension digit). */
  readonly isLed?: true
  /** Digits in front of an EPC+ key that belong to no company, such as the 0 of a GRAI. */
  readonly filler?: string
  /** Application identifier of the serial; absent: the serial follows the key in the same field. */
  readonly serial?: string
  readonly hasCheckDigit: boolean
}

const SGTIN: Key = { identifier: '01', isLed: true, serial: '21', hasCheckDigit: true }
const SSCC: Key = { identifier: '00', isLed: true, hasCheckDigit: true }
const SGLN: Key = { identifier: '414', serial: '254', hasCheckDigit: true }
const GRAI: Key = { identifier: '8003', filler: '0', hasCheckDigit: true }
const GIAI: Key = { identifier: '8004', hasCheckDigit: false }
const GDTI: Key = { identifier: '253', hasCheckDigit: true }
const GSRN: Key = { identifier: '8018', hasCheckDigit: true }
const GSRNP: Key = { identifier: '8017', hasCheckDigit: true }
const SGCN: Key = { identifier: '255', hasCheckDigit: true }
const ITIP: Key = { identifier: '8006', isLed: true, serial: '21', hasCheckDigit: true }
const CPI: Key = { identifier: '8010', serial: '8011', hasCheckDigit: false }

/**
 * A classic scheme. `total`: bits of company prefix and reference. `extra`: digits of the reference beyond the
 * partition. `serial`: its bits; `numeric` has a 1 in front that keeps leading zeros.
 */
interface Classic {
  readonly scheme: string
  readonly key: Key
  readonly total: number
  readonly extra: number
  readonly serial?: readonly [form: 'integer' | 'numeric' | 'text', bits: number]
}

/** Classic schemes by header, but for SGTIN. */
const CLASSIC: Readonly<Record<string, Classic>> = {
  '2C': { scheme: 'gdti-96', key: GDTI, total: 41, extra: 0, serial: ['integer', 41] },
  '2D': { scheme: 'gsrn-96', key: GSRN, total: 58, extra: 5 },
  '2E': { scheme: 'gsrnp-96', key: GSRNP, total: 58, extra: 5 },
  '31': { scheme: 'sscc-96', key: SSCC, total: 58, extra: 5 },
  '32': { scheme: 'sgln-96', key: SGLN, total: 41, extra: 0, serial: ['integer', 41] },
  '33': { scheme: 'grai-96', key: GRAI, total: 44, extra: 0, serial: ['integer', 38] },
  '37': { scheme: 'grai-170', key: GRAI, total: 44, extra: 0, serial: ['text', 112] },
  '39': { scheme: 'sgln-195', key: SGLN, total: 41, extra: 0, serial: ['text', 140] },
  '3A': { scheme: 'gdti-113', key: GDTI, total: 41, extra: 0, serial: ['numeric', 58] },
  '3E': { scheme: 'gdti-174', key: GDTI, total: 41, extra: 0, serial: ['text', 119] },
  '3F': { scheme: 'sgcn-96', key: SGCN, total: 41, extra: 0, serial: ['numeric', 41] },
  '40': { scheme: 'itip-110', key: ITIP, total: 44, extra: 1, serial: ['integer', 38] },
  '41': { scheme: 'itip-212', key: ITIP, total: 44, extra: 1, serial: ['text', 140] },
}

/** GIAI and CPI, whose references have no fixed number of digits. `total` as in `Classic`. */
interface Free {
  readonly scheme: string
  readonly key: Key
  readonly total: number
  readonly form: 'integer' | 'text' | 'six'
}

const FREE: Readonly<Record<string, Free>> = {
  '34': { scheme: 'giai-96', key: GIAI, total: 82, form: 'integer' },
  '38': { scheme: 'giai-202', key: GIAI, total: 188, form: 'text' },
  '3C': { scheme: 'cpi-96', key: CPI, total: 51, form: 'integer' },
  '3D': { scheme: 'cpi-var', key: CPI, total: 0, form: 'six' },
}

/** EPC+: number of digits of the key; 0: digits until a delimiter. The ++ forms also contain a hostname. */
interface Plus {
  readonly scheme: string
  readonly key: Key
  readonly digits: number
  readonly tail?: 'text' | 'number'
}

const PLUS_SCHEMES: readonly (Plus & { readonly headers: readonly [plus: string, plusPlus: string] })[] = [
  { headers: ['F7', 'FD'], scheme: 'sgtin', key: SGTIN, digits: 14, tail: 'text' },
  { headers: ['FB', 'FC'], scheme: 'dsgtin', key: SGTIN, digits: 14, tail: 'text' },
  { headers: ['F9', 'EF'], scheme: 'sscc', key: SSCC, digits: 18 },
  { headers: ['F2', 'E9'], scheme: 'sgln', key: SGLN, digits: 13, tail: 'text' },
  { headers: ['F1', 'EB'], scheme: 'grai', key: GRAI, digits: 14, tail: 'text' },
  { headers: ['FA', 'EE'], scheme: 'giai', key: GIAI, digits: 0 },
  { headers: ['F6', 'EA'], scheme: 'gdti', key: GDTI, digits: 13, tail: 'text' },
  { headers: ['F4', 'E7'], scheme: 'gsrn', key: GSRN, digits: 18 },
  { headers: ['F5', 'E8'], scheme: 'gsrnp', key: GSRNP, digits: 18 },
  { headers: ['F8', 'EC'], scheme: 'sgcn', key: SGCN, digits: 13, tail: 'number' },
  { headers: ['F3', 'ED'], scheme: 'itip', key: ITIP, digits: 18, tail: 'text' },
  { headers: ['F0', 'E6'], scheme: 'cpi', key: CPI, digits: 0, tail: 'number' },
]
const PLUS: Readonly<Record<string, Plus>> = Object.fromEntries(
  PLUS_SCHEMES.flatMap(({ headers: [plus, plusPlus], scheme, ...row }) => [
    [plus, { ...row, scheme: `${scheme}+` }],
    [plusPlus, { ...row, scheme: `${scheme}++` }],
  ]),
)

/** Application identifiers of the date of a DSGTIN+, by its type. */
const DATES = ['11', '13', '15', '16', '17', '7006', '7007']
const COMPANY_PREFIX_BITS = [40, 37, 34, 30, 27, 24, 20]
const BASE_64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
/** ISO/IEC 15962: 0 fills up. */
const CODE_40 = '\u0000ABCDEFGHIJKLMNOPQRSTUVWXYZ-.:0123456789'

/** Decodes an EPC (hex, whole words). Undefined if it is of no scheme of GS1, or if it contains an impossible value. */
export function decodeEpc(hex: string): EpcContent | undefined {
  if (!/^(?:[0-9A-Fa-f]{4})+$/.test(hex)) return undefined
  const header = hex.slice(0, 2).toUpperCase()
  if (header === '30' || header === '36') return sgtinOf(hex)
  const [classic, free, plus] = [CLASSIC[header], FREE[header], PLUS[header]]
  const bits = new Bits(hex, 8)
  const read = classic ? classicOf(bits, classic) : free ? freeOf(bits, free) : plus ? plusOf(bits, plus) : undefined
  return read && !bits.isOver ? read : undefined
}

function sgtinOf(hex: string): EpcContent | undefined {
  const decoded = decodeSgtin(hex)
  if (!decoded.ok) return undefined
  const { scheme, gtin14, serial } = decoded.sgtin
  return {
    scheme,
    owner: gtin14.slice(1),
    fields: new Map([
      ['01', gtin14],
      ['21', serial],
    ]),
  }
}

function classicOf(bits: Bits, { scheme, key, total, extra, serial: form }: Classic): EpcContent | undefined {
  const prefix = companyPrefixOf(bits)
  if (!prefix) return undefined
  const reference = padded(bits.integer(total - prefix.bits), prefix.partition + extra)
  const pieces = key === ITIP ? [bits.integer(7), bits.integer(7)].map((number) => padded(number, 2)) : []
  const serial = form && (form[0] === 'text' ? bits.text(form[1]) : bits.integer(form[1]))
  if (reference === undefined || pieces.includes(undefined) || (form && serial === undefined) || !bits.isPadded)
    return undefined
  const digits = key.isLed ? reference.slice(0, 1) + prefix.digits + reference.slice(1) : prefix.digits + reference
  const checked = (key.filler ?? '') + digits + checkDigit(digits) + pieces.join('')
  // The 1 in front of a numeric string only keeps its leading zeros.
  if (form?.[0] === 'numeric' && !serial?.startsWith('1')) return undefined
  const owner = prefix.digits + (key.isLed ? reference.slice(1) : reference)
  return content(scheme, key, owner, checked, form?.[0] === 'numeric' ? serial?.slice(1) : serial)
}

function freeOf(bits: Bits, { scheme, key, total, form }: Free): EpcContent | undefined {
  const prefix = companyPrefixOf(bits)
  if (!prefix) return undefined
  const reference =
    form === 'six'
      ? bits.sixBitText()
      : form === 'text'
        ? bits.text(total - prefix.bits)
        : bits.integer(total - prefix.bits)
  const serial = key === CPI ? bits.integer(form === 'six' ? 40 : 31) : undefined
  if (reference === undefined || !bits.isPadded) return undefined
  return content(scheme, key, prefix.digits, prefix.digits + reference, serial)
}

function plusOf(bits: Bits, { scheme, key, digits: count, tail }: Plus): EpcContent | undefined {
  bits.skip(4)
  const date = scheme.startsWith('d') ? ([DATES[bits.number(4)], bits.date()] as const) : undefined
  const value = count === 0 ? bits.delimited() : bits.digits(count)
  if (value === undefined || (date && (date[0] === undefined || date[1] === undefined))) return undefined
  const filler = key.filler ?? ''
  const numbered = key === ITIP ? value.slice(0, 14) : value.slice(filler.length)
  if (!value.startsWith(filler)) return undefined
  if (key.hasCheckDigit && checkDigit(numbered.slice(0, -1)) !== Number(numbered.at(-1))) return undefined
  const serial = tail === 'text' ? bits.alphanumeric() : tail === 'number' ? bits.counted(bits.number(4)) : undefined
  if (tail && serial === undefined) return undefined
  const read = content(scheme, key, key.isLed ? numbered.slice(1) : numbered, value, serial)
  if (!read) return undefined
  const fields = new Map(read.fields)
  if (date?.[0] !== undefined && date[1] !== undefined) fields.set(date[0], date[1])
  if (!scheme.endsWith('++')) for (const [identifier, text] of bits.aidcData()) fields.set(identifier, text)
  return { ...read, fields }
}

function content(scheme: string, key: Key, owner: string, value: string, serial = ''): EpcContent | undefined {
  const hasSerial = key.serial !== undefined && serial !== '' && !(key === SGLN && serial === '0')
  if (hasSerial && !isSerial(serial)) return undefined
  const fields = new Map([[key.identifier, key.serial === undefined ? value + serial : value]])
  if (hasSerial && key.serial !== undefined) fields.set(key.serial, serial)
  return { scheme, owner, fields }
}

function companyPrefixOf(bits: Bits): { digits: string; bits: number; partition: number } | undefined {
  bits.skip(3)
  const partition = bits.number(3)
  const count = COMPANY_PREFIX_BITS[partition]
  const digits = count === undefined ? undefined : padded(bits.integer(count), 12 - partition)
  return count === undefined || digits === undefined ? undefined : { digits, bits: count, partition }
}

/** Undefined if the number has more digits. No digits: the number must be 0. */
function padded(number: string, digits: number): string | undefined {
  if (digits === 0) return number === '0' ? '' : undefined
  return number.length > digits ? undefined : number.padStart(digits, '0')
}

/** Reads the bits of an EPC one field after the other. Beyond the end it reads zeros, and `isOver` is true. */
class Bits {
  readonly #bits: string
  #at: number

  constructor(hex: string, at: number) {
    this.#bits = BigInt(`0x${hex}`)
      .toString(2)
      .padStart(4 * hex.length, '0')
    this.#at = at
  }

  get isOver(): boolean {
    return this.#at > this.#bits.length
  }

  /** True if all bits that follow are zero. */
  get isPadded(): boolean {
    return !this.#bits.includes('1', this.#at)
  }

  skip(count: number): void {
    this.#at += count
  }

  #take(count: number): string {
    const taken = this.#bits.slice(this.#at, this.#at + count)
    this.#at += count
    return taken.padEnd(count, '0')
  }

  number(count: number): number {
    return Number.parseInt(this.#take(count), 2)
  }

  integer(count: number): string {
    return count === 0 ? '0' : BigInt(`0b${this.#take(count)}`).toString()
  }

  /** Decimal digits of 4 bits each. */
  digits(count: number): string | undefined {
    let text = ''
    for (let i = 0; i < count; i++) text += this.number(4).toString(16)
    return /^\d*$/.test(text) ? text : undefined
  }

  /** An integer of `count` digits, in the fewest bits that hold all of them. */
  counted(count: number): string | undefined {
    return padded(this.integer(Math.ceil(count * Math.log2(10))), count)
  }

  /** Characters of 7 bits, zeros at the end. */
  text(count: number): string | undefined {
    const text = this.#characters(Math.floor(count / 7), 7, (code) => String.fromCharCode(code)).replace(/\u0000+$/, '')
    this.skip(count % 7)
    return text.includes('\u0000') ? undefined : text
  }

  /** Characters of 6 bits until a zero. */
  sixBitText(): string {
    let text = ''
    for (let code = this.number(6); code !== 0; code = this.number(6))
      text += String.fromCharCode(code < 32 ? code + 64 : code)
    return text
  }

  /** Digits until the delimiter F, or until E and an alphanumeric rest (section 14.5.5). */
  delimited(): string | undefined {
    let text = ''
    for (let digit = this.number(4); !this.isOver; digit = this.number(4)) {
      if (digit === 15) return text
      if (digit === 14) {
        const rest = this.alphanumeric()
        return rest === undefined ? undefined : text + rest
      }
      if (digit > 9) return undefined
      text += digit
    }
    return undefined
  }

  /** Encoding indicator, number of characters, characters (section 14.5.6). */
  alphanumeric(): string | undefined {
    const form = this.number(3)
    const count = this.number(5)
    if (form === 0) return this.counted(count)
    if (form === 1) return this.#characters(count, 4, (code) => code.toString(16).toUpperCase())
    if (form === 2) return this.#characters(count, 4, (code) => code.toString(16))
    if (form === 3) return this.#characters(count, 6, (code) => BASE_64.charAt(code))
    if (form === 4) return this.#characters(count, 7, (code) => String.fromCharCode(code))
    if (form !== 5) return undefined
    const triple = (value: number) => [1600, 40, 1].map((unit) => CODE_40.charAt(Math.floor((value - 1) / unit) % 40))
    return this.#characters(Math.ceil(count / 3), 16, (value) => triple(value).join('')).slice(0, count)
  }

  /** YYMMDD in 7, 4 and 5 bits; undefined for a month or day that does not exist. */
  date(): string | undefined {
    const [year, month, day] = [this.number(7), this.number(4), this.number(5)]
    if (year > 99 || month < 1 || month > 12) return undefined
    return [year, month, day].map((part) => String(part).padStart(2, '0')).join('')
  }

  /** Lot and dates after the EPC (section 15.3), up to the first other field. */
  aidcData(): [identifier: string, value: string][] {
    const found: [string, string][] = []
    while (this.#bits.length - this.#at >= 16) {
      const identifier = this.digits(2) ?? ''
      const value = identifier === '10' ? this.alphanumeric() : /^1[123567]$/.test(identifier) ? this.date() : undefined
      if (value === undefined || this.isOver) break
      found.push([identifier, value])
    }
    // Reading beyond the end is no fault here: the rest of the memory may hold anything.
    this.#at = Math.min(this.#at, this.#bits.length)
    return found
  }

  #characters(count: number, width: number, character: (code: number) => string): string {
    let text = ''
    for (let i = 0; i < count; i++) text += character(this.number(width))
    return text
  }
}
