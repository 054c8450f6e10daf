import { describe, expect, it } from 'vitest'
import { readSources } from './sources.ts'

/** Product code only, because simulated devices and tests have no secrets to protect. */
const sources = readSources(['policy', 'device-drivers', 'edge-agent', 'cloud', 'clients', 'host', 'bin'])

/** Endings of expressions with a secret: `secret`, `known.secret`, `codeHash`, `frame.mac`. */
const SECRET =
  /(?:^|[._#])(?:[a-z]\w*(?:Secret|Password|Pin|Credential|ApiKey|Hmac|Mac|Cryptogram|Challenge|Cookie|Verifier|Assertion|Signature|Ticket|Csrf)|secret|password|passphrase|pin|credential|apiKey|hmac|mac|cryptogram|challenge|cookie|verifier|assertion|signature|ticket|accessToken|bearer|(?:code|token|secret|key|pin|challenge|credential)(?:Hash|_hash)|(?:pickup|checkIn|enrolment|badge|pairing)Code|openSecret|checkInCode|digest)$/
/** Operands that do not leak when compared with a secret: undefined, null, a type, a length, a fixed text. */
const HARMLESS = /^(?:undefined|null|true|false|typeof\b.*|-?[\d_]+|''|""|``|[A-Z][A-Z0-9_]+(?:\.\w+)*)$/

const OPERAND = String.raw`[\w$.?!]+(?:\([^()]*\))?`
const COMPARISON = new RegExp(String.raw`(typeof )?(${OPERAND}) *[!=]==? *(typeof )?(${OPERAND}|''|""|${'``'})`, 'g')
const EQUALS = new RegExp(String.raw`(${OPERAND})\.(?:equals|compare|localeCompare)\(([^()]*)\)`, 'g')

const nameOf = (operand: string) => operand.replace(/\([^()]*\)$/, '').replaceAll(/[?!]/g, '')
const isSecret = (operand: string) => SECRET.test(nameOf(operand)) && !nameOf(operand).endsWith('length')

/** The comparisons in `code` whose duration reveals how much of a secret is right. */
function leakyComparisons(code: string): string[] {
  const operators = [...code.matchAll(COMPARISON)]
    .filter(([, typeofLeft, , typeofRight]) => typeofLeft === undefined && typeofRight === undefined)
    .map(([text, , left = '', , right = '']) => ({ text, sides: [left, right] }))
  const methods = [...code.matchAll(EQUALS)].map(([text, left = '', right = '']) => ({ text, sides: [left, right] }))
  return [...operators, ...methods]
    .filter(({ sides }) => sides.some(isSecret) && !sides.some((side) => HARMLESS.test(side)))
    .map(({ text }) => text)
}

describe('comparisons of secrets', () => {
  it('are found by this test', () => {
    for (const leak of [
      'if (given === secret) return true',
      'row.code_hash !== codeHash',
      'return known.pin == pin',
      'code.trim() !== checkInCode(row)',
      'secret !== openSecret(sealer, id)',
      'frame.mac.equals(expected)',
      "createHmac('').update(body).digest() === given",
    ])
      expect(leakyComparisons(leak), leak).toHaveLength(1)
    for (const harmless of [
      'secret === undefined',
      'secret.length !== 32',
      "typeof pin === ''",
      'pin === null',
      'spin === x',
    ])
      expect(leakyComparisons(harmless), harmless).toEqual([])
  })

  it('use secretsEqual, which takes the same time for right and wrong secrets', () => {
    expect(sources.flatMap(({ path, code }) => leakyComparisons(code).map((text) => `${path}: ${text}`))).toEqual([])
    expect(sources.filter(({ code }) => code.includes('timingSafeEqual')).map(({ path }) => path)).toEqual([
      'policy/secrets-equal.ts',
    ])
  })
})
